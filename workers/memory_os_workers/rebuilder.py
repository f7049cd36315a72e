"""The rebuilder: takes rebuild jobs, holds the tenant while it works, and reports progress."""

from __future__ import annotations

from typing import Any

import structlog

from memory_os.graph.port import FenceLostError, GraphUnavailableError
from memory_os.outbox.queue import WORKER_ROLE, Lease
from memory_os.projection.rebuilder import Rebuilder, RebuildJob
from memory_os.storage.database import Scope, is_connection_loss
from memory_os_workers.context import WorkerContext
from memory_os_workers.holding import hold

log = structlog.get_logger(__name__)

EVERY_S = 1.0
SILENT_S = 60.0
"""A running job whose worker has not reported for this long may be taken over; it starts anew."""


async def run(context: WorkerContext) -> None:
    """Look for jobs until the worker stops."""
    while not context.stopping.is_set():
        if context.breaker.state == "closed" and await take_job(context):
            continue
        await context.pause(EVERY_S)


async def take_job(context: WorkerContext) -> bool:
    """Take and run one job; False when there is none, or when its tenant is being projected just now."""
    rows = await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.hot("claim_rebuild", {"silent_s": SILENT_S}))
    if not rows or rows[0]["status"] != "running":
        return False
    row = rows[0]
    job = RebuildJob(
        row["tenant_id"], row["id"], row["user_id"], row["max_memories"], row["allow_partial"], row["request_id"]
    )
    lease = await _wait_for_lease(context, job)
    if lease is None:
        await _end(context, job, status="pending", phase="waiting")
        return False
    try:
        await _run_job(context, job, lease)
    finally:
        context.projector.forget(job.tenant_id)
        await context.queue.release(lease)
        context.wake.set()  # what was committed meanwhile can be projected now
    return True


async def _wait_for_lease(context: WorkerContext, job: RebuildJob) -> Lease | None:
    """The tenant's lease: its projector gives it up after its turn, so that a job waits for seconds, not for ever."""
    while not context.stopping.is_set():
        if (lease := await context.queue.lease(job.tenant_id)) is not None:
            return lease
        await _report(context, job, "waiting for the projector", 0, 0)
        await context.pause(0.02)
    return None


async def _run_job(context: WorkerContext, job: RebuildJob, lease: Lease) -> None:
    log.info("rebuild_started", tenant_id=str(job.tenant_id), rebuild_id=str(job.id))
    rebuilder = Rebuilder(context.database, context.backend, context.projector)

    async def progress(phase: str, processed: int, total: int) -> None:
        await _report(context, job, phase, processed, total)

    try:
        async with hold(context, lease):
            await context.backend.take_fence(job.tenant_id, str(lease.token))
            truncated = await rebuilder.rebuild(job, lease, progress)
    except (GraphUnavailableError, FenceLostError) as error:
        # The live graph is untouched; the job starts anew when the graph is back.
        context.breaker.fail(f"{type(error).__name__}: {error}")
        await _end(context, job, status="pending", phase="waiting for the graph")
        return
    except Exception as error:
        if is_connection_loss(error):
            raise
        log.exception("rebuild_failed", tenant_id=str(job.tenant_id), rebuild_id=str(job.id))
        await _end(context, job, status="failed", phase="failed", error=f"{type(error).__name__}: {error}"[:500])
        return
    await _end(context, job, status="done", phase="done", truncated=truncated)
    log.info("rebuild_done", tenant_id=str(job.tenant_id), rebuild_id=str(job.id))


async def _report(context: WorkerContext, job: RebuildJob, phase: str, processed: int, total: int) -> None:
    given = {"tenant_id": job.tenant_id, "id": job.id, "phase": phase, "processed": processed, "total": total}
    await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.touched("rebuild_progress", given))


async def _end(
    context: WorkerContext,
    job: RebuildJob,
    *,
    status: str,
    phase: str,
    error: str | None = None,
    truncated: bool = False,
) -> None:
    given: dict[str, Any] = {
        "tenant_id": job.tenant_id,
        "id": job.id,
        "status": status,
        "phase": phase,
        "error": error,
        "truncated": truncated,
    }
    await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.touched("rebuild_end", given))
