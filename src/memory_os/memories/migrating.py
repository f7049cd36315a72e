"""Context edges move from a memory to the one that takes its place, and back.

An edge between the two stays where it is: moved, it would lead back to where it begins. Links of entities stay, too:
they have windows of their own, in which they were true of the memory that they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import select

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.entities.moving import Collapse, Relation, Row, drop_relations, plan_moves
from memory_os.errors import ConflictError
from memory_os.outbox.events import DELETE, UPSERT, NewEvent
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.edges

CONTEXT: Final = Relation(
    aggregate="edge",
    table=_TABLE,
    found_by="edges_to_migrate",
    moved_by="put_edges",
    ends=("source_memory_id", "target_memory_id"),
    same=("type", "source_entity_id", "target_entity_id"),
    settled=True,
)
_MIGRATING: Final = [name for name, row in EDGE_TYPES.items() if row.migrates]
_ENDS: Final = (*CONTEXT.ends, "source_entity_id", "target_entity_id")
_GAINS: Final = ("confidence", "co_reference_count", "claimed_confidence")
"""What changes of an edge that stays when others become one with it, and when it is used."""


@dataclass(slots=True)
class EdgeChanges:
    """What an act did to edges, each row as it was before: what an undo needs.

    Attributes:
        moved: Those that got another end.
        merged: Those that stayed and took up one that went: `before`, `after`, and `gone`.
        added: The ids of new ones.
        removed: Those that were deleted.
    """

    moved: Sequence[Row] = field(default_factory=list)
    merged: Sequence[Mapping[str, Any]] = field(default_factory=list)
    added: list[UUID] = field(default_factory=list)
    removed: Sequence[Row] = field(default_factory=list)

    def kept(self) -> dict[str, Any]:
        """As an act keeps it."""
        return {"moved": self.moved, "merged": self.merged, "added": self.added, "removed": self.removed}


async def migrate_edges(tx: Transaction, old: UUID, new: UUID) -> tuple[EdgeChanges, list[NewEvent]]:
    """Move the context edges of one locked memory to another locked one.

    Where an equal edge is there already, that one stays, with the higher confidence and the counts of both. They move
    whether or not this reader sees their far ends: they belong to the claim, and not to who replaces it.
    """
    async with tx.as_steward():
        return await _migrate(tx, old, new)


async def _migrate(tx: Transaction, old: UUID, new: UUID) -> tuple[EdgeChanges, list[NewEvent]]:
    given = {"tenant_id": tx.tenant_id, "source": old, "into": new}
    plan = plan_moves(CONTEXT, await tx.hot(CONTEXT.found_by, {**given, "types": _MIGRATING}), old, new)
    await drop_relations(tx, CONTEXT, plan.gone)
    pairs = [(collapse, _joined(collapse)) for collapse in plan.collapsed]
    rows = [_moved(row, old, new) for row in plan.moved] + [after for _, after in pairs]
    events = await _put(tx, rows)
    events += [NewEvent(DELETE, "edge", row["id"], row["version"] + 1) for row in plan.gone]
    merged: list[Mapping[str, Any]] = [
        {"before": collapse.kept, "after": {name: after[name] for name in _GAINS}, "gone": gone}
        for collapse, after in pairs
        for gone in collapse.gone
    ]
    return EdgeChanges(list(plan.moved), merged), events


async def take_edges_back(tx: Transaction, kept: Mapping[str, Any], old: UUID, new: UUID | None) -> list[NewEvent]:
    """Undo what an act did to edges; what they gained since stays with those that gained it.

    An edge that was deleted since stays deleted.

    Args:
        tx: The unit of work.
        kept: What `EdgeChanges.kept` gave, as JSON.
        old: The memory from which edges were moved.
        new: The one to which they were moved, if any.

    Raises:
        ConflictError: If an edge can't go back, since the same claim was stored there since.
    """
    async with tx.as_steward():
        return await _take_back(tx, kept, old, new)


async def _take_back(tx: Transaction, kept: Mapping[str, Any], old: UUID, new: UUID | None) -> list[NewEvent]:
    moved = {UUID(row["id"]): row for row in kept.get("moved", ())}
    merged = {UUID(pair["before"]["id"]): pair for pair in kept.get("merged", ())}
    added = [UUID(ident) for ident in kept.get("added", ())]
    now = await _locked(tx, [*moved, *merged, *added])
    gone = [now[ident] for ident in added if ident in now]
    await drop_relations(tx, CONTEXT, gone)
    events = [NewEvent(DELETE, "edge", row["id"], row["version"] + 1) for row in gone]
    returning = [_returned(now[ident], row, old, new) for ident, row in moved.items() if ident in now]
    # The far end of one that went is there if the one that took it up is; to look for it might be to look in vain.
    back = [pair["gone"] for ident, pair in merged.items() if ident in now and _same_far_end(now[ident], pair, new)]
    back += await _with_both_ends(tx, kept.get("removed", ()))
    await _check_free(tx, [*returning, *back])
    parted = [_parted(now[ident], pair) for ident, pair in merged.items() if ident in now]
    events += await _put(tx, returning + parted)
    if back:
        rows = await tx.hot("put_back_edges", {"tenant_id": tx.tenant_id, "rows": _json(back)})
        events += [NewEvent(UPSERT, "edge", row["id"], row["version"]) for row in rows]
    return events


async def remove_supersedes(tx: Transaction, newer: UUID, older: UUID) -> tuple[list[dict[str, Any]], list[NewEvent]]:
    """Delete the SUPERSEDES edge between two memories, where there is one."""
    columns = _TABLE.c
    statement = select(_TABLE).where(
        columns.tenant_id == tx.tenant_id,
        columns.type == "SUPERSEDES",
        columns.source_memory_id == newer,
        columns.target_memory_id == older,
    )
    async with tx.as_steward():  # the newer one may have other readers
        gone = [dict(row) for row in await tx.rows(statement.with_for_update())]
        await drop_relations(tx, CONTEXT, gone)
    return gone, [NewEvent(DELETE, "edge", row["id"], row["version"] + 1) for row in gone]


def _moved(row: Row, old: UUID, new: UUID) -> dict[str, Any]:
    ends = {end: new if row[end] == old else row[end] for end in CONTEXT.ends}
    return {**row, **ends, "migrated_from": row["migrated_from"] or old}


def _joined(collapse: Collapse) -> dict[str, Any]:
    """The edge that stays, with the confidence and count of all; what was claimed apart from any use stays apart."""
    rows = (collapse.kept, *collapse.gone)
    used = any(row["claimed_confidence"] is not None for row in rows)
    joined = {
        "confidence": collapse.confidence,
        "co_reference_count": collapse.references,
        "claimed_confidence": max(_claimed(row) for row in rows) if used else None,
    }
    return {**collapse.kept, **joined}


def _claimed(row: Row) -> float:
    claimed = row["claimed_confidence"]
    return float(row["confidence"] if claimed is None else claimed)


def _returned(now: Row, before: Row, old: UUID, new: UUID | None) -> dict[str, Any]:
    """An edge back at the end that it left; its other end may have gone elsewhere since."""
    ends = {end: old if now[end] == new and before[end] == str(old) else now[end] for end in CONTEXT.ends}
    return {**now, **ends, "migrated_from": before["migrated_from"]}


def _parted(now: Row, pair: Mapping[str, Any]) -> dict[str, Any]:
    """An edge without what it took up."""
    before, after = pair["before"], pair["after"]
    values = {name: before[name] if now[name] == after[name] else _without(now, pair, name) for name in _GAINS}
    return {**now, **values}


def _without(now: Row, pair: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - a number, or None
    values = now[name], pair["after"][name], pair["before"][name]
    if any(value is None for value in values):
        return now[name]
    gained = values[0] - values[1] + values[2]
    return max(0, gained) if name == "co_reference_count" else min(1.0, max(0.0, gained))


def _same_far_end(now: Row, pair: Mapping[str, Any], new: UUID | None) -> bool:
    """Whether an edge that took up another one still leads where it led then."""
    before = pair["before"]
    return all(str(now[end]) == str(before[end]) for end in _ENDS if before[end] != str(new))


async def _locked(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, Row]:
    if not ids:
        return {}
    columns = _TABLE.c
    statement = select(_TABLE).where(columns.tenant_id == tx.tenant_id, columns.id.in_(ids))
    return {row["id"]: dict(row) for row in await tx.rows(statement.order_by(columns.id).with_for_update())}


async def _with_both_ends(tx: Transaction, rows: Sequence[Row]) -> list[Row]:
    """Those of some edges whose ends are both there."""
    there: set[tuple[str, str]] = set()
    for table, ends in ((tables.memories, _ENDS[:2]), (tables.entities, _ENDS[2:])):
        if ids := {UUID(row[end]) for row in rows for end in ends if row[end] is not None}:
            found = await tx.rows(select(table.c.id).where(table.c.tenant_id == tx.tenant_id, table.c.id.in_(ids)))
            there |= {(end, str(row["id"])) for row in found for end in ends}
    return [row for row in rows if all(row[end] is None or (end, row[end]) in there for end in _ENDS)]


async def _check_free(tx: Transaction, rows: Sequence[Row]) -> None:
    """Raises `ConflictError` where another edge makes the claim that one of these is about to make."""
    if not rows:
        return
    taken = await tx.hot("edges_in_the_way", {"tenant_id": tx.tenant_id, "rows": _json(rows)})
    if taken:
        raise ConflictError(
            "edges can't go back to where they were, since the same was claimed there since: delete these first",
            extra={"edges": [str(row["id"]) for row in taken]},
        )


async def _put(tx: Transaction, rows: Sequence[Row]) -> list[NewEvent]:
    if not rows:
        return []
    changed = await tx.hot(CONTEXT.moved_by, {"tenant_id": tx.tenant_id, "rows": _json(rows)})
    return [NewEvent(UPSERT, "edge", row["id"], row["version"]) for row in changed]


def _json(rows: Sequence[Row]) -> str:
    return msgspec.json.encode([dict(row) for row in rows]).decode()
