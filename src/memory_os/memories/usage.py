"""Where a memory was handed out: the retrievals that found it, so that a wrong one can be told from a wrong answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from sqlalchemy import and_, select
from sqlalchemy.engine import RowMapping

from memory_os.domain.principal import Principal
from memory_os.domain.roles import may
from memory_os.memories.reading import get_memory
from memory_os.retrieval.log import OVERSEERS, is_own, made_by
from memory_os.storage import retrieval_tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_LOG: Final = retrieval_tables.retrievals
_ITEMS: Final = retrieval_tables.retrieval_items
_FEEDBACK: Final = retrieval_tables.retrieval_feedback


class Use(Struct):
    """A retrieval that found a memory.

    Attributes:
        position: Where the memory stood among all that was found, from 0.
        in_pack: Whether it was handed out.
        user_id: Who asked, where this reader may know.
        query: What was asked, where this reader may know.
        verdict: What was said of the memory in that answer: used, irrelevant or wrong.
    """

    id: UUID
    at: datetime
    user_id: str | None
    query: str | None
    in_pack: bool
    position: int
    verdict: str | None


async def list_uses(
    tx: Transaction, principal: Principal, memory_id: UUID, cursor: str | None, limit: int
) -> Page[Use]:
    """The retrievals that found a memory, newest first: one's own, and for reviewers, operators and admins all.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    await get_memory(tx, memory_id)
    same = and_(_ITEMS.c.tenant_id == _LOG.c.tenant_id, _ITEMS.c.retrieval_id == _LOG.c.id)
    said = and_(
        _FEEDBACK.c.tenant_id == _ITEMS.c.tenant_id,
        _FEEDBACK.c.retrieval_id == _ITEMS.c.retrieval_id,
        _FEEDBACK.c.record_id == _ITEMS.c.record_id,
    )
    columns: list[Any] = [_LOG.c.id, _LOG.c.created_at, _LOG.c.user_id, _LOG.c.token_id, _LOG.c.query]
    columns += [_ITEMS.c.in_pack, _ITEMS.c.position, _FEEDBACK.c.verdict]
    statement = (
        select(*columns)
        .select_from(_ITEMS.join(_LOG, same).outerjoin(_FEEDBACK, said))
        .where(_ITEMS.c.tenant_id == tx.tenant_id, _ITEMS.c.record_type == "memory", _ITEMS.c.record_id == memory_id)
    )
    statement = newest_first(statement, _LOG.c.created_at, _LOG.c.id, cursor, limit)
    if may(principal.role, "review") or principal.role in OVERSEERS:
        async with tx.as_steward():  # that it was used concerns who judges it; what was asked is left out below
            rows = await tx.rows(statement)
    else:
        rows = await tx.rows(statement.where(*made_by(principal)))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([_use_of(row, principal) for row in page], next_cursor)


def _use_of(row: RowMapping, principal: Principal) -> Use:
    told = principal.role in OVERSEERS or is_own(principal, row)
    return Use(
        id=row["id"],
        at=row["created_at"],
        user_id=row["user_id"] if told else None,
        query=row["query"] if told else None,
        in_pack=row["in_pack"],
        position=row["position"],
        verdict=row["verdict"],
    )
