"""The history of a memory: what was done to it, by whom, newest first, and its creation last."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select, literal, null, or_, select, union_all
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import RowMapping

from memory_os.domain.audiences import Audience
from memory_os.domain.principal import Principal
from memory_os.memories.lifecycle_model import HistoryEntry, Who
from memory_os.memories.reading import get_memory
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

CREATION: Final = "create"
"""What a history calls the beginning of its memory, which is no act."""


async def list_history(
    tx: Transaction, principal: Principal, memory_id: UUID, cursor: str | None, limit: int
) -> Page[HistoryEntry]:
    """The acts that a memory has to do with, newest first, one page at a time.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    await get_memory(tx, memory_id)
    memories = tables.memories
    begun = select(
        memories.c.id,
        literal(CREATION),
        memories.c.created_at,
        null(),
        memories.c.user_id,
        memories.c.id,
        null(),
        literal({}, JSONB),
        null(),
        null(),
    ).where(memories.c.tenant_id == tx.tenant_id, memories.c.id == memory_id)
    entries = union_all(select_acts(tx, memory_id), begun).subquery("entries")
    rows = await tx.rows(newest_first(select(entries), entries.c.at, entries.c.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["at"], row["id"]))
    return Page([_entry(row, principal) for row in page], next_cursor)


def select_acts(tx: Transaction, memory_id: UUID) -> Select[Any]:
    """The acts that a memory has to do with; the other memory of each where this reader sees it."""
    acts, other = tables.memory_acts.c, tables.memories.alias("other")
    seen_other = select(other.c.id).where(other.c.tenant_id == acts.tenant_id, other.c.id == acts.other_id)
    return select(
        acts.id,
        acts.kind,
        acts.at,
        acts.role,
        acts.user_id,
        acts.memory_id,
        seen_other.scalar_subquery().label("other_id"),
        acts.detail,
        acts.before["audiences"].label("audiences"),
        acts.undone_at,
    ).where(acts.tenant_id == tx.tenant_id, or_(acts.memory_id == memory_id, acts.other_id == memory_id))


def _entry(row: RowMapping, principal: Principal) -> HistoryEntry:
    return HistoryEntry(
        row["id"],
        row["kind"],
        row["at"],
        Who(row["role"], row["user_id"]),
        row["memory_id"],
        row["other_id"],
        row["detail"] if could_read(row["audiences"], principal) else {},
        row["undone_at"],
    )


def could_read(audiences: list[dict[str, Any]] | None, principal: Principal) -> bool:
    """Whether somebody was among the readers at that time; a memory may have got more of them since."""
    known = [Audience(one["everybody"], frozenset(one["users"]), frozenset(one["groups"])) for one in audiences or ()]
    return all(audience.admits(principal.user_id, principal.groups) for audience in known)
