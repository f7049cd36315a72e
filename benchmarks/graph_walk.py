"""Walks through the graph of one tenant, and where their time goes, beside a bare two-hop query in the same run.

The graph has hubs: the popularity of entities follows Zipf's law, so that at 100,000 memories the most popular one has
some 30,000 edges. It is written straight into FalkorDB. Questions name one or two entities, the popular ones more
often; the hits they start from are half of them memories of the named entity, half of them others.
"""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate, combinations
from pathlib import Path
from typing import Any
from uuid import UUID

from stack import parser, quantile, report

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.weights import co_occurrence_weight, mention_weight
from memory_os.embedded.falkor import EmbeddedFalkor
from memory_os.graph import falkor
from memory_os.graph.encoder import render_query
from memory_os.graph.facade import GraphMemory
from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.port import (
    CoOccurrence,
    EntityNode,
    GraphPatch,
    LinkEdge,
    MemoryNode,
    Mention,
    NodeRef,
    Seed,
    TypedEdge,
)
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.model import Limits
from memory_os.retrieval.walking import make_seeds, walk

TENANT = UUID("11111111-2222-4333-8444-555555555555")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = 8
"""Types of edges in use, of the closed set; each costs a walk about 0.1 ms."""

ROUNDS = 5
"""Times that each walk is made: the least of them says what a walk takes where nobody else wants the cores."""

PATCH = 1_000
"""Rows of a patch while the graph is filled."""

RAW = (
    "UNWIND $ids AS id MATCH (n:Memory {id: id})-[a:MENTIONS]->(e:Entity)<-[b:MENTIONS]-(m:Memory) "
    "RETURN id, e.id, m.id, a.weight, b.weight LIMIT 100"
)
"""What there is to compare with: two hops from the same memories, whatever comes first, unranked."""


