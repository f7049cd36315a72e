"""Holding a tenant: renews the lease while the work goes on, and calls the work off when it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from memory_os.graph.port import FenceLostError
from memory_os.outbox.queue import Lease
from memory_os.storage.database import is_connection_loss
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
