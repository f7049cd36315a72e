"""What is known about an entity: its links, the typed edges that touch it and the memories that name it.

All of it comes from the canonical rows, under the reader's row-level security: an end that the reader does not see
takes its link or edge with it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import case, exists, func, or_, select
from sqlalchemy.engine import RowMapping

from memory_os.entities.link_targets import read_linked, select_links
from memory_os.entities.links import holds
from memory_os.entities.model import ContextEdge, ContextLink, ContextMemory, EntityContext, MoreContext
from memory_os.entities.reading import get_entity
from memory_os.storage import tables
from memory_os.storage.clock import transaction_time
from memory_os.storage.database import Transaction

GROUP_ROWS = 50
"""Most rows of each group of a context."""

_HIDDEN = "retracted"
"""Memories of this status are in the history only."""

_memories = tables.memories.c
_date = func.coalesce(_memories.occurred_at, _memories.created_at).label("date")


async def read_context(tx: Transaction, entity_id: UUID, as_of: datetime | None) -> EntityContext:
    """An entity with what holds at a moment, by default now.

    Links and memories count that are valid then. Links come newest first, edges by their confidence, memories by when
    they occurred, or else were stored.

    Raises:
        NotFoundError: If this reader sees no such entity.
    """
    entity = await get_entity(tx, entity_id)
    moment = as_of or await transaction_time(tx)
    links, more_links = await _links(tx, entity_id, moment)
    edges = await _edges(tx, entity_id, moment)
    memories = await _mentioning(tx, entity_id, moment)
    return EntityContext(
        entity,
        moment,
        links,
        edges[:GROUP_ROWS],
        memories[:GROUP_ROWS],
        MoreContext(more_links, len(edges) > GROUP_ROWS, len(memories) > GROUP_ROWS),
    )


async def _links(tx: Transaction, entity_id: UUID, moment: datetime) -> tuple[list[ContextLink], bool]:
    """Links from and to the entity, and whether there are more."""
    columns, source = tables.entity_links.c, tables.entities.alias("source").c
    rows = await tx.rows(
        select_links(tx)
        .where(
            or_(columns.entity_id == entity_id, columns.target_entity_id == entity_id),
            holds(columns, moment),
            exists().where(source.tenant_id == tx.tenant_id, source.id == columns.entity_id),
        )
        .order_by(columns.created_at.desc(), columns.id.desc())
        .limit(GROUP_ROWS + 1)
    )
    ends = [
        (row["layer"], row["target_id"]) if row["entity_id"] == entity_id else ("entity", row["entity_id"])
        for row in rows[:GROUP_ROWS]
    ]
    known = await read_linked(tx, ends)
    links = [
        ContextLink(
            id=row["id"],
            relationship=row["relationship"],
            direction=_direction(row["entity_id"], entity_id),
            other=known[end],
            confidence=row["confidence"],
            valid_from=row["valid_from"],
            valid_to=row["valid_to"],
        )
        for row, end in zip(rows, ends, strict=False)
        if end in known  # it may have gone since the statement before
    ]
    return links, len(rows) > GROUP_ROWS


async def _edges(tx: Transaction, entity_id: UUID, moment: datetime) -> list[ContextEdge]:
    edges = tables.edges.c
    outward = edges.source_entity_id == entity_id
    other = case((outward, edges.target_memory_id), else_=edges.source_memory_id)
    rows = await tx.rows(
        select(
            edges.id.label("edge_id"),
            edges.type,
            edges.source_entity_id,
            edges.confidence.label("edge_confidence"),
            *_memory_columns(),
        )
        .select_from(tables.edges.join(tables.memories, (_memories.id == other)))
        .where(
            edges.tenant_id == tx.tenant_id,
            or_(outward, edges.target_entity_id == entity_id),
            *_shown(tx, moment),
        )
        .order_by(edges.confidence.desc(), edges.created_at.desc(), edges.id.desc())
        .limit(GROUP_ROWS + 1)
    )
    return [
        ContextEdge(
            row["edge_id"],
            row["type"],
            _direction(row["source_entity_id"], entity_id),
            row["edge_confidence"],
            _memory_of(row),
        )
        for row in rows
    ]


async def _mentioning(tx: Transaction, entity_id: UUID, moment: datetime) -> list[ContextMemory]:
    mentions = tables.mentions.c
    named = select(mentions.memory_id).where(mentions.tenant_id == tx.tenant_id, mentions.entity_id == entity_id)
    rows = await tx.rows(
        select(*_memory_columns())
        .where(*_shown(tx, moment), _memories.id.in_(named))
        .order_by(_date.desc(), _memories.id.desc())
        .limit(GROUP_ROWS + 1)
    )
    return [_memory_of(row) for row in rows]


def _direction(source: UUID | None, entity_id: UUID) -> Literal["out", "in"]:
    return "out" if source == entity_id else "in"


def _memory_columns() -> tuple[Any, ...]:
    return _memories.id, _memories.label, _memories.text, _memories.status, _date


def _shown(tx: Transaction, moment: datetime) -> tuple[Any, ...]:
    return _memories.tenant_id == tx.tenant_id, _memories.status != _HIDDEN, holds(_memories, moment)


def _memory_of(row: RowMapping) -> ContextMemory:
    return ContextMemory(row["id"], row["label"], row["text"], row["status"], row["date"])
