"""The word counter: how many records the common words of large tenants stand in, so that no search has to count them.

Nothing depends on it: a search counts up to a bound what nobody has counted.
"""

from __future__ import annotations

from uuid import UUID

import structlog

from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

EVERY_S = 120.0
LEAST = 500
"""Records from which a word is common, and by which a tenant must have grown: shorter lists are counted in 0.1 ms."""


async def run(context: WorkerContext) -> None:
    """Count now and then what has grown, until the worker stops."""
    while not context.stopping.is_set():
        await context.pause(EVERY_S * context.source.uniform(0.5, 1.5))
        if not context.stopping.is_set():
            await count_words(context)


async def count_words(context: WorkerContext, least: int = LEAST) -> int:
    """Count the words of every tenant's readers that have grown or shrunk enough; returns the number of readers."""
    async with context.database.transaction(Scope(WORKER_ROLE)) as tx:
        tenants = [row["tenant_id"] for row in await tx.hot("all_tenants")]
    counted = 0
    for tenant_id in tenants:
        if context.stopping.is_set():
            break
        counted += await _count_tenant(context, tenant_id, least)
    if counted:
        log.info("words_counted", readers=counted)
    return counted


async def _count_tenant(context: WorkerContext, tenant_id: UUID, least: int) -> int:
    given = {"tenant_id": tenant_id, "least": least}
    async with context.database.transaction(Scope(WORKER_ROLE, tenant_id)) as tx:
        readers = [row["reader"] for row in await tx.hot("readers_to_count", given)]
        if not readers or not (await tx.hot("enter_counting", given))[0]["entered"]:
            return 0
        await tx.hot("beside_erasures", given)  # a user who is being erased must not come back as a reader
        await tx.touched("forget_counts", given | {"readers": readers})
        await tx.touched("count_words", given | {"readers": readers})
    return len(readers)
