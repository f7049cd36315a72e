"""Rebuilds a tenant's graph from the canonical rows, while readers keep the old one until the swap.

The rebuild holds the tenant's lease, so nothing else writes into its graph. What commits meanwhile waits in the outbox
and is projected right after, onto the new graph. For that to be exact without one long snapshot, the order matters:
memories with their mentions are read *before* entities and pairs. A memory that is deleted in between is then in the
new graph, and its waiting event finds there which counts to set again; one that was gone before is in neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from memory_os.graph.port import EntityNode, GraphBackend, GraphPatch, Key, Part, key_of
from memory_os.outbox.events import UPSERT
from memory_os.outbox.queue import WORKER_ROLE, ClaimedEvent, Lease
from memory_os.projection import canonical
from memory_os.projection.derivation import EXTRACTED_BY, read_mentions
from memory_os.projection.graph_states import expect
from memory_os.projection.nodes import memory_node, mention_edge
from memory_os.projection.projector import Projector
from memory_os.projection.tombstones import hold_tenant
from memory_os.storage.database import Database, Scope, Transaction

PAGE = 1000
_FIRST = UUID(int=0)

_AFTER_MEMORIES: Sequence[Part] = ("entities", "co_occurrences", "edges", "links")

T = TypeVar("T")

Progress = Callable[[str, int, int], Awaitable[None]]
"""Called with phase, processed and total after each page."""


@dataclass(frozen=True, slots=True)
class RebuildJob:
    """What to rebuild: a whole tenant, or one user's memories in place."""

    tenant_id: UUID
    id: UUID
    user_id: str | None
    max_memories: int | None
    allow_partial: bool
    request_id: str | None
    attempt: int = 1


class RebuildRefusedError(Exception):
    """The rebuild would leave memories out of the graph, and nobody allowed that."""


