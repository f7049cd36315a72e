"""Which differences the queue still explains: an event that has not been projected yet, or one that died before it was.

A memory, an edge or a link changes with its own event. What entities and pairs show is counted over many memories:
there the events of every memory that names them matter, by what Postgres says of it and by what the graph still says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memory_os.graph.port import GraphBackend, Key, Part
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.projection.canonical import is_uuid
from memory_os.projection.derivation import read_mentions
from memory_os.projection.differences import Difference
from memory_os.storage.database import Database, Scope, Transaction

FAR_BEHIND = 50_000
"""Aggregates with live events beyond which nobody looks which difference is whose: all of them may yet be settled."""

_COUNTED: Collection[Part] = ("entities", "co_occurrences", "records")
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class _Reach:
    """What one aggregate's events may change beyond its own row."""

    ids: frozenset[str]
    waiting: bool


async def explain(
    database: Database, backend: GraphBackend, tenant_id: UUID, differences: Sequence[Difference]
) -> dict[Key, bool]:
    """Find the differences of one part that events explain.

    Returns:
        By key whether an event is still waiting (True) or all of them are dead (False); unexplained ones are left out.
    """
    scope = Scope(WORKER_ROLE, tenant_id)
    counted = differences[0].part in _COUNTED
    named = {ident for difference in differences for ident in difference.aggregates()}

    async def read(tx: Transaction) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        given = {"tenant_id": tenant_id, "ids": sorted(UUID(ident) for ident in named if is_uuid(ident))}
        every = {"tenant_id": tenant_id, "limit": FAR_BEHIND + 1}
        return await tx.hot("live_events_of", given), await tx.hot("live_aggregates", every) if counted else []

    own, live = await database.run(scope, read)
    if len(live) > FAR_BEHIND:
        return {difference.key: True for difference in differences}
    verdicts: dict[Key, bool] = {}
    direct = {str(row["id"]): bool(row["waiting"]) for row in own}
    for difference in differences:
        for ident in difference.aggregates() & direct.keys():
            _note(verdicts, difference.key, waiting=direct[ident])
    for start in range(0, len(live), _CHUNK):
        for reach in await _reaches(database, backend, scope, live[start : start + _CHUNK]):
            for difference in differences:
                if reach.ids.issuperset(difference.key):
                    _note(verdicts, difference.key, waiting=reach.waiting)
    if differences[0].part == "records":
        # A deleted link tells no more where it led to.
        links = [bool(row["waiting"]) for row in live if row["aggregate_type"] == "entity_link"]
        for difference in differences if links else ():
            _note(verdicts, difference.key, waiting=any(links))
    return verdicts


async def _reaches(
    database: Database, backend: GraphBackend, scope: Scope, live: Sequence[Mapping[str, Any]]
) -> list[_Reach]:
    memories = [row["id"] for row in live if row["aggregate_type"] == "memory"]
    reached: dict[str, set[str]] = {str(row["id"]): {str(end) for end in row["ends"] or ()} for row in live}
    for mention in await database.run(scope, lambda tx: read_mentions(tx, memories)):
        reached[str(mention["memory_id"])].add(str(mention["entity_id"]))
    if scope.tenant_id is not None and memories:
        in_graph = await backend.mentioned_entities(scope.tenant_id, [str(memory_id) for memory_id in memories])
        for memory_id, entity_ids in in_graph.items():
            reached[memory_id] |= entity_ids
    return [_Reach(frozenset(reached[str(row["id"])]), bool(row["waiting"])) for row in live]


def _note(verdicts: dict[Key, bool], key: Key, *, waiting: bool) -> None:
    verdicts[key] = verdicts.get(key, False) or waiting
