"""Reading memories: one, and lists with filters. Row-level security decides what a reader sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, any_, literal, select
from sqlalchemy.engine import RowMapping

from memory_os.errors import NotFoundError
from memory_os.memories.model import Memory, Readers
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = tables.memories
_NEWER, _OLDER = "seen_superseded_by", "seen_supersedes"


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """What a list is narrowed to; None leaves a field alone."""

    label: str | None = None
    status: str | None = None
    user_id: str | None = None
    tag: str | None = None
    conversation_id: str | None = None
    subject: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


def memory_columns() -> list[ColumnElement[Any]]:
    """What is read of a memory, for a select or a RETURNING: its columns, and the ids of its neighbours in a chain.

    The column `superseded_by` alone may name a memory that this reader must not know of; so both are looked up.
    """
    columns, other = _TABLE.c, _TABLE.alias("neighbour")
    neighbour = select(other.c.id).where(other.c.tenant_id == columns.tenant_id).correlate(_TABLE)
    newer = neighbour.where(other.c.id == columns.superseded_by)
    older = neighbour.where(other.c.superseded_by == columns.id)
    older = older.order_by(other.c.valid_to.desc().nulls_last(), other.c.id.desc()).limit(1)
    return [
        *(column for column in columns if column.name != "search"),
        newer.scalar_subquery().label(_NEWER),
        older.scalar_subquery().label(_OLDER),
    ]


def memory_of(row: Mapping[str, Any] | RowMapping) -> Memory:
    """A row of `memories` as readers see it; with its neighbours only where `memory_columns` were asked for."""
    return Memory(
        id=row["id"],
        text=row["text"],
        label=row["label"],
        layer=row["layer"],
        status=row["status"],
        title=row["title"],
        confidence=row["confidence"],
        visibility=row["visibility"],
        user_id=row["user_id"],
        readers=Readers(users=list(row["reader_users"]), groups=list(row["reader_groups"])),
        occurred_at=row["occurred_at"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        version=row["version"],
        subject=row["subject"],
        property=row["property"],
        conversation_id=row["conversation_id"],
        origin=row["origin"],
        tags=list(row["tags"]),
        metadata=row["metadata"],
        superseded_by=row.get(_NEWER),
        supersedes=row.get(_OLDER),
    )


async def get_memory(tx: Transaction, memory_id: UUID, *, lock: bool = False) -> Memory:
    """One memory.

    Args:
        tx: The unit of work.
        memory_id: Its id.
        lock: Keep others from changing it until the end of the transaction.

    Raises:
        NotFoundError: If it is absent or this reader may not see it.
    """
    statement = select(*memory_columns()).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == memory_id)
    row = await tx.row(statement.with_for_update(of=_TABLE) if lock else statement)
    if row is None:
        raise NotFoundError("there is no such memory")
    return memory_of(row)


async def existing_memories(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Those of these memories that are there and that this reader sees."""
    if not ids:
        return {}
    rows = await tx.rows(select(*memory_columns()).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id.in_(ids)))
    return {row["id"]: memory_of(row) for row in rows}


async def list_memories(tx: Transaction, wanted: MemoryFilter, cursor: str | None, limit: int) -> Page[Memory]:
    """Memories, newest first, one page at a time."""
    columns = _TABLE.c
    statement = select(*memory_columns()).where(columns.tenant_id == tx.tenant_id)
    for column in ("label", "status", "user_id", "conversation_id", "subject"):
        if (value := getattr(wanted, column)) is not None:
            statement = statement.where(columns[column] == value)
    if wanted.tag is not None:
        statement = statement.where(literal(wanted.tag) == any_(columns.tags))
    if wanted.created_after is not None:
        statement = statement.where(columns.created_at >= wanted.created_after)
    if wanted.created_before is not None:
        statement = statement.where(columns.created_at < wanted.created_before)
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([memory_of(row) for row in page], next_cursor)
