"""The heartbeat: says in the `workers` table that this worker lives, what it does, and how its breaker stands."""

from __future__ import annotations

import os
import socket

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert

from memory_os import __version__
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage import tables
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext

EVERY_S = 5.0


async def run(context: WorkerContext) -> None:
    """Beat until the worker stops."""
    while not context.stopping.is_set():
        running = "working" if context.tally.busy else "idle"
        await beat(context, running if context.breaker.state == "closed" else "paused")
        await context.pause(EVERY_S)


async def beat(context: WorkerContext, state: str) -> None:
    """Write one heartbeat with this state."""
    tally = context.tally
    told = {
        "state": state,
        "breaker": context.breaker.state,
        "breaker_reason": context.breaker.reason,
        "done": tally.done,
        "failed": tally.failed,
        "stale_acks": tally.stale_acks,
    }
    statement = (
        insert(tables.workers)
        .values(id=context.worker_id, host=socket.gethostname(), pid=os.getpid(), version=__version__, **told)
        .on_conflict_do_update(index_elements=["id"], set_={**told, "last_seen": func.now()})
    )
    async with context.database.transaction(Scope(WORKER_ROLE)) as tx:
        await tx.run(statement)
