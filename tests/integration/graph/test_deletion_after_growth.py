"""Nodes are deleted after the graph has outgrown the matrices of their labels: nothing of them may stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.graphs import EDGE_TYPES, entity, memory, rref

from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.port import GraphPatch, LinkEdge

pytestmark = pytest.mark.anyio

TENANT = UUID("11111111-2222-4333-8444-555555555555")

GROWTH = 16_400
"""Nodes beyond NODE_CREATION_BUFFER, which is 16,384 unless it is set: the number by which a graph's matrices grow."""


@pytest.fixture
async def backend(falkor_server: FalkorProcess, falkor_prefix: str) -> AsyncIterator[FalkorBackend]:
    address = FalkorAddress(falkor_server.host, falkor_server.port)
    made = FalkorBackend(address, prefix=falkor_prefix, edge_types=EDGE_TYPES)
    await made.take_fence(TENANT, "token")
    yield made
    await made.close()


async def apply(backend: FalkorBackend, patch: GraphPatch) -> None:
    await backend.apply(TENANT, "token", patch)


async def test_a_label_forgets_the_nodes_that_are_deleted_after_others_made_the_graph_grow(
    backend: FalkorBackend,
) -> None:
    link = LinkEdge("l", "e0", rref("r"), "led to", 1.0, None, None)
    await apply(backend, GraphPatch(entities=[entity(f"e{number}") for number in range(5)], links=[link]))
    for start in range(0, GROWTH, 4_100):
        numbers = range(start, start + 4_100)
        await apply(backend, GraphPatch(memories=[memory(f"m{number}") for number in numbers]))
    await apply(backend, GraphPatch(deleted_entities=["e3"], deleted_links=["l"]))
    await apply(backend, GraphPatch(memories=[memory("new"), memory("newer")]))  # they get the numbers of the deleted

    graph = await backend.dump(TENANT)
    assert set(graph.entities) == {"e0", "e1", "e2", "e4"}
    assert graph.records == frozenset()
    assert len(graph.memories) == GROWTH + 2
