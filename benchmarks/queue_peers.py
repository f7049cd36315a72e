"""Contenders of `job_queue.py`: PgQueuer and procrastinate, each with a handler that does nothing.

Runs in a virtual environment of their own (requirements/bench.txt), so it imports nothing of this project. `fill` makes
the schema and the jobs through the project's own API, `work` is one worker process.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import asyncpg
import procrastinate
import psycopg
import uvloop
from gate import wait_for_start
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from procrastinate.exceptions import ConnectorException

CHUNK = 5_000


async def fill_pgqueuer(url: str, jobs: int) -> None:
    """Make the schema where it is missing, and put the jobs in."""
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    if not await queries.schema_is_installed():
        await queries.install()
    for start in range(0, jobs, CHUNK):
        count = min(CHUNK, jobs - start)
        await queries.enqueue(["noop"] * count, [None] * count, [0] * count)
    await connection.close()


async def work_pgqueuer(url: str, driver: str, batch: int) -> None:
    """One worker on one connection, or on a pool."""
    async with AsyncExitStack() as stack:
        if driver == "psycopg":
            connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
            queuer = PgQueuer.from_psycopg_connection(await stack.enter_async_context(connection))
        elif driver == "asyncpg_pool":
            queuer = PgQueuer.from_asyncpg_pool(await stack.enter_async_context(asyncpg.create_pool(url, min_size=3)))
        else:
            queuer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(url))

        @queuer.entrypoint("noop")
        async def noop(_job: object) -> None:
            """Nothing."""

        wait_for_start()
        await queuer.run(batch_size=batch)


def open_procrastinate(url: str, concurrency: int) -> procrastinate.App:
    """An app with one task that does nothing."""
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=concurrency + 3)
    )

    @app.task(name="noop")
    async def noop() -> None:
        """Nothing."""

    return app


async def fill_procrastinate(url: str, jobs: int) -> None:
    """Make the schema where it is missing, and put the jobs in."""
    app = open_procrastinate(url, 1)
    async with app.open_async():
        try:
            await app.job_manager.list_jobs_async(id=0)
        except ConnectorException:
            await app.schema_manager.apply_schema_async()
        task = app.tasks["noop"]
        for start in range(0, jobs, CHUNK):
            await task.batch_defer_async(*[{}] * min(CHUNK, jobs - start))


async def work_procrastinate(url: str, concurrency: int) -> None:
    """One worker; finished jobs stay, as they do by default."""
    app = open_procrastinate(url, concurrency)
    async with app.open_async():
        wait_for_start()
        await app.run_worker_async(concurrency=concurrency)


def main() -> None:
    """Run one step."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("project", choices=["pgqueuer", "procrastinate"])
    options.add_argument("step", choices=["fill", "work"])
    options.add_argument("--jobs", type=int, default=0)
    options.add_argument("--driver", choices=["asyncpg", "asyncpg_pool", "psycopg"], default="asyncpg")
    options.add_argument("--batch", type=int, default=10)
    options.add_argument("--concurrency", type=int, default=1)
    given = options.parse_args()
    logging.disable(logging.WARNING)  # both log each job, which is not what is measured
    url = os.environ["BENCH_URL"]
    steps: dict[tuple[str, str], Callable[[], Awaitable[None]]] = {
        ("pgqueuer", "fill"): lambda: fill_pgqueuer(url, given.jobs),
        ("pgqueuer", "work"): lambda: work_pgqueuer(url, given.driver, given.batch),
        ("procrastinate", "fill"): lambda: fill_procrastinate(url, given.jobs),
        ("procrastinate", "work"): lambda: work_procrastinate(url, given.concurrency),
    }

    async def run() -> None:
        await steps[given.project, given.step]()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


if __name__ == "__main__":
    main()
