"""What ties a memory to an entity moves to another entity, when a correction says that the other one is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.edges.holding import reconsider
from memory_os.entities.moving import LINKS, Row, drop_relations
from memory_os.memories.migrating import CONTEXT
from memory_os.outbox.events import DELETE, UPSERT, NewEvent
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_EDGES, _LINKS = tables.edges, tables.entity_links
_MIGRATING: Final = [name for name, row in EDGE_TYPES.items() if row.migrates]
_KEPT: Final = ("type", "confidence", "co_reference_count", "claimed_confidence")
_SAID: Final = ("layer", "relationship", "confidence", "valid_from", "valid_to")


@dataclass(frozen=True, slots=True)
class Retying:
    """The entity that a memory was tied to, and the one that is meant."""

    former: UUID
    meant: UUID


@dataclass(slots=True)
class Ties:
    """What became of ties, beside the edges that an act keeps anyway: what an undo needs.

    Attributes:
        closed: Links of the former entity, each with the window that it had.
        added: The ids of links that were declared anew.
        entities: The two entities, of which one may have been derived from nothing but such ties.
    """

    closed: list[dict[str, Any]] = field(default_factory=list)
    added: list[UUID] = field(default_factory=list)
    entities: tuple[UUID, ...] = ()

    def kept(self) -> dict[str, Any]:
        """As an act keeps it."""
        return {"closed": self.closed, "added": self.added, "entities": self.entities}


async def edges_between(
    tx: Transaction, memory_id: UUID, entity_id: UUID, *, lock: bool = False
) -> list[dict[str, Any]]:
    """The context edges between a memory and an entity, in either direction."""
    columns = _EDGES.c
    ends = or_(
        and_(columns.source_memory_id == memory_id, columns.target_entity_id == entity_id),
        and_(columns.source_entity_id == entity_id, columns.target_memory_id == memory_id),
    )
    statement = select(_EDGES).where(columns.tenant_id == tx.tenant_id, ends, columns.type.in_(_MIGRATING))
    statement = statement.order_by(columns.id)
    return [dict(row) for row in await tx.rows(statement.with_for_update() if lock else statement)]


async def links_between(
    tx: Transaction, memory_id: UUID, entity_id: UUID, *, lock: bool = False
) -> list[dict[str, Any]]:
    """The links from an entity to a memory."""
    columns = _LINKS.c
    statement = select(_LINKS).where(
        columns.tenant_id == tx.tenant_id, columns.entity_id == entity_id, columns.target_memory_id == memory_id
    )
    statement = statement.order_by(columns.id)
    return [dict(row) for row in await tx.rows(statement.with_for_update() if lock else statement)]


async def remove_edges(tx: Transaction, rows: Sequence[Row]) -> list[NewEvent]:
    """Delete locked edges; gives the events of it."""
    await drop_relations(tx, CONTEXT, rows)
    return [NewEvent(DELETE, "edge", row["id"], row["version"] + 1) for row in rows]


async def claim_edges_of(
    tx: Transaction, principal: Principal, rows: Sequence[Row], old: UUID, new: UUID, retying: Retying
) -> list[UUID]:
    """Claim removed edges again, of the new memory and with the entity that is meant; gives the ids of new ones.

    Where the new memory has an equal one already, that one stays as it is.
    """
    instead = {"memory": {old: new}, "entity": {retying.former: retying.meant}}  # ids of both kinds may be equal
    ends = [(f"{side}_{kind}_id", kind) for side in ("source", "target") for kind in instead]
    values = [
        {
            "tenant_id": tx.tenant_id,
            "id": new_id(),
            "created_by": principal.token_id,
            **{name: row[name] for name in _KEPT},
            **{end: instead[kind].get(row[end], row[end]) for end, kind in ends},
        }
        for row in rows
    ]
    if not values:
        return []
    statement = insert(_EDGES).values(values).on_conflict_do_nothing().returning(_EDGES.c.id)
    return [row["id"] for row in await tx.rows(statement)]


async def declare_links_of(
    tx: Transaction, principal: Principal, old: UUID, new: UUID, retying: Retying
) -> tuple[Ties, list[NewEvent]]:
    """Declare the links of the former entity to the old memory anew, from the one that is meant to the new memory.

    The former ones stay for history, with an empty window: they have never held.
    """
    ties = Ties(entities=(retying.former, retying.meant))
    events = list[NewEvent]()
    for row in await links_between(tx, old, retying.former, lock=True):
        begins = row["valid_from"] or row["created_at"]
        events += await _set_window(tx, row["id"], begins, begins)
        ties.closed.append({name: row[name] for name in ("id", "valid_from", "valid_to")})
        ident = new_id()
        values = {"tenant_id": tx.tenant_id, "id": ident, "entity_id": retying.meant, "target_id": new}
        said = {name: row[name] for name in _SAID}
        await tx.run(insert(_LINKS).values(**values, **said, created_by=principal.token_id))
        ties.added.append(ident)
        events.append(NewEvent(UPSERT, "entity_link", ident, 1))
    return ties, [*events, *reconsider(ties.entities)]


async def take_ties_back(tx: Transaction, kept: Mapping[str, Any]) -> list[NewEvent]:
    """Undo what an act did to ties, as `Ties.kept` tells; a link that was deleted since stays deleted."""
    if not kept:
        return []
    columns = _LINKS.c
    async with tx.as_steward():
        added = [UUID(ident) for ident in kept["added"]]
        there = select(_LINKS).where(columns.tenant_id == tx.tenant_id, columns.id.in_(added))
        gone = [dict(row) for row in await tx.rows(there.order_by(columns.id).with_for_update())]
        await drop_relations(tx, LINKS, gone)
        events = [NewEvent(DELETE, "entity_link", row["id"], row["version"] + 1) for row in gone]
        for row in kept["closed"]:
            window = msgspec.convert((row["valid_from"], row["valid_to"]), tuple[datetime | None, datetime | None])
            events += await _set_window(tx, UUID(row["id"]), *window)
    return [*events, *reconsider(UUID(ident) for ident in kept["entities"])]


async def _set_window(tx: Transaction, link_id: UUID, start: datetime | None, end: datetime | None) -> list[NewEvent]:
    rows = await tx.rows(
        update(_LINKS)
        .where(_LINKS.c.tenant_id == tx.tenant_id, _LINKS.c.id == link_id)
        .values(valid_from=start, valid_to=end, version=_LINKS.c.version + 1, updated_at=func.now())
        .returning(_LINKS.c.version)
    )
    return [NewEvent(UPSERT, "entity_link", link_id, row["version"]) for row in rows]
