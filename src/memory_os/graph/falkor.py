"""The graph backend for production: one FalkorDB graph for each tenant, under the key `{prefix}:{tenant}`.

**A write** is one transaction: WATCH on the graph, the fence read, what a patch's edges and deletions meet read where
there are any, and then every statement in one MULTI/EXEC. Nothing of it counts unless the fence held the caller's token
all the while, and readers see all of it or nothing. The price is that EXEC holds the whole server for the length of the
patch (measured: about 15 ms for 100 memories with three mentions each), so patches should stay of that size.

**Missing ends.** An edge, link, mention or co-occurrence whose memory or entity is not in the graph is not written, and
that is no error: a projection re-reads the canonical rows and puts the ends into the same patch, so an end that is
missing is one that is gone. Records are made by the edge or link that names them and go with their last one.

**Unknown outcome.** A write that raised `GraphUnavailableError` may have happened, or may happen yet; but a late one
meets its WATCH, and does nothing if anything else was written since. So the next try is never undone by the one before
it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from memory_os.graph.encoder import is_id, render_query
from memory_os.graph.expansion import LINK, Neighbourhood, Reach, expand
from memory_os.graph.falkor_hubs import KnownHubs
from memory_os.graph.falkor_pages import SCAN, ask_keys, ask_range, read_range, read_rows, read_scan
from memory_os.graph.falkor_queries import EPOCH, INDEXED
from memory_os.graph.falkor_reads import (
    COUNTS,
    IDS,
    LAST_NODE,
    MENTIONED,
    PAGE,
    TOP_ENTITIES,
    ask_page,
    read_mentioned,
    read_pages,
    read_stats,
)
from memory_os.graph.falkor_replies import MissingGraphError, Reply
from memory_os.graph.falkor_server import FalkorAddress, FalkorServer
from memory_os.graph.falkor_walks import ask_declared, ask_derived, overflows, read_around, read_derived
from memory_os.graph.falkor_writer import REMOVE, FalkorWriter
from memory_os.graph.patches import normalise
from memory_os.graph.port import (
    STRONGEST,
    Bounds,
    GraphDamagedError,
    GraphDataError,
    GraphDump,
    GraphPatch,
    GraphRow,
    GraphStats,
    GraphUnavailableError,
    Key,
    NodeKind,
    NodeRef,
    Part,
    Path,
    Seed,
)

Result = TypeVar("Result")

MOST_TENANTS = 10_000
"""Tenants of which a process remembers which types of edges their graphs have, some 200 bytes each."""

_PREFIX = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


class FalkorBackend:
    """Property graphs in FalkorDB, or in a Redis Cluster of FalkorDB nodes.

    Args:
        address: Where the server is.
        prefix: Beginning of all keys: letters, digits, `_`, `.` and `-`.
        edge_types: The closed set of edge types.

    Raises:
        ValueError: The prefix has other characters, or an edge type is no identifier in capitals.
    """

    name = "falkor"
    keeps_writes = False

    def __init__(self, address: FalkorAddress, *, prefix: str, edge_types: frozenset[str]) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise ValueError("The graph prefix may hold ASCII letters, digits, '_', '.' and '-', 64 at most.")
        if not edge_types or not all(re.fullmatch(r"[A-Z][A-Z_]*", name) for name in edge_types):
            raise ValueError("Edge types are identifiers in ASCII capitals, at least one.")
        self._prefix = prefix
        self._edge_types = edge_types
        self._server = FalkorServer(address)
        self._writer = FalkorWriter(self._server)
        self._reads: set[asyncio.Task[Any]] = set()
        self._declared: dict[UUID, tuple[str, ...]] = {}
        self._hubs = KnownHubs()

    async def open(self) -> None:
        """Do nothing: the first call connects."""

    async def close(self) -> None:
        """Give up reads that nobody waits for any more, and close all connections."""
        for task in self._reads:
            task.cancel()
        if self._reads:
            await asyncio.wait(self._reads)
        await self._server.close()

    async def ping(self) -> str:
        """Answer the server's run id; of a cluster, those of all primaries."""
        return await self._server.identify()

    async def take_fence(self, tenant_id: UUID, token: str) -> str:
        """Make the graph with its indexes where missing, and let only writes with `token` pass from now on."""
        return await self._writer.take_fence(self._live(tenant_id), token)

    async def epoch(self, tenant_id: UUID) -> str | None:
        """The graph's epoch; None where there is no graph."""
        rows = await self._read(tenant_id, [EPOCH])
        return str(rows[0][0][0]) if rows and rows[0] else None

    async def apply(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        """Set what the patch says, in one transaction."""
        await self._writer.write(self._live(tenant_id), token, normalise(patch, self._edge_types))

    async def mentioned_entities(self, tenant_id: UUID, memory_ids: Sequence[str]) -> Mapping[str, frozenset[str]]:
        """The entities that each memory mentions in the graph at present; absent memories are left out."""
        ids = list(dict.fromkeys(filter(is_id, memory_ids)))
        pages = [ids[start : start + IDS] for start in range(0, len(ids), IDS)]
        replies = await self._read(tenant_id, [render_query(MENTIONED, {"ids": page}) for page in pages])
        return read_mentioned(replies)

    async def expand(
        self, tenant_id: UUID, seeds: Sequence[Seed], bounds: Bounds, *, as_of: int | None = None
    ) -> Sequence[Path]:
        """The strongest paths from the seeds; see `memory_os.graph.expansion` for the rule.

        Raises:
            GraphUnavailableError: `bounds.budget_ms` were not enough.
        """

        async def neighbours(refs: Sequence[NodeRef], reach: Reach) -> Mapping[NodeRef, Neighbourhood]:
            return await self._read_around(tenant_id, refs, reach, as_of)

        return await self._within(bounds.budget_ms, expand(neighbours, seeds, bounds))

    async def stats(self, tenant_id: UUID) -> GraphStats:
        """Counts, kept by the server, and the strongest entities."""
        replies = await self._read(tenant_id, [COUNTS, render_query(TOP_ENTITIES, {"limit": STRONGEST})])
        return read_stats(*replies) if replies else GraphStats()

    async def dump(self, tenant_id: UUID) -> GraphDump:
        """Everything in the graph, read in pages; what is written between two pages may be seen in part."""
        replies = await self._read(tenant_id, [LAST_NODE])
        last = replies[0][0][0] if replies else None
        starts = range(0, 0 if last is None else last + 1, PAGE)
        return read_pages([await self._read(tenant_id, ask_page(start, self._edge_types)) for start in starts])

    async def read_page(
        self, tenant_id: UUID, part: Part, after: Key, last: Key | None, limit: int
    ) -> Sequence[GraphRow]:
        """Rows of one part in the order of their keys."""
        types = await self._edge_types_of(tenant_id, part)
        replies = await self._read(tenant_id, ask_range(part, after, last, limit, types))
        return read_range(part, replies, after, last, limit)

    async def look_up(self, tenant_id: UUID, part: Part, keys: Sequence[Key]) -> Sequence[GraphRow]:
        """The rows of one part with these keys."""
        types = await self._edge_types_of(tenant_id, part)
        known = [key for key in keys if all(map(is_id, key))]
        pages = [known[start : start + IDS] for start in range(0, len(known), IDS)]
        replies = await self._read(tenant_id, [query for page in pages for query in ask_keys(part, page, types)])
        return read_rows(part, replies)

    async def scan(self, tenant_id: UUID) -> Mapping[str, int]:
        """Touch every node, past all indexes, and count them by kind."""
        try:
            return read_scan(await self._read(tenant_id, SCAN))
        except GraphDataError as error:
            raise GraphDamagedError(f"The graph can't be read: {error}") from error

    async def _edge_types_of(self, tenant_id: UUID, part: Part) -> list[str]:
        """The edge types that the graph has had, for the part that has several."""
        if part != "edges":
            return []
        rows = await self._read(tenant_id, [INDEXED])
        indexed = rows[0][0][0] if rows and rows[0] else None
        return sorted(self._edge_types.intersection(indexed or ()))

    async def begin_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Make an empty scratch graph with indexes and a fence of its own; an older one is dropped."""
        await self._server.command(REMOVE, self._scratch(tenant_id))
        await self._writer.take_fence(self._scratch(tenant_id), token)

    async def load(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        """Write a patch into the scratch graph. It merges, as `apply` does and as fast, so it can be repeated."""
        await self._writer.write(self._scratch(tenant_id), token, normalise(patch, self._edge_types))

    async def finish_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Rename the scratch graph over the live one, if the fences of both hold `token`."""
        await self._writer.swap(self._scratch(tenant_id), self._live(tenant_id), token)

    async def abandon_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Drop the scratch graph if it is that of `token`."""
        await self._writer.drop(self._scratch(tenant_id), token)

    async def drop(self, tenant_id: UUID) -> None:
        """Remove the tenant's graphs altogether, with the record of queries that the server keeps beside them."""
        live, scratch = self._live(tenant_id), self._scratch(tenant_id)
        await self._server.command(REMOVE, live, scratch)
        for key in (live, scratch):
            # Written where the server runs with CMD_INFO, its default: the last 1,000 queries with their parameters.
            # The name's first brace makes it another slot of a cluster than the graph's, so it is a command of its
            # own.
            await self._server.command(REMOVE, f"telemetry{{{key}}}")

    async def _read_around(
        self, tenant_id: UUID, refs: Sequence[NodeRef], reach: Reach, as_of: int | None
    ) -> Mapping[NodeRef, Neighbourhood]:
        """Read neighbourhoods: derived and declared edges side by side, since the server runs queries on several cores.

        Asking for the types that a graph has not got costs as much as for those that it has, so each process remembers
        which ones a graph has. At the first hop they are looked up beside; where one is new, or nodes have very many
        declared edges, those are asked for once more.
        """
        nodes: dict[NodeKind, list[str]] = {}
        for ref in filter(lambda ref: is_id(ref.id), refs):
            nodes.setdefault(ref.kind, []).append(ref.id)
        types = self._declared.get(tenant_id, ())
        asked = ask_derived(nodes, reach, partial(self._hubs.among, tenant_id))
        found, replies = await asyncio.gather(
            self._read(tenant_id, [asked.text] if asked.text else []),
            self._read(tenant_id, ask_declared(nodes, types, as_of)),
        )
        derived = read_derived(asked, found)
        self._hubs.remember(tenant_id, derived.new_hubs)
        if reach.first:
            present = self._note_declared(tenant_id, derived.types)
            if not set(types).issuperset(present):
                types = present
                replies = await self._read(tenant_id, ask_declared(nodes, types, as_of))
        if overflows(replies):
            replies = await self._read(tenant_id, ask_declared(nodes, types, as_of, apart=True))
        return read_around(reach, derived, replies)

    def _note_declared(self, tenant_id: UUID, indexed: Sequence[str]) -> tuple[str, ...]:
        """Remember the types of declared edges that a graph has had, in the order in which queries name them."""
        present = tuple(sorted({*self._edge_types, LINK}.intersection(indexed)))
        if len(self._declared) >= MOST_TENANTS:
            self._declared.clear()
        self._declared[tenant_id] = present
        return present

    def _live(self, tenant_id: UUID) -> str:
        # The braces are a hash tag: a cluster keeps both graphs of a tenant on one node, as RENAME requires.
        return f"{self._prefix}:{{{UUID(str(tenant_id))}}}"

    def _scratch(self, tenant_id: UUID) -> str:
        return f"{self._live(tenant_id)}:scratch"

    async def _within(self, budget_ms: int, work: Coroutine[None, None, Result]) -> Result:
        """Wait for a read, and give it up when its time is over.

        It runs as a task of its own: `asyncio.timeout` around the client's calls was seen to be swallowed by the
        client's own look at its socket (redis 8.1), and the call then lasted as long as the server liked.
        """
        task = asyncio.get_running_loop().create_task(work)
        self._reads.add(task)
        task.add_done_callback(self._forget)
        try:
            done, _ = await asyncio.wait({task}, timeout=budget_ms / 1000)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            raise GraphUnavailableError(f"The expansion took longer than {budget_ms} ms.")
        return task.result()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._reads.discard(task)
        if not task.cancelled():
            task.exception()  # seen here: nobody waits for a read that was given up

    async def _read(self, tenant_id: UUID, queries: Sequence[str]) -> list[Reply]:
        """Run the queries in one round trip; no replies at all where there is no graph."""
        if not queries:
            return []
        try:
            return await self._server.read(self._live(tenant_id), queries)
        except MissingGraphError:
            return []