async def one_ahead(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Make the next item while the one before it is used: the rows come from one server and go to another."""
    following = asyncio.ensure_future(anext(items, None))
    try:
        while (item := await following) is not None:
            following = asyncio.ensure_future(anext(items, None))
            yield item
    finally:
        following.cancel()
        await asyncio.wait([following])
        await items.aclose()


class Rebuilder:
    """Rebuilds graphs, one at a time."""

    def __init__(self, database: Database, backend: GraphBackend, projector: Projector) -> None:
        self._database = database
        self._backend = backend
        self._projector = projector

    async def rebuild(self, job: RebuildJob, lease: Lease, progress: Progress) -> bool:
        """Run a job under the tenant's lease, whose fence is set already.

        Returns:
            Whether memories were left out because of `max_memories`.

        Raises:
            RebuildRefusedError: If `max_memories` would leave some out of a whole tenant's graph.
            GraphUnavailableError: The graph went away; the live one is untouched.
            FenceLostError: The lease went to another worker; the live graph is untouched.
        """
        counts = await self._counts(job, lease)
        limit = counts["memories"] if job.max_memories is None else job.max_memories
        truncated = limit < counts["memories"]
        if truncated and not job.allow_partial and job.user_id is None:
            raise RebuildRefusedError(
                f"the limit of {limit} would leave {counts['memories'] - limit} of {counts['memories']} memories out: "
                "leave the limit out, or set allow_partial"
            )
        if job.user_id is not None:
            await self._in_place(job, lease, min(limit, counts["memories"]), progress)
        else:
            await self._whole(job, lease, counts, limit, progress)
        return truncated

    async def _in_place(self, job: RebuildJob, lease: Lease, total: int, progress: Progress) -> None:
        """Project one user's memories again, each as it is now."""
        processed = 0
        async for rows in self._pages(job, lease):
            batch = rows[: total - processed]
            events = [ClaimedEvent(0, UPSERT, "memory", row["id"], row["version"], 0, job.request_id) for row in batch]
            for start in range(0, len(events), 100):
                await self._projector.project(lease, events[start : start + 100])
            processed += len(batch)
            await progress("projecting", processed, total)
            if processed >= total:
                return

    async def _whole(
        self, job: RebuildJob, lease: Lease, counts: dict[str, int], limit: int, progress: Progress
    ) -> None:
        await self._extract_missing(job, lease, progress)
        counts = await self._counts(job, lease)
        token = str(lease.token)
        total = min(limit, counts["memories"]) + counts["entities"] + counts["pairs"]
        total += counts["edges"] + counts["links"]
        done = 0

        async def load(phase: str, patch: GraphPatch, rows: int) -> None:
            nonlocal done
            await self._backend.load(job.tenant_id, token, patch)
            done += rows
            await progress(phase, min(done, total), total)

        await self._backend.begin_rebuild(job.tenant_id, token)
        async with aclosing(one_ahead(self._patches(job, lease, limit))) as patches:
            async for phase, patch, rows in patches:
                await load(phase, patch, rows)
        await progress("swapping", done, done)
        await self._read(lease, lambda tx: expect(tx, job.tenant_id, token))
        await self._backend.finish_rebuild(job.tenant_id, token)

    async def _patches(
        self, job: RebuildJob, lease: Lease, limit: int
    ) -> AsyncGenerator[tuple[str, GraphPatch, int], None]:
        """Everything in the order in which it has to be read, page by page: phase, patch, canonical rows in it."""
        taken = 0
        async for rows in self._pages(job, lease):
            batch = rows[: limit - taken]
            yield "memories", await self._memories(lease, batch), len(batch)
            taken += len(batch)
            if taken >= limit:
                break
        for part in _AFTER_MEMORIES:
            after: Key = ()
            while page := await self._read(lease, partial(canonical.read_rows, part=part, after=after, limit=PAGE)):
                values: dict[str, Any] = {part: page}
                yield part, GraphPatch(**values), len(page)
                after = key_of(page[-1])

    async def _memories(self, lease: Lease, rows: Sequence[dict[str, Any]]) -> GraphPatch:
        """Memories with their mentions. The entities are bare here; their own pages come later and complete them."""
        ids = [row["id"] for row in rows]
        mentions = [mention_edge(row) for row in await self._read(lease, lambda tx: read_mentions(tx, ids))]
        bare = sorted({mention.entity_id for mention in mentions})
        return GraphPatch(
            entities=[EntityNode(entity_id, "", "unknown", 0.0, declared=False) for entity_id in bare],
            memories=[memory_node(row) for row in rows],
            mentions=mentions,
        )

    async def _extract_missing(self, job: RebuildJob, lease: Lease, progress: Progress) -> None:
        """Extract what was stored while graph memory was off, or by an older extractor."""
        processed, after = 0, _FIRST
        while True:
            rows = await self._hot(
                lease, "page_of_unextracted", {"tenant_id": job.tenant_id, "after": after, "page": 200, **EXTRACTED_BY}
            )
            if not rows:
                return
            await self._projector.derive_only(lease, [row["id"] for row in rows])
            after = rows[-1]["id"]
            processed += len(rows)
            await progress("extracting", processed, processed)

    async def _counts(self, job: RebuildJob, lease: Lease) -> dict[str, int]:
        rows = await self._hot(lease, "count_canonical", {"tenant_id": job.tenant_id, "user_id": job.user_id})
        return dict(rows[0])

    async def _pages(self, job: RebuildJob, lease: Lease) -> AsyncIterator[list[dict[str, Any]]]:
        """Keyset pages of memories, each read in a short transaction of its own."""
        given = {"tenant_id": job.tenant_id, "user_id": job.user_id, "page": PAGE, "after": _FIRST}
        while rows := await self._hot(lease, "page_of_memories", given):
            yield rows
            given["after"] = rows[-1]["id"]

    async def _hot(self, lease: Lease, statement: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return await self._read(lease, lambda tx: tx.hot(statement, parameters))

    async def _read(self, lease: Lease, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async def held(tx: Transaction) -> T:
            await hold_tenant(tx, lease)  # who sees nothing would make an empty graph
            return await work(tx)

        return await self._database.run(Scope(WORKER_ROLE, lease.tenant_id), held)
