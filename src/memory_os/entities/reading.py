"""Reading entities: one, and lists with filters. Row-level security decides what a reader sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, DateTime, Select, distinct, func, literal, select
from sqlalchemy.engine import RowMapping

from memory_os.entities.model import Entity
from memory_os.errors import NotFoundError
from memory_os.memories.model import Readers
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first
from memory_os.storage.shown_names import shown_name

_TABLE = tables.entities
_COLUMNS = tuple(
    column for column in _TABLE.c if column.name not in {"tenant_id", "search", "embedding", "embedding_model"}
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EntityFilter:
    """What a list is narrowed to; None leaves a field alone.

    `name` matches by canonical form, an entity's own name or any alias. `declared=False` lists what was only ever
    mentioned.
    """

    entity_type: str | None = None
    name: str | None = None
    status: str | None = None
    user_id: str | None = None
    declared: bool = True


@dataclass(frozen=True, slots=True)
class _Mentions:
    records: int = 0
    first: datetime | None = None
    last: datetime | None = None


async def get_entity(tx: Transaction, entity_id: UUID, *, lock: bool = False) -> Entity:
    """One entity.

    Args:
        tx: The unit of work.
        entity_id: Its id.
        lock: Keep others from changing it until the end of the transaction.

    Raises:
        NotFoundError: If it is absent or this reader may not see it.
    """
    statement = _select(tx).where(_TABLE.c.id == entity_id)
    rows = await tx.rows(statement.with_for_update() if lock else statement)
    if not rows:
        raise NotFoundError("there is no such entity")
    return (await read_entities(tx, rows))[0]


async def check_entity(tx: Transaction, entity_id: UUID) -> None:
    """Check that an entity is there, without reading what is known of it.

    Raises:
        NotFoundError: If it is absent or this reader may not see it.
    """
    statement = select(_TABLE.c.id).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == entity_id)
    if await tx.row(statement) is None:
        raise NotFoundError("there is no such entity")


async def find_entity(tx: Transaction, entity_id: UUID) -> Entity | None:
    """One entity, or None."""
    found = await read_entities(tx, await tx.rows(_select(tx).where(_TABLE.c.id == entity_id)))
    return found[0] if found else None


async def list_entities(tx: Transaction, wanted: EntityFilter, cursor: str | None, limit: int) -> Page[Entity]:
    """Entities, newest first, one page at a time; derived ones in the order of their ids, which tells nothing."""
    columns = _TABLE.c
    statement = _select(tx).where(columns.declared == wanted.declared)
    if not wanted.declared:
        statement = statement.where(columns.mention_records > 0)
    for column in ("entity_type", "status", "user_id"):
        if (value := getattr(wanted, column)) is not None:
            statement = statement.where(columns[column] == value)
    if wanted.name is not None:
        statement = statement.where(_is_named(tx, wanted.name, declared=wanted.declared))
    # When the row of a derived one was made tells of the memory that named it first, which may be a hidden one.
    moment = columns.created_at if wanted.declared else literal(_EPOCH, DateTime(timezone=True))
    rows = await tx.rows(newest_first(statement, moment, columns.id, cursor, limit))
    page, next_cursor = cut(
        rows, limit, lambda row: encode_cursor(row["created_at"] if wanted.declared else _EPOCH, row["id"])
    )
    return Page(await read_entities(tx, page), next_cursor)


async def read_entities(tx: Transaction, rows: Sequence[RowMapping]) -> list[Entity]:
    """Rows of `entities` as this reader sees them, with the mentions that the reader may know of."""
    seen = await _mentions(tx, [row["id"] for row in rows if row["mention_records"]])
    return [_entity_of(row, seen.get(row["id"], _Mentions())) for row in rows]


def returned_columns() -> tuple[Any, ...]:
    """The columns that `read_entities` wants of an INSERT or UPDATE that returns its rows."""
    return _COLUMNS


def _is_named(tx: Transaction, name: str, *, declared: bool) -> ColumnElement[bool]:
    """The condition of a name. Names and aliases of declared entities have rows of their own, derived ones don't.

    Both conditions under one OR would be a scan of all entities.
    """
    names = tables.entity_names.c
    canonical = func.memory_os_canonical_name(name)
    if not declared:
        derived: ColumnElement[bool] = _TABLE.c.canonical_name == canonical
        return derived
    return _TABLE.c.id.in_(
        select(names.entity_id).where(names.tenant_id == tx.tenant_id, names.canonical_name == canonical)
    )


def _select(tx: Transaction) -> Select[Any]:
    return select(*_COLUMNS, shown_name(_TABLE).label("shown_name")).where(_TABLE.c.tenant_id == tx.tenant_id)


async def _mentions(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, _Mentions]:
    if not ids:
        return {}
    mentions = tables.mentions.c
    rows = await tx.rows(
        select(
            mentions.entity_id,
            func.count(distinct(mentions.memory_id)).label("records"),
            func.min(mentions.seen).label("first"),
            func.max(mentions.seen).label("last"),
        )
        .where(mentions.tenant_id == tx.tenant_id, mentions.entity_id.in_(ids))
        .group_by(mentions.entity_id)
    )
    return {row["entity_id"]: _Mentions(row["records"], row["first"], row["last"]) for row in rows}


def _entity_of(row: RowMapping, seen: _Mentions) -> Entity:
    return Entity(
        id=row["id"],
        name=row.get("shown_name", row["name"]),
        canonical_name=row["canonical_name"],
        entity_type=row["entity_type"],
        aliases=list(row["aliases"]),
        summary=row["summary"],
        payload=row["payload"],
        confidence=row["confidence"],
        status=row["status"],
        visibility=row["visibility"],
        user_id=row["user_id"],
        readers=Readers(users=list(row["reader_users"]), groups=list(row["reader_groups"])),
        declared=row["declared"],
        first_seen=seen.first,
        last_seen=seen.last,
        mention_count=seen.records,
        created_at=row["created_at"] if row["declared"] else seen.first or row["created_at"],
        updated_at=row["updated_at"] if row["declared"] else seen.last or row["updated_at"],
        version=row["version"],
    )
