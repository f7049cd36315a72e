"""Random histories of a tenant's users, its workers and their misfortunes; in the end the graph is what it must be.

The rules draw small numbers and words, which stand for "the third memory" or "the fifth point": a history that fails
shrinks to a few steps, and can be run again from what Hypothesis prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.chaos.observing import differences
from tests.property import drawing
from tests.property.expected_graph import InvariantBrokenError, check
from tests.property.mortal_workers import BATCHES, Fate, Refusals, Worker
from tests.property.stages import Stage
from tests.property.tenants import USERS, Tenant
from tests.property.users import Act, Users, pick

from memory_os.graph.port import GraphBackend
from memory_os_workers import projector, rebuilder, verifier

SETTLING = 60
"""Turns of a healthy worker after which everything must be settled."""

CALM = 10
"""Steps after which a history may be looked at in the middle: a look heals what it meets."""

_machine: Any = st.runner()
_actions = _machine.flatmap(lambda machine: st.sampled_from(machine.setting.theme))
_misfortunes = _machine.flatmap(lambda machine: st.sampled_from(machine.misfortunes))
_acts = st.builds(Act, drawing.number, drawing.number, drawing.names, drawing.spellings, drawing.seldom)
_worker = st.integers(0, 1)


class Histories(RuleBasedStateMachine):
    """One history; `stage` is given by the test."""

    stage: ClassVar[Stage]
    wrap_backend: ClassVar[Callable[[GraphBackend], GraphBackend] | None] = None
    """What a mutant makes of the backend that workers use."""

    setting: drawing.Setting
    users: Users

    def __init__(self) -> None:
        super().__init__()
        self.tenant = Tenant(self.stage)
        self.refusals = Refusals()
        self.workers: list[Worker] = []
        self.zombies: list[Worker] = []
        self.misfortunes = drawing.MISFORTUNES
        self.lost_graphs = False
        self.broken = False
        self.steps = 0

    @initialize(setting=drawing.settings_of_histories(BATCHES))
    def begin(self, setting: drawing.Setting) -> None:
        self.setting, self.users = setting, Users(self.tenant, setting.shared)
        self.misfortunes += drawing.HEALING if setting.heals else ()
        self.workers = [self.hire(seed, batch) for seed, batch in enumerate(setting.batches)]
        for named in setting.stored:
            self.users.store(Act(named=list(named)))
        for one in setting.declared:
            self.users.declare(Act(named=[one]))

    def hire(self, seed: int = 0, batch: int = 50) -> Worker:
        wrap, stage = type(self).wrap_backend, self.stage
        backend = (lambda: wrap(stage.backend)) if wrap is not None else None
        return Worker(stage, self.refusals, seed=seed, batch=batch, backend=backend)

    # --- users

    @rule(action=_actions, act=_acts)
    def write(self, action: str, act: Act) -> None:
        self.users.do(action, act)

    @rule(action=_actions, act=_acts)
    def write_too(self, action: str, act: Act) -> None:
        self.users.do(action, act)

    @rule(first=_actions, act=_acts, then=_actions, act_then=_acts)
    def write_twice(self, first: str, act: Act, then: str, act_then: Act) -> None:
        self.users.do(first, act)
        self.users.do(then, act_then)

    # --- workers

    @rule(which=_worker, fate=drawing.fates_of_turns, expired=drawing.mostly)
    def work(self, which: int, fate: Fate, expired: bool) -> None:
        self.take_turn(which, fate, expired=expired)

    @rule(which=_worker, fate=drawing.fates_of_turns, expired=drawing.mostly)
    def work_too(self, which: int, fate: Fate, expired: bool) -> None:
        self.take_turn(which, fate, expired=expired)

    @rule(which=_worker, fate=drawing.fates_of_turns, late=drawing.seldom)
    def work_in_peace(self, which: int, fate: Fate, late: bool) -> None:
        """A turn under a fate, and then one of the other worker, who finds everything due."""
        self.take_turn(which, fate, expired=True)
        if not late:
            self.tenant.make_due()
        self.take_turn(1 - which, Fate(), expired=True)

    @rule(which=_worker, dim=st.booleans(), nth=st.sampled_from((0, 0, 1, 2, 3, 4)))
    def work_blindly(self, which: int, dim: bool, nth: int) -> None:
        """A turn in which transactions have entered no tenant, or can't see its rows: all of them (0), or one."""
        self.tenant.expire()
        before = (self.stage.dump(self.tenant.id), self.done()) if nth == 0 and not dim else None
        self.take_turn(which, Fate("dim" if dim else "blind", nth=nth), expired=False)
        if before is not None and before != (self.stage.dump(self.tenant.id), self.done()):
            self.fail("a worker that saw nothing has changed the graph, or marked events as done")

    @precondition(lambda self: self.zombies)
    @rule(which=drawing.number)
    def wake(self, which: int) -> None:
        self.let_go_on(pick(self.zombies, which))

    @precondition(lambda self: self.setting.heals)
    @rule(which=_worker, fate=drawing.fates_of_rebuilds, user=st.sampled_from(USERS), asked=drawing.mostly)
    def rebuild(self, which: int, fate: Fate, user: str | None, asked: bool) -> None:
        if asked:
            self.tenant.ask_for_rebuild(user)
        self.tenant.expire()  # it would wait for whoever holds the tenant
        worker = self.workers[which]
        self.see_off(which, ended=worker.begin(rebuilder.take_job(worker.context), fate))

    @precondition(lambda self: self.setting.heals)
    @rule(which=_worker, fate=drawing.fates_of_turns)
    def repair(self, which: int, fate: Fate) -> None:
        self.tenant.ask_for_repair()
        self.tenant.expire()
        worker = self.workers[which]
        self.see_off(which, ended=worker.begin(verifier.take_job(worker.context), fate))

    # --- misfortunes

    @rule(what=_misfortunes, which=drawing.number, how=st.integers(0, 6))
    def befall(self, what: str, which: int, how: int) -> None:
        if what == "lose_graph":
            self.lost_graphs = True
            self.stage.run(self.stage.backend.drop(self.tenant.id))
        elif what == "reopen":
            if self.stage.backend.name == "networkx":
                self.stage.reopen()
        elif what == "poison":
            self.poison(which, how)
        elif what == "cure":
            self.cure()
        elif what in ("deliver_again", "shuffle"):
            getattr(self.tenant, what)(which)
        else:
            getattr(self.tenant, what)()

    def poison(self, which: int, how: int) -> None:
        """Let a memory be of a kind that can't be read (6), or that the graph refuses after some of its statements."""
        if self.users.memories:
            ident = pick(self.users.memories, which)
            if how == 6:
                self.tenant.spoil(ident)
            else:
                self.refusals.ids.add(str(ident))
                self.refusals.after = how

    def cure(self) -> None:
        self.refusals.ids.clear()
        self.tenant.mend()

    # --- the invariant

    @precondition(lambda self: self.steps >= CALM)
    @rule()
    def look(self) -> None:
        self.steps = 0
        self.quiesce()

    def quiesce(self) -> None:
        """Heal everything, project what is left, and hold the stores against the canonical rows."""
        self.cure()
        self.tenant.expire()
        self.tenant.make_due()
        self.tenant.revive(discarded=True)
        healer = self.hire()
        for _ in range(SETTLING):
            for work in (projector.take_turn(healer.context, self.tenant.id), *self.jobs(healer)):
                healer.begin(work, Fate())
            if not self.tenant.unsettled():
                break
            self.tenant.make_due()
            self.tenant.revive()
        else:
            self.fail(f"this does not settle: {self.tenant.unsettled()}")
        self.check()

    def jobs(self, worker: Worker) -> list[Any]:
        """The jobs that wait, for a worker to do; to look for one costs a transaction."""
        waiting = self.tenant.waiting_jobs()
        return [
            *([rebuilder.take_job(worker.context)] if "graph_rebuilds" in waiting else []),
            *([verifier.take_job(worker.context)] if "graph_verifications" in waiting else []),
        ]

    def check(self) -> None:
        try:
            check(self.stage, self.tenant.id)
        except InvariantBrokenError:
            self.broken = True
            raise
        if not self.lost_graphs and (who := self.tenant.asked_by_the_service()):
            self.fail(f"nothing was lost, and a rebuild was asked for by {who}")

    def check_invariants(self, *arguments: Any, **named: Any) -> None:
        self.steps += 1
        super().check_invariants(*arguments, **named)

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

    def take_turn(self, which: int, fate: Fate, *, expired: bool) -> None:
        if expired:
            self.tenant.expire()
        worker = self.workers[which]
        self.see_off(which, ended=worker.begin(projector.take_turn(worker.context, self.tenant.id), fate))

    def see_off(self, which: int, *, ended: bool) -> None:
        """Put another worker in the place of one that died or stands still."""
        worker = self.workers[which]
        if not ended:
            worker.token = self.tenant.token_of(worker.id)
            self.zombies.append(worker)
        if worker.dead or not ended:
            self.workers[which] = self.hire(which, self.setting.batches[which])

    def let_go_on(self, worker: Worker) -> None:
        """Let a parked worker go on. If its tenant is another's by now, the graph must not change."""
        self.tenant.expire()
        lost = worker.token is not None and worker.token != self.tenant.token()
        before = self.stage.dump(self.tenant.id) if lost else None
        if worker.resume():
            self.zombies.remove(worker)
        if before is not None and (faults := differences(before, self.stage.dump(self.tenant.id))):
            self.fail("a worker that had lost its tenant has changed the graph:\n" + "\n".join(faults))
