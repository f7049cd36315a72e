"""Is the service healthy: readiness, and the queue's gauges computed from the table whenever they are asked for."""

from __future__ import annotations

import asyncio
from collections import defaultdict
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
    """Queue depth and age by status, and workers by state, in Prometheus' text form.

    Tenants are not labels, so that neither their number nor their names get into the metrics store.
    """
    async with database.transaction(Scope("memory_os_app")) as tx:
        gauges = await tx.hot("outbox_gauges")
        workers = await tx.hot("worker_gauges")
    registry = CollectorRegistry()
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
