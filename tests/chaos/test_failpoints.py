"""A worker is killed at each point between a claim and its end: the next one finishes, and nothing tells of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

import pytest
from tests.chaos.dying_worker import Trap
from tests.chaos.histories import History
from tests.chaos.observing import Observer, differences
from tests.chaos.rig import Rig
from tests.chaos.trapping import CONSTANTS, TrappedWorkers, held
from tests.fixtures.waiting import wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("failpoints")]  # one rig for all of them


@dataclass(frozen=True, slots=True)
class Case:
    """What a worker's death at a point leaves behind.

    Attributes:
        point: Where it dies, with the victim in the batch.
        status: Of the victim's event.
        landed: Whether the graph has been written to.
        victim: The memory that is to be deleted, or the edge whose type the graph has never seen.
    """

    point: str
    status: str = "leased"
    landed: bool = False
    victim: str = "deleted"


CASES = (
    Case("mid_claim", status="pending"),  # claimed, not committed
    Case("after_claim"),
    Case("after_read"),
    Case("mid_derive"),  # derived rows written, not committed
    Case("after_derive"),
    Case("mid_index", victim="edge"),  # the index is there, and the fence does not tell of it
    Case("mid_write"),  # all reads are done, EXEC is not sent
    Case("sent_write", landed=True),  # EXEC is sent, the reply not read
    Case("after_write", landed=True),
    Case("before_ack", landed=True),
    Case("mid_ack", landed=True),  # the events are marked, not committed
    Case("after_ack", status="done", landed=True),
)
REBUILDS = ("mid_rebuild", "before_rename", "after_rename")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.point)
def test_a_worker_killed_at_a_point_of_its_work(workers: TrappedWorkers, case: Case) -> None:
    worker = workers.alone()
    seen = workers.rig.new_tenant()
    history = History(seen)
    history.begin()
    seen.wait_until_drained()
    with held(seen):
        history.go_on()
        victim = history.edge if case.victim == "edge" else history.deleted
        workers.arm(Trap(case.point, signal.SIGKILL, str(seen.tenant_id), victim))
    workers.wait_for_death(worker, case.point)

    found = events(seen)
    assert [event["status"] for event in found.values() if event["aggregate_id"] == victim][-1] == case.status
    wait_for(lambda: _landed(history, case.victim) == case.landed, what=f"the graph, landed={case.landed}")
    history.go_on_while_nobody_works()
    workers.start()
    seen.check_nothing_lost(history.written)
    check_attempts(found, events(seen))
    assert seen.dump().memories[history.archived].status == "archived"
    assert workers.rig.errors() == []


def test_a_worker_killed_while_it_renews_its_lease(workers: TrappedWorkers) -> None:
    worker = workers.alone()
    seen = workers.rig.new_tenant()
    history = History(seen)
    history.begin()
    seen.wait_until_drained()
    before = seen.dump()
    with held(seen):
        history.go_on()
        workers.arm(Trap("mid_renewal", signal.SIGKILL, str(seen.tenant_id)))
    workers.wait_for_death(worker, "mid_renewal")

    found = events(seen)
    assert seen.queue()["leased"] > 0
    assert differences(before, seen.dump()) == []
    workers.start()
    seen.check_nothing_lost(history.written)
    check_attempts(found, events(seen))
    assert workers.rig.errors() == []


@pytest.mark.parametrize("point", REBUILDS)
def test_a_worker_killed_at_a_point_of_a_rebuild(workers: TrappedWorkers, point: str) -> None:
    worker = workers.alone()
    seen = workers.rig.new_tenant()
    history = History(seen)
    history.begin()
    seen.wait_until_drained()
    with held(seen):
        history.go_on()
        job = seen.ask("POST", "/v1/graph/rebuild", {}).json()
        # Three pages of memories, and then those of the rest: the second is the middle of it.
        workers.arm(Trap(point, signal.SIGKILL, str(seen.tenant_id), nth=2 if point == "mid_rebuild" else 1))
    workers.wait_for_death(worker, point)

    found, live = events(seen), seen.dump()
    assert seen.ask("GET", f"/v1/graph/rebuilds/{job['id']}").json()["status"] == "running"
    assert scratch_is_there(workers.rig, seen) == (point != "after_rename")
    assert set(live.memories)  # readers have a graph all the while
    history.go_on_while_nobody_works()
    workers.start()

    def ended() -> dict[str, Any] | None:
        status: dict[str, Any] = seen.ask("GET", f"/v1/graph/rebuilds/{job['id']}").json()
        return status if status["status"] not in ("pending", "running") else None

    status = wait_for(ended, seconds=30, what="the rebuild's end")
    assert (status["status"], status["attempts"], status["error"]) == ("done", 2, None)
    assert status["processed"] == status["total"] > 0
    seen.check_nothing_lost(history.written)
    check_attempts(found, events(seen))
    assert not scratch_is_there(workers.rig, seen)
    assert workers.rig.errors() == []


def test_a_worker_killed_while_it_prunes(workers: TrappedWorkers) -> None:
    workers.alone()
    seen = workers.rig.new_tenant()
    history = History(seen)
    history.begin()
    seen.wait_until_drained()
    workers.end()
    grown, done = seen.dump(), done_events(seen)
    pruning = {
        **CONSTANTS,
        "memory_os_workers.pruner.EVERY_S": 0.2,
        "memory_os_workers.pruner.BATCH": 3,
        "memory_os_workers.heartbeat.EVERY_S": 0.1,  # its own row in `workers` is old so soon, too
    }
    workers.arm(Trap("mid_prune", signal.SIGKILL))
    workers.wait_for_death(workers.launch(pruning, OUTBOX_RETENTION_H="0.0001"), "mid_prune")
    assert done_events(seen) == done - 3

    workers.start(pruning, OUTBOX_RETENTION_H="0.0001")
    wait_for(lambda: done_events(seen) == 0, what="the end of the pruning")
    assert differences(grown, seen.dump()) == []
    history.go_on()
    seen.check_nothing_lost(history.written)
    workers.end()
    assert workers.rig.errors() == []


def events(seen: Observer) -> dict[int, dict[str, Any]]:
    """The tenant's events by their ids."""
    rows = seen.rows(
        "SELECT id, aggregate_id::text AS aggregate_id, status, attempts FROM outbox_events "
        "WHERE tenant_id = %(tenant)s ORDER BY id"
    )
    return {row["id"]: row for row in rows}


def check_attempts(before: dict[int, dict[str, Any]], after: dict[int, dict[str, Any]]) -> None:
    """Hold the attempts against those at the worker's death: each event was taken once more, unless it was done."""
    wanted = {
        ident: before[ident]["attempts"] + (before[ident]["status"] != "done") if ident in before else 1
        for ident in after
    }
    assert before.keys() <= after.keys()
    assert differences(wanted, {ident: event["attempts"] for ident, event in after.items()}) == []
    assert {event["status"] for event in after.values()} == {"done"}


def done_events(seen: Observer) -> int:
    """How many events are done, of all tenants."""
    return int(seen.rows("SELECT count(*) AS n FROM outbox_events WHERE status = 'done'")[0]["n"])


def scratch_is_there(rig: Rig, seen: Observer) -> bool:
    """Whether a rebuild has left its half-made graph beside the tenant's."""
    with rig.falkor.connect() as client:
        return bool(client.exists(f"{seen.prefix}:{{{seen.tenant_id}}}:scratch"))


def _landed(history: History, victim: str) -> bool:
    graph = history.seen.dump()
    return history.edge in graph.edges if victim == "edge" else history.deleted not in graph.memories
