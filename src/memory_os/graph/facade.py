"""The facade: the four calls that the rest of the service knows graph memory by, over whichever backend is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from uuid import UUID

from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.networkx import NetworkxBackend
from memory_os.graph.port import (
    Bounds,
    CoOccurrence,
    EntityNode,
    GraphBackend,
    GraphPatch,
    GraphStats,
    MemoryNode,
    Mention,
    Path,
    Seed,
)

MEMORIES = 8
"""Memories in one context by default: the seed's number."""


@dataclass(frozen=True, slots=True)
class GraphContext:
    """What the graph adds to a retrieval: paths, best first, and the memories on them, best first, seeds left out."""

    paths: Sequence[Path]
    memory_ids: Sequence[str]


class GraphMemory:
    """Graph memory of all tenants. Every call names its tenant; nothing of one is held between two calls.

    Args:
        backend: Where the graphs are.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self.backend = backend

    async def ingest_memory(
        self,
        tenant_id: UUID,
        token: str,
        memory: MemoryNode,
        *,
        entities: Sequence[EntityNode] = (),
        mentions: Sequence[Mention] = (),
        co_occurrences: Sequence[CoOccurrence] = (),
    ) -> None:
        """Set a memory with all of its mentions and what follows from them.

        Args:
            tenant_id: Whose graph.
            token: The token that the caller put into the graph's fence.
            memory: The memory.
            entities: The entities that it mentions, with their strengths.
            mentions: All of its mentions; those that it had before and that are not among them go.
            co_occurrences: The pairs whose counts changed, as they are now.

        Raises:
            FenceLostError: Somebody else has the fence.
            GraphDataError: A value can't be stored.
            GraphUnavailableError: The backend can't serve.
        """
        patch = GraphPatch(entities=entities, co_occurrences=co_occurrences, memories=[memory], mentions=mentions)
        await self.backend.apply(tenant_id, token, patch)

    async def retrieve_context(
        self,
        tenant_id: UUID,
        seeds: Sequence[Seed],
        *,
        bounds: Bounds | None = None,
        memories: int = MEMORIES,
        as_of: int | None = None,
    ) -> GraphContext:
        """Find what lies around the seeds, within bounds.

        Args:
            tenant_id: Whose graph.
            seeds: Where to start.
            bounds: Hops, paths and time; 2, 12 and 150 ms by default.
            memories: How many memories to name at most.
            as_of: Epoch microseconds at which links must hold; None takes every link.

        Returns:
            Ids only: what a reader may see is for the caller to look up.

        Raises:
            GraphUnavailableError: The backend can't serve, or not in time.
        """
        paths = await self.backend.expand(tenant_id, seeds, bounds or Bounds(), as_of=as_of)
        known = {seed.node.id for seed in seeds if seed.node.kind == "memory"}
        on_paths = (step.node for path in paths for step in path.steps)
        found = dict.fromkeys(node.id for node in on_paths if node.kind == "memory" and node.id not in known)
        return GraphContext(paths, list(found)[:memories])

    async def stats(self, tenant_id: UUID) -> GraphStats:
        """Count a tenant's graph and name its strongest entities."""
        return await self.backend.stats(tenant_id)

    async def delete_memories(
        self,
        tenant_id: UUID,
        token: str,
        memory_ids: Sequence[str],
        *,
        co_occurrences: Sequence[CoOccurrence] = (),
        entities: Sequence[EntityNode] = (),
        deleted_entities: Sequence[str] = (),
    ) -> int:
        """Remove memories and what nothing holds any more.

        Args:
            tenant_id: Whose graph.
            token: The token that the caller put into the graph's fence.
            memory_ids: The memories.
            co_occurrences: The pairs whose counts changed, as they are now.
            entities: The entities whose strengths changed, as they are now.
            deleted_entities: Derived entities that are left without edges.

        Returns:
            How many of the memories were in the graph.

        Raises:
            FenceLostError: Somebody else has the fence.
            GraphUnavailableError: The backend can't serve.
        """
        present = await self.backend.mentioned_entities(tenant_id, memory_ids)
        patch = GraphPatch(
            entities=entities,
            co_occurrences=co_occurrences,
            deleted_memories=memory_ids,
            deleted_entities=deleted_entities,
        )
        await self.backend.apply(tenant_id, token, patch)
        return len(present)


def make_backend(
    kind: str,
    *,
    edge_types: frozenset[str],
    directory: FilePath | None = None,
    host: str = "127.0.0.1",
    port: int = 6379,
    username: str | None = None,
    password: str | None = None,
    tls: bool = False,
    prefix: str = "memory_os",
) -> GraphBackend:
    """Make the backend that a configuration names. It is not open yet.

    Args:
        kind: `networkx` or `falkor`.
        edge_types: The closed set of edge types.
        directory: Of `networkx`: where it keeps the graphs.
        host: Of `falkor`.
        port: Of `falkor`.
        username: Of `falkor`, where its users have names.
        password: Of `falkor`.
        tls: Whether `falkor` is reached over TLS.
        prefix: Of `falkor`: beginning of all keys.

    Raises:
        ValueError: There is no such kind, or what it needs is missing or malformed.
    """
    if kind == "networkx":
        if directory is None:
            raise ValueError("The networkx backend needs a directory (GRAPH_DIR).")
        return NetworkxBackend(directory, edge_types=edge_types)
    if kind == "falkor":
        address = FalkorAddress(host, port, username, password, tls)
        return FalkorBackend(address, prefix=prefix, edge_types=edge_types)
    raise ValueError(f"There is no graph backend {kind!r}: choose networkx or falkor.")
