"""Moves the edges and links of an entity to another one that it becomes part of; memories share the planning.

What would lead from the other entity to itself is deleted. What would say the same twice becomes one: the more
confident stays, and of edges it gets the count of both. So whatever such an edge or link held (a derived entity at its
far end) is held by the one that stays, and nothing has to be reconsidered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Table, any_, delete, literal
from sqlalchemy.dialects.postgresql import UUID as UUID_TYPE

from memory_os.outbox.events import DELETE, UPSERT, AggregateType, NewEvent
from memory_os.storage import tables
from memory_os.storage.database import Transaction

MOST_REFERENCES = 2**31 - 1
"""The highest count that an edge can hold."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Relation:
    """Edges or links, as a merge deals with them.

    Attributes:
        aggregate: What their events call them.
        table: Where they are.
        found_by: The statement that reads and locks those that a merge concerns.
        moved_by: The statement that moves them.
        ends: The columns of their two ends that may name what moves.
        same: What two equal ones share beside their ends.
        settled: Of two equal ones the one that was there stays; otherwise the more confident one.
    """

    aggregate: AggregateType
    table: Table
    found_by: str
    moved_by: str
    ends: tuple[str, str]
    same: tuple[str, ...]
    settled: bool = False

    def sides(self, row: Row, node_id: UUID) -> tuple[bool, bool]:
        """At which of its ends an edge or link has the node; a link's target may be of another layer."""
        source, target = (row[end] == node_id for end in self.ends)
        return source, target and row.get("layer", "entity") == "entity"


EDGES = Relation(
    aggregate="edge",
    table=tables.edges,
    found_by="edges_to_merge",
    moved_by="move_edges",
    ends=("source_entity_id", "target_entity_id"),
    same=("type", "source_memory_id", "target_memory_id"),
)
LINKS = Relation(
    aggregate="entity_link",
    table=tables.entity_links,
    found_by="links_to_merge",
    moved_by="move_links",
    ends=("entity_id", "target_id"),
    same=("layer", "relationship", "valid_from", "valid_to"),
)


@dataclass(frozen=True, slots=True)
class Collapse:
    """Edges or links that a merge makes equal: the one that stays, as it was, and those that go."""

    kept: Row
    gone: Sequence[Row]

    @property
    def references(self) -> int:
        """The count of all of them together; links have none."""
        counts = [int(row.get("co_reference_count", 0)) for row in (self.kept, *self.gone)]
        return min(sum(counts), MOST_REFERENCES)

    @property
    def confidence(self) -> float:
        """The highest of them."""
        return max(float(row["confidence"]) for row in (self.kept, *self.gone))


@dataclass(frozen=True, slots=True)
class Moves:
    """What a merge makes of the edges or links that it concerns, each as it was before.

    Attributes:
        moved: Those that get another end.
        collapsed: Those that become equal; the one that stays may have moved or not.
        looped: Those that would lead back to where they begin.
    """

    moved: Sequence[Row]
    collapsed: Sequence[Collapse]
    looped: Sequence[Row]

    @property
    def gone(self) -> list[Row]:
        """All that are deleted."""
        return [*self.looped, *(row for collapse in self.collapsed for row in collapse.gone)]

    @property
    def counts(self) -> dict[UUID, int]:
        """Those that change, by id, with the count that they have then."""
        counts = {row["id"]: row.get("co_reference_count", 0) for row in self.moved}
        for collapse in self.collapsed:
            ident, before = collapse.kept["id"], collapse.kept.get("co_reference_count", 0)
            if ident in counts or collapse.references != before:
                counts[ident] = collapse.references
        return counts


@dataclass(frozen=True, slots=True)
class Moved:
    """What was done: the events of it, and what it takes to undo it.

    Attributes:
        events: Those of whatever moved or went.
        before: The rows as they were, as an act keeps them; `returning` puts them back.
        joined: The ids of those that became one with others, or went: an earlier act can't be undone over their heads.
    """

    events: Sequence[NewEvent]
    before: Mapping[str, Any]
    joined: Sequence[UUID]


def plan_moves(relation: Relation, rows: Iterable[Row], source: UUID, into: UUID) -> Moves:
    """Decide what becomes of edges or links when `source` becomes part of `into`."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    moved, collapsed, looped = list[Row](), list[Collapse](), list[Row]()
    for row in rows:
        before, after = relation.sides(row, source), relation.sides(row, into)
        if all(left or right for left, right in zip(before, after, strict=True)):
            looped.append(row)
            continue
        ends = (into if moves else row[end] for moves, end in zip(before, relation.ends, strict=True))
        groups[(*ends, *(row[name] for name in relation.same))].append(row)
    for group in groups.values():
        movers = {row["id"] for row in group if any(relation.sides(row, source))}
        if not movers:
            continue  # its equal has changed before it could be locked
        kept, *gone = sorted(group, key=lambda row: _worse(relation, row, moves=row["id"] in movers))
        if gone:
            collapsed.append(Collapse(kept, gone))
        if kept["id"] in movers:
            moved.append(kept)
    return Moves(moved, collapsed, looped)


def _worse(relation: Relation, row: Row, *, moves: bool) -> tuple[Any, ...]:
    """Orders equal ones: the first stays."""
    settled = moves if relation.settled else False
    return settled, -row["confidence"], moves, row["created_at"], row["id"]


async def look_at_moves(tx: Transaction, relation: Relation, source: UUID, into: UUID) -> Moves:
    """What would become of those edges or links of which this reader sees both ends; nothing is changed."""
    given = {"tenant_id": tx.tenant_id, "source": source, "into": into}
    return plan_moves(relation, await tx.hot(relation.found_by, given), source, into)


async def move_relations(tx: Transaction, relation: Relation, source: UUID, into: UUID) -> Moved:
    """Move edges or links from one entity to another; both entities are locked, so that no new ones can come.

    They move whether or not this reader sees their far ends: they would go with the entity otherwise.
    """
    async with tx.as_steward():
        return await _move(tx, relation, source, into)


async def _move(tx: Transaction, relation: Relation, source: UUID, into: UUID) -> Moved:
    given = {"tenant_id": tx.tenant_id, "source": source, "into": into}
    moves = plan_moves(relation, await tx.hot(relation.found_by, given), source, into)
    # Before the others move, since edges have a unique key.
    await drop_relations(tx, relation, moves.gone)
    counts = moves.counts
    changed = await tx.hot(relation.moved_by, {**given, "ids": list(counts), "counts": list(counts.values())})
    events = [NewEvent(UPSERT, relation.aggregate, row["id"], row["version"]) for row in changed]
    events += [NewEvent(DELETE, relation.aggregate, row["id"], row["version"] + 1) for row in moves.gone]
    return Moved(events, _before(moves), [row["id"] for row in (*moves.gone, *(c.kept for c in moves.collapsed))])


async def drop_relations(tx: Transaction, relation: Relation, rows: Sequence[Row]) -> None:
    """Delete edges or links by their ids, all at once."""
    if rows:
        columns = relation.table.c
        ids = literal([row["id"] for row in rows], ARRAY(UUID_TYPE()))
        await tx.run(delete(relation.table).where(columns.tenant_id == tx.tenant_id, columns.id == any_(ids)))


def _before(moves: Moves) -> dict[str, Any]:
    return {
        "moved": moves.moved,
        "collapsed": [
            {"kept": collapse.kept, "references": collapse.references, "gone": collapse.gone}
            for collapse in moves.collapsed
        ],
        "looped": moves.looped,
    }
