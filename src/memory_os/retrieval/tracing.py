"""The sources behind a claim, and what became of memories after a moment: both in the order of the record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from memory_os.entities.reading import check_entity
from memory_os.memories.lifecycle_model import Who
from memory_os.memories.reading import get_memory
from memory_os.retrieval.structure_model import Change, ChangedRecord, SourceBehind, Tie
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, decode_uuid_cursor, encode_cursor

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
_LAST_ID: Final = UUID(int=2**128 - 1)
"""Above every other id, so that what was recorded at the very moment is not after it."""


async def sources_behind(tx: Transaction, memory_id: UUID, cursor: str | None, limit: int) -> Page[SourceBehind]:
    """The living evidence of a claim and of what it was extracted from or is supported by, newest first.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    await get_memory(tx, memory_id)
    before, before_id = (None, None) if cursor is None else decode_uuid_cursor(cursor)
    given = {"tenant_id": tx.tenant_id, "memory": memory_id, "before": before, "before_id": before_id}
    rows = await tx.hot("sources_behind", {**given, "limit": limit + 1})
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["at"], row["id"]))
    return Page([_source_of(row) for row in page], next_cursor)


async def changes_since(tx: Transaction, since: datetime | None, cursor: str | None, limit: int) -> Page[Change]:
    """What became of memories after a moment, the oldest first; since ever, where none is named."""
    return await _changes(tx, "changes_since", {}, since, cursor, limit)


async def changes_about(
    tx: Transaction, entity_id: UUID, since: datetime | None, cursor: str | None, limit: int
) -> Page[Change]:
    """The same, of memories that mention an entity or are tied to it.

    Raises:
        NotFoundError: If this reader sees no such entity.
    """
    await check_entity(tx, entity_id)
    return await _changes(tx, "changes_about", {"entity": entity_id}, since, cursor, limit)


async def changes_after(tx: Transaction, memory_id: UUID, cursor: str | None, limit: int) -> Page[Change]:
    """What became of memories after an event: after it happened, or, where it does not say when, was recorded.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    event = await get_memory(tx, memory_id)
    return await _changes(tx, "changes_since", {}, event.occurred_at or event.created_at, cursor, limit)


async def _changes(
    tx: Transaction, statement: str, about: Mapping[str, Any], since: datetime | None, cursor: str | None, limit: int
) -> Page[Change]:
    after, after_id = (since or _BEGINNING, _LAST_ID) if cursor is None else decode_uuid_cursor(cursor)
    given = {"tenant_id": tx.tenant_id, "after": after, "after_id": after_id, "limit": limit + 1}
    rows = await tx.hot(statement, {**given, **about})
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["at"], row["id"]))
    return Page([_change_of(row) for row in page], next_cursor)


def _source_of(row: Mapping[str, Any]) -> SourceBehind:
    why = []
    if row["edge_id"] is not None:
        why.append(Tie("edge", row["type"], row["direction"], row["edge_confidence"], row["edge_id"]))
    fields = {name: row[name] for name in SourceBehind.__struct_fields__ if name != "why"}
    return SourceBehind(**fields, why=why)


def _change_of(row: Mapping[str, Any]) -> Change:
    return Change(
        id=row["id"],
        kind=row["kind"],
        at=row["at"],
        who=Who(row["role"], row["user_id"]),
        memory=ChangedRecord(row["memory_id"], row["label"], row["title"], row["text"], row["status"]),
        other_id=row["other_id"],
        undone_at=row["undone_at"],
    )
