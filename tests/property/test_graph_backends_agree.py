"""Whatever happens to a graph, both backends end with the same one, read the same from it, and rebuild the same."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.graphs import EDGE_TYPES, entity, eref, memory, mref, patches, rref

from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.networkx import NetworkxBackend
from memory_os.graph.port import Bounds, CoOccurrence, GraphPatch, LinkEdge, Mention, Seed, TypedEdge

PATIENT = Bounds(budget_ms=60_000)
SEEDS = [Seed(mref("m1"), 1.0), Seed(eref("e1"), 0.7), Seed(rref("r1"), 0.5), Seed(mref("é"), 0.5)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(patches, min_size=1, max_size=8), as_of=st.none() | st.integers(0, 5))
def test_any_history_gives_the_same_graph(
    falkor_server: FalkorProcess, falkor_prefix: str, history: list[GraphPatch], as_of: int | None
) -> None:
    asyncio.run(compare(falkor_server, falkor_prefix, history, SEEDS, as_of))


def test_a_graph_with_hubs_gives_the_same_paths(falkor_server: FalkorProcess, falkor_prefix: str) -> None:
    """Hubs of up to 180 edges, which are read in part only: still the same paths in the same order."""
    rng = random.Random(11)
    memories, entities = [f"m{n}" for n in range(400)], [f"e{n}" for n in range(40)]
    patch = GraphPatch(
        entities=[entity(key) for key in entities],
        memories=[memory(key) for key in memories],
        mentions=[Mention(key, "e0", rng.choice([1.0, 2.5, 5.0])) for key in memories[:180]]
        + [Mention(key, rng.choice(entities[1:]), rng.random() * 5) for key in memories for _ in range(3)],
        co_occurrences=[CoOccurrence(*sorted(rng.sample(entities, 2)), rng.random() * 5, 1) for _ in range(150)],
        edges=[
            TypedEdge(f"s{n}", rng.choice(sorted(EDGE_TYPES)), mref(rng.choice(memories)), mref("m0"), rng.random())
            for n in range(150)
        ],
        links=[
            LinkEdge(f"l{n}", rng.choice(entities), rref(f"r{n % 9}"), "uses", rng.random(), n, n + 40)
            for n in range(120)
        ],
    )
    for _ in range(12):
        seeds = [Seed(mref(rng.choice(memories)), rng.random()) for _ in range(10)]
        seeds += [Seed(eref("e0"), 1.0), Seed(mref("m0"), 0.9), Seed(rref("r0"), 0.8)]
        asyncio.run(compare(falkor_server, falkor_prefix, [patch], seeds, rng.choice([None, 50, 90])))


async def compare(
    server: FalkorProcess, prefix: str, history: list[GraphPatch], seeds: list[Seed], as_of: int | None
) -> None:
    tenant = uuid4()
    with TemporaryDirectory() as directory:
        falkor = FalkorBackend(FalkorAddress(server.host, server.port), prefix=prefix, edge_types=EDGE_TYPES)
        networkx = NetworkxBackend(FilePath(directory), edge_types=EDGE_TYPES)
        await networkx.open()
        for backend in (falkor, networkx):
            await backend.take_fence(tenant, "token")
            for patch in history:
                await backend.apply(tenant, "token", patch)
        assert await falkor.dump(tenant) == await networkx.dump(tenant)
        assert await falkor.stats(tenant) == await networkx.stats(tenant)
        ids = ["m1", "m2", "é", "absent"]
        assert await falkor.mentioned_entities(tenant, ids) == await networkx.mentioned_entities(tenant, ids)
        for bounds in (PATIENT, Bounds(hops=3, paths=40, budget_ms=60_000), Bounds(hops=1, paths=3, budget_ms=60_000)):
            expected = await networkx.expand(tenant, seeds, bounds, as_of=as_of)
            assert await falkor.expand(tenant, seeds, bounds, as_of=as_of) == expected
        dump = await networkx.dump(tenant)
        for backend in (falkor, networkx):
            await backend.begin_rebuild(tenant, "token")
            for patch in history:
                await backend.load(tenant, "token", patch)
            await backend.finish_rebuild(tenant, "token")
            assert await backend.dump(tenant) == dump
        await networkx.close()
        await networkx.open()
        assert await networkx.dump(tenant) == dump
        await networkx.close()
        await falkor.drop(tenant)
        await falkor.close()
