"""The rebuilder: takes rebuild jobs, holds the tenant while it works, and reports progress."""

from __future__ import annotations

from typing import Any

import structlog

from memory_os.graph.port import FenceLostError, GraphUnavailableError
from memory_os.outbox.queue import WORKER_ROLE, Lease
from memory_os.projection.rebuilder import Rebuilder, RebuildJob
from memory_os.storage.database import Scope, is_connection_loss
from memory_os_workers.context import WorkerContext
from memory_os_workers.holding import enter_graph, hold

log = structlog.get_logger(__name__)

EVERY_S = 1.0
SILENT_LEASES = 2
"""A running job whose worker has not reported for this many lengths of a lease may be taken over; it starts anew."""


class JobLostError(Exception):
    """The job was cancelled, or another worker has taken it over: nothing more may be done for it."""


async def run(context: WorkerContext) -> None:
    """Look for jobs until the worker stops."""
    while not context.stopping.is_set():
        if context.breaker.state == "closed" and await take_job(context):
            continue
        await context.pause(EVERY_S)


async def take_job(context: WorkerContext) -> bool:
    """Take and run one job; False when there is none, or when its tenant is being projected just now."""
    silent_s = SILENT_LEASES * context.settings.worker_lease_s
    rows = await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.hot("claim_rebuild", {"silent_s": silent_s}))
    if not rows or rows[0]["status"] != "running":
        return False
    row = rows[0]
    names = ("tenant_id", "id", "user_id", "max_memories", "allow_partial", "request_id", "attempts")
    job = RebuildJob(*(row[name] for name in names))
    lease = None
    try:
        lease = await _wait_for_lease(context, job)
        if lease is None:
            await _end(context, job, status="pending", phase="waiting")
            return False
        await _run_job(context, job, lease)
    except JobLostError:
        # Cancelled, or another worker's by now; the live graph is as it was.
        log.info("rebuild_left", tenant_id=str(job.tenant_id), rebuild_id=str(job.id))
        if lease is not None:
            await context.backend.abandon_rebuild(job.tenant_id, str(lease.token))
    finally:
        if lease is not None:
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
            await enter_graph(context, lease)
            truncated = await rebuilder.rebuild(job, lease, progress)
    except (GraphUnavailableError, FenceLostError) as error:
        # The live graph is untouched; the job starts anew when the graph is back.
        context.breaker.fail(f"{type(error).__name__}: {error}")
        await _end(context, job, status="pending", phase="waiting for the graph")
        return
    except JobLostError:
        raise
    except Exception as error:
        if is_connection_loss(error):
            raise
        log.exception("rebuild_failed", tenant_id=str(job.tenant_id), rebuild_id=str(job.id))
        await _end(context, job, status="failed", phase="failed", error=f"{type(error).__name__}: {error}"[:500])
        return
    await _end(context, job, status="done", phase="done", truncated=truncated)
    log.info("rebuild_done", tenant_id=str(job.tenant_id), rebuild_id=str(job.id))


async def _report(context: WorkerContext, job: RebuildJob, phase: str, processed: int, total: int) -> None:
    """Say how far a job is.

    Raises:
        JobLostError: It was cancelled, or another worker has taken it over.
    """
    given = {"tenant_id": job.tenant_id, "id": job.id, "phase": phase, "processed": processed, "total": total}
    given["attempt"] = job.attempt
    if not await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.touched("rebuild_progress", given)):
        raise JobLostError


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
        "attempt": job.attempt,
    }
    await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.touched("rebuild_end", given))
