"""Compares a graph with `project(canonical)`: every node, every edge, every weight, while writes go on.

Both sides are read in the order of their keys, one page at a time, so that memory stays flat however large the graph
is. What differs is looked at again before it is believed: first the canonical row, then the queue, then the graph, then
the canonical row once more. An event that was done before the queue was read had written to the graph before that; so a
difference that no event explains, between a row that stood still and what the graph shows after it, is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

from memory_os.graph.port import PARTS, GraphBackend, GraphDamagedError, GraphRow, Key, NodeKind, Part, key_of
from memory_os.outbox.gauges import graph_lag
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.projection import canonical
from memory_os.projection.differences import Difference, Outcome, compare, group
from memory_os.projection.explaining import explain
from memory_os.storage.database import Database, Scope, Transaction

PAGE: Final = 2000
DOUBTED: Final = 1000
"""Differences that are looked at again together."""

LOOKS: Final = 3
"""How often a difference is looked at again while its row keeps changing; after that it counts as waiting."""

PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Seconds that a repair gives the queue before each further look at what events were still to settle."""

_NODES: Mapping[Part, NodeKind] = {"entities": "entity", "memories": "memory", "records": "record"}

Result = TypeVar("Result")

Progress = Callable[[str, int, int], Awaitable[None]]
"""Called with phase, rows compared and rows in all after each page; mentions and records are not in these counts."""

Mend = Callable[[Part, Sequence[Key]], Awaitable[int]]
"""Called with keys of one part that differ; sets them right and gives how many are so."""


