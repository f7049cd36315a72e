"""Reading corrections: whoever sees a memory sees what was said of it, as far as they could read it at that time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.engine import RowMapping

from memory_os.corrections.model import Correction
from memory_os.domain.principal import Principal
from memory_os.errors import NotFoundError
from memory_os.memories.history import could_read
from memory_os.memories.lifecycle_model import Who
from memory_os.retrieval.log import readable_retrieval
from memory_os.storage import provenance_tables, tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = provenance_tables.corrections
_ENTITIES: Final = ("from", "to")
"""Fields of a proposal that name an entity."""


@dataclass(frozen=True, slots=True)
class CorrectionFilter:
    """What a list is narrowed to; None leaves a field alone."""

    status: str | None = None
    memory: UUID | None = None
    kind: str | None = None


async def lock_correction(tx: Transaction, correction_id: UUID) -> RowMapping:
    """The row of a correction, held until the end of the transaction.

    Raises:
        NotFoundError: If there is none of that id whose memory this reader sees.
    """
    mine = (_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == correction_id)
    row = await tx.row(select(_TABLE).where(*mine).with_for_update())
    if row is None:
        raise NotFoundError("there is no such correction")
    return row


async def get_correction(tx: Transaction, principal: Principal, correction_id: UUID) -> Correction:
    """One correction.

    Raises:
        NotFoundError: If there is none of that id whose memory this reader sees.
    """
    found = await read_corrections(tx, principal, _TABLE.c.id == correction_id, most=1)
    if not found:
        raise NotFoundError("there is no such correction")
    return found[0]


async def list_corrections(
    tx: Transaction, principal: Principal, wanted: CorrectionFilter, cursor: str | None, limit: int
) -> Page[Correction]:
    """Corrections of memories that this reader sees, newest first, one page at a time."""
    columns, statement = _TABLE.c, _select(tx, principal)
    for column, value in ((columns.status, wanted.status), (columns.kind, wanted.kind)):
        if value is not None:
            statement = statement.where(column == value)
    if wanted.memory is not None:
        statement = statement.where(columns.memory_id == wanted.memory)
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page(await _corrections_of(tx, principal, page), next_cursor)


async def read_corrections(
    tx: Transaction, principal: Principal, condition: ColumnElement[bool], *, most: int
) -> list[Correction]:
    """The corrections for which a condition holds, oldest first, `most` at most."""
    statement = _select(tx, principal).where(condition).order_by(_TABLE.c.created_at, _TABLE.c.id).limit(most)
    return await _corrections_of(tx, principal, await tx.rows(statement))


def _select(tx: Transaction, principal: Principal) -> Select[Any]:
    """Corrections with the ids of what else this reader sees, and the readers that each memory has had since."""
    columns, acts = _TABLE.c, tables.memory_acts.c
    readers = select(func.jsonb_agg(acts.before["audiences"])).where(
        acts.tenant_id == columns.tenant_id,
        acts.memory_id == columns.memory_id,
        acts.kind == "change",
        acts.at > columns.created_at,
    )
    seen = {
        "seen_source": (provenance_tables.sources, columns.source_id),
        "seen_result": (tables.memories.alias("result"), columns.result_id),
    }
    others = [
        select(table.c.id).where(table.c.tenant_id == tx.tenant_id, table.c.id == column).scalar_subquery().label(name)
        for name, (table, column) in seen.items()
    ]
    retrieval = readable_retrieval(tx, principal, columns.retrieval_id).scalar_subquery().label("seen_retrieval")
    readers_since = readers.scalar_subquery().label("readers_since")
    return select(_TABLE, *others, retrieval, readers_since).where(columns.tenant_id == tx.tenant_id)


async def _corrections_of(tx: Transaction, principal: Principal, rows: Sequence[RowMapping]) -> list[Correction]:
    seen = await _seen_in(tx, [row["proposal"] for row in rows])
    return [_correction_of(row, principal, seen) for row in rows]


async def _seen_in(tx: Transaction, proposals: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    """The ids that proposals name and this reader sees, each with the field's name."""
    seen: set[tuple[str, str]] = set()
    for names, table in ((_ENTITIES, tables.entities), (("against",), tables.memories)):
        ids = {UUID(proposal[name]) for proposal in proposals for name in names if name in proposal}
        if ids:
            found = await tx.rows(select(table.c.id).where(table.c.tenant_id == tx.tenant_id, table.c.id.in_(ids)))
            seen |= {(name, str(row["id"])) for row in found for name in names}
    return seen


def _correction_of(row: RowMapping, principal: Principal, seen: set[tuple[str, str]]) -> Correction:
    # What was written while fewer could read the memory is not told to those who came later.
    told = could_read(list(chain.from_iterable(one or () for one in row["readers_since"] or ())), principal)
    proposal = {
        name: value
        for name, value in row["proposal"].items()
        if told and (name not in (*_ENTITIES, "against") or (name, value) in seen)
    }
    decided = row["decided_at"] is not None
    return Correction(
        id=row["id"],
        target=row["memory_id"],
        kind=row["kind"],
        proposal=proposal,
        reason=row["reason"] if told else None,
        source_id=row["seen_source"],
        retrieval_id=row["seen_retrieval"],
        memory_version=row["memory_version"],
        status=row["status"],
        created_at=row["created_at"],
        proposed_by=Who(row["proposed_role"], row["proposed_user"]),
        decided_at=row["decided_at"],
        decided_by=Who(row["decided_role"], row["decided_user"]) if decided else None,
        decision_reason=row["decision_reason"] if told else None,
        act_id=row["act_id"],
        result_id=row["seen_result"],
    )
