"""Random histories of a tenant's users, its workers and their misfortunes; in the end the graph is what it must be.

The rules draw small numbers only, which stand for "the third memory" or "the fifth point": a history that fails shrinks
to a few steps, and can be run again from what Hypothesis prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import product
from typing import Any, ClassVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.chaos.observing import differences
from tests.property.expected_graph import InvariantBrokenError, check
from tests.property.mortal_workers import BATCHES, Fate, Kind, Refusals, Worker
from tests.property.stages import Stage
from tests.property.tenants import USERS, Tenant

from memory_os.entities.model import EntityPatch
from memory_os.graph.port import GraphBackend
from memory_os.memories.model import MemoryPatch, NodeAddress
from memory_os.memories.stepping import StepKind
from memory_os.records.model import RecordLayer
from memory_os_workers import projector, rebuilder, verifier

# Some are found only once they are declared, some lie within others, some are no words to a search index.
NAMES = (
    *("Ann Miller", "Bob Stone", "Miller", "harbour light", "Ann Miller Group", "Will"),
    *("\u5c71\u7530\u592a\u90ce", "Node.js", "room 10.1", "the o'brien trust", "c++ guild"),
    *(
        f"{first} {last}"
        for first, last in product(
            ("Carl", "Dora", "Emil", "Fay", "Gus", "Ida", "Jon", "Kay", "Leo"),
            ("Berg", "Lind", "Novak", "Ortiz", "Hale", "Quist", "Vance", "Ruiz", "Sand", "Wolf"),
        )
    ),
)
EDGE_TYPES = ("SUPPORTS", "SUPERSEDES", "ABOUT", "PART_OF")
STEPS: tuple[StepKind, ...] = ("archive", "retract", "restore")
RECORD_LAYERS: tuple[RecordLayer, ...] = ("observation", "procedure", "outcome")
LAYERS = ("entity", "memory", *RECORD_LAYERS)
SETTLING = 60
"""Turns of a healthy worker after which everything must be settled."""

number = st.integers(0, 7)
"""Which one, the newest first."""

name = st.integers(0, 2) | st.integers(0, 2) | st.integers(3, 2 + len(NAMES))
"""One of the three that a history shares, or any: names are rare, and what is dense hides faults."""

names = st.lists(name, min_size=1, max_size=3)
titles = st.none() | name
spellings = st.sampled_from((str, str, str, str.upper, str.lower))
mostly = st.sampled_from((True, True, True, False))

TURN = (
    *("after:lease_tenant", "before:take_fence", "after:take_fence", "after:recognise_graph", "after:claim_events"),
    *("after:extract_again", "after:projected_memories", "before:mentioned_entities", "after:mentioned_entities"),
    *("in:projected_entities", "after:projected_entities", "after:mark_extracted", "before:apply", "after:apply"),
    *("in:finish_events", "after:finish_events", "after:fail_event", "after:refund_events", "before:apply"),
)
_REBUILD = (
    *("after:claim_rebuild", "after:take_fence", "after:mark_extracted", "before:begin_rebuild", "after:load"),
    *("after:page_of_memories", "after:page_of_entities", "after:rebuild_progress", "after:expect_graph"),
    *("before:finish_rebuild", "after:finish_rebuild", "in:rebuild_end", "after:rebuild_end", "before:apply"),
)
_STATEMENTS = ("mentioned_entities", "take_fence", "apply", "load", "begin_rebuild", "finish_rebuild")
"""Calls of the backend; all other points are of the database."""


def _kinds_at(place: str) -> Iterator[Kind]:
    yield "crash"
    yield "graph lost" if place.endswith(_STATEMENTS) else "base lost"
    if not place.startswith("in:"):
        yield "park"


def fates(places: tuple[str, ...]) -> st.SearchStrategy[Fate]:
    """Nothing, or something at a named point or at any."""
    at = [Fate(kind, place, nth) for place in places for nth in (1, 2) for kind in _kinds_at(place)]
    anywhere = st.builds(Fate, st.sampled_from(("crash", "park", "graph lost", "base lost")), nth=st.integers(1, 40))
    return st.just(Fate()) | st.sampled_from(at) | st.sampled_from(at) | anywhere


class Histories(RuleBasedStateMachine):
    """One history; `stage` is given by the test."""

    stage: ClassVar[Stage]
    wrap_backend: ClassVar[Callable[[GraphBackend], GraphBackend] | None] = None
    """What a mutant makes of the backend that workers use."""

    def __init__(self) -> None:
        super().__init__()
        self.tenant = Tenant(self.stage)
        self.refusals = Refusals()
        self.memories: list[UUID] = []
        self.forgotten: list[UUID] = []
        self.declared: list[UUID] = []
        self.undeclared: list[UUID] = []
        self.records: list[tuple[RecordLayer, UUID]] = []
        self.workers = [self.hire(seed, batch) for seed, batch in ((1, 1), (2, 3))]
        self.zombies: list[Worker] = []
        self.lost_graphs = False
        self.broken = False
        self.shared: list[str] = []
        self.healing = False

    def hire(self, seed: int = 0, batch: int = 50) -> Worker:
        wrap, stage = type(self).wrap_backend, self.stage
        backend = (lambda: wrap(stage.backend)) if wrap is not None else None
        return Worker(stage, self.refusals, seed=seed, batch=batch, backend=backend)

    @initialize(shared=st.lists(st.sampled_from(NAMES), min_size=3, max_size=3), healing=st.sampled_from("nnny"))
    def begin(self, shared: list[str], healing: str) -> None:
        """Choose what memories share, and whether the graph may be mended, which hides what it had wrong."""
        self.shared, self.healing = shared, healing == "y"

    # --- users

    @rule(
        named=names,
        titled=titles,
        spelling=spellings,
        user=st.sampled_from(USERS),
        reuse=st.booleans(),
        times=st.integers(1, 2),
    )
    def store(
        self,
        named: list[int],
        titled: int | None,
        spelling: Callable[[str], str],
        user: str | None,
        reuse: bool,
        times: int,
    ) -> None:
        ident = self.forgotten[-1] if reuse and self.forgotten else None
        stored = self.tenant.store(self.text_of(named * times, spelling), user, ident, self.title_of(titled))
        if stored is not None and stored not in self.memories:
            self.memories.append(stored)
            self.forgotten = [known for known in self.forgotten if known != stored]

    @precondition(lambda self: self.memories)
    @rule(which=number, named=names, spelling=spellings)
    def rewrite(self, which: int, named: list[int], spelling: Callable[[str], str]) -> None:
        self.tenant.mend()  # what can't be read can't be changed
        self.tenant.change(pick(self.memories, which), MemoryPatch(text=self.text_of(named, spelling)))

    @precondition(lambda self: self.memories)
    @rule(which=number, titled=titles)
    def retitle(self, which: int, titled: int | None) -> None:
        self.tenant.mend()
        self.tenant.change(pick(self.memories, which), MemoryPatch(title=self.title_of(titled)))

    @precondition(lambda self: self.memories)
    @rule(
        which=number,
        patch=st.sampled_from(
            (
                MemoryPatch(status="archived"),
                MemoryPatch(status="active"),
                MemoryPatch(label="Event"),
                MemoryPatch(valid_from=datetime(2020, 1, 1, tzinfo=UTC)),
            )
        ),
    )
    def change(self, which: int, patch: MemoryPatch) -> None:
        self.tenant.mend()
        self.tenant.change(pick(self.memories, which), patch)

    @precondition(lambda self: self.memories)
    @rule(which=number, far=number, what=st.sampled_from(("supersede", "dispute", "undo", *STEPS)), back=st.booleans())
    def act(self, which: int, far: int, what: str, back: bool) -> None:
        """Let a memory lose its place, be disputed, take a step, or take one back; maybe at once."""
        self.tenant.mend()
        ident = pick(self.memories, which)
        if what in STEPS:
            self.tenant.step(ident, what)
        elif what == "undo":
            self.tenant.undo(far)
        else:
            getattr(self.tenant, what)(ident, pick(self.memories, far))
        if back:
            self.tenant.undo(0)

    @precondition(lambda self: self.memories)
    @rule(which=number)
    def forget(self, which: int) -> None:
        ident = pick(self.memories, which)
        self.tenant.mend()
        self.tenant.forget(ident)
        self.memories.remove(ident)
        self.forgotten.append(ident)

    @rule(named=name, others=st.lists(name, max_size=2), spelling=spellings, ident=st.sampled_from("n"))
    def declare(self, named: int, others: list[int], spelling: Callable[[str], str], ident: str) -> None:
        known, aliases = self.name_of(named), [self.name_of(other) for other in others]
        chosen = {"n": None, "r": self.undeclared[-1] if self.undeclared else None, "d": self.tenant.derived_id(known)}
        declared = self.tenant.declare(spelling(known), aliases, chosen[ident])
        if declared is not None and declared not in self.declared:
            self.declared.append(declared)

    @precondition(lambda self: self.declared)
    @rule(which=number, named=name, spelling=spellings)
    def rename(self, which: int, named: int, spelling: Callable[[str], str]) -> None:
        self.tenant.redeclare(pick(self.declared, which), EntityPatch(name=spelling(self.name_of(named))))

    @precondition(lambda self: self.declared)
    @rule(which=number, aliases=st.lists(name, max_size=2))
    def realias(self, which: int, aliases: list[int]) -> None:
        named = [self.name_of(alias) for alias in aliases]
        self.tenant.redeclare(pick(self.declared, which), EntityPatch(aliases=named))

    @precondition(lambda self: self.declared)
    @rule(which=number)
    def undeclare(self, which: int) -> None:
        ident = pick(self.declared, which)
        if self.tenant.undeclare(ident):
            self.declared.remove(ident)
            self.undeclared.append(ident)

    @precondition(lambda self: len(self.declared) > 1)
    @rule(which=number, into=number)
    def merge(self, which: int, into: int) -> None:
        source = pick(self.declared, which)
        if self.tenant.merge(source, pick(self.declared, into)):
            self.declared.remove(source)
            self.undeclared.append(source)

    @precondition(lambda self: self.declared)
    @rule(which=number, alias=number)
    def split(self, which: int, alias: int) -> None:
        ident = pick(self.declared, which)
        found = self.stage.rows("SELECT aliases FROM entities WHERE id = %(id)s", id=ident)
        aliases = found[0]["aliases"] if found else []
        if aliases and (made := self.tenant.split(ident, [pick(aliases, alias)])) is not None:
            self.declared.append(made)

    @precondition(lambda self: self.memories)
    @rule(
        edge_type=st.sampled_from(EDGE_TYPES),
        source=number,
        far=number,
        entity=st.booleans(),
        turned=st.booleans(),
        confidence=st.sampled_from((None, 1 / 3)),
    )
    def tie(self, edge_type: str, source: int, far: int, entity: bool, turned: bool, confidence: float | None) -> None:
        ends = [NodeAddress(memory=pick(self.memories, source)), NodeAddress(memory=pick(self.memories, far))]
        if entity and (known := self.tenant.entities()):
            ends[1] = NodeAddress(entity=pick(known, far))  # the last are derived ones
        if turned:
            ends.reverse()
        self.tenant.tie(edge_type, ends[0], ends[1], confidence)

    @rule(which=number)
    def untie(self, which: int) -> None:
        if known := self.tenant.edges():
            self.tenant.untie(pick(known, which))

    @rule(layer=st.sampled_from(LAYERS), entity=number, far=number, begins=st.booleans())
    def link(self, layer: str, entity: int, far: int, begins: bool) -> None:
        known = self.tenant.entities()
        records = [ident for kind, ident in self.records if kind == layer]
        targets = {"entity": known, "memory": self.memories}.get(layer, records)
        if known and targets:
            begin = datetime(2021, 1, 1, tzinfo=UTC) if begins else None
            self.tenant.link(pick(known, entity), layer, pick(targets, far), (begin, None))

    @rule(which=number, close=st.booleans())
    def unlink(self, which: int, close: bool) -> None:
        if known := self.tenant.links():
            (self.tenant.close_link if close else self.tenant.unlink)(*pick(known, which))

    @rule(layer=st.sampled_from(RECORD_LAYERS), keep=st.booleans(), which=number)
    def record(self, layer: RecordLayer, keep: bool, which: int) -> None:
        if keep or not self.records:
            kept = self.tenant.keep(layer)
            self.records += [(layer, kept)] if kept else []
        else:
            gone = pick(self.records, which)
            self.tenant.discard_record(*gone)
            self.records.remove(gone)

    # --- workers

    @rule(which=st.integers(0, 1), fate=fates(TURN), expired=mostly)
    def work(self, which: int, fate: Fate, expired: bool) -> None:
        self.take_turn(which, fate, expired)

    @rule(which=st.integers(0, 1), fate=fates(TURN), expired=mostly)
    def work_too(self, which: int, fate: Fate, expired: bool) -> None:
        self.take_turn(which, fate, expired)

    @precondition(lambda self: self.healing)
    @rule(which=st.integers(0, 1), fate=fates(_REBUILD), user=st.sampled_from(USERS), asked=st.booleans())
    def rebuild(self, which: int, fate: Fate, user: str | None, asked: bool) -> None:
        if asked:
            self.tenant.ask_for_rebuild(user)
        self.tenant.expire()  # it would wait for whoever holds the tenant
        worker = self.workers[which]
        self.see_off(which, worker.begin(rebuilder.take_job(worker.context), fate))

    @precondition(lambda self: self.healing)
    @rule(which=st.integers(0, 1), fate=fates(TURN))
    def repair(self, which: int, fate: Fate) -> None:
        self.tenant.ask_for_repair()
        self.tenant.expire()
        worker = self.workers[which]
        worker.context.stopping.clear()
        self.see_off(which, worker.begin(verifier.take_job(worker.context), fate))

    @rule(which=st.integers(0, 1), dim=st.booleans(), nth=st.sampled_from((0, 0, 1, 2, 3, 4)))
    def work_blindly(self, which: int, dim: bool, nth: int) -> None:
        """A turn in which transactions have entered no tenant, or can't see its rows: all of them (0), or one."""
        self.tenant.expire()
        before = (self.stage.dump(self.tenant.id), self.done()) if nth == 0 and not dim else None
        self.take_turn(which, Fate("dim" if dim else "blind", nth=nth), expired=False)
        if before is not None and before != (self.stage.dump(self.tenant.id), self.done()):
            self.fail("a worker that saw nothing has changed the graph, or marked events as done")

    @precondition(lambda self: self.zombies)
    @rule(which=number)
    def wake(self, which: int) -> None:
        self.let_go_on(pick(self.zombies, which))

    # --- misfortunes

    @rule(what=st.sampled_from(("expire", "make_due", "wear_out", "revive", "discard", "call_rebuild_off")))
    def pass_time(self, what: str) -> None:
        getattr(self.tenant, what)()

    @rule(which=st.integers(0, 20), shuffled=st.booleans())
    def deliver_again(self, which: int, shuffled: bool) -> None:
        self.tenant.deliver_again(which)
        if shuffled:
            self.tenant.shuffle(which)

    @precondition(lambda self: self.memories)
    @rule(which=number, how=st.integers(0, 6))
    def poison(self, which: int, how: int) -> None:
        """Let a memory be of a kind that can't be read (6), or that the graph refuses after some of its statements."""
        ident = pick(self.memories, which)
        if how == 6:
            self.tenant.spoil(ident)
        else:
            self.refusals.ids.add(str(ident))
            self.refusals.after = how

    @precondition(lambda self: self.refusals.ids)
    @rule()
    def cure(self) -> None:
        self.refusals.ids.clear()
        self.tenant.mend()

    @precondition(lambda self: self.healing)
    @rule()
    def lose_graph(self) -> None:
        self.lost_graphs = True
        self.stage.run(self.stage.backend.drop(self.tenant.id))

    @precondition(lambda self: self.stage.backend.name == "networkx")
    @rule()
    def reopen(self) -> None:
        self.stage.reopen()

    # --- the invariant

    @rule()
    def quiesce(self) -> None:
        """Heal everything, project what is left, and look."""
        self.cure()
        self.tenant.expire()
        self.tenant.make_due()
        self.tenant.revive(discarded=True)
        healer = self.hire()
        for _ in range(SETTLING):
            healer.begin(projector.take_turn(healer.context, self.tenant.id), Fate())
            healer.begin(rebuilder.take_job(healer.context), Fate())
            healer.begin(verifier.take_job(healer.context), Fate())
            if not self.tenant.unsettled():
                break
            self.tenant.make_due()
            self.tenant.revive()
        else:
            self.fail(f"this does not settle: {self.tenant.unsettled()}")
        self.look()

    def look(self) -> None:
        """Hold the stores against the canonical rows."""
        try:
            check(self.stage, self.tenant.id)
        except InvariantBrokenError:
            self.broken = True
            raise
        asked = self.tenant.rows(
            "SELECT requested_by FROM graph_rebuilds WHERE tenant_id = %(tenant)s AND requested_by LIKE 'the service%%'"
        )
        if asked and not self.lost_graphs:
            self.fail(f"nothing was lost, and a rebuild was asked for by {asked[0]['requested_by']}")

    def teardown(self) -> None:
        try:
            if not self.broken:
                self.end()
        finally:
            for worker in self.zombies:
                worker.kill()
            self.tenant.leave()

    def end(self) -> None:
        """The last look: at what has grown, at what a rebuild makes of it, and at what those do who were asleep."""
        self.quiesce()
        grown = self.stage.dump(self.tenant.id)
        self.tenant.ask_for_rebuild()
        healer = self.hire()
        healer.begin(rebuilder.take_job(healer.context), Fate())
        if faults := differences(grown, self.stage.dump(self.tenant.id)):
            self.fail("a rebuild changes the graph (grown -> rebuilt):\n" + "\n".join(faults))
        if self.zombies:
            while self.zombies:
                self.let_go_on(self.zombies[0])
            self.quiesce()

    # --- what the rules share

    def fail(self, reason: str) -> None:
        self.broken = True
        raise InvariantBrokenError(reason)

    def done(self) -> int:
        return len(self.tenant.rows("SELECT 1 FROM outbox_events WHERE tenant_id = %(tenant)s AND status = 'done'"))

    def take_turn(self, which: int, fate: Fate, expired: bool) -> None:
        if expired:
            self.tenant.expire()
        worker = self.workers[which]
        self.see_off(which, worker.begin(projector.take_turn(worker.context, self.tenant.id), fate))

    def see_off(self, which: int, ended: bool) -> None:
        """Put another worker in the place of one that died or stands still."""
        worker = self.workers[which]
        if not ended:
            worker.token = self.tenant.token() if self.tenant.holder() == worker.id else None
            self.zombies.append(worker)
        if worker.dead or not ended:
            self.workers[which] = self.hire(which + 1, BATCHES[which * 2])

    def let_go_on(self, worker: Worker) -> None:
        """Let a parked worker go on. If its tenant is another's by now, the graph must not change."""
        self.tenant.expire()
        lost = worker.token is not None and worker.token != self.tenant.token()
        before = self.stage.dump(self.tenant.id) if lost else None
        if worker.resume():
            self.zombies.remove(worker)
        if before is not None and (faults := differences(before, self.stage.dump(self.tenant.id))):
            self.fail("a worker that had lost its tenant has changed the graph:\n" + "\n".join(faults))

    def name_of(self, number: int) -> str:
        return (*self.shared, *NAMES)[number]

    def text_of(self, named: list[int], spelling: Callable[[str], str]) -> str:
        return f"we saw {' with '.join(spelling(self.name_of(some)) for some in named)} there."

    def title_of(self, titled: int | None) -> str | None:
        return None if titled is None else self.name_of(titled)


def pick(known: list[Any], which: int) -> Any:
    """One of a list, whatever its length, counted from the last."""
    return known[(-1 - which) % len(known)]
