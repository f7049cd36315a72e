"""Single and batch writes through the API, beside plain INSERTs into the same tables in the same run.

The raw side writes what the API's write leaves behind: a row in `memories`, one in `memory_embeddings` and one in
`outbox_events`, in one transaction, by a loop that does nothing else. Embedding is left out on both sides, and so is
the dedup gate (see `gated_writes.py`).
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from itertools import count
from uuid import uuid4

import psycopg
from stack import Stores, Wire, parser, quantile, report, service, stores

VECTOR = "[" + ",".join(f"{random.Random(7).uniform(-0.1, 0.1):.6f}" for _ in range(384)) + "]"
WORDS = "ledger freight customs export holiday rate vendor policy retention schema march migration quarter".split()

MEMORY = (
    "INSERT INTO memories (tenant_id, id, label, layer, text, search, embedding_model) VALUES "
    "(%s, %s, 'Attribute', 'identity', %s, to_tsvector('english', %s) || to_tsvector('simple', %s), 'm')"
)
EMBEDDING = "INSERT INTO memory_embeddings VALUES (%s, %s, 'm', 384, %s, 'tenant')"
EVENT = (
    "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) "
    "VALUES (%s, 'GRAPH_UPSERT', 'memory', %s, 1)"
)


_numbers = count()
"""Of what the API is given: a text that is there already would merge, gate or no gate."""


def text(number: int) -> str:
    """A short text, different each time."""
    return f"Note {number}: " + " ".join(random.Random(number).choices(WORDS, k=12))


def raw_single(on: Stores, connections: int, seconds: float) -> float:
    """Rows a second of one plain transaction a memory, by so many connections."""
    counts = [0] * connections
    end = time.perf_counter() + seconds

    def loop(index: int) -> None:
        with psycopg.connect(on.owner_url) as connection:
            while time.perf_counter() < end:
                ident, words = uuid4(), text(counts[index])
                connection.execute(MEMORY, (on.tenant_id, ident, words, words, words))
                connection.execute(EMBEDDING, (on.tenant_id, ident, VECTOR))
                connection.execute(EVENT, (on.tenant_id, ident))
                connection.commit()
                counts[index] += 1

    _in_threads(loop, connections)
    return sum(counts) / seconds


def raw_batch(on: Stores, size: int, seconds: float) -> float:
    """Rows a second of multi-row INSERTs, so many rows a transaction."""
    done, started = 0, time.perf_counter()
    with psycopg.connect(on.owner_url) as connection, connection.cursor() as cursor:
        while time.perf_counter() - started < seconds:
            rows = [(uuid4(), text(done + number)) for number in range(size)]
            for statement, values in (
                (MEMORY, [(on.tenant_id, ident, words, words, words) for ident, words in rows]),
                (EMBEDDING, [(on.tenant_id, ident, VECTOR) for ident, _ in rows]),
                (EVENT, [(on.tenant_id, ident) for ident, _ in rows]),
            ):
                head, _, form = statement.rpartition("VALUES ")
                cursor.execute(
                    f"{head}VALUES {','.join([form] * size)}",  # placeholders only
                    [value for row in values for value in row],
                )
            connection.commit()
            done += size
    return done / (time.perf_counter() - started)


def raw_copy(on: Stores, size: int, seconds: float) -> float:
    """Rows a second of COPY into the same tables."""
    done, started = 0, time.perf_counter()
    with psycopg.connect(on.owner_url) as connection, connection.cursor() as cursor:
        while time.perf_counter() - started < seconds:
            rows = [(uuid4(), text(done + number)) for number in range(size)]
            with cursor.copy(
                "COPY memories (tenant_id, id, label, layer, text, search, embedding_model) FROM STDIN"
            ) as copy:
                for ident, words in rows:
                    vector = " ".join(sorted(set(words.replace(":", "").split())))
                    copy.write_row((on.tenant_id, ident, "Attribute", "identity", words, vector, "m"))
            columns = "tenant_id, memory_id, model, dimension, embedding, visibility"
            with cursor.copy(f"COPY memory_embeddings ({columns}) FROM STDIN") as copy:
                for ident, _ in rows:
                    copy.write_row((on.tenant_id, ident, "m", 384, VECTOR, "tenant"))
            with cursor.copy(
                "COPY outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) FROM STDIN"
            ) as copy:
                for ident, _ in rows:
                    copy.write_row((on.tenant_id, "GRAPH_UPSERT", "memory", ident, 1))
            connection.commit()
            done += size
    return done / (time.perf_counter() - started)


def _in_threads(loop: object, count: int) -> None:
    threads = [threading.Thread(target=loop, args=(index,)) for index in range(count)]  # type: ignore[arg-type] # a function
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def api_single(address: str, token: str, clients: int, seconds: float) -> tuple[float, list[float]]:
    """Memories a second through POST /v1/memories by so many clients, and the times of the answers."""
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def loop() -> None:
        wire = Wire(address, token)
        await wire.open()
        while (started := time.perf_counter()) < end:
            body = json.dumps({"text": text(next(_numbers)), "label": "Attribute", "dedup": "off"}).encode()
            status, answer = await wire.post("/v1/memories", body)
            assert status == 201, answer
            times.append(time.perf_counter() - started)
        wire.close()

    await asyncio.gather(*(loop() for _ in range(clients)))
    return len(times) / seconds, times


async def api_batch(address: str, token: str, size: int, seconds: float) -> float:
    """Memories a second through POST /v1/memories/batch, one client."""
    wire = Wire(address, token)
    await wire.open()
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        items = [{"text": text(next(_numbers)), "label": "Attribute", "dedup": "off"} for _ in range(size)]
        status, answer = await wire.post("/v1/memories/batch", json.dumps({"items": items}).encode())
        assert status == 200, answer
        assert all(result["status"] == 201 for result in json.loads(answer)["results"])
        done += size
    wire.close()
    return done / (time.perf_counter() - started)


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/writes.py --seconds 5")
    options.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    options.add_argument("--batch", type=int, default=500, help="memories of one batch")
    given = options.parse_args()
    figures: dict[str, object] = {"seconds": given.seconds, "batch": given.batch, "single": {}, "bulk": {}}
    with stores() as on, service(on) as address:
        asyncio.run(api_single(address, on.token, 4, 1.0))  # warm
        for clients in (1, 4):
            raw = raw_single(on, clients, given.seconds)
            ours, times = asyncio.run(api_single(address, on.token, clients, given.seconds))
            figures["single"][f"{clients} clients"] = {  # type: ignore[index] # a dict above
                "plain_insert_per_s": round(raw),
                "api_per_s": round(ours),
                "share": round(ours / raw, 3),
                "api_ms_p50": round(quantile(times, 0.5) * 1000, 2),
                "api_ms_p95": round(quantile(times, 0.95) * 1000, 2),
            }
        rows, copied = raw_batch(on, given.batch, given.seconds), raw_copy(on, given.batch, given.seconds)
        ours = asyncio.run(api_batch(address, on.token, given.batch, given.seconds))
        figures["bulk"] = {
            "multi_row_insert_per_s": round(rows),
            "copy_per_s": round(copied),
            "api_per_s": round(ours),
            "share_of_insert": round(ours / rows, 3),
            "share_of_copy": round(ours / copied, 3),
        }
    report("writes", figures)


if __name__ == "__main__":
    main()
