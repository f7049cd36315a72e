"""Takes edges and links back to the entity that they were moved from; what they gained since stays with them.

What was deleted since stays deleted. What went because it equalled another one comes back beside that one, and leads
where that one leads now: its far end may have moved for both of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import select

from memory_os.entities.moving import EDGES, Relation, Row
from memory_os.errors import ConflictError
from memory_os.outbox.events import UPSERT, NewEvent
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_FAR_ENDS = ("source_memory_id", "target_memory_id")
_PUT = {"edge": "return_edges", "entity_link": "return_links"}
_PUT_BACK = {"edge": "put_back_edges", "entity_link": "put_back_links"}


@dataclass(frozen=True, slots=True)
class Return:
    """What has to be done: rows that change, and rows that come back; both with the ends that they have then."""

    changed: Sequence[Row]
    back: Sequence[Row]


def touched_ids(before: Mapping[str, Any]) -> list[UUID]:
    """The edges or links that stayed when one entity became part of another, of what an act keeps as `before`."""
    ids = {row["id"] for row in before["moved"]} | {collapse["kept"]["id"] for collapse in before["collapsed"]}
    return sorted(UUID(ident) for ident in ids)


def plan_return(
    relation: Relation, before: Mapping[str, Any], now: Mapping[UUID, Row], source: UUID, into: UUID
) -> Return:
    """Decide what becomes of edges or links when what `source` brought into `into` is taken back.

    Args:
        relation: Edges or links.
        before: What the act keeps of them, as JSON.
        now: Those of `touched_ids` that are there, by id.
        source: The entity that comes back.
        into: The one that it was part of.
    """
    changed: dict[UUID, dict[str, Any]] = {}
    for row in map(_with_ids, before["moved"]):
        if (found := now.get(row["id"])) is not None:
            changed[row["id"]] = {**found, **_ends(relation, row, found, source, into)}
    back = [_with_ids(row) for row in before["looped"]]
    for collapse in before["collapsed"]:
        kept = _with_ids(collapse["kept"])
        found = changed.get(kept["id"]) or now.get(kept["id"])
        if found is None:
            continue
        if "co_reference_count" in found and (taken := collapse["references"] - kept["co_reference_count"]):
            left = max(0, found["co_reference_count"] - taken)
            changed[kept["id"]] = {**found, "co_reference_count": left}
        back += [_beside(relation, row, found, (source, into)) for row in map(_with_ids, collapse["gone"])]
    return Return(list(changed.values()), back)


def _ends(relation: Relation, before: Row, now: Row, source: UUID, into: UUID) -> dict[str, Any]:
    """The ends that go back to the source: those that were there, and are where the merge put them."""
    sides = relation.sides(before, source)
    return {end: source for end, was in zip(relation.ends, sides, strict=True) if was and now[end] == into}


def _beside(relation: Relation, gone: Row, kept: Row, both: tuple[UUID, UUID]) -> dict[str, Any]:
    """A row that went, with the far end of the one that was kept."""
    own = [any(sides) for sides in zip(*(relation.sides(gone, entity) for entity in both), strict=True)]
    far = [end for end, mine in zip(relation.ends, own, strict=True) if not mine]
    far += [end for end in _FAR_ENDS if end in gone]
    return {**gone, **{end: kept[end] for end in far}}


async def return_relations(
    tx: Transaction, relation: Relation, before: Mapping[str, Any], source: UUID, into: UUID
) -> list[NewEvent]:
    """Take edges or links back, whether or not this reader sees their far ends; both entities are there and locked.

    Raises:
        ConflictError: If the id of one that has to come back is taken by another one.
    """
    async with tx.as_steward():
        found = {row["id"]: row for row in await _locked(tx, relation, touched_ids(before))}
        plan = plan_return(relation, before, found, source, into)
        return [*await _put(tx, relation, plan.changed), *await _put_back(tx, relation, plan.back)]


async def missing_relations(tx: Transaction, before: Mapping[str, Any]) -> list[UUID]:
    """The edges that a merge moved or kept, and that are gone by now."""
    ids = touched_ids(before)
    async with tx.as_steward():
        there = {row["id"] for row in await _locked(tx, EDGES, ids)}
    return [ident for ident in ids if ident not in there]


async def _locked(tx: Transaction, relation: Relation, ids: Sequence[UUID]) -> Sequence[Row]:
    if not ids:
        return []
    columns = relation.table.c
    statement = select(relation.table).where(columns.tenant_id == tx.tenant_id, columns.id.in_(ids))
    return [dict(row) for row in await tx.rows(statement.order_by(columns.id).with_for_update())]


async def _put(tx: Transaction, relation: Relation, rows: Sequence[Row]) -> list[NewEvent]:
    if not rows:
        return []
    put = await tx.hot(_PUT[relation.aggregate], {"tenant_id": tx.tenant_id, "rows": _json(rows)})
    return [NewEvent(UPSERT, relation.aggregate, row["id"], row["version"]) for row in put]


async def _put_back(tx: Transaction, relation: Relation, rows: Sequence[Row]) -> list[NewEvent]:
    if not rows:
        return []
    deleted = await _deletions(tx, relation, [row["id"] for row in rows])
    # The statement adds two; the version of a deletion that came later is to be surpassed all the same.
    again = [{**row, "version": max(row["version"], deleted.get(row["id"], 0) - 1)} for row in rows]
    put = await tx.hot(_PUT_BACK[relation.aggregate], {"tenant_id": tx.tenant_id, "rows": _json(again)})
    taken = {row["id"] for row in rows} - {row["id"] for row in put}
    if taken:
        raise ConflictError(
            f"the id of an {relation.aggregate.replace('_', ' ')} that has to come back is taken by another one: "
            "delete that first",
            extra={"taken": sorted(map(str, taken))},
        )
    return [NewEvent(UPSERT, relation.aggregate, row["id"], row["version"]) for row in put]


async def _deletions(tx: Transaction, relation: Relation, ids: Sequence[UUID]) -> dict[UUID, int]:
    columns = tables.graph_tombstones.c
    rows = await tx.rows(
        select(columns.aggregate_id, columns.version).where(
            columns.tenant_id == tx.tenant_id,
            columns.aggregate_type == relation.aggregate,
            columns.aggregate_id.in_(ids),
        )
    )
    return {row["aggregate_id"]: row["version"] for row in rows}


def _with_ids(row: Row) -> dict[str, Any]:
    """A row as an act keeps it, its ids and those of its ends as they are in the database."""
    named = ("id", *_FAR_ENDS, "source_entity_id", "target_entity_id", "entity_id", "target_id")
    return {**row, **{name: UUID(row[name]) for name in named if row.get(name) is not None}}


def _json(rows: Iterable[Row]) -> str:
    return msgspec.json.encode([dict(row) for row in rows]).decode()
