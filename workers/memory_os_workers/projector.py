"""The projector: takes tenants in turn, becomes the only writer of their graph, and drains their due events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog

from memory_os.graph.port import FenceLostError, GraphPatch, GraphUnavailableError
from memory_os.metrics import EVENTS_PROJECTED, STALE_ACKS
from memory_os.outbox.events import DELETE
from memory_os.outbox.queue import ClaimedEvent, Lease
from memory_os.projection.projector import Loaded, may_overlap
from memory_os.storage.database import is_connection_loss
from memory_os_workers.context import WorkerContext
from memory_os_workers.holding import enter_graph, hold

log = structlog.get_logger(__name__)

BATCHES_A_TURN = 20
"""Batches of one tenant before the next one has its turn: a busy tenant may not starve the others."""


@dataclass(slots=True)
class Batch:
    """Claimed events on their way: loaded or the error that kept them from it, and later the writing of their patch."""

    events: Sequence[ClaimedEvent]
    loaded: Loaded | Exception
    writing: asyncio.Task[bool] | None = None

    async def written(self) -> bool:
        """Wait until the batch is settled; whether its patch went in whole."""
        return True if self.writing is None else await self.writing


class LeaseLostError(Exception):
    """The tenant is another worker's by now; whatever was in hand is dropped."""


async def run(context: WorkerContext) -> None:
    """Project until the worker stops."""
    after = UUID(int=0)
    while not context.stopping.is_set():
        if (wait := context.breaker.seconds_to_probe()) > 0:
            await context.pause(wait)
            continue
        if context.breaker.state == "half_open" and not await _probe(context):
            continue
        context.wake.clear()
        for tenant_id in await context.queue.abandoned_tenants(context.settings.worker_concurrency):
            # Alone: should one of its events kill this worker, too, it takes nobody else's attempts with it.
            await take_turn(context, tenant_id)
        tenants = await context.queue.due_tenants(after, context.settings.worker_concurrency)
        if not tenants:
            if after == UUID(int=0):
                await _sleep_until_woken(context)
            after = UUID(int=0)
            continue
        after = tenants[-1]
        async with asyncio.TaskGroup() as group:
            for tenant_id in tenants:
                group.create_task(take_turn(context, tenant_id))


async def take_turn(context: WorkerContext, tenant_id: UUID) -> None:
    """Drain one tenant's due events for a while, if nobody else is at it."""
    lease = await context.queue.lease(tenant_id)
    if lease is None:
        return
    claimed: list[int] = []
    context.tally.busy += 1
    try:
        async with hold(context, lease):
            await enter_graph(context, lease)
            await _drain(context, lease, claimed)
    except GraphUnavailableError as error:
        _open_breaker(context, error)
        await _give_back(context, lease, claimed, f"{type(error).__name__}: {error}")
    except (LeaseLostError, FenceLostError):
        log.warning("lease_lost", tenant_id=str(tenant_id))
    except asyncio.CancelledError:
        await _give_back(context, lease, claimed, None)
        raise
    except Exception as error:
        if is_connection_loss(error):
            await _give_back(context, lease, claimed, f"{type(error).__name__}: {error}")
        raise
    finally:
        context.tally.busy -= 1
        context.projector.forget(tenant_id)
        await context.queue.release(lease)


async def _drain(context: WorkerContext, lease: Lease, claimed: list[int]) -> None:
    """Claim and project batch after batch, and note in `claimed` what was taken.

    Three of them are in hand at once, each in another place: one is read and extracted from, one is derived in
    Postgres, one is written to the graph.
    """
    loading: asyncio.Task[Batch | None] | None = None
    ahead: list[Batch] = []  # the two batches before the one in hand: those that it was loaded beside
    try:
        for turn in range(BATCHES_A_TURN):
            batch = await (loading or _load(context, lease, claimed))
            loading = None
            if batch is None:
                break
            if any(event.suspect for event in batch.events):
                await _advance(context, lease, batch, ahead)
                await batch.written()
                continue
            if turn + 1 < BATCHES_A_TURN:
                loading = asyncio.create_task(_load(context, lease, claimed))
            await _advance(context, lease, batch, ahead)
            ahead = [*ahead[-1:], batch]
        if ahead:
            await ahead[-1].written()
    except BaseException:
        await _wind_up([loading, *(batch.writing for batch in ahead)])
        raise


async def _wind_up(steps: Sequence[asyncio.Task[Any] | None]) -> None:
    """After a failure: wait for the steps that are under way, whatever they end with, so that nothing more is claimed.

    Where the turn itself is called off (the worker stops, or has lost the lease) they are called off with it: a graph
    that hangs would keep them for longer than a stop may take.
    """
    under_way = [step for step in steps if step is not None]
    turn = asyncio.current_task()
    if turn is not None and turn.cancelling():
        for step in under_way:
            step.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)


async def _load(context: WorkerContext, lease: Lease, claimed: list[int]) -> Batch | None:
    """Claim the next batch and load it; None when there is none, or when no more may be taken."""
    if context.stopping.is_set() or context.breaker.state != "closed":
        return None
    events = await context.queue.claim(lease, context.settings.worker_batch_size)
    if not events:
        return None
    claimed += [event.id for event in events]
    try:
        return Batch(events, await context.projector.load(lease, events))
    except Exception as error:  # noqa: BLE001 - whatever it is, `_divide` finds the event that causes it
        return Batch(events, error)


