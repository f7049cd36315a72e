"""FalkorDB is away for a while: writes go on, answers are degraded, no attempt is spent, and it catches up."""

from __future__ import annotations

import os
import signal
from time import monotonic
from typing import Any

import httpx
import pytest
from tests.chaos.conftest import Rig
from tests.chaos.writing import NAMES, write
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.chaos

OUTAGE_S = float(os.environ.get("CHAOS_OUTAGE_S", "10"))
"""Seconds of each outage."""

FROZEN_S = 12.0
"""The same at least, where nothing is refused: a call into a frozen server is given up after ten seconds."""

QUESTION = f"Who saw {NAMES[0]} at the harbour?"


@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_an_outage_of_the_graph_costs_no_write_and_no_attempt(rig: Rig, seed: int, how: str) -> None:
    seen, falkor = rig.seen, rig.falkor
    worker = rig.start_worker()
    with write(seen.api, seen.token, seed, clients=3, least=50, pace=0.2) as load:
        wait_for(lambda: load.running and seen.queue().get("done", 0) >= 20, what="the first projected events")
        begun, stored = monotonic(), load.stored
        _take_away(falkor, how)
        _check_degraded(rig, worker.pid)
        wait_for(lambda: load.running and _is_over(begun, how), seconds=OUTAGE_S + 30, what="the outage's end")
        assert load.stored > stored  # writes went on all the while
        assert seen.queue().get("dead", 0) == 0
        assert seen.attempts("pending") == {0}
        assert worker.process.poll() is None
        _give_back(falkor, how)
        written = load.finish()

    assert written.retried == 0
    seen.check_nothing_lost(written)
    assert seen.attempts("done") == {1}
    wait_for(lambda: seen.retrieve(QUESTION)["graph"]["state"] == "current", what="retrieval with the graph")
    assert seen.ask("GET", "/v1/graph/stats").json()["memory_nodes"] == len(written.texts)
    closed = wait_for(lambda: _breaker(rig, worker.pid, "closed"), what="the closed breaker in the worker's row")
    assert closed["breaker_reason"] is None
    assert worker.stop() == 0
    assert rig.errors() == []


def _check_degraded(rig: Rig, pid: int) -> None:
    """What callers and operators see during an outage."""
    seen = rig.seen
    pack = seen.retrieve(QUESTION)
    assert pack["graph"]["state"] == "degraded"
    assert pack["items"]  # the other arms answer
    stats = seen.ask("GET", "/v1/graph/stats")
    assert stats.status_code == httpx.codes.SERVICE_UNAVAILABLE, stats.text
    assert stats.headers["Retry-After"]
    ready = seen.ask("GET", "/readyz")
    assert (ready.status_code, ready.json()["graph"]) == (httpx.codes.OK, "down")
    told = wait_for(lambda: _breaker(rig, pid, "open", "half_open"), seconds=30, what="the open breaker")
    assert told["state"] == "paused"
    assert "GraphUnavailableError" in told["breaker_reason"]


def _breaker(rig: Rig, pid: int, *states: str) -> dict[str, Any] | None:
    """The worker as the outbox statistics show it, once its breaker is in one of these states."""
    workers = rig.seen.ask("GET", "/v1/outbox/stats").json()["workers"]
    found = [worker for worker in workers if worker["pid"] == pid and worker["breaker"] in states]
    return found[0] if found else None


def _take_away(falkor: FalkorProcess, how: str) -> None:
    if how == "frozen":
        falkor.send_signal(signal.SIGSTOP)
    else:
        falkor.stop()


def _give_back(falkor: FalkorProcess, how: str) -> None:
    if how == "frozen":
        falkor.send_signal(signal.SIGCONT)
    else:
        falkor.start()


def _is_over(begun: float, how: str) -> bool:
    return monotonic() - begun >= (max(OUTAGE_S, FROZEN_S) if how == "frozen" else OUTAGE_S)
