"""Holding a tenant: renews the lease while work goes on, calls it off when the lease is lost, and takes the fence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from memory_os.graph.port import FenceLostError
from memory_os.outbox.queue import WORKER_ROLE, Lease
from memory_os.projection.graph_states import recognise
from memory_os.projection.tombstones import hold_tenant
from memory_os.storage.database import Scope, Transaction, is_connection_loss
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)


@asynccontextmanager
async def hold(context: WorkerContext, lease: Lease) -> AsyncIterator[None]:
    """Keep `lease` alive for the length of the block.

    Raises:
        FenceLostError: If the lease was lost meanwhile; the block is cancelled for it.
    """
    work = asyncio.current_task()
    lost = False

    async def renew() -> None:
        nonlocal lost
        while True:
            await asyncio.sleep(context.settings.worker_lease_s / 3)
            try:
                if await context.queue.renew(lease):
                    continue
            except Exception as error:
                if not is_connection_loss(error):
                    raise
                continue  # the lease still runs; whether it was lost shows once Postgres is back
            lost = True
            if work is not None:
                work.cancel()
            return

    renewal = asyncio.create_task(renew())
    try:
        yield
    except asyncio.CancelledError:
        if lost and work is not None and work.uncancel() == 0:
            raise FenceLostError(f"the lease of tenant {lease.tenant_id} was lost") from None
        raise
    finally:
        renewal.cancel()


async def enter_graph(context: WorkerContext, lease: Lease) -> None:
    """Become the only one whose writes the tenant's graph takes, and make sure that it is the tenant's.

    A graph that was lost is empty now: a rebuild is asked for, and what is projected until then does no harm.
    """
    epoch = await context.backend.take_fence(lease.tenant_id, str(lease.token))
    if context.epochs.get(lease.tenant_id) == epoch:
        return

    async def is_known(tx: Transaction) -> bool:
        await hold_tenant(tx, lease, sees=False)  # whoever has it by now may have had the graph rebuilt
        return await recognise(tx, lease.tenant_id, epoch)

    if await context.database.run(Scope(WORKER_ROLE, lease.tenant_id), is_known):
        context.epochs[lease.tenant_id] = epoch
    else:
        context.epochs.pop(lease.tenant_id, None)
