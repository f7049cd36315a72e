"""The cycler: enters the runs of cycles that tenants are owed, and makes them, batch by batch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import structlog

from memory_os.cycles.running import BatchFailedError, attempt
from memory_os.cycles.scheduling import owe_runs
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage.database import Scope, is_connection_loss
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

EVERY_S: Final = 15.0
"""Seconds between looks: a run begins so much after it is due or asked for, at most."""

REST_S: Final = 0.02
"""Seconds between two batches, so that whoever writes or asks meanwhile has the stores half of the time."""


async def run(context: WorkerContext) -> None:
    """Look for runs that are due now and then, until the worker stops."""
    while not context.stopping.is_set():
        await look(context, datetime.now(UTC))
        await context.pause(EVERY_S * context.source.uniform(0.5, 1.0))


async def look(context: WorkerContext, now: datetime) -> None:
    """See to one tenant after the other. What is wrong with one is no matter of the others."""
    rows = await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.hot("active_tenants"))
    for row in rows:
        if context.stopping.is_set():
            return
        tenant_id = row["tenant_id"]
        try:
            await tend(context, tenant_id, now)
        except BatchFailedError as error:
            told = {"attempts": error.attempts, "status": error.status}
            log.exception("cycle_batch_failed", tenant_id=str(tenant_id), **told)
        except Exception as error:
            if is_connection_loss(error):
                raise
            log.exception("cycle_tenant_failed", tenant_id=str(tenant_id))


async def tend(context: WorkerContext, tenant_id: UUID, now: datetime) -> int:
    """Enter what a tenant is owed, and go on with its runs until none is open; gives how many changes were made.

    Raises:
        BatchFailedError: If a batch could not be made: it is tried again after a pause.
    """
    scope, outbox = Scope(WORKER_ROLE, tenant_id), Outbox(enabled=context.settings.enable_graph_memory)
    given = {"tenant_id": tenant_id}
    for run_id in await context.database.run(scope, lambda tx: owe_runs(tx, now)):
        log.info("cycle_due", tenant_id=str(tenant_id), run_id=str(run_id))
    made = 0
    while not context.stopping.is_set():
        rows = await context.database.run(scope, lambda tx: tx.hot("open_cycle_run", given))
        if not rows:
            break
        done = await _go_on(context, scope, outbox, rows[0]["id"])
        if done is None:
            break
        made += done
    return made


async def _go_on(context: WorkerContext, scope: Scope, outbox: Outbox, run_id: UUID) -> int | None:
    """Make batches of a run until its end or the worker's; None if somebody else has it in hand."""
    made = 0
    while not context.stopping.is_set():
        progress = await attempt(context.database, scope, outbox, run_id)
        if progress is None:
            return None
        made += progress.made
        if progress.rule is None:
            log.info("cycle_done", tenant_id=str(scope.tenant_id), run_id=str(run_id))
            break
        await context.pause(REST_S)
    return made
