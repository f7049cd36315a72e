"""Projected memories and edges a second, beside raw UNWIND MERGE of the same graph rows in the same run.

The worker's side is the whole way of an event, from the commit that enqueued it to its acknowledgement: wake, claim,
read, extract, mentions and counts in Postgres, graph write, ack. The workers are up and idle when the events are
committed. The raw side sends the finished graphs' nodes and edges to FalkorDB from as many client processes, each with
its share of the tenants, and does nothing else.
"""

from __future__ import annotations

import asyncio
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import cpu
import psycopg
from corpus import notes
from graph_raw import count_rows, drop_raw
from race import race, script
from stack import Stores, add_tenants, parser, report, stores, wait_until

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.ids import new_id
from memory_os.domain.search_text import search_text
from memory_os.graph.facade import make_backend
from memory_os.graph.port import GraphBackend, GraphDump

RAW_BATCHES = (100, 1000)


def put_memories(on: Stores, count: int, tenants: Sequence[UUID] = ()) -> None:
    """Put memories straight into Postgres, dealt out to the tenants: writing is measured elsewhere."""
    owners = tenants or [on.tenant_id]
    with psycopg.connect(on.owner_url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE given (tenant_id uuid, id uuid, text text, words text) ON COMMIT DROP")
        with cursor.copy("COPY given FROM STDIN") as copy:
            for number, text in enumerate(notes(count)):
                copy.write_row((owners[number % len(owners)], new_id(), text, search_text(text)))
        cursor.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search, embedding_model) "
            "SELECT tenant_id, id, 'Attribute', 'identity', text, to_tsvector('simple', words), 'm' FROM given"
        )
        connection.commit()
        connection.execute("ANALYZE memories")


def enqueue_all(on: Stores) -> None:
    """One event for every memory, in one transaction, with the notification that wakes the workers."""
    with psycopg.connect(on.owner_url) as connection:
        connection.execute(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, created_at, "
            "available_at) SELECT tenant_id, 'GRAPH_UPSERT', 'memory', id, 1, clock_timestamp(), now() FROM memories "
            "ORDER BY id"
        )
        connection.execute("SELECT pg_notify('memory_os_outbox', '')")
        connection.commit()
        connection.execute("ANALYZE outbox_events")


def wait_for_drain(on: Stores, limit_s: float = 900) -> None:
    """Wait until no event waits and none is in hand; asks seldom, since asking costs Postgres time."""
    waiting = (
        "SELECT 1 WHERE EXISTS (SELECT FROM outbox_events WHERE status = 'pending') "
        "OR EXISTS (SELECT FROM outbox_events WHERE status = 'leased')"
    )
    with psycopg.connect(on.owner_url, autocommit=True) as connection:
        wait_until(lambda: connection.execute(waiting).fetchone() is None, limit_s, "an empty queue", every_s=0.1)


@contextmanager
def workers(on: Stores, count: int, **settings: str) -> Iterator[list[int]]:
    """So many idle worker processes; yields their pids."""
    command = [sys.executable, "-m", "memory_os", "worker"]
    processes = [subprocess.Popen(command, env=on.environment(**settings)) for _ in range(count)]
    try:
        wait_until(lambda: idle_workers(on) == count, 60, "the workers to be idle")
        time.sleep(1)  # their listeners connect right after
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=20)


def idle_workers(on: Stores) -> int:
    """Workers that have reported as up."""
    with psycopg.connect(on.owner_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM workers WHERE state IN ('idle', 'starting', 'working')"
        ).fetchone()
    return int(row[0]) if row else 0


def project(on: Stores, worker_count: int) -> tuple[float, dict[str, float]]:
    """Project everything.

    Returns:
        Seconds from the commit of the events to the end of the last one, by Postgres' clock, and the seconds of
        processor time that it took, by process.
    """
    with workers(on, worker_count) as pids:
        before = (cpu.seconds(pids), cpu.falkor(on))
        enqueue_all(on)
        server = cpu.postgres(on)
        wait_for_drain(on)
        taken = {
            "workers": cpu.seconds(pids) - before[0],
            "postgres": cpu.postgres(on) - server,
            "falkordb": cpu.falkor(on) - before[1],
        }
        with psycopg.connect(on.owner_url) as connection:
            row = connection.execute(
                "SELECT extract(epoch FROM max(finished_at) - max(created_at)), "
                "count(*) FILTER (WHERE status <> 'done') FROM outbox_events"
            ).fetchone()
    assert row is not None
    assert row[1] == 0, f"{row[1]} events were not projected"
    return float(row[0]), taken


