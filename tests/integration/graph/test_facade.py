"""The four calls of graph memory, on both backends, and the choice between these."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as FilePath
from typing import Any
from uuid import UUID

import pytest
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.graphs import EDGE_TYPES, edge, entity, eref, memory, mref

from memory_os.graph.facade import GraphMemory, make_backend
from memory_os.graph.port import Bounds, CoOccurrence, FenceLostError, GraphPatch, Mention, Seed

pytestmark = pytest.mark.anyio

TENANT = UUID("11111111-2222-4333-8444-555555555555")


@pytest.fixture(params=["networkx", "falkor"])
async def graph(request: pytest.FixtureRequest, tmp_path: FilePath) -> AsyncIterator[GraphMemory]:
    options: dict[str, Any] = {"directory": tmp_path}
    if request.param == "falkor":
        server: FalkorProcess = request.getfixturevalue("falkor_server")
        options = {"host": server.host, "port": server.port, "prefix": request.getfixturevalue("falkor_prefix")}
    backend = make_backend(request.param, edge_types=EDGE_TYPES, **options)
    assert backend.name == request.param
    await backend.open()
    await backend.take_fence(TENANT, "token")
    yield GraphMemory(backend)
    await backend.close()


async def test_a_memory_goes_in_is_found_and_goes_out(graph: GraphMemory) -> None:
    for key in ("m1", "m2"):
        await graph.ingest_memory(
            TENANT,
            "token",
            memory(key),
            entities=[entity("a"), entity("b")],
            mentions=[Mention(key, "a", 0.8), Mention(key, "b", 0.8)],
            co_occurrences=[CoOccurrence("a", "b", 0.5, 1)],
        )
    stats = await graph.stats(TENANT)
    assert (stats.memory_nodes, stats.entity_nodes, stats.edges) == (2, 2, 5)
    context = await graph.retrieve_context(TENANT, [Seed(eref("a"), 1.0)], bounds=Bounds(budget_ms=60_000))
    assert context.memory_ids == ["m1", "m2"]
    assert len(context.paths) <= 12
    with pytest.raises(FenceLostError):
        await graph.delete_memories(TENANT, "other", ["m1"])
    removed = await graph.delete_memories(
        TENANT,
        "token",
        ["m1", "unknown"],
        entities=[entity("a", 0.5)],
        co_occurrences=[CoOccurrence("a", "b", 0, 0)],
    )
    assert removed == 1
    assert await graph.delete_memories(TENANT, "token", ["m2"], deleted_entities=["a", "b"]) == 1
    assert (await graph.stats(TENANT)).nodes == 0


async def test_a_context_names_few_memories_and_no_seeds(graph: GraphMemory) -> None:
    keys = [f"m{n:02}" for n in range(20)]
    await graph.backend.apply(
        TENANT,
        "token",
        GraphPatch(memories=[memory(key) for key in keys], edges=[edge(key, "m00", key) for key in keys[1:]]),
    )
    seeds = [Seed(mref("m00"), 1.0), Seed(mref("m01"), 0.5)]
    context = await graph.retrieve_context(TENANT, seeds, bounds=Bounds(budget_ms=60_000))
    assert context.memory_ids == [f"m{n:02}" for n in range(2, 10)]
    assert len(context.paths) == 12
    narrow = await graph.retrieve_context(TENANT, seeds, bounds=Bounds(1, 3, 60_000), memories=2)
    assert (len(narrow.paths), narrow.memory_ids) == (3, ["m02", "m03"])
    assert (await graph.retrieve_context(UUID(int=7), seeds)).memory_ids == []


def test_a_backend_is_chosen_by_name_and_given_what_it_needs(tmp_path: FilePath) -> None:
    assert make_backend("networkx", edge_types=EDGE_TYPES, directory=tmp_path).name == "networkx"
    assert make_backend("falkor", edge_types=EDGE_TYPES).name == "falkor"
    for options, message in (
        ({"kind": "networkx"}, "GRAPH_DIR"),
        ({"kind": "neo4j"}, "networkx or falkor"),
        ({"kind": "falkor", "prefix": "a:b"}, "prefix"),
    ):
        with pytest.raises(ValueError, match=message):
            make_backend(edge_types=EDGE_TYPES, **options)  # type: ignore[arg-type]  # one value is of another type
