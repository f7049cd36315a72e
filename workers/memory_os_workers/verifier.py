"""The verifier: compares graphs with their canonical rows, when asked or when it is time, and mends them on demand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from memory_os.graph.port import FenceLostError, GraphUnavailableError, Key, Part
from memory_os.outbox.queue import WORKER_ROLE, Lease
from memory_os.projection import mending
from memory_os.projection.differences import Outcome
from memory_os.projection.graph_states import DAMAGED, RESTARTED, replace
from memory_os.projection.verifications import outcome_values
from memory_os.projection.verifier import Mend, Verifier
from memory_os.storage.database import Scope, is_connection_loss
from memory_os_workers.context import WorkerContext
from memory_os_workers.holding import enter_graph, hold

log = structlog.get_logger(__name__)

EVERY_S = 1.0
SCHEDULE_EVERY_S = 60.0
AT_ONCE = 10
"""Graphs that one look at the schedule may ask to be compared."""

SILENT_LEASES = 2
"""As of a rebuild: lengths of a lease after which a silent worker's job may be taken over."""


@dataclass(frozen=True, slots=True)
class VerificationJob:
    """Which graph to compare, and whether to mend it."""

    tenant_id: UUID
    id: UUID
    repair: bool
    attempt: int


class _JobLostError(Exception):
    """Another worker has taken the job over."""


async def run(context: WorkerContext) -> None:
    """Look for jobs, and at the schedule, until the worker stops."""
    looked = 0.0
    while not context.stopping.is_set():
        if context.breaker.state == "closed":
            if time.monotonic() - looked > SCHEDULE_EVERY_S * context.source.uniform(0.5, 1.0):
                looked = time.monotonic()
                await schedule(context)
            if await take_job(context):
                continue
        await context.pause(EVERY_S)


async def schedule(context: WorkerContext) -> None:
    """Ask for a comparison of the graphs that have not been compared for too long."""
    if not context.settings.graph_verify_every_h:
        return
    given = {"seconds": context.settings.graph_verify_every_h * 3600, "tenants": AT_ONCE}
    await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.touched("schedule_verifications", given))


async def take_job(context: WorkerContext) -> bool:
    """Take and do one job; False when there is none."""
    given = {"silent_s": SILENT_LEASES * context.settings.worker_lease_s}
    rows = await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.hot("claim_verification", given))
    if not rows or rows[0]["status"] != "running":
        return False
    row = rows[0]
    job = VerificationJob(row["tenant_id"], row["id"], row["repair"], row["attempts"])
    try:
        await _do(context, job)
    except _JobLostError:
        log.info("verification_left", tenant_id=str(job.tenant_id), verification_id=str(job.id))
    return True


async def _do(context: WorkerContext, job: VerificationJob) -> None:
    async def progress(phase: str, checked: int, total: int) -> None:
        given = {"tenant_id": job.tenant_id, "id": job.id, "attempt": job.attempt}
        given |= {"phase": phase, "checked": checked, "total": total}
        if not await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.touched("verification_progress", given)):
            raise _JobLostError
        if context.stopping.is_set():
            raise FenceLostError("the worker stops")

    verifier = Verifier(context.database, context.backend)
    try:
        outcome = await verifier.verify(job.tenant_id, progress, mender(context, job.tenant_id) if job.repair else None)
    except (GraphUnavailableError, FenceLostError) as error:
        log.info("verification_put_back", tenant_id=str(job.tenant_id), reason=str(error))
        await _end(context, job, Outcome(), status="pending", phase="waiting for the graph")
        await context.pause(EVERY_S)
        return
    except Exception as error:
        if is_connection_loss(error) or isinstance(error, _JobLostError):
            raise
        log.exception("verification_failed", tenant_id=str(job.tenant_id), verification_id=str(job.id))
        told = f"{type(error).__name__}: {error}"[:500]
        await _end(context, job, Outcome(), status="failed", phase="failed", error=told)
        return
    await _end(context, job, outcome, status="done", phase="done")
    told_of = {"tenant_id": str(job.tenant_id), "verification_id": str(job.id)}
    if outcome.damage is not None:
        await context.database.run(Scope(WORKER_ROLE, job.tenant_id), lambda tx: replace(tx, job.tenant_id, DAMAGED))
        log.error("graph_damaged", **told_of, damage=outcome.damage)
    elif outcome.left or outcome.dead:
        log.error("graph_differs", **told_of, differences=outcome.left, dead=outcome.dead)
    else:
        log.info("graph_verified", **told_of, repaired=outcome.repaired, waiting=outcome.waiting)


def mender(context: WorkerContext, tenant_id: UUID) -> Mend:
    """What sets rows of a tenant's graph right: it becomes the graph's only writer for each handful of them."""

    async def mend(part: Part, keys: Sequence[Key]) -> int:
        lease = await wait_for_lease(context, tenant_id)
        try:
            async with hold(context, lease):
                await enter_graph(context, lease)
                return await mending.mend(context.database, context.backend, lease, part, keys)
        finally:
            context.projector.forget(tenant_id)
            await context.queue.release(lease)
            context.wake.set()

    return mend


async def wait_for_lease(context: WorkerContext, tenant_id: UUID) -> Lease:
    """The tenant's lease, as soon as whoever projects it has had its turn.

    Raises:
        FenceLostError: The worker stops.
    """
    while (lease := await context.queue.lease(tenant_id)) is None:
        await context.pause(0.02)
        if context.stopping.is_set():
            raise FenceLostError("the worker stops")
    return lease


async def _end(
    context: WorkerContext,
    job: VerificationJob,
    outcome: Outcome,
    *,
    status: str,
    phase: str,
    error: str | None = None,
) -> None:
    given = {"tenant_id": job.tenant_id, "id": job.id, "attempt": job.attempt, "mended": RESTARTED}
    given |= {"status": status, "phase": phase, "error": error, **outcome_values(outcome)}
    await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.touched("verification_end", given))
