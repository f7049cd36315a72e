"""Is it healthy, in one look: what the figures of the queue mean to an operator, worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from memory_os.outbox.gauges import QueueStats
from memory_os.projection.graph_states import GraphCondition
from memory_os_console.rendering import PATH, as_differences, as_duration, as_sentence

Level = Literal["bad", "warn", "ok"]

SLOW_S: Final = 60.0
"""A due event is normally claimed within seconds; one that waits for a minute says that something is wrong."""

_LIVE_STATES: Final = ("starting", "idle", "working", "paused")


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence for the operator, how bad it is, and the address of the page to go to, if there is one."""

    level: Level
    text: str
    address: str = ""


def judge(stats: QueueStats, graph: str, max_age_s: float, graphs: Sequence[Finding] = ()) -> list[Finding]:
    """What an operator has to know, worst first; one reassuring sentence when there is nothing, and no alarm.

    Args:
        stats: How the queue stands.
        graph: `off`, `up` or `down`, as the API sees it.
        max_age_s: Age in seconds of the oldest due event above which `/readyz` says not ready.
        graphs: What `judge_graphs` says.
    """
    found = [
        *_judge_graph(stats, graph),
        *(graphs if graph != "off" else ()),
        *_judge_age(stats, max_age_s),
        *_judge_dead(stats),
        *(_judge_workers(stats) if graph != "off" else ()),
    ]
    if not found and not stats.dead_deletes:
        return [Finding("ok", "Everything that was written has been projected, or is about to be.")]
    return sorted(found, key=lambda finding: ("bad", "warn", "ok").index(finding.level))


def _judge_graph(stats: QueueStats, graph: str) -> list[Finding]:
    if graph == "off":
        waiting = " What waits in the queue stays there." if stats.pending else ""
        return [Finding("warn", f"Graph memory is off (ENABLE_GRAPH_MEMORY): nothing is projected.{waiting}")]
    if graph == "down":
        return [Finding("bad", "The graph does not answer. Writes are safe in Postgres; answers come without paths.")]
    return []


def _judge_age(stats: QueueStats, max_age_s: float) -> list[Finding]:
    if stats.oldest_due_seconds <= SLOW_S:
        return []
    age = as_duration(stats.oldest_due_seconds)
    if stats.oldest_due_seconds > max_age_s:
        return [Finding("bad", f"The oldest due event has waited for {age}, so /readyz says not ready.")]
    return [Finding("warn", f"The oldest due event has waited for {age}: projection is behind.")]


def alarm(stats: QueueStats) -> str:
    """What is said before everything else, and apart: deletions that have died. Empty if there are none."""
    if not stats.dead_deletes:
        return ""
    deletions = "1 deletion is dead" if stats.dead_deletes == 1 else f"{stats.dead_deletes:,} deletions are dead"
    return f"{deletions}: the graph still holds what was deleted."


def _judge_dead(stats: QueueStats) -> list[Finding]:
    count = stats.dead - stats.dead_deletes
    if count <= 0:
        return []
    other = "other " if stats.dead_deletes else ""
    events = f"1 {other}event is dead and waits" if count == 1 else f"{count:,} {other}events are dead and wait"
    return [Finding("bad", f"{events} for your decision.")]


def judge_graphs(
    graphs: Sequence[GraphCondition], count: int, now: datetime, names: Mapping[UUID, str] | None = None
) -> list[Finding]:
    """A sentence for each graph that can't be relied on, and one for those that are not listed.

    Args:
        graphs: Some of them.
        count: How many there are in all.
        now: The time of the judgement.
        names: Names of the tenants, for root; None for everybody else, who has one graph.
    """
    found = [_judge_condition(graph, now, names) for graph in graphs]
    if count > len(graphs):
        found.append(Finding("bad", f"{count - len(graphs):,} more graphs are in doubt or differ."))
    return found


def _judge_condition(graph: GraphCondition, now: datetime, names: Mapping[UUID, str] | None) -> Finding:
    whose, address = "The graph", f"{PATH}/graph"
    if names is not None:
        whose = f"The graph of {names.get(graph.tenant_id, graph.tenant_id)}"
        address += f"?tenant_id={graph.tenant_id}"
    if graph.doubt is not None and graph.doubted_at is not None:
        age = as_duration(max(0, int((now - graph.doubted_at).total_seconds())))
        return Finding("bad", f"{whose} has been in doubt for {age}: {graph.doubt}. {_mending(graph)}", address)
    if graph.rebuilt_since:
        return Finding("warn", f"{whose} had faults and was rebuilt since: compare it again.", address)
    if graph.damage is not None:
        return Finding("bad", f"{whose} is damaged: {as_sentence(graph.damage)} {_mending(graph)}", address)
    found = as_differences(graph)
    return Finding("bad", f"{whose} differs from the records: {found}. {_mending(graph)}", address)


def _mending(graph: GraphCondition) -> str:
    if graph.rebuilding:
        return "A rebuild is on its way."
    if graph.comparing:
        return "A repair is on its way." if graph.repairing else "A comparison is on its way."
    return "Nothing is on its way that would mend it."


def _judge_workers(stats: QueueStats) -> list[Finding]:
    found = []
    lost = [worker for worker in stats.workers if worker.state == "lost"]
    if not any(worker.state in _LIVE_STATES for worker in stats.workers):
        found.append(Finding("bad", "No worker is alive, so nothing is projected. Start one: memory-os worker"))
    elif lost:
        count = "1 worker has" if len(lost) == 1 else f"{len(lost)} workers have"
        found.append(Finding("warn", f"{count} not been seen for over a minute; others do the work."))
    paused = [worker for worker in stats.workers if worker.breaker != "closed" and worker.state != "lost"]
    if paused:
        count = "1 worker has" if len(paused) == 1 else f"{len(paused)} workers have"
        reason = paused[0].breaker_reason or "no reason given"
        after = "Work goes on by itself once the graph answers."
        found.append(Finding("bad", f"{count} paused since the graph failed ({reason}). {after}"))
    return found
