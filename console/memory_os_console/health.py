"""Is it healthy, in one look: what the figures of the queue mean to an operator, worst first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from memory_os.outbox.gauges import QueueStats
from memory_os_console.rendering import as_duration

Level = Literal["bad", "warn", "ok"]

SLOW_S: Final = 60.0
"""A due event is normally claimed within seconds; one that waits for a minute says that something is wrong."""

_LIVE_STATES: Final = ("starting", "idle", "working", "paused")


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence for the operator, and how bad it is."""

    level: Level
    text: str


def judge(stats: QueueStats, graph: str, max_age_s: float) -> list[Finding]:
    """What an operator has to know, worst first; one reassuring sentence when there is nothing.

    Args:
        stats: How the queue stands.
        graph: `off`, `up` or `down`, as the API sees it.
        max_age_s: Age in seconds of the oldest due event above which `/readyz` says not ready.
    """
    found = [
        *_judge_graph(stats, graph),
        *_judge_age(stats, max_age_s),
        *_judge_dead(stats),
        *(_judge_workers(stats) if graph != "off" else ()),
    ]
    if not found:
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


def _judge_dead(stats: QueueStats) -> list[Finding]:
    if not stats.dead:
        return []
    events = "1 event is dead and waits" if stats.dead == 1 else f"{stats.dead:,} events are dead and wait"
    found = [Finding("bad", f"{events} for your decision.")]
    if stats.dead_deletes:
        deletes = (
            "1 of them is a deletion" if stats.dead_deletes == 1 else f"{stats.dead_deletes:,} of them are deletions"
        )
        found.append(Finding("bad", f"{deletes}: the graph still holds what was deleted."))
    return found


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
