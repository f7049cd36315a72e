"""Every graph backend, empty, and as the holder of a fence sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path as FilePath
from typing import Any
from uuid import UUID

import pytest
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.graphs import EDGE_TYPES

from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.networkx import NetworkxBackend
from memory_os.graph.port import Bounds, GraphBackend, GraphDump, GraphPatch, NodeRef, Path, Seed

TENANT = UUID("11111111-2222-4333-8444-555555555555")
PATIENT = Bounds(budget_ms=60_000)


@pytest.fixture(params=["networkx", "falkor"])
async def backend(request: pytest.FixtureRequest, tmp_path: FilePath) -> AsyncIterator[GraphBackend]:
    made: GraphBackend
    if request.param == "networkx":
        made = NetworkxBackend(tmp_path / "graphs", edge_types=EDGE_TYPES)
    else:
        server: FalkorProcess = request.getfixturevalue("falkor_server")
        prefix: str = request.getfixturevalue("falkor_prefix")
        made = FalkorBackend(FalkorAddress(server.host, server.port), prefix=prefix, edge_types=EDGE_TYPES)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def graph(backend: GraphBackend) -> Graph:
    """A backend with the fence of `TENANT` taken."""
    await backend.take_fence(TENANT, "token")
    return Graph(backend)


class Graph:
    """The backend as the holder of the fence of `TENANT` sees it."""

    def __init__(self, backend: GraphBackend) -> None:
        self.backend = backend

    async def apply(self, **parts: Any) -> None:
        await self.backend.apply(TENANT, "token", GraphPatch(**parts))

    async def dump(self) -> GraphDump:
        return await self.backend.dump(TENANT)

    async def expand(self, *seeds: NodeRef, bounds: Bounds = PATIENT, as_of: int | None = None) -> Sequence[Path]:
        return await self.backend.expand(TENANT, [Seed(seed, 1.0) for seed in seeds], bounds, as_of=as_of)

    async def found(self, *seeds: NodeRef, as_of: int | None = None) -> set[str]:
        return {step.node.id for path in await self.expand(*seeds, as_of=as_of) for step in path.steps}
