"""Random worlds through the nightly and the monthly cycle: predicted exactly, resumed anywhere, taken back whole."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from tests.chaos.observing import differences
from tests.property.cycle_oracle import Oracle
from tests.property.cycle_worlds import Filler, Spec, specs
from tests.property.mortal_workers import Refusals, Worker
from tests.property.stages import Stage

from memory_os.cycles import dropping, extracting, fading, running, setting_aside, staling, undoing
from memory_os.cycles.planning import Undoing
from memory_os.cycles.running import Progress, advance
from memory_os.cycles.undoing import LAST, undo_some
from memory_os.domain.cycles.rules import Rule, rules_of
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.ids import new_id
from memory_os.domain.labels import LABELS
from memory_os.domain.principal import Principal
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.projection.rebuilds import RebuildRequest, request_rebuild
from memory_os.storage.database import Scope, Transaction
from memory_os_workers import projector, rebuilder

HISTORIES: Final = int(os.environ.get("MEMORY_OS_HISTORIES", "0"))
"""As of the histories of the projection: drawn anew each time where it is given."""

WORLDS: Final = 25
FORGETTING: Final = (
    *("drop_entities", "decay_edges", "expire_opportunities", "mark_stale", "extract_again"),
    *("prune_edges", "archive_retired"),
)
_STATE: Final = ("memories", "entities", "edges", "archived_edges")
_LOOKED_AT: Final = (*_STATE, "entity_links", "mentions", "extractions")
_GROWING: Final = frozenset({"version", "updated_at", "archived_at"})
_OUTBOX: Final = Outbox(enabled=True)

State = dict[str, dict[UUID, dict[str, Any]]]


class WorkerDiedError(Exception):
    """A worker that dies before its transaction ends."""


class World(Filler):
    """A world in which cycles are run."""

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self.scope = Scope(WORKER_ROLE, self.tenant)
        self.projecting = Worker(stage, Refusals()).context
        self._runs = 0

    def mine(self, table: str) -> list[dict[str, Any]]:
        """The tenant's rows of a table."""
        return self.stage.rows(f"SELECT * FROM {table} WHERE tenant_id = %(tenant)s", tenant=self.tenant)

    def state(self) -> State:
        """All rows that cycles change, but for what counts writes."""
        return {
            table: {
                row["id"]: {name: value for name, value in row.items() if name not in _GROWING}
                for row in self.mine(table)
            }
            for table in _STATE
        }

    def drain(self) -> None:
        """Project all that waits; the graph is what the rows say then."""
        for _ in range(50):
            left = [row for row in self.mine("outbox_events") if row["status"] != "done"]
            if not left:
                return
            self.stage.run(projector.take_turn(self.projecting, self.tenant))
        raise AssertionError(left)

    def check_graph(self) -> None:
        """The graph, once all is projected, is what a rebuild makes."""
        self.drain()
        grown, who = self.stage.dump(self.tenant), Principal(self.tenant, "admin")
        asking = self.stage.app.run(
            Scope.of(who), lambda tx: request_rebuild(tx, who, self.tenant, RebuildRequest(), None)
        )
        self.stage.run(asking)
        self.stage.run(rebuilder.take_job(self.projecting))
        assert differences(grown, self.stage.dump(self.tenant)) == []

    def spoil(self) -> None:
        """Let some memories have been read by an older extractor."""
        read = [ident for ident, spec in zip(self.memories, self.spec.memories, strict=True) if spec.read_before]
        self.stage.rows(
            "UPDATE extractions SET extractor_version = 0 WHERE tenant_id = %(tenant)s AND memory_id = ANY (%(ids)s)",
            tenant=self.tenant,
            ids=read,
        )

    def run(self, cycle: str, *, dry_run: bool = False, disturbed: bool = False) -> UUID:
        """Make a run to its end; if disturbed, workers die in batches of it, and the projection goes on between."""
        run, self._runs = new_id(), self._runs + 1
        given = {"cycle": cycle, "period": str(self._runs), "moment": self.spec.moment, "dry_run": dry_run}
        self.put("cycle_runs", id=run, role="cycle", **given)
        for step in range(1000):
            if disturbed and step in self.spec.deaths:
                with pytest.raises(WorkerDiedError):
                    self._step(dies=True)
            if disturbed and step in self.spec.drains:
                self.drain()
            if self._step() is None:
                return run
        raise AssertionError("a run without an end")

    def _step(self, *, dies: bool = False) -> Progress | None:
        async def work(tx: Transaction) -> Progress | None:
            made = await advance(tx, _OUTBOX)
            if dies:
                raise WorkerDiedError
            return made

        return self.stage.run(self.stage.worker.run(self.scope, work))

    def actions(self, run: UUID) -> list[dict[str, Any]]:
        """What a run did, but for what differs from run to run."""
        rows = self.stage.rows("SELECT * FROM cycle_actions WHERE run_id = %(run)s ORDER BY number", run=run)
        kept = ("number", "rule", "target_kind", "target_id", "other_id", "before", "after")
        return [{name: row[name] for name in kept} for row in rows]

    def undo(self, run: UUID) -> list[Any]:
        """Take back a whole run; gives what stays."""
        acting = Undoing(Principal(self.tenant, "admin"), _OUTBOX)
        below, kept = LAST, list[Any]()
        while below:
            batch = self.stage.run(
                self.stage.worker.run(self.scope, lambda tx, below=below: undo_some(tx, acting, run, below))
            )
            below, kept = batch.below, kept + batch.kept
        return kept

    def due(self, cycle: str) -> dict[str, set[UUID]]:
        """What the rules say that a run has to do."""
        return Oracle({table: self.mine(table) for table in _LOOKED_AT}, self.spec.moment).due(cycle)

    def leave(self) -> None:
        """Leave nothing that others would take up."""
        for table in ("graph_rebuilds", "outbox_events", "projection_leases", "graph_states"):
            self.stage.rows(f"DELETE FROM {table} WHERE tenant_id = %(tenant)s", tenant=self.tenant)
        self.stage.run(self.stage.backend.drop(self.tenant))