@dataclass(slots=True)
class World:
    """The rows of a graph, and who mentions whom."""

    memories: list[str]
    entities: list[str]
    popularity: Sequence[float]
    mentioned: list[tuple[int, ...]]
    mentioning: dict[int, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class Clock:
    """Milliseconds of each walk that went into each part."""

    parts: dict[str, list[float]] = field(default_factory=dict)
    now: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add what passes to a part of the present walk."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.now[name] += (time.perf_counter() - started) * 1000  # type: ignore[assignment]

    def turn(self) -> None:
        """The walk is over."""
        for name, value in self.now.items():
            self.parts.setdefault(name, []).append(value)
        self.now.clear()


def make_world(memories: int, entities: int, seed: int = 7) -> World:
    """Ids and mentions: one to five entities a memory, by Zipf's law."""
    source = random.Random(seed)
    popularity = list(accumulate(1 / rank for rank in range(1, entities + 1)))
    ids = [str(UUID(int=source.getrandbits(128), version=4)) for _ in range(memories + entities)]
    world = World(ids[:memories], ids[memories:], popularity, [])
    for number in range(memories):
        drawn = source.choices(range(entities), cum_weights=popularity, k=source.randint(1, 5))
        world.mentioned.append(tuple(dict.fromkeys(drawn)))
        for entity in world.mentioned[-1]:
            world.mentioning.setdefault(entity, []).append(number)
    return world


def patches(world: World, seed: int = 8) -> Iterator[GraphPatch]:
    """The whole graph, with a typed edge at every tenth memory and a link at every twentieth entity."""
    source = random.Random(seed)
    for part in _chunks(world.entities):
        yield GraphPatch(entities=[EntityNode(key, key[:8], "person", 1.0, declared=False) for key in part])
    for start in range(0, len(world.memories), PATCH):
        part = world.memories[start : start + PATCH]
        mentions = [
            Mention(
                key, world.entities[entity], mention_weight(source.choice((0.5, 0.7, 0.9)), source.choice((1, 1, 2)))
            )
            for number, key in enumerate(part, start)
            for entity in world.mentioned[number]
        ]
        nodes = [MemoryNode(key, "Event", "active", 1) for key in part]
        yield GraphPatch(memories=nodes, mentions=mentions, nothing_to_prune=frozenset(part))
    pairs = Counter(pair for ids in world.mentioned for pair in combinations(sorted(world.entities[i] for i in ids), 2))
    for rows in _chunks(list(pairs.items())):
        yield GraphPatch(co_occurrences=[CoOccurrence(a, b, co_occurrence_weight(n), n) for (a, b), n in rows])
    yield from _declared(world, source)


def _declared(world: World, source: random.Random) -> Iterator[GraphPatch]:
    refs = [NodeRef("memory", key) for key in world.memories]
    types = sorted(EDGE_TYPES)[:TYPES]
    ids = (str(UUID(int=source.getrandbits(128), version=4)) for _ in range(len(refs)))
    edges = [
        TypedEdge(next(ids), source.choice(types), ref, source.choice(refs), source.choice((0.6, 0.8, 1.0)))
        for ref in refs[::10]
    ]
    links = [LinkEdge(next(ids), key, source.choice(refs), "owns", 0.8) for key in world.entities[::20]]
    for rows in _chunks(edges):
        yield GraphPatch(edges=rows)
    for found in _chunks(links):
        yield GraphPatch(links=found)


def _chunks(rows: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(rows), PATCH):
        yield rows[start : start + PATCH]


def questions(
    world: World, count: int, seed: int = 9
) -> Iterator[tuple[list[UUID], dict[Ref, float], dict[Ref, float]]]:
    """What the other arms bring: named entities, and 50 hits each of vectors and words with falling scores."""
    source = random.Random(seed)
    for _ in range(count):
        named = source.choices(range(len(world.entities)), cum_weights=world.popularity, k=source.randint(1, 2))
        about = [memory for entity in named for memory in source.choices(world.mentioning.get(entity, [0]), k=25)]
        hits = []
        for _ in range(2):
            found = [*source.sample(about, 25), *source.sample(range(len(world.memories)), 25)]
            source.shuffle(found)
            refs = [Ref("memory", UUID(world.memories[number])) for number in found]
            hits.append({ref: 1.0 - 0.015 * rank for rank, ref in enumerate(refs)})
        yield [UUID(world.entities[entity]) for entity in dict.fromkeys(named)], hits[0], hits[1]


async def fill(backend: FalkorBackend, world: World) -> float:
    """Write the graph; gives the seconds."""
    started = time.perf_counter()
    await backend.take_fence(TENANT, "bench")
    for patch in patches(world):
        await backend.apply(TENANT, "bench", patch)
    return time.perf_counter() - started


def watch(backend: FalkorBackend, clock: Clock) -> None:
    """Time the parts of a walk: the server with the way there and back, asking, and reading what came."""
    server = backend._server  # noqa: SLF001 - a benchmark looks inside
    read = server.read

    async def timed(key: str, queries: Sequence[str]) -> Any:  # noqa: ANN401 - as the method
        clock.now["queries"] += len(queries)
        clock.now["trips"] += 1
        with clock.part("server_and_wire_ms"):
            replies = await read(key, queries)
        clock.now["rows"] += sum(len(reply) for reply in replies)
        return replies

    server.read = timed  # type: ignore[method-assign]
    for name in ("ask_derived", "ask_declared", "read_derived", "read_around"):
        setattr(falkor, name, _timed(clock, f"{name}_ms", getattr(falkor, name)))


def _timed(clock: Clock, name: str, work: Any) -> Any:  # noqa: ANN401 - any function
    def timed(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        with clock.part(name):
            return work(*given, **named)

    return timed


async def cpu_ms(backend: FalkorBackend) -> dict[str, float]:
    """CPU that the server and this process have spent: it says more than the clock on a busy machine."""
    info = await (await backend._server._connect()).info("cpu")  # noqa: SLF001
    used = float(info["used_cpu_user"]) + float(info["used_cpu_sys"])
    return {"server": used * 1000, "client": time.process_time() * 1000}


async def raw(backend: FalkorBackend, seeds: Sequence[Seed]) -> float:
    """Milliseconds of the bare query from the same memories, the least of the rounds."""
    query = render_query(RAW, {"ids": [seed.node.id for seed in seeds if seed.node.kind == "memory"]})
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        await backend._server.read(backend._live(TENANT), [query])  # noqa: SLF001 - a benchmark looks inside
        times.append((time.perf_counter() - started) * 1000)
    return min(times)


async def measure(backend: FalkorBackend, memories: int, entities: int, count: int) -> dict[str, Any]:
    """Fill a graph of one size and walk through it."""
    world = make_world(memories, entities)
    figures: dict[str, Any] = {
        "memories": memories,
        "entities": entities,
        "fill_s": round(await fill(backend, world), 1),
    }
    stats = await backend.stats(TENANT)
    figures["edges"] = stats.edges
    figures["mentions_of_the_most_popular"] = max(map(len, world.mentioning.values()))
    graph, clock, found = GraphMemory(backend), Clock(), []
    gc.collect()
    gc.freeze()  # the rows of the graph are no part of a service
    asked = [make_seeds(*question) for question in questions(world, count)]
    for seeds in asked[:20]:
        await walk(graph, TENANT, seeds, Limits(), NOW, current=True)
    watch(backend, clock)
    spent = await cpu_ms(backend)
    least = [float("inf")] * count
    for _ in range(ROUNDS):
        for number, seeds in enumerate(asked):
            with clock.part("walk_ms"):
                paths = await walk(graph, TENANT, seeds, Limits(), NOW, current=True)
            least[number] = min(least[number], clock.now["walk_ms"])
            clock.turn()
            found.append(None if paths is None else len(paths))
    clock.parts["walk_least_of_rounds_ms"] = least
    figures["cpu_ms_a_walk"] = {
        who: round((after - spent[who]) / count / ROUNDS, 2) for who, after in (await cpu_ms(backend)).items()
    }
    clock.parts["raw_two_hops_least_of_rounds_ms"] = [await raw(backend, seeds) for seeds in asked]
    figures["seeds_p50"] = quantile([len(seeds) for seeds in asked], 0.5)
    figures["paths_p50"] = quantile([paths or 0 for paths in found], 0.5)
    figures["walks_given_up"] = found.count(None)
    for name, values in clock.parts.items():
        figures[name] = {"p50": round(quantile(values, 0.5), 2), "p95": round(quantile(values, 0.95), 2)}
    await backend.drop(TENANT)
    return figures


@contextmanager
def server() -> Iterator[FalkorAddress]:
    """A throw-away FalkorDB."""
    home = Path(tempfile.mkdtemp(prefix="memory-os-bench-", dir="/tmp"))
    embedded = EmbeddedFalkor(home / "home")
    try:
        embedded.start()
        secret, _, place = embedded.url.removeprefix("redis://:").rpartition("@")
        host, _, port = place.partition(":")
        yield FalkorAddress(host, int(port), password=secret, socket_timeout=120.0)
    finally:
        embedded.stop()
        shutil.rmtree(home, ignore_errors=True)


async def run(address: FalkorAddress, sizes: Sequence[int], count: int) -> dict[str, Any]:
    """All sizes, one after the other."""
    figures = {}
    for memories in sizes:
        backend = FalkorBackend(address, prefix="bench", edge_types=frozenset(EDGE_TYPES))
        figures[str(memories)] = await measure(backend, memories, memories // 5, count)
        print(memories, figures[str(memories)], flush=True)
        await backend.close()
    return figures


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/graph_walk.py --memories 10000 100000 --walks 300")
    options.add_argument("--memories", type=int, nargs="+", default=[10_000])
    options.add_argument("--walks", type=int, default=300)
    given = options.parse_args()
    with server() as address:
        report("graph_walk", asyncio.run(run(address, given.memories, given.walks)))


if __name__ == "__main__":
    main()
