"""Postgres goes away under the clients' hands, in each way it can, and comes back: no acknowledged write is lost."""

from __future__ import annotations

import os
import signal

import pytest
from tests.chaos.processes import START_S, UpStack, errors_in, gone
from tests.chaos.writing import write
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.chaos

ENDS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "killed": signal.SIGKILL}
"""What `pg_ctl stop` sends in its modes `fast` and `immediate`, and what the kernel sends when memory runs out."""


def test_postgres_restarted_under_writing_clients(stack: UpStack, seed: int) -> None:
    seen = stack.tenant("restarted Postgres")
    before = stack.ready()
    with write(seen.api, seen.token, seed, clients=3, least=100, pace=0.01) as load:
        for signum in ENDS.values():
            running = stack.ready().pids.postgres
            assert running
            os.kill(running, signum)
            wait_for(lambda pid=running: gone(pid), what="the end of Postgres")  # type: ignore[misc]  # bound at once
            stack.ready(lambda ready, pid=running: ready.pids.postgres != pid)  # type: ignore[misc]  # as above
            stored = load.stored
            wait_for(lambda least=stored + 20: load.running and load.stored >= least, seconds=START_S, what="writes")  # type: ignore[misc]  # as above
        written = load.finish()

    assert written.retried > 0
    after = stack.ready()
    assert (after.pids.api, after.pids.workers) == (before.pids.api, before.pids.workers)  # they sat it out
    seen.check_nothing_lost(written)
    assert errors_in(stack.logs()) == []
