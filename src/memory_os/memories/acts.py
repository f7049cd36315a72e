"""Acts on memories: what was done to one, by whom, and what it takes to undo it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import func, insert, or_, select, tuple_, update
from sqlalchemy.engine import RowMapping

from memory_os.domain.acts import ActKind
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import NotFoundError
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.memory_acts


async def note_act(
    tx: Transaction,
    principal: Principal,
    kind: ActKind,
    memory_id: UUID,
    *,
    other_id: UUID | None = None,
    detail: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    request_id: str | None = None,
) -> UUID:
    """Keep an act, in the transaction of the act itself.

    Args:
        tx: The unit of work.
        principal: Who acts.
        kind: What they do.
        memory_id: The memory that it is done to; whoever sees it sees the act.
        other_id: The other memory that has to do with it: the one that takes its place, or that contradicts it.
        detail: What a reader of the history is told. It must not tell of records that not all of them may see.
        before: What an undo needs; no reader is shown it.
        request_id: The request that did it.

    Returns:
        The act's id.
    """
    ident = new_id()
    await tx.run(
        insert(_TABLE).values(
            tenant_id=tx.tenant_id,
            id=ident,
            memory_id=memory_id,
            other_id=other_id,
            kind=kind,
            detail=msgspec.to_builtins(dict(detail or {})),
            before=msgspec.to_builtins(dict(before or {})),
            token_id=principal.token_id,
            role=principal.role,
            user_id=principal.user_id,
            request_id=request_id,
        )
    )
    return ident


async def get_act(tx: Transaction, memory_id: UUID, act_id: UUID, *, lock: bool = False) -> RowMapping:
    """One act of a memory.

    Args:
        tx: The unit of work.
        memory_id: The memory that it was done to, or the other one of it.
        act_id: Its id.
        lock: Keep others from undoing it until the end of the transaction.

    Raises:
        NotFoundError: If there is none, or this reader may not see the memory that it was done to.
    """
    columns = _TABLE.c
    statement = select(_TABLE).where(
        columns.tenant_id == tx.tenant_id,
        columns.id == act_id,
        or_(columns.memory_id == memory_id, columns.other_id == memory_id),
    )
    row = await tx.row(statement.with_for_update() if lock else statement)
    if row is None:
        raise NotFoundError("this memory has no such act")
    return row


async def later_acts(tx: Transaction, act: RowMapping) -> list[RowMapping]:
    """What was done after an act to the memories that it is about, and has not been undone; the oldest first."""
    columns = _TABLE.c
    ids = [ident for ident in (act["memory_id"], act["other_id"]) if ident is not None]
    rows = await tx.rows(
        select(columns.id, columns.kind, columns.at, columns.memory_id)
        .where(
            columns.tenant_id == tx.tenant_id,
            or_(columns.memory_id.in_(ids), columns.other_id.in_(ids)),
            tuple_(columns.at, columns.id) > tuple_(act["at"], act["id"]),
            columns.undone_at.is_(None),
            columns.kind != "undo",
            ~((columns.kind == "merge") & columns.other_id.is_(None)),
        )
        .order_by(columns.at, columns.id)
    )
    return list(rows)


async def first_superseding(tx: Transaction, memory_id: UUID) -> RowMapping | None:
    """The act by which a memory lost its place, since it had one; it may have been filed elsewhere after that."""
    columns = _TABLE.c
    done = (columns.tenant_id == tx.tenant_id, columns.memory_id == memory_id, columns.undone_at.is_(None))
    restored = (await tx.run(select(func.max(columns.at)).where(*done, columns.kind == "restore"))).scalar_one()
    statement = select(_TABLE).where(*done, columns.kind == "supersede")
    if restored is not None:
        statement = statement.where(columns.at > restored)
    return await tx.row(statement.order_by(columns.at, columns.id).limit(1))


async def corrected_among(tx: Transaction, ids: Collection[UUID]) -> set[UUID]:
    """Those of these memories that a correction has replaced: they have never held."""
    columns = _TABLE.c
    rows = await tx.rows(
        select(columns.memory_id).where(
            columns.tenant_id == tx.tenant_id,
            columns.memory_id.in_(ids),
            columns.kind == "supersede",
            columns.undone_at.is_(None),
            columns.detail.has_key("correction"),
        )
    )
    return {row["memory_id"] for row in rows}


async def mark_undone(tx: Transaction, act_id: UUID) -> None:
    """Note that an act holds no longer; it stays in the history."""
    mine = (_TABLE.c.tenant_id == tx.tenant_id) & (_TABLE.c.id == act_id)
    await tx.run(update(_TABLE).where(mine).values(undone_at=func.clock_timestamp()))