def _forgetting_of(cycle: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules_of(cycle) if rule.name in FORGETTING)


@contextmanager
def small_batches() -> Iterator[None]:
    """The forgetting rules alone, two changes at a time."""
    with ExitStack() as stack:
        for module in (dropping, extracting, fading, setting_aside, staling, undoing):
            stack.enter_context(patch.object(module, "BATCH", 2))
        stack.enter_context(patch.object(running, "rules_of", _forgetting_of))
        yield


def check_kept(before: State, after: State, unheld: set[UUID]) -> None:
    """Hold a state against the one before: what is protected, what may only fall, and that nothing is lost."""
    assert after["memories"].keys() == before["memories"].keys()
    assert before["entities"].keys() - after["entities"].keys() <= unheld
    assert after["entities"].keys() <= before["entities"].keys()
    old, new = ({**state["edges"], **state["archived_edges"]} for state in (before, after))
    assert new.keys() == old.keys()
    assert not after["edges"].keys() & after["archived_edges"].keys()
    for ident, edge in old.items():
        assert new[ident]["confidence"] <= edge["confidence"]
        if EDGE_TYPES[edge["type"]].protected:
            assert new[ident] == edge
            assert ident in after["edges"] or ident in before["archived_edges"]
    for ident, memory in before["memories"].items():
        changed = {name for name, value in after["memories"][ident].items() if value != memory[name]}
        assert changed <= ({"stale_at"} if LABELS[memory["label"]].protected else {"stale_at", "status", "exact_key"})


@pytest.mark.timeout(900 + HISTORIES)
@pytest.mark.parametrize("stage", ["networkx"], indirect=True)
@settings(
    max_examples=max(WORLDS, HISTORIES // 20),
    derandomize=not HISTORIES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(spec=specs)
def test_any_world_is_predicted_resumed_and_taken_back(stage: Stage, spec: Spec) -> None:
    world = World(stage, spec)
    world.check_graph()
    with small_batches():
        for cycle in ("nightly", "monthly"):
            check_cycle(world, cycle)
    world.leave()


def check_cycle(world: World, cycle: str) -> None:
    """A cycle tried, made, taken back, and made again by workers that die."""
    world.spoil()
    before, due = world.state(), world.due(cycle)
    tried = world.run(cycle, dry_run=True)
    assert world.state() == before
    run = world.run(cycle)
    actions = world.actions(run)
    assert actions == world.actions(tried)
    done = defaultdict[str, list[UUID]](list)
    for action in actions:
        done[action["rule"]].append(action["target_id"])
    assert {rule: sorted(ids) for rule, ids in done.items()} == {rule: sorted(ids) for rule, ids in due.items() if ids}
    after = world.state()
    check_kept(before, after, due.get("drop_entities", set()))
    world.check_graph()
    assert world.state() == after
    assert world.undo(run) == []
    assert world.state() == before
    world.check_graph()
    assert world.state() == before
    world.spoil()
    again = world.run(cycle, disturbed=True)
    assert world.state() == after
    assert world.actions(again) == actions
    world.check_graph()
    assert world.state() == after
