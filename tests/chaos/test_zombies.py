"""A worker wakes up past its lease with an older state in hand, at the worst moments: nothing of it gets through."""

from __future__ import annotations

import os
import signal

import pytest
from tests.chaos.dying_worker import Trap
from tests.chaos.histories import History
from tests.chaos.observing import Observer, differences
from tests.chaos.trapping import CONSTANTS, TrappedWorkers, held, let_go
from tests.fixtures.waiting import wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("failpoints")]  # processes that wait together

QUICK_HEARTBEAT = {**CONSTANTS, "memory_os_workers.heartbeat.EVERY_S": 0.2}


@pytest.mark.parametrize("point", ["after_read", "after_derive", "mid_write"])
def test_a_worker_that_wakes_up_with_an_older_version_changes_nothing(workers: TrappedWorkers, point: str) -> None:
    workers.end()
    zombie = workers.start(QUICK_HEARTBEAT)
    seen = workers.rig.new_tenant()
    history = History(seen)
    history.begin()
    seen.wait_until_drained()
    ident = history.memories[0]
    with held(seen):
        history.change(ident, "Gus Hale", "Ida Quist")
        workers.arm(Trap(point, signal.SIGSTOP, str(seen.tenant_id), ident))
    workers.wait_for_sleep(zombie, point)

    history.change(ident, "Jon Vance", "Bob Stone")
    workers.start(QUICK_HEARTBEAT)
    seen.wait_until_drained()
    before = seen.dump()
    assert before.memories[ident].version == 3
    assert attempts(seen, ident) == [(1, 1), (2, 2), (3, 1)]
    woken = seen.now()
    os.kill(zombie.pid, signal.SIGCONT)
    wait_for(lambda: seen.is_idle(zombie.pid, since=woken), what="the end of what the late worker had in hand")
    wait_for(lambda: "lease_lost" in zombie.log.read_text(), what="the late worker's word that it is late")
    assert differences(before, seen.dump()) == []
    assert attempts(seen, ident) == [(1, 1), (2, 2), (3, 1)]
    seen.check_nothing_lost(history.written)
    workers.end()
    assert workers.rig.errors() == []


def test_a_worker_that_wakes_up_before_its_ack_marks_nothing_and_counts_it(workers: TrappedWorkers) -> None:
    """The lease is ended by hand: a renewal that is overdue at the awakening could call the ack off."""
    workers.end()
    zombie = workers.start(QUICK_HEARTBEAT, WORKER_LEASE_S="60")
    seen = workers.rig.new_tenant()
    history = History(seen)
    history.begin()
    seen.wait_until_drained()
    ident, other = history.memories[:2]
    with held(seen):
        history.change(ident, "Gus Hale", "Ida Quist")
        history.change(other, "Gus Hale", "Kay Ruiz")
        workers.arm(Trap("before_ack", signal.SIGSTOP, str(seen.tenant_id), ident))
    workers.wait_for_sleep(zombie, "before_ack")
    assert seen.dump().memories[ident].version == 2

    history.change(ident, "Jon Vance", "Bob Stone")
    history.delete(other)
    let_go(seen)
    workers.start(QUICK_HEARTBEAT)
    seen.wait_until_drained()
    before, done = seen.dump(), finished(seen)
    os.kill(zombie.pid, signal.SIGCONT)
    wait_for(lambda: seen.worker(zombie.pid)["stale_acks"] == 2, what="two stale acks in the late worker's row")
    assert finished(seen) == done
    assert differences(before, seen.dump()) == []
    assert attempts(seen, ident) == [(1, 1), (2, 2), (3, 1)]
    seen.check_nothing_lost(history.written)
    workers.end()
    assert workers.rig.errors() == []


def attempts(seen: Observer, ident: str) -> list[tuple[int, int]]:
    """Version and attempts of a memory's events."""
    rows = seen.rows(
        "SELECT version, attempts FROM outbox_events WHERE tenant_id = %(tenant)s AND aggregate_id = %(id)s "
        "AND status = 'done' ORDER BY id",
        id=ident,
    )
    return [(row["version"], row["attempts"]) for row in rows]


def finished(seen: Observer) -> list[object]:
    """When each event was marked done."""
    rows = seen.rows("SELECT finished_at FROM outbox_events WHERE tenant_id = %(tenant)s ORDER BY id")
    return [row["finished_at"] for row in rows]
