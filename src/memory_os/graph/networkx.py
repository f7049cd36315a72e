"""The graph backend for a laptop: every tenant's graph in memory, kept in a directory that one process owns.

The tenant's id in hexadecimal is the name of its two files (see `memory_os.graph.journal`) and the key of its graph; no
name is ever taken from a user's text. Work on a graph is done in place, files are read and written in a thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from time import monotonic
from typing import Any, TypeVar
from uuid import UUID, uuid4

import structlog
from filelock import FileLock, Timeout

from memory_os.graph.encoder import check_text
from memory_os.graph.expansion import Neighbourhood, Reach, expand
from memory_os.graph.journal import FILE_MODE, Entry, Journal, Snapshot, sync_directory
from memory_os.graph.networkx_graph import PropertyGraph
from memory_os.graph.networkx_pages import look_up, read_page
from memory_os.graph.patches import normalise
from memory_os.graph.port import (
    Bounds,
    FenceLostError,
    GraphDump,
    GraphPatch,
    GraphRow,
    GraphStats,
    GraphUnavailableError,
    Key,
    NodeRef,
    Part,
    Path,
    Seed,
)

Result = TypeVar("Result")

JOURNAL_LIMIT = 8 * 2**20
"""Bytes of journal at which a snapshot is taken: at most 5,600 patches, which load in 0.7 s (measured)."""

_LOST = "The graph's fence holds another token, or the graph is gone; nothing was written."
_OWNER = "owner"

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Tenant:
    """One tenant's graph with its files.

    Writers hold the lock. Readers need none: a patch is applied without a wait in it, so they never see half of one.
    """

    journal: Journal
    graph: PropertyGraph
    fence: str | None = None
    epoch: str | None = None
    number: int = 0
    scratch: PropertyGraph | None = None
    scratch_fence: str | None = None
    dropped: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class NetworkxBackend:
    """Property graphs in this process, persisted in a directory.

    Args:
        directory: Where the graphs are kept; it is made with mode 0700 where missing.
        edge_types: The closed set of edge types.
        journal_limit: Bytes of journal at which a graph's snapshot is renewed.
    """

    name = "networkx"
    keeps_writes = True

    def __init__(self, directory: FilePath, *, edge_types: frozenset[str], journal_limit: int = JOURNAL_LIMIT) -> None:
        self._directory = directory
        self._edge_types = edge_types
        self._journal_limit = journal_limit
        self._lock = FileLock(directory / "lock", timeout=0, mode=FILE_MODE, thread_local=False)
        self._identity = ""
        self._known: set[UUID] = set()
        self._tenants: dict[UUID, _Tenant] = {}
        self._loads: dict[UUID, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Take possession of the directory.

        Raises:
            GraphUnavailableError: Another process has it, or it can't be used.
        """
        try:
            await asyncio.to_thread(self._take_directory)
        except Timeout as error:
            raise GraphUnavailableError(
                f"Another process{self._read_owner()} keeps its graphs in {self._directory}. Stop it, or give this "
                "one a GRAPH_DIR of its own, or let both use FalkorDB (GRAPH_BACKEND=falkor)."
            ) from error
        except OSError as error:
            raise GraphUnavailableError(f"The graph directory can't be used: {error}") from error
        self._identity = uuid4().hex

    async def close(self) -> None:
        """Finish what is being written, renew the snapshots and let go of the directory."""
        if not self._identity:
            return
        self._identity = ""
        while self._tasks:
            await asyncio.wait(self._tasks)
        for tenant in self._tenants.values():
            async with tenant.lock:
                if tenant.journal.size:
                    await self._renew_snapshot(tenant)
        self._tenants.clear()
        self._lock.release()

    async def ping(self) -> str:
        """Answer an identity of this opening of the directory."""
        self._require_open()
        return self._identity

    async def take_fence(self, tenant_id: UUID, token: str) -> str:
        """Make the graph where it is missing, and let only writes with `token` pass from now on."""
        fence = check_text(token)
        return await self._finish(lambda: self._take_fence(tenant_id, fence))

    async def epoch(self, tenant_id: UUID) -> str | None:
        """The graph's epoch; None where there is no graph."""
        tenant = await self._find(tenant_id)
        return tenant.epoch if tenant else None

    async def apply(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        """Set what the patch says; it is on the disk when this returns."""
        checked = normalise(patch, self._edge_types)
        await self._finish(lambda: self._apply(tenant_id, token, checked))

    async def mentioned_entities(self, tenant_id: UUID, memory_ids: Sequence[str]) -> Mapping[str, frozenset[str]]:
        """The entities that each memory mentions in the graph at present; absent memories are left out."""
        tenant = await self._find(tenant_id)
        return tenant.graph.mentioned_entities(memory_ids) if tenant else {}

    async def expand(
        self, tenant_id: UUID, seeds: Sequence[Seed], bounds: Bounds, *, as_of: int | None = None
    ) -> Sequence[Path]:
        """The strongest paths from the seeds; see `memory_os.graph.expansion` for the rule.

        Raises:
            GraphUnavailableError: `bounds.budget_ms` were not enough.
        """
        tenant = await self._find(tenant_id)
        end = monotonic() + bounds.budget_ms / 1000

        async def neighbours(refs: Sequence[NodeRef], reach: Reach) -> Mapping[NodeRef, Neighbourhood]:
            around: dict[NodeRef, Neighbourhood] = {}
            for ref in refs:
                if monotonic() >= end:
                    raise GraphUnavailableError(f"The expansion took longer than {bounds.budget_ms} ms.")
                if tenant and (found := tenant.graph.neighbourhood(ref, reach, as_of)):
                    around[ref] = found
            return around

        return await expand(neighbours, seeds, bounds)

    async def stats(self, tenant_id: UUID) -> GraphStats:
        """Counts and the strongest entities."""
        tenant = await self._find(tenant_id)
        return tenant.graph.stats() if tenant else GraphStats()

    async def dump(self, tenant_id: UUID) -> GraphDump:
        """Everything in the graph."""
        tenant = await self._find(tenant_id)
        return (tenant.graph if tenant else PropertyGraph()).dump()

    async def read_page(
        self, tenant_id: UUID, part: Part, after: Key, last: Key | None, limit: int
    ) -> Sequence[GraphRow]:
        """Rows of one part in the order of their keys."""
        tenant = await self._find(tenant_id)
        return read_page(tenant.graph, part, after, last, limit) if tenant else []

    async def look_up(self, tenant_id: UUID, part: Part, keys: Sequence[Key]) -> Sequence[GraphRow]:
        """The rows of one part with these keys."""
        tenant = await self._find(tenant_id)
        return look_up(tenant.graph, part, keys) if tenant else []

    async def scan(self, tenant_id: UUID) -> Mapping[str, int]:
        """Count the nodes by kind."""
        tenant = await self._find(tenant_id)
        return tenant.graph.count_nodes() if tenant else {}

    async def begin_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Make an empty scratch graph, in memory only: a rebuild that its process does not survive begins anew."""
        fence = check_text(token)
        tenant = await self._find_or_make(tenant_id)
        async with tenant.lock:
            tenant.scratch, tenant.scratch_fence = PropertyGraph(), fence

    async def load(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        """Write a patch into the scratch graph."""
        checked = normalise(patch, self._edge_types)
        tenant = await self._find(tenant_id)
        if tenant is None or tenant.scratch is None or tenant.scratch_fence != token:
            raise FenceLostError(_LOST)
        tenant.scratch.apply(checked)

    async def finish_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Put the scratch graph in the place of the live one, on the disk too, if both fences hold `token`."""
        await self._finish(lambda: self._finish_rebuild(tenant_id, token))

    async def abandon_rebuild(self, tenant_id: UUID, token: str) -> None:
        """Drop the scratch graph if it is that of `token`."""
        tenant = await self._find(tenant_id)
        if tenant is not None and tenant.scratch_fence == token:
            tenant.scratch, tenant.scratch_fence = None, None

    async def drop(self, tenant_id: UUID) -> None:
        """Remove the tenant's graphs altogether."""
        await self._finish(lambda: self._drop(tenant_id))

    async def _take_fence(self, tenant_id: UUID, token: str) -> str:
        tenant = await self._find_or_make(tenant_id)
        async with tenant.lock:
            if tenant.dropped:
                raise GraphUnavailableError("The graph was dropped just now; the next try makes it anew.")
            # No fsync: a fence lost to a power cut is taken again, and the next patch brings its line to the disk.
            epoch = tenant.epoch or token
            await self._append(tenant, Entry(tenant.number + 1, fence=token, epoch=epoch), durable=False)
            tenant.fence, tenant.epoch = token, epoch
            return epoch

    async def _apply(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        tenant = await self._find(tenant_id)
        if tenant is None:
            raise FenceLostError(_LOST)
        async with tenant.lock:
            if tenant.dropped or tenant.fence != token:
                raise FenceLostError(_LOST)
            await self._append(tenant, Entry(tenant.number + 1, patch=patch), durable=True)
            tenant.graph.apply(patch)
            if tenant.journal.size > self._journal_limit:
                await self._renew_snapshot(tenant)

    async def _finish_rebuild(self, tenant_id: UUID, token: str) -> None:
        tenant = await self._find(tenant_id)
        if tenant is None:
            raise FenceLostError(_LOST)
        async with tenant.lock:
            fences = (tenant.fence, tenant.scratch_fence)
            if tenant.dropped or tenant.scratch is None or fences != (token, token):
                raise FenceLostError(_LOST)
            try:
                await asyncio.to_thread(self._write_snapshot, tenant, tenant.scratch, token)
            except OSError as error:
                raise GraphUnavailableError(f"The rebuilt graph can't be written: {error}") from error
            tenant.epoch = token
            tenant.graph, tenant.scratch, tenant.scratch_fence = tenant.scratch, None, None

    async def _drop(self, tenant_id: UUID) -> None:
        tenant = await self._find(tenant_id)
        if tenant is None:
            return
        async with tenant.lock:
            try:
                await asyncio.to_thread(tenant.journal.delete)
            except OSError as error:
                raise GraphUnavailableError(f"The graph can't be deleted: {error}") from error
            tenant.dropped = True
            self._known.discard(tenant_id)
            self._tenants.pop(tenant_id, None)

    async def _finish(self, work: Callable[[], Coroutine[None, None, Result]]) -> Result:
        """Do a write to its end even if whoever waits for it is cancelled: memory and disk must not part."""
        self._require_open()
        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen here: the one who waited for it may be gone

    async def _append(self, tenant: _Tenant, entry: Entry, *, durable: bool) -> None:
        try:
            await asyncio.to_thread(tenant.journal.append, entry, durable=durable)
        except OSError as error:
            raise GraphUnavailableError(f"The graph's journal can't be written: {error}") from error
        tenant.number = entry.number

    async def _renew_snapshot(self, tenant: _Tenant) -> None:
        try:
            await asyncio.to_thread(self._write_snapshot, tenant, tenant.graph, tenant.epoch)
        except OSError as error:
            # Nothing is lost: the journal holds it all, and the next patch tries again.
            _log.warning("graph_snapshot_failed", error=str(error))

    @staticmethod
    def _write_snapshot(tenant: _Tenant, graph: PropertyGraph, epoch: str | None) -> None:
        tenant.journal.write_snapshot(Snapshot(tenant.number, tenant.fence, graph.content(), epoch))

    async def _find(self, tenant_id: UUID) -> _Tenant | None:
        self._require_open()
        if tenant_id not in self._known:
            return None
        if tenant_id not in self._tenants:
            # One task for all who wait, and it outlives them: a reader's time-out must not make the load begin again.
            task = self._loads.get(tenant_id)
            if task is None:
                task = self._loads[tenant_id] = asyncio.get_running_loop().create_task(self._load_once(tenant_id))
                self._tasks.add(task)
                task.add_done_callback(self._forget)
            await asyncio.shield(task)
        return self._tenants.get(tenant_id)

    async def _load_once(self, tenant_id: UUID) -> None:
        try:
            loaded = await asyncio.to_thread(self._load, tenant_id)
            if tenant_id in self._known:
                self._tenants.setdefault(tenant_id, loaded)
        finally:
            del self._loads[tenant_id]

    async def _find_or_make(self, tenant_id: UUID) -> _Tenant:
        tenant = await self._find(tenant_id)
        if tenant is None:
            tenant = self._tenants[tenant_id] = _Tenant(Journal(self._directory / tenant_id.hex), PropertyGraph())
            self._known.add(tenant_id)
        return tenant

    def _load(self, tenant_id: UUID) -> _Tenant:
        journal = Journal(self._directory / tenant_id.hex)
        try:
            snapshot, entries = journal.load()
        except OSError as error:
            raise GraphUnavailableError(f"The graph can't be read: {error}") from error
        tenant = _Tenant(journal, PropertyGraph(snapshot.graph if snapshot else None))
        if snapshot:
            tenant.fence, tenant.number, tenant.epoch = snapshot.fence, snapshot.number, snapshot.epoch
        for entry in entries:
            tenant.number = entry.number
            if entry.fence is not None:
                tenant.fence, tenant.epoch = entry.fence, entry.epoch
            if entry.patch is not None:
                tenant.graph.apply(entry.patch)
        return tenant

    def _take_directory(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        self._lock.acquire()
        owner = self._directory / _OWNER
        owner.touch(mode=FILE_MODE)
        owner.write_text(str(os.getpid()))
        for left_over in self._directory.glob("*.tmp"):
            left_over.unlink()
        sync_directory(self._directory)
        stems = {path.stem for pattern in ("*.json", "*.journal") for path in self._directory.glob(pattern)}
        self._known = {UUID(hex=stem) for stem in stems}

    def _read_owner(self) -> str:
        with suppress(OSError):
            return f" ({(self._directory / _OWNER).read_text()[:20]})"
        return ""

    def _require_open(self) -> None:
        if not self._identity:
            raise GraphUnavailableError("The graph directory is not open in this process.")
