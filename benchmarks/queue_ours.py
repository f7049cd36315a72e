"""A contender of `job_queue.py`: this project's worker with everything but the queue taken out.

The projector actor runs as it is in production, from the look for due tenants to the release of a lease; only what it
calls between the claim and the acknowledgement does nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import time
from collections.abc import Sequence
from typing import Any, cast

import uvloop
from gate import wait_for_start

from memory_os.domain.ids import new_id
from memory_os.graph.port import GraphBackend, GraphPatch
from memory_os.logging import configure_logging
from memory_os.outbox.breaker import Breaker
from memory_os.outbox.queue import WORKER_ROLE, ClaimedEvent, Lease, Queue
from memory_os.projection.projector import Projector
from memory_os.settings import load_settings
from memory_os.storage.checks import check_database
from memory_os.storage.database import Database
from memory_os_workers import projector
from memory_os_workers.context import WorkerContext


class NoProjector:
    """Reads, derives and writes nothing."""

    async def load(self, _lease: Lease, events: Sequence[ClaimedEvent]) -> Sequence[ClaimedEvent]:
        """What was claimed."""
        return events

    async def derive(self, _lease: Lease, _loaded: object) -> GraphPatch:
        """An empty patch."""
        return GraphPatch()

    async def write(self, _lease: Lease, _patch: GraphPatch) -> None:
        """Nothing."""

    def forget(self, _tenant_id: object) -> None:
        """Nothing."""


class NoBackend:
    """Takes any fence."""

    async def take_fence(self, _tenant_id: object, _token: str) -> None:
        """Nothing."""


async def work(*, durable: bool) -> None:
    """Claim and acknowledge until SIGTERM."""
    settings = load_settings()
    configure_logging(settings)
    database = Database(settings.worker_url(), pool_size=settings.database_pool_size, durable=durable)
    source = random.Random()
    worker_id = new_id()
    nothing = cast(Any, NoProjector())
    context = WorkerContext(
        worker_id=worker_id,
        settings=settings,
        database=database,
        embedder=cast(Any, None),
        backend=cast(GraphBackend, NoBackend()),
        queue=Queue(database, worker_id, lease_s=settings.worker_lease_s, backoff=(2.0, 300.0), source=source),
        projector=cast(Projector, nothing),
        breaker=Breaker(time.monotonic, source),
        source=source,
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, context.stopping.set)
    await check_database(database, WORKER_ROLE)
    wait_for_start()
    await projector.run(context)
    await database.close()


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--durable", action="store_true", help="commits wait for the disk")
    given = options.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work(durable=given.durable))


if __name__ == "__main__":
    main()