class Verifier:
    """Compares graphs with their canonical rows.

    Args:
        database: With the worker's role.
        backend: Where the graphs are.
    """

    def __init__(self, database: Database, backend: GraphBackend) -> None:
        self._database = database
        self._backend = backend

    async def verify(self, tenant_id: UUID, progress: Progress, mend: Mend | None = None) -> Outcome:
        """Compare one tenant's graph, and mend what differs if there is somebody to do that.

        Raises:
            GraphUnavailableError: The graph does not answer.
        """
        outcome = Outcome()
        try:
            scanned, position = await self._backend.scan(tenant_id), await self._position(tenant_id)
            total = await self._total(tenant_id)
            seen: dict[Part, int] = dict.fromkeys(PARTS, 0)
            checked = 0
            for part in PARTS:
                doubted: list[Difference] = []
                async for expected, found, differing in self._pages(tenant_id, part):
                    outcome.parts[part].rows += expected
                    seen[part] += found
                    doubted += differing
                    if len(doubted) >= DOUBTED:
                        await self._settle(tenant_id, outcome, doubted, mend)
                        doubted = []
                    checked += expected if part not in ("mentions", "records") else 0
                    await progress(part, min(checked, total), total)
                await self._settle(tenant_id, outcome, doubted, mend)
            if mend is not None:
                await self._settle_deferred(tenant_id, outcome, progress, mend)
            if mend is None and scanned == await self._backend.scan(tenant_id):
                await self._check_scan(tenant_id, outcome, scanned, seen, position)
        except GraphDamagedError as error:
            outcome.damage = str(error)
        return outcome

    async def _pages(self, tenant_id: UUID, part: Part) -> AsyncIterator[tuple[int, int, list[Difference]]]:
        """Ranges of keys one after the other: rows expected, rows found, and what differs at first sight."""
        after: Key = ()
        last: Key | None = ()
        while last is not None:
            expected = await self._read(tenant_id, partial(canonical.read_page, part=part, after=after, limit=PAGE))
            last = key_of(expected[-1]) if len(expected) == PAGE else None
            async for page in self._range(tenant_id, part, after, last, expected):
                yield page
            after = last or ()

    async def _range(
        self, tenant_id: UUID, part: Part, after: Key, last: Key | None, expected: Sequence[GraphRow]
    ) -> AsyncIterator[tuple[int, int, list[Difference]]]:
        """One range of keys; where the graph has many more rows in it than it should, in several pages."""
        high: Key | None = after
        while high is not None:
            low = high
            found = await self._backend.read_page(tenant_id, part, low, last, PAGE)
            high = key_of(found[-1]) if len(found) == PAGE else None
            mine = [row for row in expected if low < key_of(row) and (high is None or key_of(row) <= high)]
            yield len(mine), len(found), compare(part, mine, found)

    async def _settle(
        self, tenant_id: UUID, outcome: Outcome, doubted: Sequence[Difference], mend: Mend | None
    ) -> None:
        """Look again at what differs, count what remains, and have it mended."""
        remaining = list(doubted)
        for _ in range(LOOKS):
            if not remaining:
                return
            certain, remaining = await self._look_again(tenant_id, outcome, remaining)
            outcome.count(certain)
            if mend is not None and certain:
                outcome.repaired += await mend(certain[0].part, [difference.key for difference in certain])
        for difference in remaining:
            outcome.defer(difference)

    async def _settle_deferred(self, tenant_id: UUID, outcome: Outcome, progress: Progress, mend: Mend) -> None:
        """Look at what was waiting once its events are done: an event may have come too late to settle all of it."""
        for pause in PAUSES_S:
            waiting = outcome.take_deferred()
            if not waiting:
                return
            await progress("waiting for the queue", 0, 0)
            await asyncio.sleep(pause)
            for part in PARTS:
                mine = [difference for difference in waiting if difference.part == part]
                for start in range(0, len(mine), DOUBTED):
                    await self._settle(tenant_id, outcome, mine[start : start + DOUBTED], mend)

    async def _look_again(
        self, tenant_id: UUID, outcome: Outcome, doubted: Sequence[Difference]
    ) -> tuple[list[Difference], list[Difference]]:
        """Tell the certain differences from those whose rows have just changed; counts those that events explain."""
        part, keys = doubted[0].part, [difference.key for difference in doubted]
        before = await self._read(tenant_id, lambda tx: canonical.look_up(tx, part, keys))
        explained = await explain(self._database, self._backend, tenant_id, doubted)
        found = group(await self._backend.look_up(tenant_id, part, keys))
        after = await self._read(tenant_id, lambda tx: canonical.look_up(tx, part, keys))
        certain, moving = [], []
        for key in keys:
            difference = Difference(part, key, after.get(key), found.get(key, []))
            if [difference.expected] == difference.found or (difference.expected is None and not difference.found):
                continue
            if key in explained:
                if explained[key]:
                    outcome.defer(difference)
                else:
                    outcome.dead += 1
            elif before.get(key) != after.get(key):
                moving.append(difference)
            else:
                certain.append(difference)
        return certain, moving

    async def _check_scan(
        self,
        tenant_id: UUID,
        outcome: Outcome,
        scanned: Mapping[str, int],
        seen: Mapping[Part, int],
        position: tuple[int, int],
    ) -> None:
        """Nodes that are there and that no index finds: nobody could ever mend them one by one."""
        hidden = {kind: scanned.get(kind, 0) - seen[part] for part, kind in _NODES.items()}
        still = position[0] == 0 and position == await self._position(tenant_id)
        if still and any(hidden.values()):
            told = ", ".join(f"{count} {kind} nodes" for kind, count in hidden.items() if count)
            outcome.damage = f"the graph and its index disagree about {told}"

    async def _position(self, tenant_id: UUID) -> tuple[int, int]:
        lag = await self._read(tenant_id, lambda tx: graph_lag(tx, tenant_id))
        return lag.events, lag.position

    async def _total(self, tenant_id: UUID) -> int:
        given = {"tenant_id": tenant_id, "user_id": None}
        return sum((await self._read(tenant_id, lambda tx: tx.hot("count_canonical", given)))[0].values())

    async def _read(self, tenant_id: UUID, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        return await self._database.run(Scope(WORKER_ROLE, tenant_id), work)
