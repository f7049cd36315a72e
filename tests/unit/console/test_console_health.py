"""What the figures mean to an operator."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from memory_os.outbox.gauges import QueueStats, TypeCounts, WorkerState
from memory_os_console.health import Finding, judge

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MAX_AGE_S = 900.0


def worker(state: str = "idle", breaker: str = "closed", reason: str | None = None) -> WorkerState:
    return WorkerState(
        UUID(int=1), "box", 1, "0.1.0", state, breaker, reason, NOON, NOON, 1.0, done=0, failed=0, stale_acks=0
    )


def stats(**given: Any) -> QueueStats:
    zero = dict.fromkeys(("pending", "leased", "dead", "dead_deletes", "discarded", "done_last_hour"), 0)
    counts = {"GRAPH_UPSERT": TypeCounts(), "GRAPH_DELETE": TypeCounts()}
    rest: dict[str, Any] = {"oldest_due_seconds": 0.0, "capped": False, "by_event_type": counts, "workers": [worker()]}
    return QueueStats(**{**zero, **rest, **given})


def levels(found: list[Finding]) -> list[str]:
    return [finding.level for finding in found]


def test_nothing_to_say_is_said() -> None:
    found = judge(stats(pending=3), "up", MAX_AGE_S)
    assert levels(found) == ["ok"]


def test_the_worst_comes_first() -> None:
    found = judge(stats(dead=2, dead_deletes=1, oldest_due_seconds=61.0), "down", MAX_AGE_S)
    assert levels(found) == ["bad", "bad", "bad", "warn"]
    assert found[0].text.startswith("The graph does not answer.")
    assert found[1].text == "2 events are dead and wait for your decision."
    assert found[2].text == "1 of them is a deletion: the graph still holds what was deleted."


def test_an_old_event_is_a_warning_and_a_very_old_one_more_than_that() -> None:
    assert levels(judge(stats(oldest_due_seconds=60.0), "up", MAX_AGE_S)) == ["ok"]
    assert levels(judge(stats(oldest_due_seconds=60.1), "up", MAX_AGE_S)) == ["warn"]
    found = judge(stats(oldest_due_seconds=901.0), "up", MAX_AGE_S)
    assert (levels(found), "/readyz" in found[0].text, "15 min 1 s" in found[0].text) == (["bad"], True, True)


def test_workers_matter_while_there_is_a_graph_to_write() -> None:
    assert levels(judge(stats(workers=[]), "up", MAX_AGE_S)) == ["bad"]
    assert levels(judge(stats(workers=[worker("lost"), worker("stopping")]), "up", MAX_AGE_S)) == ["bad"]
    assert levels(judge(stats(workers=[worker("lost"), worker("working")]), "up", MAX_AGE_S)) == ["warn"]
    found = judge(stats(workers=[]), "off", MAX_AGE_S)
    assert (levels(found), "ENABLE_GRAPH_MEMORY" in found[0].text) == (["warn"], True)


def test_an_open_breaker_is_said_with_its_reason() -> None:
    found = judge(stats(workers=[worker("paused", "open", "refused"), worker("lost", "open")]), "up", MAX_AGE_S)
    assert levels(found) == ["bad", "warn"]
    assert found[0].text.startswith("1 worker has paused since the graph failed (refused).")
