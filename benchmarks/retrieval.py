"""How fast retrieval is: all arms, each alone, their parts, and how it grows with the tenant, beside the raw limits.

Tenants of several sizes stand side by side in one store, among the rows of many others, and are asked in turn, so that
a busy moment of the machine meets all alike. Words and names follow Zipf's law, so that there are hubs and words that
stand everywhere. Vectors are sums of random ones, one for each word: dense, and made in microseconds, so that embedding
is left out. Everything comes through the API, except the rows of the other tenants, which are copies of one that did
(their graphs are not copied: a graph is a key of its own). Twenty clients at once are measured on the largest tenant.
"""

from __future__ import annotations

import asyncio
import json
import math
import statistics
import time
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import cpu
import plots
import psutil
import psycopg
from corpus import World
from retrieval_raw import Raw
from retrieval_rows import compare, copy_tenant, counts, store, wait_for_worker
from retrieval_tables import cpu_table, crowd_table, growth_table
from stack import Stores, Wire, add_tenants, add_token, parser, quantile, report, service, stores

ARMS = ("vector", "text", "graph")
WAYS: dict[str, dict[str, bool]] = {
    "all arms": dict.fromkeys(ARMS, True),
    **{arm: {name: name == arm for name in ARMS} for arm in ARMS},
}
CHUNK = 10
"""Questions asked in one way before the next way's turn."""

EMBEDDERS = str(Path(__file__).with_name("embedders.py"))

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tenant:
    """A measured tenant and what it is asked."""

    size: int
    ident: UUID
    token: str
    world: World
    questions: list[str]


