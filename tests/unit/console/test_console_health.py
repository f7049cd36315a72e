"""What the figures mean to an operator."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from memory_os.outbox.gauges import QueueStats, TypeCounts, WorkerState
from memory_os.projection.graph_states import GraphCondition
from memory_os_console.health import Finding, alarm, judge, judge_graphs

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
    assert levels(found) == ["bad", "bad", "warn"]
    assert found[0].text.startswith("The graph does not answer.")
    assert found[1].text == "1 other event is dead and waits for your decision."


def test_dead_deletions_are_an_alarm_of_their_own() -> None:
    assert alarm(stats(dead=3)) == ""
    assert judge(stats(dead=3), "up", MAX_AGE_S)[0].text == "3 events are dead and wait for your decision."
    alone = stats(dead=1, dead_deletes=1)
    assert alarm(alone) == "1 deletion is dead: the graph still holds what was deleted."
    assert judge(alone, "up", MAX_AGE_S) == []  # nor is anything called healthy beside it
    assert alarm(stats(dead=1200, dead_deletes=1200)).startswith("1,200 deletions are dead:")


def condition(**given: Any) -> GraphCondition:
    nothing: dict[str, Any] = dict.fromkeys(GraphCondition.__struct_fields__)
    counts = dict.fromkeys(("missing", "extra", "differing", "repaired", "waiting", "dead"), 0)
    flags = {"rebuilt_since": False, "repairing": False}
    return GraphCondition(**{**nothing, **counts, **flags, "tenant_id": UUID(int=7), **given})


def judged(**given: Any) -> Finding:
    (found,) = judge_graphs([condition(**given)], 1, NOON)
    return found


def test_a_graph_in_doubt_is_said_with_what_is_done_about_it() -> None:
    doubted = {"doubt": "the graph was lost or replaced", "doubted_at": NOON - timedelta(minutes=5)}
    found = judged(**doubted, rebuilding=UUID(int=1))
    assert found == Finding(
        "bad",
        "The graph has been in doubt for 5 min: the graph was lost or replaced. A rebuild is on its way.",
        "/console/graph",
    )
    assert "A repair is on its way." in judged(**doubted, comparing=UUID(int=1), repairing=True).text
    assert "A comparison is on its way." in judged(**doubted, comparing=UUID(int=1)).text
    assert "Nothing is on its way that would mend it." in judged(**doubted).text


def test_a_graph_that_differs_is_said_until_it_is_rebuilt() -> None:
    assert judged(missing=3, extra=1).text.startswith("The graph differs from the records: 3 missing, 1 extra.")
    assert "2 missing, 1 of them mended" in judged(missing=2, repaired=1).text
    assert judged(damage="no index").text.startswith("The graph is damaged: No index.")
    rebuilt = judged(missing=3, rebuilt_since=True)
    assert (rebuilt.level, "compare it again" in rebuilt.text) == ("warn", True)


def test_root_is_told_whose_graphs_and_how_many_more() -> None:
    named, unnamed = condition(missing=1), condition(missing=1, tenant_id=UUID(int=8))
    found = judge_graphs([named, unnamed], 12, NOON, {UUID(int=7): "Acme"})
    assert found[0].text.startswith("The graph of Acme differs")
    assert found[0].address == f"/console/graph?tenant_id={UUID(int=7)}"
    assert found[1].text.startswith(f"The graph of {UUID(int=8)} differs")
    assert found[2].text == "10 more graphs are in doubt or differ."


def test_graphs_are_judged_beside_the_queue_and_not_while_graph_memory_is_off() -> None:
    graphs = [judged(missing=1)]
    assert judge(stats(dead=1), "up", MAX_AGE_S, graphs)[0] == graphs[0]
    assert graphs[0] not in judge(stats(), "off", MAX_AGE_S, graphs)


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
