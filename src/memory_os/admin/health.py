"""Is the service healthy: readiness, and the queue's gauges computed from the table whenever they are asked for."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from sqlalchemy import text

from memory_os.graph.facade import GraphMemory
from memory_os.graph.port import GraphError
from memory_os.settings import Settings
from memory_os.storage.database import Database, Scope, is_connection_loss
from memory_os.storage.revision import SCHEMA_REVISION

_GRAPH_TIMEOUT_S = 1.0


async def readiness(database: Database, settings: Settings, graph: GraphMemory | None) -> tuple[bool, dict[str, Any]]:
    """Whether the service can serve, and the state of each part.

    The graph alone never makes the service unready, since answers come from the other arms without it; an outbox whose
    oldest due event has waited too long does, since then nothing projects any more.
    """
    parts: dict[str, Any] = {"database": "down", "schema": "unknown", "outbox": {}, "graph": "off"}
    try:
        async with database.transaction(Scope("memory_os_app")) as tx:
            row = await tx.row(text("SELECT version_num FROM alembic_version"))
            gauges = await tx.hot("outbox_gauges")
    except Exception as error:
        if not is_connection_loss(error):
            raise
        return False, parts
    parts["database"] = "up"
    at_head = row is not None and row["version_num"] == SCHEMA_REVISION
    parts["schema"] = "at head" if at_head else "not at head: run `memory-os migrate`"
    waiting = [gauge for gauge in gauges if gauge["status"] != "dead"]
    oldest = max((float(gauge["oldest_seconds"]) for gauge in waiting), default=0.0)
    parts["outbox"] = {
        "waiting": sum(gauge["events"] for gauge in waiting),
        "dead": sum(gauge["events"] for gauge in gauges if gauge["status"] == "dead"),
        "dead_deletes": sum(gauge["deletes"] for gauge in gauges if gauge["status"] == "dead"),
        "oldest_seconds": round(oldest, 1),
    }
    moving = oldest <= settings.outbox_ready_max_age_s
    if not moving:
        parts["outbox"]["reason"] = "the oldest event waits too long: are the workers and the graph up?"
    parts["graph"] = await graph_state(graph)
    return at_head and moving, parts


async def graph_state(graph: GraphMemory | None) -> str:
    """`off`, `up` or `down`."""
    if graph is None:
        return "off"
    try:
        async with asyncio.timeout(_GRAPH_TIMEOUT_S):
            await graph.backend.ping()
    except (GraphError, TimeoutError):
        return "down"
    return "up"


async def queue_metrics(database: Database) -> bytes:
    """Queue depth and age by status, workers by state and how graphs compare, in Prometheus' text form.

    Tenants are not labels, so that neither their number nor their names get into the metrics store.
    """
    async with database.transaction(Scope("memory_os_app")) as tx:
        gauges = await tx.hot("outbox_gauges")
        workers = await tx.hot("worker_gauges")
        graphs = await tx.hot("graph_gauges")
    registry = CollectorRegistry()
    _add_graphs(registry, graphs)
    deletes = Gauge("memory_os_outbox_dead_deletes", "Deletions that never reached the graph.", registry=registry)
    deletes.set(sum(gauge["deletes"] for gauge in gauges if gauge["status"] == "dead"))
    events = Gauge("memory_os_outbox_events", "Events in the outbox.", ["status"], registry=registry)
    oldest = Gauge("memory_os_outbox_oldest_seconds", "Age of the oldest event.", ["status"], registry=registry)
    alive = Gauge("memory_os_workers", "Workers by state; lost ones are silent.", ["state"], registry=registry)
    depth: dict[str, int] = defaultdict(int)
    age: dict[str, float] = defaultdict(float)
    for gauge in gauges:
        depth[gauge["status"]] += gauge["events"]
        age[gauge["status"]] = max(age[gauge["status"]], float(gauge["oldest_seconds"]))
    for status in ("pending", "leased", "dead"):
        events.labels(status).set(depth[status])
        oldest.labels(status).set(age[status])
    for row in workers:
        alive.labels(row["state"]).set(row["workers"])
    return generate_latest(registry)


def _add_graphs(registry: CollectorRegistry, graphs: Sequence[Mapping[str, Any]]) -> None:
    """What the newest comparison of each graph has found, summed up."""
    compared = [graph for graph in graphs if graph["seconds_ago"] is not None]
    figures = (
        ("memory_os_graph_differences", "Differences to the canonical rows.", sum(g["differences"] for g in compared)),
        ("memory_os_graphs_differing", "Graphs with such differences.", sum(bool(g["differences"]) for g in compared)),
        ("memory_os_graphs_doubted", "Graphs that are lost, damaged or not mended.", sum(g["doubted"] for g in graphs)),
        ("memory_os_graphs_not_compared", "Graphs that were never compared.", len(graphs) - len(compared)),
        (
            "memory_os_graph_compared_seconds",
            "Age of the oldest of the newest comparisons.",
            max((g["seconds_ago"] for g in compared), default=0.0),
        ),
    )
    for name, meaning, value in figures:
        Gauge(name, meaning, registry=registry).set(value)