async def _advance(context: WorkerContext, lease: Lease, batch: Batch, ahead: Sequence[Batch]) -> None:
    """Derive a batch and start writing it, once the one before is written."""
    before = ahead[-1] if ahead else None
    if isinstance(batch.loaded, Exception):
        await _wait_for(before)
        await _divide(context, lease, batch.events, batch.loaded)
        return
    if not all(may_overlap(other.events, batch.events) for other in ahead):
        # What was loaded may have changed under it: once more, alone.
        await _wait_for(before)
        await settle(context, lease, batch.events)
        return
    try:
        patch = await context.projector.derive(lease, batch.loaded)
    except Exception as error:  # noqa: BLE001 - as above
        await _wait_for(before)
        await _divide(context, lease, batch.events, error)
        return
    if not await _wait_for(before):
        # The batch before had to be taken apart, so this patch may tell of counts that have changed since.
        await settle(context, lease, batch.events)
        return
    batch.writing = asyncio.create_task(_write(context, lease, batch.events, patch))


async def _wait_for(before: Batch | None) -> bool:
    return before is None or await before.written()


async def settle(context: WorkerContext, lease: Lease, events: Sequence[ClaimedEvent]) -> None:
    """Project events by themselves and record what became of each."""
    try:
        patch = await context.projector.derive(lease, await context.projector.load(lease, events))
    except Exception as error:  # noqa: BLE001 - as above
        await _divide(context, lease, events, error)
    else:
        await _write(context, lease, events, patch)


async def _write(context: WorkerContext, lease: Lease, events: Sequence[ClaimedEvent], patch: GraphPatch) -> bool:
    """Write a patch and mark its events done; False when the batch had to be taken apart."""
    try:
        await context.projector.write(lease, patch)
    except Exception as error:  # noqa: BLE001 - as above
        await _divide(context, lease, events, error)
        return False
    finished = await context.queue.finish(lease, [event.id for event in events])
    context.tally.done += finished
    EVENTS_PROJECTED.labels("done").inc(finished)
    if finished < len(events):
        _count_stale(context, len(events) - finished)
    return True


async def _divide(context: WorkerContext, lease: Lease, events: Sequence[ClaimedEvent], error: Exception) -> None:
    """A batch that fails is halved until the poison is alone, so that its neighbours lose no attempt to it.

    Raises:
        LeaseLostError: The tenant is somebody else's; the events are theirs to project.
        Exception: What kept the infrastructure from answering.
    """
    if isinstance(error, FenceLostError | LeaseLostError):
        raise LeaseLostError from error
    if isinstance(error, GraphUnavailableError) or is_connection_loss(error):
        raise error
    if len(events) == 1:
        await _fail(context, lease, events[0], error)
        return
    middle = len(events) // 2
    await settle(context, lease, events[:middle])
    await settle(context, lease, events[middle:])


async def _fail(context: WorkerContext, lease: Lease, event: ClaimedEvent, error: Exception) -> None:
    status = await context.queue.fail(lease, event, error)
    if status is None:
        _count_stale(context, 1)
        return
    context.tally.failed += 1
    if status == "dead" and event.event_type == DELETE:
        # A matter of privacy: readers don't see the record any more, but the graph still holds it.
        log.error("deletion_died", tenant_id=str(lease.tenant_id), event_id=event.id, error_class=type(error).__name__)
    EVENTS_PROJECTED.labels("dead" if status == "dead" else "failed").inc()
    log.warning(
        "event_failed",
        tenant_id=str(lease.tenant_id),
        event_id=event.id,
        request_id=event.request_id,
        attempt=event.attempts,
        status=status,
        error_class=type(error).__name__,
    )


async def _give_back(context: WorkerContext, lease: Lease, claimed: Sequence[int], reason: str | None) -> None:
    """Refund the attempts of what the infrastructure, or a stop, has kept from being projected.

    All of a turn's events are named, since those that are settled are not the lease's any more and stay as they are.
    When it is Postgres that went away, the refund can't be written: the leases run out and the events come back with
    the attempt spent, which is the safe side.
    """
    try:
        await context.queue.refund(lease, claimed, reason, 0.0)
    except Exception as lost:
        if not is_connection_loss(lost):
            raise


def _count_stale(context: WorkerContext, count: int) -> None:
    context.tally.stale_acks += count
    STALE_ACKS.inc(count)


def _open_breaker(context: WorkerContext, error: Exception) -> None:
    context.breaker.fail(f"{type(error).__name__}: {error}")
    probe_in_s = round(context.breaker.seconds_to_probe(), 2)
    log.warning("breaker_opened", reason=context.breaker.reason, probe_in_s=probe_in_s)


async def _probe(context: WorkerContext) -> bool:
    try:
        await context.backend.ping()
    except GraphUnavailableError as error:
        _open_breaker(context, error)
        return False
    context.breaker.succeed()
    log.info("breaker_closed")
    return True


async def _sleep_until_woken(context: WorkerContext) -> None:
    """Until a notification or the poll; jittered, so that many workers don't poll at one moment."""
    seconds = context.settings.worker_poll_s * context.source.uniform(0.5, 1.0)
    waiting = [asyncio.create_task(context.wake.wait()), asyncio.create_task(context.stopping.wait())]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
