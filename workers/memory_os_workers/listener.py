"""The listener: a connection that wakes the projector when something was enqueued. Losing it costs time, not events."""

from __future__ import annotations

import asyncio

import psycopg

from memory_os.outbox.events import CHANNEL
from memory_os_workers.context import WorkerContext

_CHECK_S = 1.0


async def run(context: WorkerContext) -> None:
    """Listen until the worker stops."""
    async with await psycopg.AsyncConnection.connect(context.settings.worker_url(), autocommit=True) as connection:
        await connection.execute(f"LISTEN {CHANNEL}")
        context.wake.set()  # whatever was enqueued before the LISTEN
        while not context.stopping.is_set():
            async for _ in connection.notifies(timeout=_CHECK_S, stop_after=1):
                context.wake.set()
            await asyncio.sleep(0)
