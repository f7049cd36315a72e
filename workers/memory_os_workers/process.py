"""The worker process: opens what the actors need, runs them, and stops within seconds of a SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import structlog
import uvloop

from memory_os.app import build_embedder, build_graph
from memory_os.domain.ids import new_id
from memory_os.embedding.port import Embedder
from memory_os.errors import StartupError
from memory_os.graph.port import GraphBackend
from memory_os.logging import configure_logging
from memory_os.outbox.breaker import Breaker
from memory_os.outbox.queue import WORKER_ROLE, Queue
from memory_os.projection.projector import Projector
from memory_os.settings import Settings
from memory_os.storage.checks import check_database
from memory_os.storage.database import Database, is_connection_loss
from memory_os_workers import (
    cycler,
    heartbeat,
    indexer,
    listener,
    projector,
    pruner,
    rebuilder,
    reinforcer,
    verifier,
    watcher,
    word_counter,
)
from memory_os_workers import embedder as embedder_actor
from memory_os_workers.context import WorkerContext
from memory_os_workers.supervisor import keep_running

log = structlog.get_logger(__name__)

ACTORS = {
    "heartbeat": heartbeat.run,
    "listener": listener.run,
    "projector": projector.run,
    "rebuilder": rebuilder.run,
    "verifier": verifier.run,
    "watcher": watcher.run,
    "embedder": embedder_actor.run,
    "indexer": indexer.run,
    "reinforcer": reinforcer.run,
    "pruner": pruner.run,
    "word_counter": word_counter.run,
    "cycler": cycler.run,
}
STOP_S = 8.0
"""Seconds that the work in hand gets after SIGTERM; then it is called off and given back."""

LEAVE_S = 9.5
"""Seconds after SIGTERM at which the process ends whatever still hangs. With a frozen Postgres even giving back does;
the leases run out then."""


def run_worker(settings: Settings) -> None:
    """Run one worker until SIGTERM or Ctrl-C; exits 0 within ten seconds of it.

    Raises:
        StartupError: If the worker must not start.
    """
    configure_logging(settings)
    if settings.graph_backend == "networkx" and settings.enable_graph_memory:
        raise StartupError(
            "GRAPH_BACKEND=networkx lives in one process: run `memory-os api --with-worker`, or use falkor"
        )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings))


async def _run(settings: Settings) -> None:
    async with AsyncExitStack() as stack:
        embedder = build_embedder(settings)
        stack.push_async_callback(embedder.close)
        graph = build_graph(settings)
        if graph is None:
            raise StartupError("ENABLE_GRAPH_MEMORY is off, so there is nothing to project: set it to true")
        await graph.backend.open()
        stack.push_async_callback(graph.backend.close)
        context = await stack.enter_async_context(open_worker(settings, embedder, graph.backend))
        loop = asyncio.get_running_loop()

        def stop() -> None:
            context.stopping.set()
            loop.call_later(LEAVE_S, _leave, context)

        _spare_collections()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        await run_actors(context)


def _spare_collections() -> None:
    """Let the garbage collector leave alone what was loaded at the start, and look less often at what comes and goes.

    A batch makes tens of thousands of small objects that are freed by their counts; looking for cycles among them with
    Python's own thresholds took a quarter of the worker's time (benchmarks/projection.py).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _leave(context: WorkerContext) -> None:
    """End at once: nothing is lost, since every event is taken again when its lease has run out."""
    log.warning("worker_left", worker_id=str(context.worker_id), done=context.tally.done)
    os._exit(0)


@asynccontextmanager
async def open_worker(settings: Settings, embedder: Embedder, backend: GraphBackend) -> AsyncIterator[WorkerContext]:
    """Open a worker's own database and make its parts; the embedder and the graph are the caller's.

    Raises:
        StartupError: If the database is not fit for a worker.
    """
    # Whatever a worker writes can be written again: an event whose end was lost with a crash of Postgres is delivered
    # once more, and ends in the same graph. So its commits don't wait for the disk, which was a third of its time.
    database = Database(
        settings.worker_url(),
        pool_size=settings.database_pool_size,
        prepare=settings.database_prepare,
        durable=False,
    )
    try:
        await check_database(database, WORKER_ROLE)
        worker_id = new_id()
        source = random.Random(worker_id.int)  # noqa: S311 - jitter, not a secret
        queue = Queue(
            database,
            worker_id,
            lease_s=settings.worker_lease_s,
            backoff=(settings.outbox_backoff_base_s, settings.outbox_backoff_cap_s),
            source=source,
        )
        yield WorkerContext(
            worker_id=worker_id,
            settings=settings,
            database=database,
            embedder=embedder,
            backend=backend,
            queue=queue,
            projector=Projector(database, backend),
            breaker=Breaker(time.monotonic, source),
            source=source,
        )
    finally:
        await database.close()


async def run_actors(context: WorkerContext) -> None:
    """Run every actor until `context.stopping` is set, then let the work in hand end."""
    await _beat(context, "starting")
    log.info("worker_started", worker_id=str(context.worker_id))
    tasks = [asyncio.create_task(keep_running(context, name, actor), name=name) for name, actor in ACTORS.items()]
    try:
        await context.stopping.wait()
        await _beat(context, "stopping")
        await asyncio.wait(tasks, timeout=STOP_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _beat(context, "stopped")
        log.info("worker_stopped", worker_id=str(context.worker_id), done=context.tally.done)


async def _beat(context: WorkerContext, state: str) -> None:
    """A heartbeat that may fail: a worker must start and stop while Postgres is away, too."""
    with suppress(TimeoutError):
        async with asyncio.timeout(2):
            try:
                await heartbeat.beat(context, state)
            except Exception as error:
                if not is_connection_loss(error):
                    raise
