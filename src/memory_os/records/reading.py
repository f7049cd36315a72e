"""Reading records: one, and lists with filters. Row-level security decides what a reader sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from memory_os.errors import NotFoundError
from memory_os.memories.model import Readers
from memory_os.records.model import Record, RecordLayer
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first
from memory_os.storage.tables import RECORD_TABLES


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """What a list is narrowed to; None leaves a field alone."""

    status: str | None = None
    user_id: str | None = None


async def get_record(tx: Transaction, layer: RecordLayer, record_id: UUID, *, lock: bool = False) -> Record:
    """One record.

    Args:
        tx: The unit of work.
        layer: Which of the three kinds it is of.
        record_id: Its id.
        lock: Keep others from changing it, or linking to it, until the end of the transaction.

    Raises:
        NotFoundError: If it is absent or this reader may not see it.
    """
    found = await find_record(tx, layer, record_id, lock=lock)
    if found is None:
        raise NotFoundError(f"there is no such {layer}")
    return found


async def find_record(tx: Transaction, layer: RecordLayer, record_id: UUID, *, lock: bool = False) -> Record | None:
    """One record, or None; see `get_record`."""
    table = RECORD_TABLES[layer]
    statement = select(*shown_columns(layer)).where(table.c.tenant_id == tx.tenant_id, table.c.id == record_id)
    row = await tx.row(statement.with_for_update() if lock else statement)
    return None if row is None else record_of(row)


async def list_records(
    tx: Transaction, layer: RecordLayer, wanted: RecordFilter, cursor: str | None, limit: int
) -> Page[Record]:
    """Records of one kind, newest first, one page at a time."""
    columns = RECORD_TABLES[layer].c
    statement = select(*shown_columns(layer)).where(columns.tenant_id == tx.tenant_id)
    for column in ("status", "user_id"):
        if (value := getattr(wanted, column)) is not None:
            statement = statement.where(columns[column] == value)
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([record_of(row) for row in page], next_cursor)


def shown_columns(layer: RecordLayer) -> tuple[Any, ...]:
    """The columns that `record_of` reads."""
    return tuple(column for column in RECORD_TABLES[layer].c if column.name not in {"tenant_id", "search"})


def record_of(row: RowMapping) -> Record:
    """A row of one of the three tables as readers see it."""
    return Record(
        id=row["id"],
        title=row["title"],
        summary=row["summary"],
        payload=row["payload"],
        confidence=row["confidence"],
        status=row["status"],
        visibility=row["visibility"],
        user_id=row["user_id"],
        readers=Readers(users=list(row["reader_users"]), groups=list(row["reader_groups"])),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        version=row["version"],
    )
