"""Postgres goes away under the clients' hands, in each way it can, and comes back: no acknowledged write is lost."""

from __future__ import annotations

import os
import signal

import httpx
import pytest
from tests.chaos.observing import differences
from tests.chaos.processes import START_S, UpStack, gone
from tests.chaos.writing import write
from tests.fixtures.waiting import wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("stack")]  # one stack for all of them

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
    assert stack.new_errors() == []


def test_postgres_killed_right_after_a_deletion_was_projected(stack: UpStack) -> None:
    """Where a crash takes back what the graph shows already, it has to be projected again in full."""
    seen = stack.tenant("killed Postgres")
    kept, gone_soon = "we saw Ann Miller with Bob Stone.", "we saw Ann Miller with Carl Berg."
    body = {"items": [{"text": text, "label": "Attribute"} for text in (kept, gone_soon)]}
    kept_id, gone_id = (item["memory_id"] for item in seen.ask("POST", "/v1/memories/batch", body).json()["results"])
    seen.wait_until_drained()
    assert {node.name for node in seen.dump().entities.values()} == {"Ann Miller", "Bob Stone", "Carl Berg"}
    running = stack.ready().pids.postgres
    assert running
    assert seen.ask("DELETE", f"/v1/memories/{gone_id}").status_code == httpx.codes.OK
    wait_for(lambda: set(seen.dump().memories) == {kept_id}, what="the projected deletion")
    os.kill(running, signal.SIGKILL)
    stack.ready(lambda ready: ready.pids.postgres not in (running, None))
    seen.wait_until_drained()
    grown = seen.dump()
    assert {node.name for node in grown.entities.values()} == {"Ann Miller", "Bob Stone"}
    seen.rebuild()
    assert differences(grown, seen.dump()) == []
