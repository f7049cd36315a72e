"""Projected memories a second, beside raw UNWIND MERGE of the same graph rows in the same run.

The worker's side is the whole way of an event: claim, read, extract, mentions and counts in Postgres, graph write, ack.
The raw side sends the finished graph's nodes and edges to FalkorDB in batches of 100, and does nothing else.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import falkordb
import psycopg
from corpus import notes
from stack import Stores, parser, report, stores, wait_until

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.ids import new_id
from memory_os.domain.search_text import search_text
from memory_os.graph.facade import make_backend
from memory_os.graph.port import GraphDump

BATCH = 100


def put_memories(on: Stores, count: int) -> None:
    """Put memories and their events straight into Postgres: writing is measured elsewhere."""
    rows = [(new_id(), text) for text in notes(count)]
    with psycopg.connect(on.owner_url) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search, embedding_model) "
            "VALUES (%s, %s, 'Attribute', 'identity', %s, to_tsvector('simple', %s), 'm')",
            [(on.tenant_id, ident, text, search_text(text)) for ident, text in rows],
        )
        cursor.executemany(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) "
            "VALUES (%s, 'GRAPH_UPSERT', 'memory', %s, 1)",
            [(on.tenant_id, ident) for ident, _ in rows],
        )
        connection.commit()
        connection.execute("ANALYZE memories, outbox_events")


def pending(on: Stores) -> int:
    """Events that are not done."""
    with psycopg.connect(on.owner_url) as connection:
        row = connection.execute("SELECT count(*) FROM outbox_events WHERE status IN ('pending', 'leased')").fetchone()
    return int(row[0]) if row else 0


def project(on: Stores, count: int, workers: int) -> float:
    """Memories a second from the first one that is done to the last, with so many worker processes."""
    environment = on.environment()
    processes = [
        subprocess.Popen([sys.executable, "-m", "memory_os", "worker"], env=environment) for _ in range(workers)
    ]
    try:
        wait_until(lambda: pending(on) < count, 30, "the first event to be done")
        before, started = pending(on), time.perf_counter()
        wait_until(lambda: pending(on) == 0, 600, "the queue to drain")
        return before / (time.perf_counter() - started)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=20)


def open_backend(on: Stores) -> object:
    """The FalkorDB backend of these stores."""
    settings = on.environment()
    return make_backend(
        "falkor",
        edge_types=frozenset(EDGE_TYPES),
        host=settings["FALKOR_HOST"],
        port=int(settings["FALKOR_PORT"]),
        password=settings["FALKOR_PASSWORD"],
    )


async def dump(on: Stores) -> GraphDump:
    """The graph that the workers made."""
    backend = open_backend(on)
    await backend.open()  # type: ignore[attr-defined] # a GraphBackend
    try:
        return await backend.dump(on.tenant_id)  # type: ignore[attr-defined,no-any-return] # a GraphBackend
    finally:
        await backend.close()  # type: ignore[attr-defined] # a GraphBackend


def raw_write(on: Stores, graph: GraphDump, name: str = "raw") -> float:
    """Seconds that plain UNWIND MERGE takes for the same nodes and edges, indexes there beforehand."""
    settings = on.environment()
    client = falkordb.FalkorDB(
        settings["FALKOR_HOST"], int(settings["FALKOR_PORT"]), password=settings["FALKOR_PASSWORD"]
    )
    target = client.select_graph(name)
    for label in ("Memory", "Entity"):
        target.query(f"CREATE INDEX FOR (n:{label}) ON (n.id)")
    parts = (
        (
            "UNWIND $rows AS r MERGE (n:Memory {id: r.id}) SET n.label = r.label, n.status = r.status, n.version = 1",
            [{"id": node.id, "label": node.label, "status": node.status} for node in graph.memories.values()],
        ),
        (
            "UNWIND $rows AS r MERGE (n:Entity {id: r.id}) SET n.name = r.name, n.strength = r.strength",
            [{"id": node.id, "name": node.name, "strength": node.strength} for node in graph.entities.values()],
        ),
        (
            (
                "UNWIND $rows AS r MATCH (a:Memory {id: r.a}) MATCH (b:Entity {id: r.b}) MERGE (a)-[e:MENTIONS]->(b) "
                "SET e.weight = r.w"
            ),
            [{"a": a, "b": b, "w": weight} for (a, b), weight in graph.mentions.items()],
        ),
        (
            (
                "UNWIND $rows AS r MATCH (a:Entity {id: r.a}) MATCH (b:Entity {id: r.b}) MERGE (a)-[e:CO_OCCURS]->(b) "
                "SET e.weight = r.w, e.count = r.n"
            ),
            [{"a": a, "b": b, "w": weight, "n": count} for (a, b), (weight, count) in graph.co_occurrences.items()],
        ),
    )
    started = time.perf_counter()
    for query, rows in parts:
        for start in range(0, len(rows), BATCH):
            target.query(query, {"rows": rows[start : start + BATCH]})
    seconds = time.perf_counter() - started
    target.delete()
    return seconds


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/projection.py --memories 10000 --workers 1")
    options.add_argument("--memories", type=int, default=10_000)
    options.add_argument("--workers", type=int, default=1, help="worker processes; one tenant has one writer at a time")
    given = options.parse_args()
    os.environ.setdefault("LOG_LEVEL", "warning")
    with stores() as on:
        put_memories(on, given.memories)
        ours = project(on, given.memories, given.workers)
        graph = asyncio.run(dump(on))
        assert len(graph.memories) == given.memories
        seconds = min(raw_write(on, graph, f"raw{number}") for number in range(2))
    rows = len(graph.memories) + len(graph.entities) + len(graph.mentions) + len(graph.co_occurrences)
    raw = given.memories / seconds
    report(
        "projection",
        {
            "memories": given.memories,
            "workers": given.workers,
            "graph_rows": rows,
            "raw_memories_per_s": round(raw),
            "raw_rows_per_s": round(rows / seconds),
            "projected_memories_per_s": round(ours),
            "projected_rows_per_s": round(rows * ours / given.memories),
            "share": round(ours / raw, 3),
        },
    )


if __name__ == "__main__":
    main()
