"""A worker is killed with events in hand, while clients write: nothing is lost, and the graph is what it must be."""

from __future__ import annotations

import os
import signal

import pytest
from tests.chaos.observing import Holder
from tests.chaos.processes import UpStack, freeze_in_mid_batch, gone
from tests.chaos.writing import write
from tests.fixtures.waiting import wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("stack")]  # one stack for all of them


def test_workers_killed_in_mid_batch_lose_nothing(stack: UpStack, seed: int) -> None:
    seen = stack.tenant("killed workers")
    killed: list[Holder] = []
    with write(seen.api, seen.token, seed, clients=4, least=120) as load:
        for _ in range(2):
            victim = freeze_in_mid_batch(seen)
            assert load.running or killed, "the first one must die while the clients write"
            os.kill(victim.pid, signal.SIGKILL)
            wait_for(lambda pid=victim.pid: gone(pid), what="the worker's end")  # type: ignore[misc]  # bound at once
            killed.append(victim)
        written = load.finish()

    assert load.stored >= 480
    assert written.retried == 0  # a dead worker is no client's business
    stack.ready(lambda ready: not {victim.pid for victim in killed} & {*ready.pids.workers})
    seen.check_nothing_lost(written)
    # The events that died with their worker were done by another one, at the price of an attempt each.
    again = seen.rows("SELECT count(*) AS n FROM outbox_events WHERE tenant_id = %(tenant)s AND attempts > 1")
    assert again[0]["n"] > 0
    assert stack.new_errors() == []
