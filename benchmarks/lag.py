"""How long a write takes to reach the graph: commit to applied, at a steady rate of writes through the API.

Writes are sent when they are due, whether or not earlier ones have been answered (an open loop), dealt out to several
tenants. The lag is the table's own: from an event's `created_at` (the start of the write's transaction) to its
`finished_at` (when the graph had it). Beside it stands what the least possible way takes on the same stores: one
INSERT with its commit, and one UNWIND MERGE of a row.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import psycopg
from corpus import notes
from graph_raw import connect, prepare
from projection import wait_for_drain, workers
from stack import Stores, Wire, add_tenants, add_token, parser, quantile, report, service, stores

CONNECTIONS = 16
"""Connections a tenant: a write waits for one if all are waiting for answers, and that wait counts as lateness."""


class Clients:
    """Connections to the API for one tenant."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token
        # First in, first out: a connection that is not used for five seconds is closed by the server.
        self._free: asyncio.Queue[Wire] = asyncio.Queue()

    async def open(self) -> None:
        """Connect."""
        for _ in range(CONNECTIONS):
            wire = Wire(self._address, self._token)
            await wire.open()
            self._free.put_nowait(wire)

    async def write(self, text: str, due: float) -> float:
        """Store one memory; gives the seconds from when it was due to its answer."""
        wire = await self._free.get()
        status, answer = await wire.post("/v1/memories", json.dumps({"text": text, "label": "Attribute"}).encode())
        assert status == 201, answer
        self._free.put_nowait(wire)
        return time.perf_counter() - due

    def close(self) -> None:
        """Disconnect."""
        while not self._free.empty():
            self._free.get_nowait().close()


async def write_steadily(address: str, tokens: Sequence[str], texts: Sequence[str], rate: float) -> list[float]:
    """Store texts at a rate; gives how long each took, in seconds from when it was due."""
    tenants = [Clients(address, token) for token in tokens]
    for clients in tenants:
        await clients.open()
    started, waiting = time.perf_counter(), []
    for number, (text, clients) in enumerate(zip(texts, itertools.cycle(tenants), strict=False)):
        due = started + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        waiting.append(asyncio.create_task(clients.write(text, due)))
    times = await asyncio.gather(*waiting)
    for clients in tenants:
        clients.close()
    return times


def lags(on: Stores, first_id: int) -> list[float]:
    """Seconds from commit to applied of the events after `first_id`."""
    with psycopg.connect(on.owner_url) as connection:
        rows = connection.execute(
            "SELECT extract(epoch FROM finished_at - created_at), status FROM outbox_events WHERE id > %s", (first_id,)
        ).fetchall()
    assert all(status == "done" for _, status in rows), "an event was not projected"
    return [float(seconds) for seconds, _ in rows]


def last_event(on: Stores) -> int:
    """The id of the newest event."""
    with psycopg.connect(on.owner_url) as connection:
        row = connection.execute("SELECT coalesce(max(id), 0) FROM outbox_events").fetchone()
    return int(row[0]) if row else 0


def raw_round_trips(on: Stores, times: int) -> list[float]:
    """Seconds of one INSERT with its commit and one UNWIND MERGE, one after the other and nothing else."""
    target, taken = prepare(connect(on.environment()), "raw"), []
    with psycopg.connect(on.owner_url) as connection:
        for _ in range(times):
            ident, started = uuid4(), time.perf_counter()
            connection.execute(
                "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
                "finished_at) VALUES (%s, 'GRAPH_UPSERT', 'memory', %s, 1, 'done', now())",
                (on.tenant_id, ident),
            )
            connection.commit()
            target.query(
                "UNWIND $rows AS r MERGE (n:Memory {id: r.id}) SET n.version = 1", {"rows": [{"id": str(ident)}]}
            )
            taken.append(time.perf_counter() - started)
    target.delete()
    return taken


def spread(values: Sequence[float]) -> dict[str, float]:
    """Quantiles in milliseconds."""
    return {f"p{share:g}_ms": round(quantile(values, share / 100) * 1000, 1) for share in (50, 95, 99)}


def measure(given: Any, worker_count: int) -> dict[str, Any]:  # noqa: ANN401 - parsed arguments have no type of their own
    """One run on fresh stores."""
    texts = notes(int((given.seconds + given.warm_up) * given.rate))
    warm = int(given.warm_up * given.rate)
    with stores() as on:
        tokens = [on.token]
        with psycopg.connect(on.owner_url) as connection:
            tokens += [add_token(connection, tenant_id) for tenant_id in add_tenants(on, given.tenants - 1)]
        with service(on) as address, workers(on, worker_count):
            asyncio.run(write_steadily(address, tokens, texts[:warm], given.rate))
            wait_for_drain(on)
            first, started = last_event(on), time.perf_counter()
            answers = asyncio.run(write_steadily(address, tokens, texts[warm:], given.rate))
            seconds = time.perf_counter() - started
            wait_for_drain(on)
            measured = lags(on, first)
        raw = raw_round_trips(on, 300)
    return {
        "written_per_s": round(len(answers) / seconds, 1),
        "answer": spread(answers),
        "commit_to_applied": spread(measured),
        "raw_round_trip": spread(raw),
    }


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/lag.py --rate 200 --seconds 30 --workers 1 2 4")
    options.add_argument("--rate", type=float, default=200, help="writes a second, of all tenants together")
    options.add_argument("--seconds", type=float, default=30)
    options.add_argument("--warm-up", type=float, default=5, help="seconds of the same load that do not count")
    options.add_argument("--tenants", type=int, default=4)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    given = options.parse_args()
    figures: dict[str, Any] = {"rate": given.rate, "seconds": given.seconds, "tenants": given.tenants}
    for worker_count in given.workers:
        figures[f"{worker_count} workers"] = measure(given, worker_count)
        print(worker_count, figures[f"{worker_count} workers"], flush=True)
    report("lag", figures)


if __name__ == "__main__":
    main()
