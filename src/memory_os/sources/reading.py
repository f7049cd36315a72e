"""Reading sources and their passages. Row-level security decides what a reader sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from memory_os.errors import FieldError, InvalidInputError, NotFoundError
from memory_os.memories.model import Readers
from memory_os.sources.model import Passage, Source
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, decode_uuid_cursor, encode_cursor, newest_first

_TABLE = provenance_tables.sources
_PASSAGES = provenance_tables.passages


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """What a list is narrowed to; None leaves a field alone."""

    kind: str | None = None
    uri: str | None = None
    author: str | None = None


async def get_source(tx: Transaction, source_id: UUID, *, lock: bool = False) -> Source:
    """One source.

    Args:
        tx: The unit of work.
        source_id: Its id.
        lock: Keep others from changing it, from adding passages and from citing it, until the end of the transaction.

    Raises:
        NotFoundError: If it is absent or this reader may not see it.
    """
    found = await find_source(tx, source_id, lock=lock)
    if found is None:
        raise NotFoundError("there is no such source")
    return found


async def find_source(tx: Transaction, source_id: UUID, *, lock: bool = False) -> Source | None:
    """One source, or None; see `get_source`."""
    statement = select(*source_columns()).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == source_id)
    row = await tx.row(statement.with_for_update() if lock else statement)
    return None if row is None else source_of(row)


async def list_sources(tx: Transaction, wanted: SourceFilter, cursor: str | None, limit: int) -> Page[Source]:
    """Sources, newest first, one page at a time."""
    columns = _TABLE.c
    statement = select(*source_columns()).where(columns.tenant_id == tx.tenant_id)
    for column in ("kind", "uri", "author"):
        if (value := getattr(wanted, column)) is not None:
            statement = statement.where(columns[column] == value)
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([source_of(row) for row in page], next_cursor)


async def list_passages(tx: Transaction, source_id: UUID, cursor: str | None, limit: int) -> Page[Passage]:
    """The passages of a source in their order, one page at a time.

    Raises:
        NotFoundError: If this reader sees no such source.
        InvalidInputError: If the cursor is none of this list's.
    """
    await get_source(tx, source_id)
    columns = _PASSAGES.c
    statement = select(*passage_columns()).where(columns.tenant_id == tx.tenant_id, columns.source_id == source_id)
    if cursor is not None:
        _, ident = decode_uuid_cursor(cursor)
        last = select(columns.ordinal).where(
            columns.tenant_id == tx.tenant_id, columns.source_id == source_id, columns.id == ident
        )
        after = await tx.row(last)
        if after is None:
            raise InvalidInputError(
                "the cursor is not one that this list gave out", errors=[FieldError("/cursor", "unknown cursor")]
            )
        statement = statement.where(columns.ordinal > after["ordinal"])
    rows = await tx.rows(statement.order_by(columns.ordinal).limit(limit + 1))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([passage_of(row) for row in page], next_cursor)


def source_columns() -> tuple[Any, ...]:
    """The columns that `source_of` reads."""
    return tuple(column for column in _TABLE.c if column.name != "tenant_id")


def source_of(row: Mapping[str, Any] | RowMapping) -> Source:
    """A row of `sources` as readers see it."""
    return Source(
        id=row["id"],
        kind=row["kind"],
        title=row["title"],
        uri=row["uri"],
        author=row["author"],
        source_date=row["source_date"],
        metadata=row["metadata"],
        visibility=row["visibility"],
        user_id=row["user_id"],
        readers=Readers(users=list(row["reader_users"]), groups=list(row["reader_groups"])),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        version=row["version"],
    )


def passage_columns() -> tuple[Any, ...]:
    """The columns that `passage_of` reads."""
    return tuple(_PASSAGES.c[name] for name in Passage.__struct_fields__)


def passage_of(row: Mapping[str, Any] | RowMapping) -> Passage:
    """A row of `passages` as readers see it."""
    return Passage(**{name: row[name] for name in Passage.__struct_fields__})