def open_backend(on: Stores) -> GraphBackend:
    """The FalkorDB backend of these stores."""
    settings = on.environment()
    return make_backend(
        "falkor",
        edge_types=frozenset(EDGE_TYPES),
        host=settings["FALKOR_HOST"],
        port=int(settings["FALKOR_PORT"]),
        password=settings["FALKOR_PASSWORD"],
    )


async def dump(on: Stores, tenants: Sequence[UUID] = ()) -> list[GraphDump]:
    """The graphs that the workers made."""
    backend = open_backend(on)
    await backend.open()
    try:
        return [await backend.dump(tenant_id) for tenant_id in tenants or [on.tenant_id]]
    finally:
        await backend.close()


def raw_write(on: Stores, graphs: Sequence[GraphDump], processes: int, batch: int) -> tuple[float, dict[str, float]]:
    """Seconds that so many client processes take for the same graphs, and their and the server's processor time."""
    with tempfile.TemporaryDirectory(prefix="memory-os-bench-") as folder:
        dumps = Path(folder) / "dumps"
        dumps.write_bytes(pickle.dumps(list(graphs)))
        commands = [
            script("graph_raw.py", dumps, "--share", number, "--of", processes, "--batch", batch)
            for number in range(processes)
        ]
        server = cpu.falkor(on)
        seconds = race(commands, None, on.environment())
        taken = {
            "clients": sum(float(path.read_text()) for path in Path(folder).glob("*.cpu")),
            "falkordb": cpu.falkor(on) - server,
        }
    written, wanted = drop_raw(on, len(graphs)), count_rows(graphs)["edges"]
    assert written == wanted, f"raw wrote {written} of {wanted} edges"
    return seconds, taken


def measure(memories: int, tenants: int, worker_count: int) -> dict[str, Any]:
    """One round on fresh stores."""
    with stores() as on:
        owners = [on.tenant_id, *add_tenants(on, tenants - 1)]
        put_memories(on, memories, owners)
        seconds, taken = project(on, worker_count)
        graphs = asyncio.run(dump(on, owners))
        assert sum(len(graph.memories) for graph in graphs) == memories
        raw = {batch: raw_write(on, graphs, worker_count, batch) for batch in RAW_BATCHES}
    batch = min(raw, key=lambda size: raw[size])
    return {
        **count_rows(graphs),
        "seconds": seconds,
        "cpu": taken,
        "raw_seconds": raw[batch][0],
        "raw_cpu": raw[batch][1],
        "raw_batch": batch,
    }


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/projection.py --memories 10000 --workers 1 2 4 --rounds 3")
    options.add_argument("--memories", type=int, default=10_000, help="of all tenants together")
    options.add_argument("--tenants", type=int, default=4, help="one tenant has one writer at a time")
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="worker processes, and raw clients")
    options.add_argument("--rounds", type=int, default=3, help="each on fresh stores; the median counts")
    given = options.parse_args()
    figures: dict[str, Any] = {"memories": given.memories, "tenants": given.tenants, "rounds": given.rounds}
    for worker_count in given.workers:
        rounds = [measure(given.memories, given.tenants, worker_count) for _ in range(given.rounds)]
        figures[f"{worker_count} workers"] = summarise(rounds, given.memories)
        print(worker_count, figures[f"{worker_count} workers"], flush=True)
    report("projection", figures)


def summarise(rounds: Sequence[dict[str, Any]], memories: int) -> dict[str, Any]:
    """Rates of the median round, and the share of each one: a busy machine shows in their spread."""
    first = rounds[0]
    ours = statistics.median(taken["seconds"] for taken in rounds)
    raw = statistics.median(taken["raw_seconds"] for taken in rounds)
    return {
        "nodes": first["nodes"],
        "edges": first["edges"],
        "projected_memories_per_s": round(memories / ours),
        "projected_edges_per_s": round(first["edges"] / ours),
        "raw_memories_per_s": round(memories / raw),
        "raw_edges_per_s": round(first["edges"] / raw),
        "raw_batches": [taken["raw_batch"] for taken in rounds],
        "share": round(raw / ours, 3),
        "cpu_us_per_memory": _by_process(rounds, "cpu", memories),
        "raw_cpu_us_per_memory": _by_process(rounds, "raw_cpu", memories),
        "shares": [round(taken["raw_seconds"] / taken["seconds"], 3) for taken in rounds],
    }


def _by_process(rounds: Sequence[dict[str, Any]], name: str, memories: int) -> dict[str, int]:
    """Median microseconds of processor time a memory, by process."""
    return {
        process: round(statistics.median(taken[name][process] for taken in rounds) / memories * 1e6)
        for process in rounds[0][name]
    }


if __name__ == "__main__":
    main()
