"""The cycler: enters the runs of cycles that tenants are owed, and makes them, batch by batch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import structlog

from memory_os.cycles.running import advance
from memory_os.cycles.scheduling import owe_runs
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

EVERY_S: Final = 20.0
"""Seconds between looks: a run begins so much after it is due, at most."""

REST_S: Final = 0.02
"""Seconds between two batches, so that whoever writes or asks meanwhile has the stores half of the time."""


async def run(context: WorkerContext) -> None:
    """Look for runs that are due now and then, until the worker stops."""
    while not context.stopping.is_set():
        async with context.database.transaction(Scope(WORKER_ROLE)) as tx:
            tenants = [row["tenant_id"] for row in await tx.hot("all_tenants")]
        for tenant_id in tenants:
            await tend(context, tenant_id, datetime.now(UTC))
        await context.pause(EVERY_S * context.source.uniform(0.5, 1.0))


async def tend(context: WorkerContext, tenant_id: UUID, now: datetime) -> int:
    """Enter what a tenant is owed, and go on with its runs until none is open; gives how many changes were made."""
    scope, outbox = Scope(WORKER_ROLE, tenant_id), Outbox(enabled=context.settings.enable_graph_memory)
    for run_id in await context.database.run(scope, lambda tx: owe_runs(tx, now)):
        log.info("cycle_due", tenant_id=str(tenant_id), run_id=str(run_id))
    made = 0
    while not context.stopping.is_set():
        progress = await context.database.run(scope, lambda tx: advance(tx, outbox))
        if progress is None:
            break
        made += progress.made
        if progress.rule is None:
            log.info("cycle_done", tenant_id=str(tenant_id), run_id=str(progress.run_id))
        await context.pause(REST_S)
    return made
