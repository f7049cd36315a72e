"""Everything that came from a source: what it is evidence of, what was derived from that, and what is linked to it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from memory_os.sources.model import SourceRecord
from memory_os.sources.reading import get_source
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, decode_uuid_cursor, encode_cursor


async def list_records(tx: Transaction, source_id: UUID, cursor: str | None, limit: int) -> Page[SourceRecord]:
    """The records of a source, newest first, one page at a time; links by when they were declared.

    What was derived from a memory that this reader does not see is left out, too.

    Raises:
        NotFoundError: If this reader sees no such source.
        InvalidInputError: If the cursor is none of ours.
    """
    await get_source(tx, source_id)
    at, key = (None, None) if cursor is None else decode_uuid_cursor(cursor)
    given: dict[str, Any] = {"tenant_id": tx.tenant_id, "source_id": source_id, "page": limit + 1}
    rows = await tx.hot("records_of_source", {**given, "after_at": at, "after_key": key})
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["at"], row["key"]))
    items = [SourceRecord(**{name: row[name] for name in SourceRecord.__struct_fields__}) for row in page]
    return Page(items, next_cursor)
