"""What a worker's actors share."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from uuid import UUID

from memory_os.embedding.port import Embedder
from memory_os.graph.port import GraphBackend
from memory_os.outbox.breaker import Breaker
from memory_os.outbox.queue import Queue
from memory_os.projection.projector import Projector
from memory_os.settings import Settings
from memory_os.storage.database import Database


@dataclass(slots=True)
class Tally:
    """What this worker has done since it started."""

    done: int = 0
    failed: int = 0
    stale_acks: int = 0
    busy: int = 0


@dataclass(slots=True)
class WorkerContext:
    """One worker: its identity, its parts, and the two signals that its actors wait on.

    `wake` is set when there may be work, `stopping` when no more work may be taken.
    """

    worker_id: UUID
    settings: Settings
    database: Database
    embedder: Embedder
    backend: GraphBackend
    queue: Queue
    projector: Projector
    breaker: Breaker
    source: random.Random
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    tally: Tally = field(default_factory=Tally)
    epochs: dict[UUID, str] = field(default_factory=dict)
    """Of the graphs that this worker has recognised as their tenants'."""

    async def pause(self, seconds: float) -> None:
        """Wait, but no longer than until the worker stops."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return
