"""What a day's load does to the outbox in compressed time: size of the table and its indexes, dead rows, claim rate.

Events are enqueued by the product's own statement at a steady rate, claimed and finished by a worker with a projector
that does nothing, and pruned by the product's own statement with a retention of seconds; autovacuum runs as it is
embedded. For the middle third of the load a session holds a REPEATABLE READ snapshot, as a long report or a backup
would: nothing can be vacuumed away then. In each third the worker's claim rate is measured against a full queue. At
the end the table is compared with one that holds nothing but its live rows.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
from job_queue import TENANTS
from race import lined_up, script
from stack import Stores, add_tenants, parser, report, stores, wait_until

from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage.database import Database, Scope

BATCH = 50
"""Events of one transaction of the writer."""

PRUNE_BATCH = 2000
"""As the pruner's."""

SIZES = """
SELECT pg_total_relation_size('outbox_events') AS total, pg_relation_size('outbox_events') AS heap,
       (SELECT jsonb_object_agg(indexrelname, pg_relation_size(indexrelid)) FROM pg_stat_user_indexes
        WHERE relname = 'outbox_events') AS indexes,
       n_live_tup AS live, n_dead_tup AS dead, autovacuum_count AS vacuums
FROM pg_stat_user_tables WHERE relname = 'outbox_events'
"""


