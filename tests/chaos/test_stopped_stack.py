"""The whole stack is stopped and killed while clients write; started again on the same home, it goes on."""

from __future__ import annotations

import signal

import psutil
import pytest
from tests.chaos.processes import START_S, UpStack, gone
from tests.chaos.writing import Load, write
from tests.fixtures.waiting import wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("stack")]  # one stack for all of them

STOP_S = 15.0
"""Seconds in which Ctrl-C ends every process."""


def test_the_stack_stopped_and_killed_under_writing_clients(stack: UpStack, seed: int) -> None:
    seen = stack.tenant("stopped stack")
    before = stack.ready()
    with write(seen.api, seen.token, seed, clients=2, least=60, pace=0.02) as load:
        _wait_for_writes(load)
        family = stack.family()
        assert stack.up is not None
        assert stack.up.stop(signal.SIGINT, seconds=STOP_S) == 0
        assert _living(family) == []
        assert not stack.ready_path.exists()

        after = stack.start()
        assert (after.tenant_id, after.token, after.root_token) == (before.tenant_id, before.token, before.root_token)
        _wait_for_writes(load)

        family = stack.family()
        stack.up.process.kill()
        stack.up.process.wait()
        again = stack.start()  # at once: whatever has outlived its supervisor is for the next run to end
        assert _living(family) == []
        assert again.token == before.token
        _wait_for_writes(load)
        written = load.finish()

    assert written.retried > 0
    seen.check_nothing_lost(written)
    assert stack.new_errors() == []


def _wait_for_writes(load: Load) -> None:
    least = load.stored + 20
    wait_for(lambda: load.running and load.stored >= least, seconds=START_S, what="writes")


def _living(family: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in family if process.is_running() and not gone(process.pid)]
