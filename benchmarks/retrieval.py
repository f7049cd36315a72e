"""Retrieval at 10,000 memories: all arms together beside each arm alone, and a raw pgvector scan, in the same run.

Vectors come from a hash, which costs nothing: embedding the question with the bundled model is measured apart
(`--bundled`, which also embeds the corpus and takes minutes).
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time

import psycopg
from corpus import names, notes
from stack import Stores, Wire, parser, quantile, report, service, stores, wait_until

ARMS = ("vector", "text", "graph")


async def ingest(address: str, token: str, texts: list[str]) -> None:
    """Store the corpus through the API, in batches."""
    wire = Wire(address, token)
    await wire.open()
    for start in range(0, len(texts), 500):
        items = [{"text": text, "label": "Attribute"} for text in texts[start : start + 500]]
        status, answer = await wire.post("/v1/memories/batch", json.dumps({"items": items}).encode())
        assert status == 200, answer
        print(f"stored {min(start + 500, len(texts))} of {len(texts)}", flush=True)
    wire.close()


def projected(on: Stores) -> bool:
    """Whether the graph has everything."""
    with psycopg.connect(on.owner_url) as connection:
        row = connection.execute("SELECT count(*) FROM outbox_events WHERE status <> 'done'").fetchone()
    return row == (0,)


def questions(count: int, entities: int) -> list[str]:
    """Questions that name somebody and use words of the corpus."""
    source, known = random.Random(11), names(entities)
    topics = ("the shipment", "customs rates", "the holiday", "the export schema", "the quarter", "the review")
    return [f"What did {source.choice(known)} say about {source.choice(topics)}?" for _ in range(count)]


async def ask(
    address: str, token: str, queries: list[str], arms: dict[str, bool]
) -> tuple[list[float], dict[str, list[float]]]:
    """Milliseconds of each answer, and of its parts as the service timed them."""
    wire = Wire(address, token)
    await wire.open()
    times: list[float] = []
    parts: dict[str, list[float]] = {}
    for query in queries:
        body = json.dumps({"query": query, "arms": arms}).encode()
        started = time.perf_counter()
        status, answer = await wire.post("/v1/retrieve", body)
        times.append((time.perf_counter() - started) * 1000)
        assert status == 200, answer
        for part, value in json.loads(answer)["timings_ms"].items():
            parts.setdefault(part, []).append(value)
    wire.close()
    return times, parts


def raw_scan(on: Stores, count: int) -> list[float]:
    """Milliseconds of an exact nearest-neighbour scan of the same vectors, without service, policies or joins."""
    times = []
    with psycopg.connect(on.owner_url) as connection:
        row = connection.execute("SELECT embedding::text FROM memory_embeddings LIMIT 1").fetchone()
        assert row
        for _ in range(count):
            started = time.perf_counter()
            connection.execute(
                "SELECT memory_id FROM memory_embeddings WHERE tenant_id = %s "
                "ORDER BY embedding <=> %s::vector LIMIT 50",
                (on.tenant_id, row[0]),
            ).fetchall()
            times.append((time.perf_counter() - started) * 1000)
    return times


def summary(times: list[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    return {"p50_ms": round(statistics.median(times), 2), "p95_ms": round(quantile(times, 0.95), 2)}


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/retrieval.py --memories 10000 --questions 200")
    options.add_argument("--memories", type=int, default=10_000)
    options.add_argument("--entities", type=int, default=2000)
    options.add_argument("--questions", type=int, default=200)
    options.add_argument("--bundled", action="store_true", help="embed with the bundled model")
    given = options.parse_args()
    settings = {"EMBEDDING_PROVIDER": "bundled"} if given.bundled else {}
    figures: dict[str, object] = {"memories": given.memories, "embedder": "bundled" if given.bundled else "hash"}
    queries = questions(given.questions, given.entities)
    with stores() as on, service(on, workers=1, **settings) as address:
        asyncio.run(ingest(address, on.token, notes(given.memories, entities=given.entities)))
        wait_until(lambda: projected(on), 900, "the projection")
        with psycopg.connect(on.owner_url, autocommit=True) as connection:
            connection.execute("ANALYZE")
        every = dict.fromkeys(ARMS, True)
        asyncio.run(ask(address, on.token, queries[:20], every))  # warm
        # One after the other within each round, so that a busy moment of the machine meets all of them alike.
        rounds: dict[str, list[float]] = {name: [] for name in ("all", *ARMS)}
        parts: dict[str, list[float]] = {}
        for start in range(0, len(queries), 20):
            chunk = queries[start : start + 20]
            times, timed = asyncio.run(ask(address, on.token, chunk, every))
            rounds["all"] += times
            for part, values in timed.items():
                parts.setdefault(part, []).extend(values)
            for arm in ARMS:
                rounds[arm] += asyncio.run(ask(address, on.token, chunk, {**dict.fromkeys(ARMS, False), arm: True}))[0]
        figures["raw_exact_scan"] = summary(raw_scan(on, 30))
    figures["all_arms"] = summary(rounds["all"])
    figures["arm_alone"] = {arm: summary(rounds[arm]) for arm in ARMS}
    slowest = max(quantile(rounds[arm], 0.95) for arm in ARMS)
    figures["p95_over_slowest_arm"] = round(quantile(rounds["all"], 0.95) / slowest, 2)
    figures["parts_median_ms"] = {part: round(statistics.median(values), 2) for part, values in sorted(parts.items())}
    report("retrieval-bundled" if given.bundled else "retrieval", figures)


if __name__ == "__main__":
    main()
