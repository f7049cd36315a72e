"""A worker is asked to stop, or falls asleep, with events in hand: it lets go in time, and the next one finishes."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import httpx
import psutil
import pytest
from tests.chaos.conftest import Rig
from tests.chaos.observing import differences
from tests.chaos.processes import LEASE_S, freeze_in_mid_batch
from tests.chaos.writing import write
from tests.fixtures.waiting import wait_for

from memory_os.embedded.postgres import EmbeddedPostgres

pytestmark = pytest.mark.chaos

STOP_S = 10.0
"""The promise of a worker: gone within ten seconds of SIGTERM."""


def test_a_worker_stopped_in_mid_batch_leaves_nothing_in_hand(rig: Rig, seed: int) -> None:
    seen = rig.seen
    with write(seen.api, seen.token, seed, clients=2, least=80) as load:
        worker = rig.start_worker()
        held = freeze_in_mid_batch(seen)
        os.kill(held.pid, signal.SIGTERM)
        os.kill(held.pid, signal.SIGCONT)
        assert worker.process.wait(STOP_S) == 0
        assert seen.queue().get("leased", 0) == 0
        assert seen.worker(held.pid)["state"] == "stopped"
        written = load.finish()
    assert seen.queue()["pending"] > 0
    rig.start_worker()
    seen.check_nothing_lost(written)
    assert seen.attempts("done") == {1}
    assert rig.errors() == []


def test_a_worker_stopped_while_the_graph_hangs_gives_up_in_time(rig: Rig, seed: int) -> None:
    seen = rig.seen
    worker = rig.start_worker()
    with write(seen.api, seen.token, seed, clients=2, least=60) as load:
        held = freeze_in_mid_batch(seen)
        rig.falkor.send_signal(signal.SIGSTOP)
        os.kill(held.pid, signal.SIGCONT)
        os.kill(held.pid, signal.SIGTERM)
        assert worker.process.wait(STOP_S) == 0
        rig.falkor.send_signal(signal.SIGCONT)
        wait_for(lambda: seen.holder() is None, seconds=LEASE_S + 1, what="the end of the lease")
        written = load.finish()
    rig.start_worker()
    seen.check_nothing_lost(written)
    assert rig.errors() == []


def test_a_worker_stopped_while_postgres_hangs_leaves_in_time(rig: Rig, postgres_server: EmbeddedPostgres) -> None:
    worker = rig.start_worker()
    assert postgres_server.pid is not None
    master = psutil.Process(postgres_server.pid)
    master.suspend()
    frozen = [master, *master.children(recursive=True)]
    try:
        for process in frozen:
            with suppress(psutil.NoSuchProcess):  # of a connection that has ended meanwhile
                process.suspend()
        assert worker.stop(seconds=STOP_S) == 0
    finally:
        for process in frozen:
            with suppress(psutil.NoSuchProcess):
                process.resume()
    assert rig.errors() == []


@pytest.mark.parametrize("locking", [False, True], ids=["holding nothing", "holding rows"])
def test_a_worker_that_sleeps_past_its_lease_changes_nothing(rig: Rig, seed: int, locking: bool) -> None:
    seen = rig.seen
    rig.start_worker()
    with write(seen.api, seen.token, seed, clients=2, least=80) as load:
        asleep = freeze_in_mid_batch(seen, lambda: seen.holds_rows() == locking)
        rig.start_worker()
        written = load.finish()
    assert written.retried == 0  # no caller has to wait for what the sleeper has locked
    seen.wait_until_drained()  # by the other one alone
    before = seen.dump()
    woken = seen.now()
    os.kill(asleep.pid, signal.SIGCONT)
    wait_for(lambda: seen.is_idle(asleep.pid, since=woken), what="the end of what the late worker had in hand")
    assert differences(before, seen.dump()) == []
    seen.check_nothing_lost(written)
    assert rig.errors() == []


def test_what_a_dead_worker_derived_is_not_left_behind_by_a_deletion(rig: Rig, seed: int) -> None:
    """It died between Postgres and the graph: rows tell of memories that the graph has never seen."""
    seen = rig.seen
    with write(seen.api, seen.token, seed, clients=2, least=80) as load:
        rig.start_worker()
        held = freeze_in_mid_batch(seen, lambda: bool(seen.derived_alone()))
        os.kill(held.pid, signal.SIGKILL)
        written = load.finish()
    ahead = seen.derived_alone() & written.texts.keys()
    assert ahead
    for ident in ahead:
        assert seen.ask("DELETE", f"/v1/memories/{ident}").status_code == httpx.codes.OK
        del written.texts[ident], written.names[ident]
    rig.start_worker()
    seen.check_nothing_lost(written)
    assert rig.errors() == []
