"""The reinforcer: adds to the edges what the log of retrievals says that answers were found by."""

from __future__ import annotations

from collections import Counter
from functools import partial
from uuid import UUID

import structlog

from memory_os.metrics import REINFORCEMENTS
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.retrieval.reinforcing import COUNTED, reinforce
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

EVERY_S = 3.0
BATCH = 500
"""Walks in one transaction: an answer has a few, and their edges are locked until it ends."""


async def run(context: WorkerContext) -> None:
    """Settle what waits now and then, until the worker stops."""
    while not context.stopping.is_set():
        await settle(context)
        await context.pause(EVERY_S * context.source.uniform(0.5, 1.0))


async def settle(context: WorkerContext) -> Counter[str]:
    """Settle everything that waits, tenant by tenant; returns how many walks came to which outcome.

    Workers share the work: whoever finds walks of a tenant takes those that nobody else has in hand.
    """
    async with context.database.transaction(Scope(WORKER_ROLE)) as tx:
        tenants = [row["tenant_id"] for row in await tx.hot("tenants_to_reinforce")]
    outcomes = Counter[str]()
    while tenants and not context.stopping.is_set():
        done = {tenant_id: await _take_batch(context, tenant_id) for tenant_id in tenants}
        outcomes += sum(done.values(), Counter[str]())
        tenants = [tenant_id for tenant_id in tenants if done[tenant_id].total() == BATCH]
    if outcomes:
        log.info("reinforced", counted=outcomes[COUNTED], skipped=outcomes.total() - outcomes[COUNTED])
    return outcomes


async def _take_batch(context: WorkerContext, tenant_id: UUID) -> Counter[str]:
    outbox = Outbox(enabled=context.settings.enable_graph_memory)
    share = context.settings.reinforce_unconfirmed_share
    work = partial(reinforce, outbox=outbox, share=share, batch=BATCH)
    outcomes = await context.database.run(Scope(WORKER_ROLE, tenant_id), work)
    for outcome, walks in outcomes.items():
        REINFORCEMENTS.labels(outcome).inc(walks)
    return outcomes
