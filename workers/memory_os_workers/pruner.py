"""The pruner: removes what has served its time, in small batches so that nobody waits for it."""

from __future__ import annotations

import structlog

from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

EVERY_S = 60.0
BATCH = 2000
TOMBSTONES_S = 3600.0
"""Far longer than a write or a claim of an event may take: a tombstone goes when nothing can ask for it any more."""

PERIOD_S = 3600.0
"""The longest that a retrieval can follow the first one of its hour: as long as one of them is kept, feedback may come
that asks to be counted, and what the hour has had must be known."""


async def run(context: WorkerContext) -> None:
    """Prune now and then until the worker stops."""
    while not context.stopping.is_set():
        await context.pause(EVERY_S * context.source.uniform(0.5, 1.5))
        if not context.stopping.is_set():
            await prune(context)


async def prune(context: WorkerContext) -> dict[str, int]:
    """Prune everything that is due now; returns the number of rows by statement."""
    settings = context.settings
    pruned: dict[str, int] = {}
    for statement, seconds in (
        ("prune_events", settings.outbox_retention_h * 3600),
        ("prune_workers", settings.outbox_retention_h * 3600),
        ("prune_tombstones", TOMBSTONES_S),
        ("prune_verifications", settings.retrieval_retention_d * 86_400),
    ):
        pruned[statement] = await _drain(context, Scope(WORKER_ROLE), statement, seconds)
    async with context.database.transaction(Scope(WORKER_ROLE)) as tx:
        pruned["shrink_outbox"] = (await tx.hot("shrink_outbox"))[0]["shrunk"]
        tenants = [row["tenant_id"] for row in await tx.hot("all_tenants")]
    for tenant_id in tenants:
        scope = Scope(WORKER_ROLE, tenant_id)
        for statement, seconds in (
            ("prune_retrievals", settings.retrieval_retention_d * 86_400),
            ("prune_reinforcements", settings.retrieval_retention_d * 86_400 + PERIOD_S),
            ("prune_idempotency_keys", settings.idempotency_retention_h * 3600),
        ):
            pruned[statement] = pruned.get(statement, 0) + await _drain(context, scope, statement, seconds)
    if any(pruned.values()):
        log.info("pruned", **pruned)
    return pruned


async def _drain(context: WorkerContext, scope: Scope, statement: str, seconds: float) -> int:
    parameters = {"seconds": seconds, "batch": BATCH, "tenant_id": scope.tenant_id}
    total = 0
    while not context.stopping.is_set():
        count = await context.database.run(scope, lambda tx: tx.touched(statement, parameters))
        total += count
        if count < BATCH:
            break
    return total
