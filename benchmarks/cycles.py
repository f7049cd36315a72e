"""The cycles over a large tenant: seconds, actions, the worker's memory, and what writes and questions feel of them.

Memories come through the API, so that words, vectors and mentions are the product's own. Their times and the edges are
put straight into Postgres: used and unused ones, sure and weak ones, spread over most of a year. Then one client writes
and asks in turn, first for a while without a cycle, then while a worker runs one, and again without. Raw is one SQL
statement for what decay and pruning change, in a transaction that is rolled back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import plots
import psutil
import psycopg
from corpus import World
from cpu import peak_mb
from cycles_rows import EMBEDDERS, counts, fill, raw
from cycles_tables import cycles_table
from psycopg.rows import dict_row
from retrieval_rows import wait_for_worker
from stack import Stores, Wire, parser, quantile, report, service, stores

from memory_os.domain.cycles.rules import CYCLES

POLL_S: Final = 0.05
"""Seconds between two looks at a run, and so the error of what each rule took."""

Json = dict[str, Any]


@dataclass(slots=True)
class Mix:
    """One client that writes and asks in turn; each time that something took, with when it began."""

    address: str
    token: str
    world: World
    times: list[tuple[float, str, float]] = field(default_factory=list)
    stopping: bool = False

    async def run(self, rate: float) -> None:
        """Write and ask until told to stop, `rate` of either a second at most."""
        wire, texts, turn = Wire(self.address, self.token), self.world.notes(10**9), 0
        await wire.open()
        questions = self.world.questions(200)
        while not self.stopping:
            began = time.perf_counter()
            note = {"text": next(texts), "label": "Attribute"}
            await self._call(wire, "write", "/v1/memories", note)
            await self._call(wire, "retrieve", "/v1/retrieve", {"query": questions[turn % len(questions)]})
            turn += 1
            await asyncio.sleep(max(0, 1 / rate - (time.perf_counter() - began)))
        wire.close()

    async def _call(self, wire: Wire, kind: str, path: str, body: Json) -> None:
        at, began = time.time(), time.perf_counter()
        status, answer = await wire.post(path, json.dumps(body).encode())
        self.times.append((at, kind, (time.perf_counter() - began) * 1000))
        assert status in (200, 201), answer

    def between(self, start: float, end: float) -> dict[str, list[float]]:
        """Milliseconds by kind of what began between two moments."""
        kinds = ("write", "retrieve")
        return {kind: [ms for at, one, ms in self.times if one == kind and start <= at <= end] for kind in kinds}


async def measure_cycle(on: Stores, address: str, cycle: str, world: World, given: argparse.Namespace) -> Json:
    """Run one cycle under the mix, with as long a time without before and after it."""
    mix = Mix(address, on.token, world)
    worker = next(one for one in psutil.Process().children() if "worker" in one.cmdline())
    client = asyncio.create_task(mix.run(given.rate))
    await asyncio.sleep(given.quiet)
    quiet = [mix.between(0, time.time())]
    before_mb = worker.memory_info().rss / 2**20
    _forget_peak(worker.pid)
    run = await asyncio.to_thread(_follow, on, address, cycle, given.patience)
    await asyncio.sleep(1)
    after = time.time()
    await asyncio.sleep(given.quiet)
    quiet.append(mix.between(after, time.time()))
    mix.stopping = True
    await client
    start, end = run["started_at"].timestamp(), run["finished_at"].timestamp()
    meanwhile = mix.between(start, end)
    calm = {kind: quiet[0][kind] + quiet[1][kind] for kind in meanwhile}
    return {
        "seconds": round(end - start, 2),
        "actions": run["counts"],
        "seconds_by_rule": run["spent"],
        "actions_per_s": round(sum(run["counts"].values()) / max(end - start, 0.001)),
        "worker_mb": {"before": round(before_mb, 1), "peak": peak_mb(worker.pid)},
        "mix": {"without a cycle": _summary(calm), "meanwhile": _summary(meanwhile)},
        "slower": {kind: _slower(calm[kind], meanwhile[kind]) for kind in meanwhile},
    }


def _forget_peak(pid: int) -> None:
    """Have Linux count the most memory of a process anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def _follow(on: Stores, address: str, cycle: str, patience: float) -> Json:
    """Ask for a run, and wait until it is done; gives its row, and the seconds that each rule took."""
    answer = httpx.post(
        f"{address}/v1/cycles", json={"cycle": cycle}, headers={"Authorization": f"Bearer {on.token}"}, timeout=60
    )
    assert answer.is_success, answer.text
    deadline, ident = time.monotonic() + patience, answer.json()["id"]
    spent: Counter[str] = Counter()
    before = time.perf_counter()
    with psycopg.connect(on.owner_url, autocommit=True, row_factory=dict_row) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(
                "SELECT status, rule, counts, error, started_at, finished_at FROM cycle_runs WHERE id = %s", (ident,)
            ).fetchone()
            assert row is not None
            assert row["status"] != "failed", row
            now = time.perf_counter()
            spent[row["rule"] or "waiting"] += now - before
            before = now
            if row["status"] == "done":
                return {**row, "spent": {rule: round(seconds, 2) for rule, seconds in spent.items()}}
            time.sleep(POLL_S)
    raise TimeoutError(f"the {cycle} run took more than {patience} s")


def _summary(times: dict[str, list[float]]) -> Json:
    return {
        kind: {
            "calls": len(values),
            "p50_ms": round(statistics.median(values), 2) if values else 0.0,
            "p95_ms": round(quantile(values, 0.95), 2) if values else 0.0,
        }
        for kind, values in times.items()
    }


def _slower(calm: Sequence[float], meanwhile: Sequence[float]) -> float | None:
    """How many times as long the median takes; None where the run was over before a call was made."""
    return round(statistics.median(meanwhile) / statistics.median(calm), 3) if calm and meanwhile else None


def main() -> None:
    """Run it."""
    options = parser(
        __doc__ or "", "python benchmarks/cycles.py --memories 2000 --edges 10000 --quiet 5 --name small_cycles"
    )
    options.add_argument("--memories", type=int, default=100_000)
    options.add_argument("--edges", type=int, default=500_000)
    options.add_argument("--cycles", nargs="+", choices=sorted(CYCLES), default=list(CYCLES))
    options.add_argument("--rate", type=float, default=20.0, help="writes, and questions, a second at most")
    options.add_argument("--quiet", type=float, default=30.0, help="seconds without a cycle before and after each")
    options.add_argument("--patience", type=float, default=3600, help="seconds that the worker gets for anything")
    options.add_argument("--home", type=Path, help="folder where the stores are kept for a look afterwards")
    options.add_argument("--name", default="cycles", help="name of the JSON file and the plot")
    given = options.parse_args()
    made: Json = {"memories": given.memories, "edges": given.edges, "rate": given.rate, "cycles": {}}
    with stores(given.home) as on:
        fill(on, given.memories, given.edges, given.patience)
        made["rows"], made["raw"] = counts(on), raw(on)
        world = World(max(100, given.memories // 5), seed=given.memories + 1)
        with service(on, workers=1, command=[EMBEDDERS]) as address:
            wait_for_worker(on, given.patience, quiet_s=5)
            for cycle in given.cycles:
                made["cycles"][cycle] = asyncio.run(measure_cycle(on, address, cycle, world, given))
                print(cycle, made["cycles"][cycle], flush=True)
        made["rows_after"] = counts(on)
    report(given.name, made)
    print("\n" + "\n".join(cycles_table(made)))
    print(f"plot: {plots.draw('cycles', made, given.name)}")


if __name__ == "__main__":
    main()
