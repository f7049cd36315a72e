"""Receipts of erasures: kept in the transaction of the erasure itself, and read by admins."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import func, insert, select
from sqlalchemy.engine import RowMapping

from memory_os.domain.principal import Principal
from memory_os.erasure.model import Place, Receipt, ReceiptSummary, SubjectType
from memory_os.errors import NotFoundError
from memory_os.memories.lifecycle_model import Who
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = provenance_tables.erasures

_FILES: Final = "copies that were made since the oldest of these records: destroy the files yourself"
_GRAPH: Final = "nodes, edges and links that leave the graph by the time it has reached the position"


def places_of(rows: Counter[str], graph: int, elsewhere: dict[str, Any]) -> list[Place]:
    """What a receipt lists: every table that was looked into, the graph, and files that nothing here reaches.

    Args:
        rows: Rows of each table.
        graph: Events that tell the graph of it.
        elsewhere: Exports and backups that may hold copies.
    """
    found = [Place(name, count) for name, count in rows.items()]
    found.append(Place("graph", graph, _GRAPH if graph else None))
    return found + [Place(name, count, _FILES if count else None) for name, count in elsewhere.items()]


async def keep_receipt(
    tx: Transaction,
    principal: Principal,
    receipt_id: UUID,
    subject: tuple[SubjectType, str],
    record_ids: list[UUID],
    places: list[Place],
    position: int,
    request_id: str | None,
) -> Receipt:
    """Write a receipt.

    Args:
        tx: The unit of work.
        principal: Who erases.
        receipt_id: Its id.
        subject: What was asked to be erased: its kind and id, or the digest of a user.
        record_ids: The records that went.
        places: Where something was, and how much.
        position: What the graph has to reach.
        request_id: The request.
    """
    values = {
        "tenant_id": tx.tenant_id,
        "id": receipt_id,
        "subject_type": subject[0],
        "subject": subject[1],
        "record_ids": record_ids,
        "places": msgspec.to_builtins(places),
        "position": position,
        "token_id": principal.token_id,
        "role": principal.role,
        "acting_user": principal.user_id,
        "request_id": request_id,
    }
    row = await tx.row(insert(_TABLE).values(values).returning(_TABLE))
    if row is None:
        raise AssertionError("a row that was just written can't be gone")
    return _receipt_of(row)


async def get_receipt(tx: Transaction, receipt_id: UUID) -> Receipt:
    """One receipt.

    Raises:
        NotFoundError: If there is none of that id.
    """
    row = await tx.row(select(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == receipt_id))
    if row is None:
        raise NotFoundError("there is no such erasure")
    return _receipt_of(row)


async def list_receipts(tx: Transaction, cursor: str | None, limit: int) -> Page[ReceiptSummary]:
    """Receipts, newest first, one page at a time."""
    columns = [column for column in _TABLE.c if column.name not in ("record_ids", "places")]
    statement = select(*columns, func.cardinality(_TABLE.c.record_ids).label("records"))
    statement = statement.where(_TABLE.c.tenant_id == tx.tenant_id)
    rows = await tx.rows(newest_first(statement, _TABLE.c.at, _TABLE.c.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["at"], row["id"]))
    return Page([_summary_of(row) for row in page], next_cursor)


def _receipt_of(row: RowMapping) -> Receipt:
    return Receipt(
        id=row["id"],
        subject_type=row["subject_type"],
        subject=row["subject"],
        record_ids=list(row["record_ids"]),
        places=msgspec.convert(row["places"], list[Place]),
        position=row["position"],
        at=row["at"],
        by=Who(row["role"], row["acting_user"]),
    )


def _summary_of(row: RowMapping) -> ReceiptSummary:
    return ReceiptSummary(
        id=row["id"],
        subject_type=row["subject_type"],
        subject=row["subject"],
        records=row["records"],
        position=row["position"],
        at=row["at"],
        by=Who(row["role"], row["acting_user"]),
    )