class Load:
    """A writer and a pruner on the stores, and samples of the table beside them."""

    def __init__(self, on: Stores, given: Any) -> None:  # noqa: ANN401 - parsed arguments have no type of their own
        self._on = on
        self._rate, self._retention = given.rate, given.retention
        self._tenants = [on.tenant_id, *add_tenants(on, TENANTS - 1)]
        self._started = time.perf_counter()
        self.samples: list[dict[str, Any]] = []

    def run(self, events: int, phase: str) -> None:
        """Enqueue so many events at the rate while a worker takes them, and sample the table every five seconds."""
        stop = threading.Event()
        watching = threading.Thread(target=self._watch, args=(stop, phase))
        watching.start()
        with worker(self._on):
            asyncio.run(self._write(events))
        stop.set()
        watching.join()

    def claim_rate(self, jobs: int) -> float:
        """Events a second that a fresh worker claims and finishes while nothing else goes on."""
        asyncio.run(self._fill(jobs))
        with lined_up([script("queue_ours.py")], self._on.environment()) as (begin, _):
            started = time.perf_counter()
            begin()
            wait_until(
                lambda: not self.ask("SELECT count(*) FROM outbox_events WHERE status = 'pending'"), 300, "a drain"
            )
            return jobs / (time.perf_counter() - started)

    def sample(self, phase: str) -> dict[str, Any]:
        """The table's sizes now, in MB, and its rows."""
        with psycopg.connect(self._on.owner_url, autocommit=True) as connection:
            row = connection.execute(SIZES).fetchone()
        assert row is not None
        total, heap, indexes, live, dead, vacuums = row
        taken = {
            "at_s": round(time.perf_counter() - self._started),
            "phase": phase,
            "total_mb": megabytes(total),
            "heap_mb": megabytes(heap),
            "indexes_mb": {name: megabytes(size) for name, size in sorted(indexes.items())},
            "live": live,
            "dead": dead,
            "autovacuums": vacuums,
        }
        print({name: value for name, value in taken.items() if name != "indexes_mb"}, flush=True)
        return taken

    def ask(self, question: str) -> Any:  # noqa: ANN401 - one value of whatever kind
        """One value, or None from a command."""
        with psycopg.connect(self._on.owner_url, autocommit=True) as connection:
            cursor = connection.execute(question)
            row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None

    def _watch(self, stop: threading.Event, phase: str) -> None:
        while not stop.wait(5):
            self.samples.append(self.sample(phase))

    async def _write(self, events: int) -> None:
        database = Database(self._on.postgres.url("memory_os_app"), pool_size=2)
        pruner = asyncio.create_task(self._prune())
        started = time.perf_counter()
        for number in range(events // BATCH):
            await self._enqueue(database, self._tenants[number % TENANTS], BATCH)
            due = started + (number + 1) * BATCH / self._rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        pruner.cancel()
        await asyncio.gather(pruner, return_exceptions=True)
        await database.close()

    async def _fill(self, events: int) -> None:
        database = Database(self._on.postgres.url("memory_os_app"), pool_size=1)
        for number in range(events // 500):
            await self._enqueue(database, self._tenants[number % TENANTS], 500)
        await database.close()

    async def _enqueue(self, database: Database, tenant_id: UUID, count: int) -> None:
        events = [NewEvent(UPSERT, "memory", uuid4(), 1) for _ in range(count)]
        outbox = Outbox(enabled=True)
        await database.run(Scope("memory_os_app", tenant_id), lambda tx: outbox.enqueue(tx, events, None))

    async def _prune(self) -> None:
        database = Database(self._on.postgres.url("memory_os_worker"), pool_size=1, durable=False)
        given = {"seconds": self._retention, "batch": PRUNE_BATCH}
        try:
            while True:
                pruned = await database.run(Scope(WORKER_ROLE), lambda tx: tx.touched("prune_events", given))
                if pruned < PRUNE_BATCH:
                    await asyncio.sleep(1)
        finally:
            await database.close()


@contextmanager
def worker(on: Stores) -> Iterator[None]:
    """A worker that projects nothing."""
    with lined_up([script("queue_ours.py")], on.environment()) as (begin, _):
        begin()
        yield


@contextmanager
def snapshot(on: Stores) -> Iterator[None]:
    """A session that holds a REPEATABLE READ snapshot."""
    with psycopg.connect(on.owner_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM outbox_events")
        yield


def megabytes(size: int) -> float:
    """Bytes in MB."""
    return round(size / 1024 / 1024, 2)


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/bloat.py --events 300000 --rate 2000")
    options.add_argument("--events", type=int, default=300_000)
    options.add_argument("--rate", type=float, default=2_000, help="events a second; a day has 3.5 at 300,000")
    options.add_argument("--retention", type=float, default=15, help="seconds that finished events are kept")
    options.add_argument("--burst", type=int, default=20_000, help="events of each measurement of the claim rate")
    given = options.parse_args()
    third = given.events // 3
    with stores() as on:
        load = Load(on, given)
        rates = {}
        load.run(third, "before")
        rates["before"] = load.claim_rate(given.burst)
        with snapshot(on):
            load.run(third, "snapshot held")
            rates["snapshot_held"] = load.claim_rate(given.burst)
        load.run(third, "released")
        rates["released"] = load.claim_rate(given.burst)
        vacuums = load.samples[-1]["autovacuums"]
        load.run(int(given.rate), "released")  # so that what is old is pruned
        wait_until(lambda: load.sample("settling")["autovacuums"] > vacuums, 120, "an autovacuum", every_s=5)
        end = load.sample("end")
        rows = load.ask("SELECT count(*) FROM outbox_events")
        load.ask("VACUUM FULL outbox_events")
        compact = load.sample("live rows alone")
    report(
        "bloat",
        {
            "events": given.events,
            "rate": given.rate,
            "retention_s": given.retention,
            "claims_per_s": {name: round(rate) for name, rate in rates.items()},
            "claim_share_with_snapshot": round(rates["snapshot_held"] / rates["before"], 2),
            "claim_share_after_release": round(rates["released"] / rates["before"], 2),
            "most_dead": {
                phase: max(sample["dead"] for sample in load.samples if sample["phase"] == phase)
                for phase in ("before", "snapshot held", "released")
            },
            "largest_mb": {
                phase: max(sample["total_mb"] for sample in load.samples if sample["phase"] == phase)
                for phase in ("before", "snapshot held", "released")
            },
            "rows_at_end": rows,
            "end": end,
            "live_rows_alone": compact,
            "times_live_rows": round(end["total_mb"] / compact["total_mb"], 2),
            "samples": load.samples,
        },
    )


if __name__ == "__main__":
    main()