def make_tenant(on: Stores, size: int, questions: int) -> Tenant:
    """A tenant that is still empty."""
    ident = add_tenants(on, 1)[0]
    with psycopg.connect(on.owner_url) as connection:
        token = add_token(connection, ident)
    world = World(max(100, size // 5), seed=size)
    return Tenant(size, ident, token, world, world.questions(questions))


def fill(on: Stores, address: str, tenants: Sequence[Tenant], given: Namespace) -> Json:
    """Store everything, wait for the worker, and copy a tenant until there are so many rows."""
    rows = given.rows or min(10 * max(given.sizes), 1_000_000)
    copies = max(0, math.ceil((rows - sum(given.sizes)) / given.each) - 1)
    model = make_tenant(on, given.each, 1)
    for tenant in (model, *tenants):
        store(address, tenant.token, tenant.world.notes(tenant.size), tenant.size)
    wait_for_worker(on, given.patience)
    copied = copy_tenant(on, model.ident, copies)
    compared = compare(on, model.ident, copied[0]) if copied else {}
    with psycopg.connect(on.owner_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    wait_for_worker(on, given.patience, quiet_s=10)
    idents = [*copied, model.ident, *(tenant.ident for tenant in tenants)]
    return {"rows": counts(on, idents), "rows_of_a_copy_equal_to_its_model": compared}


@dataclass(slots=True)
class Answers:
    """Milliseconds of each answer and of its parts as the service timed them, and how many lacked an arm."""

    times: list[float] = field(default_factory=list)
    parts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    degraded: int = 0

    def add(self, more: Answers) -> None:
        """Put others to these."""
        self.times += more.times
        self.degraded += more.degraded
        for part, values in more.parts.items():
            self.parts[part] += values


async def ask(address: str, token: str, queries: Sequence[str], arms: dict[str, bool]) -> Answers:
    """Ask one question after the other."""
    wire, made = Wire(address, token), Answers()
    await wire.open()
    for query in queries:
        body = json.dumps({"query": query, "arms": arms}).encode()
        started = time.perf_counter()
        status, answer = await wire.post("/v1/retrieve", body)
        made.times.append((time.perf_counter() - started) * 1000)
        assert status == 200, answer
        pack = json.loads(answer)
        made.degraded += bool(pack.get("degraded_arms"))
        for part, value in pack["timings_ms"].items():
            made.parts[part].append(value)
    wire.close()
    return made


class Measured:
    """What was taken of one tenant."""

    def __init__(self) -> None:
        self.ways: dict[str, Answers] = defaultdict(Answers)
        self.raw: dict[str, list[float]] = defaultdict(list)
        self.cpu: Counter[str] = Counter()

    def figures(self) -> Json:
        """Medians and 95th percentiles, and what they are to each other."""
        asked = {way: {**summary(made.times), "degraded": made.degraded} for way, made in self.ways.items()}
        slowest = max(ARMS, key=lambda arm: asked[arm]["p50_ms"])
        return {
            "asked": asked,
            "slowest_arm": slowest,
            "all_over_slowest_arm": {
                measure: round(asked["all arms"][measure] / max(asked[arm][measure] for arm in ARMS), 2)
                for measure in ("p50_ms", "p95_ms")
            },
            "parts": {part: summary(times) for part, times in sorted(self.ways["all arms"].parts.items())},
            "cpu_ms_an_answer": {
                process: round(seconds * 1000 / len(self.ways["all arms"].times), 2)
                for process, seconds in self.cpu.items()
            },
            "raw": {way: summary(times) for way, times in self.raw.items()},
        }


def measure(on: Stores, address: str, tenants: Sequence[Tenant]) -> dict[int, Measured]:
    """Ask all tenants in all ways, in turn; what is raw as well."""
    taken = {tenant.size: Measured() for tenant in tenants}
    raws = {tenant.size: Raw(on, tenant.ident) for tenant in tenants}
    for tenant in tenants:
        for arms in WAYS.values():
            asyncio.run(ask(address, tenant.token, tenant.questions[:CHUNK], arms))  # warm
    total = len(tenants[0].questions)
    for start in range(0, total, CHUNK):
        for tenant in tenants:
            chunk, mine = tenant.questions[start : start + CHUNK], taken[tenant.size]
            for way, arms in WAYS.items():
                before = processor_time(on)
                mine.ways[way].add(asyncio.run(ask(address, tenant.token, chunk, arms)))
                if way == "all arms":
                    mine.cpu.update({name: spent - before[name] for name, spent in processor_time(on).items()})
            # A question without a word asks no arm: what is left is HTTP, the token, the log.
            nothing = asyncio.run(ask(address, tenant.token, ["?"] * CHUNK, WAYS["all arms"]))
            mine.raw["a request that asks nothing"] += nothing.times
            if start % (10 * CHUNK) == 0:
                for way, values in raws[tenant.size].measure(chunk).items():
                    mine.raw[way] += values
        print(f"asked {start + CHUNK} of {total} questions", flush=True)
    for raw in raws.values():
        raw.close()
    return taken


def processor_time(on: Stores) -> dict[str, float]:
    """Seconds that each process has had: on a machine that others use, they say more than the clock."""
    api = [process.pid for process in psutil.Process().children() if "api" in process.cmdline()]
    return {"api": cpu.seconds(api), "postgres": cpu.postgres(on), "falkordb": cpu.falkor(on)}


async def crowd(address: str, tenant: Tenant, clients: int, each: int) -> Json:
    """Many clients at once, each asking one question after the other; failures are counted and not raised."""
    times: list[float] = []
    faults: dict[str, int] = defaultdict(int)

    async def one(number: int) -> None:
        wire = Wire(address, tenant.token)
        await wire.open()
        for turn in range(each):
            query = tenant.questions[(number * each + turn) % len(tenant.questions)]
            started = time.perf_counter()
            status, answer = await wire.post("/v1/retrieve", json.dumps({"query": query}).encode())
            times.append((time.perf_counter() - started) * 1000)
            if status != 200:
                faults[str(status)] += 1
            else:
                for arm in json.loads(answer).get("degraded_arms", ()):
                    faults[f"{arm} degraded"] += 1
        wire.close()

    started = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(clients)))
    seconds = time.perf_counter() - started
    return {
        **summary(times),
        "clients": clients,
        "answers_per_s": round(len(times) / seconds, 1),
        "answers": len(times),
        "faults": dict(faults),
    }


def summary(times: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    return {"p50_ms": round(statistics.median(times), 2), "p95_ms": round(quantile(times, 0.95), 2)}


def growth(sizes: Json) -> Json:
    """By way, how the median grows with the size.

    `exponent` is that of the size (0: not at all, 1: in proportion), fitted to the logarithms; `times` is what the
    largest tenant costs in terms of the smallest.
    """
    if len(sizes) < 2:
        return {}
    made = {}
    for way in WAYS:
        costs = [one["asked"][way]["p50_ms"] for one in sizes.values()]
        fitted = statistics.linear_regression(
            [math.log(int(size)) for size in sizes], [math.log(cost) for cost in costs]
        )
        made[way] = {"exponent": round(fitted.slope, 3), "times": round(costs[-1] / costs[0], 2)}
    return made


def print_tables(made: Json) -> None:
    """Print what was measured in the Markdown that the documentation shows."""
    for lines in (growth_table(made), cpu_table(made), crowd_table(made)):
        print("\n" + "\n".join(lines), flush=True)


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/retrieval.py --sizes 1000 10000 --rows 50000 --questions 100")
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="memories of a tenant")
    options.add_argument("--rows", type=int, help="memories of all; default: ten times the largest, 1,000,000 at most")
    options.add_argument("--each", type=int, default=5_000, help="memories of each other tenant")
    options.add_argument("--questions", type=int, default=200, help="to each tenant, in each way")
    options.add_argument("--clients", type=int, default=20, help="at once")
    options.add_argument("--home", type=Path, help="folder where the stores are kept for a look afterwards")
    options.add_argument("--patience", type=float, default=3600, help="seconds that the worker gets")
    options.add_argument("--name", default="retrieval", help="name of the JSON file and the plot")
    given = options.parse_args()
    given.sizes.sort()
    made: Json = {"embedder": "sums of random vectors", "questions": given.questions}
    with stores(given.home) as on, service(on, workers=1, command=[EMBEDDERS]) as address:
        tenants = [make_tenant(on, size, given.questions) for size in given.sizes]
        made |= fill(on, address, tenants, given)
        taken = measure(on, address, tenants)
        each = max(1, given.questions // given.clients)
        alone = asyncio.run(crowd(address, tenants[-1], 1, given.questions))
        together = asyncio.run(crowd(address, tenants[-1], given.clients, each))
    made["sizes"] = {str(size): one.figures() for size, one in taken.items()}
    made["growth"] = growth(made["sizes"])
    made["one_client"], made["many_clients"] = alone, together
    made["many_over_one"] = {
        measure: round(together[measure] / alone[measure], 2) for measure in ("p50_ms", "p95_ms", "answers_per_s")
    }
    report(given.name, made)
    print_tables(made)
    print(f"plot: {plots.draw('retrieval', made, given.name)}")


if __name__ == "__main__":
    main()
