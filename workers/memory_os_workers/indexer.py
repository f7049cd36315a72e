"""The indexer: builds the index of a large tenant's vectors, and puts into it what was written since.

Putting a vector into such an index takes ten times as long as the rest of a write, so no write does it. Without a
worker every search finds the same, and takes longer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

import structlog

from memory_os.embedding.port import EmbedderIdentity
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.settings import Settings
from memory_os.storage.checks import current_model
from memory_os.storage.database import Scope, Transaction
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

EVERY_S: Final = 20.0
BATCH: Final = 200
"""Vectors of one transaction: at 2 to 5 ms each, whoever changes one of them waits for less than a second."""

LARGEST_DIMENSION: Final = 4_000
"""The most numbers of a vector that pgvector can index, in half precision."""

REBUILT_SHARE: Final = 0.25
"""Share of a partition's rows that may wait; if there are more, to build it anew is faster than to put them in: a build
takes a tenth of the time for each vector."""

_STATEMENTS: Final = ("index_memory_vectors", "index_passage_vectors")

Step = Literal["drop", "build", "move", "rest"]


@dataclass(frozen=True, slots=True)
class Partition:
    """What is in the index of a tenant, and what waits for it.

    Attributes:
        model: The model of its vectors; None where the tenant has no partition.
        rows: Vectors in it, about.
        marked: All vectors that the last build put there are marked as lying there.
        waiting: Vectors of the current model that could be in it and are not marked, up to a bound.
    """

    model: str | None
    rows: int
    marked: bool
    waiting: int


def next_step(found: Partition, current: EmbedderIdentity, settings: Settings) -> Step:
    """What is to be done for a tenant."""
    if found.model is not None and found.model != current.model:
        return "drop"
    if current.dimension > LARGEST_DIMENSION:
        return "rest"
    if found.model is None:
        return "build" if found.waiting > settings.vector_index_from else "rest"
    if not found.marked:
        return "move"
    if found.waiting <= settings.vector_index_tail:
        return "rest"
    return "build" if found.waiting > found.rows * REBUILT_SHARE else "move"


async def run(context: WorkerContext) -> None:
    """Look after the indexes of all tenants now and then, until the worker stops."""
    while not context.stopping.is_set():
        async with context.database.transaction(Scope(WORKER_ROLE)) as tx:
            tenants = [row["tenant_id"] for row in await tx.hot("all_tenants")]
            current = await current_model(tx)
        for tenant_id in tenants if current is not None else ():
            while not context.stopping.is_set() and current is not None and await tend(context, tenant_id, current):
                pass
        await context.pause(EVERY_S)


async def tend(context: WorkerContext, tenant_id: UUID, current: EmbedderIdentity) -> bool:
    """Do what is to be done next for a tenant; False when there is nothing, or when another worker is doing it."""
    found = await _find(context, tenant_id, current)
    match next_step(found, current, context.settings):
        case "drop":
            return await _drop(context, tenant_id)
        case "build":
            return await _build(context, tenant_id, current)
        case "move":
            return await _move(context, tenant_id, current)
        case "rest":
            return False


async def _find(context: WorkerContext, tenant_id: UUID, current: EmbedderIdentity) -> Partition:
    most = max(context.settings.vector_index_from, context.settings.vector_index_tail) + 1
    given: dict[str, Any] = {"tenant_id": tenant_id, "model": current.model, "most": most, "share": REBUILT_SHARE}
    rows = await context.database.run(Scope(WORKER_ROLE, tenant_id), lambda tx: tx.hot("vector_tail", given))
    row = rows[0]
    return Partition(row["model"], row["rows"] or 0, bool(row["marked"]), row["waiting"])


async def _drop(context: WorkerContext, tenant_id: UUID) -> bool:
    scope, given = Scope(WORKER_ROLE, tenant_id), {"tenant_id": tenant_id}
    rows = await context.database.run(scope, lambda tx: tx.hot("drop_vector_index", given))
    if rows[0]["dropped"]:
        log.info("vector_index_dropped", tenant_id=str(tenant_id))
    return bool(rows[0]["dropped"])


async def _build(context: WorkerContext, tenant_id: UUID, current: EmbedderIdentity) -> bool:
    given = {
        "tenant_id": tenant_id,
        "model": current.model,
        "dimension": current.dimension,
        "memory_mb": context.settings.vector_index_memory_mb,
    }
    started = time.monotonic()
    log.info("vector_index_started", tenant_id=str(tenant_id))
    rows = await context.database.run(Scope(WORKER_ROLE, tenant_id), lambda tx: tx.hot("build_vector_index", given))
    built: int | None = rows[0]["rows"]
    if built is None:
        log.info("vector_index_left", tenant_id=str(tenant_id))  # another worker builds one just now
        return False
    took = round(time.monotonic() - started, 1)
    log.info("vector_index_built", tenant_id=str(tenant_id), vectors=built, took_s=took)
    return True


async def _move(context: WorkerContext, tenant_id: UUID, current: EmbedderIdentity) -> bool:
    """Put all that waits into the partition, a batch a transaction; False when another worker was met."""
    given = {"tenant_id": tenant_id, "model": current.model, "batch": BATCH}
    total = added = 0

    async def some(tx: Transaction) -> tuple[int, int] | None:
        if not (await tx.hot("enter_indexing", {"tenant_id": tenant_id}))[0]["entered"]:
            return None
        moved = [(await tx.hot(statement, given))[0] for statement in _STATEMENTS]
        marked, put = sum(row["marked"] for row in moved), sum(row["put"] for row in moved)
        await tx.touched("count_indexed", {"tenant_id": tenant_id, "put": put, "marked": not marked})
        return marked, put

    while not context.stopping.is_set():
        moved = await context.database.run(Scope(WORKER_ROLE, tenant_id), some)
        if moved is None:
            return False
        total, added = total + moved[0], added + moved[1]
        if not moved[0]:
            break
    log.info("vectors_indexed", tenant_id=str(tenant_id), vectors=total, added=added)
    return total > 0
