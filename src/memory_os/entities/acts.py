"""Acts on entities: which were merged and split, by whom, and what it takes to undo it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

import msgspec
from sqlalchemy import ARRAY, Text, cast, func, insert, or_, select, tuple_, update
from sqlalchemy.engine import RowMapping

from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.entities.act_model import EntityAct
from memory_os.entities.reading import check_entity
from memory_os.errors import NotFoundError
from memory_os.memories.lifecycle_model import Who
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first
from memory_os.storage.provenance_tables import entity_acts as _TABLE  # noqa: N812 - a table, as elsewhere

EntityActKind = Literal["merge", "split", "undo"]


async def note_act(
    tx: Transaction,
    principal: Principal,
    kind: EntityActKind,
    entity_id: UUID,
    *,
    other_id: UUID | None,
    detail: Mapping[str, Any],
    before: Mapping[str, Any],
    readers: Sequence[Audience],
    request_id: str | None,
) -> UUID:
    """Keep an act, in the transaction of the act itself.

    Args:
        tx: The unit of work.
        principal: Who acts.
        kind: What they do.
        entity_id: The entity that stays, or that is split; whoever sees it sees the act.
        other_id: The one that goes, or comes out.
        detail: What those are told who are among all `readers`.
        before: What an undo needs; no reader is shown it.
        readers: The readers of both entities.
        request_id: The request that did it.

    Returns:
        The act's id.
    """
    ident = new_id()
    await tx.run(
        insert(_TABLE).values(
            tenant_id=tx.tenant_id,
            id=ident,
            entity_id=entity_id,
            other_id=other_id,
            kind=kind,
            detail=msgspec.to_builtins(dict(detail)),
            before=msgspec.to_builtins({**before, "entity_id": entity_id, "audiences": readers}),
            token_id=principal.token_id,
            role=principal.role,
            user_id=principal.user_id,
            request_id=request_id,
        )
    )
    return ident


async def get_act(tx: Transaction, entity_id: UUID, act_id: UUID, *, lock: bool = False) -> RowMapping:
    """One act of an entity.

    Args:
        tx: The unit of work.
        entity_id: The entity that it was done to, or the other one of it.
        act_id: Its id.
        lock: Keep others from undoing it until the end of the transaction.

    Raises:
        NotFoundError: If there is none, or this reader may not see the entity that it was done to.
    """
    statement = select(_TABLE).where(*_of(tx, entity_id), _TABLE.c.id == act_id)
    row = await tx.row(statement.with_for_update() if lock else statement)
    if row is None:
        raise NotFoundError("this entity has no such act")
    return row


async def find_split(tx: Transaction, entity_id: UUID, other_id: UUID) -> UUID | None:
    """The act by which one entity came out of another, unless it was undone."""
    columns = _TABLE.c
    statement = select(columns.id).where(
        columns.tenant_id == tx.tenant_id,
        columns.entity_id == entity_id,
        columns.other_id == other_id,
        columns.kind == "split",
        columns.undone_at.is_(None),
    )
    row = await tx.row(statement.order_by(columns.at.desc()).limit(1))
    return None if row is None else row["id"]


async def list_acts(
    tx: Transaction, principal: Principal, entity_id: UUID, cursor: str | None, limit: int
) -> Page[EntityAct]:
    """The acts that an entity has to do with, newest first, one page at a time.

    Raises:
        NotFoundError: If this reader sees no such entity.
    """
    await check_entity(tx, entity_id)
    columns = _TABLE.c
    statement = select(_TABLE).where(*_of(tx, entity_id))
    rows = await tx.rows(newest_first(statement, columns.at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["at"], row["id"]))
    return Page([_shown(row, principal) for row in page], next_cursor)


async def later_acts(tx: Transaction, act: RowMapping) -> list[RowMapping]:
    """What was done after an act to the entities that it is about, and has not been undone; the oldest first.

    An act on an entity that went since stands with the one that it became part of, and is about the first all the same.
    """
    columns = _TABLE.c
    ids = [ident for ident in (done_to(act), act["other_id"]) if ident is not None]
    first = columns.before["entity_id"].astext
    rows = await tx.rows(
        select(columns.id, columns.kind, columns.at, columns.entity_id)
        .where(
            *_after(tx, act),
            or_(columns.entity_id.in_([*ids, act["entity_id"]]), columns.other_id.in_(ids)),
            or_(first.in_([str(ident) for ident in ids]), columns.other_id.in_(ids)),
        )
        .order_by(columns.at, columns.id)
    )
    return list(rows)


async def later_joins(tx: Transaction, act: RowMapping, ids: Sequence[UUID]) -> list[RowMapping]:
    """Acts after an act, on whatever entities, by which some of these edges and links became one with others.

    All of them, whether or not the one who asks may see their entities.
    """
    if not ids:
        return []
    columns = _TABLE.c
    wanted = cast([str(ident) for ident in ids], ARRAY(Text))
    statement = select(columns.id, columns.kind, columns.at, columns.entity_id).where(
        *_after(tx, act), func.jsonb_exists_any(columns.before["joined"], wanted)
    )
    async with tx.as_steward():
        return list(await tx.rows(statement.order_by(columns.at, columns.id)))


async def later_migrations(tx: Transaction, act: RowMapping, ids: Sequence[UUID]) -> list[RowMapping]:
    """Acts on memories after an act, by which some of these edges, which are gone by now, became part of others."""
    if not ids:
        return []
    columns = tables.memory_acts.c
    gone = [columns.before.contains({"edges": {"merged": [{"gone": {"id": str(ident)}}]}}) for ident in ids]
    statement = select(columns.id, columns.kind, columns.at, columns.memory_id).where(
        columns.tenant_id == tx.tenant_id, columns.at > act["at"], columns.undone_at.is_(None), or_(*gone)
    )
    async with tx.as_steward():
        return list(await tx.rows(statement.order_by(columns.at, columns.id)))


async def adopt_acts(tx: Transaction, gone: UUID, into: UUID) -> list[UUID]:
    """Let one entity have the acts of another that is about to go, with which these would go too; their ids."""
    columns = _TABLE.c
    statement = update(_TABLE).where(columns.tenant_id == tx.tenant_id, columns.entity_id == gone)
    async with tx.as_steward():
        return [row["id"] for row in await tx.rows(statement.values(entity_id=into).returning(columns.id))]


async def give_acts_back(tx: Transaction, ids: Sequence[str], entity_id: UUID) -> None:
    """Let an entity that came back have its acts again."""
    if ids:
        columns = _TABLE.c
        mine = columns.tenant_id == tx.tenant_id, columns.id.in_([UUID(ident) for ident in ids])
        async with tx.as_steward():
            await tx.run(update(_TABLE).where(*mine).values(entity_id=entity_id))


async def mark_undone(tx: Transaction, act_id: UUID) -> None:
    """Note that an act holds no longer; it stays in the list."""
    mine = (_TABLE.c.tenant_id == tx.tenant_id) & (_TABLE.c.id == act_id)
    await tx.run(update(_TABLE).where(mine).values(undone_at=func.clock_timestamp()))


def done_to(act: RowMapping) -> UUID:
    """The entity that an act was done to, which may have become part of another since."""
    known: str | None = act["before"].get("entity_id")
    return act["entity_id"] if known is None else UUID(known)


def _of(tx: Transaction, entity_id: UUID) -> tuple[Any, ...]:
    columns = _TABLE.c
    return columns.tenant_id == tx.tenant_id, or_(columns.entity_id == entity_id, columns.other_id == entity_id)


def _after(tx: Transaction, act: RowMapping) -> tuple[Any, ...]:
    columns = _TABLE.c
    return (
        columns.tenant_id == tx.tenant_id,
        tuple_(columns.at, columns.id) > tuple_(act["at"], act["id"]),
        columns.undone_at.is_(None),
        columns.kind != "undo",
    )


def _shown(row: RowMapping, principal: Principal) -> EntityAct:
    told = _could_read(row["before"].get("audiences"), principal)
    return EntityAct(
        row["id"],
        row["kind"],
        row["at"],
        Who(row["role"], row["user_id"]),
        row["entity_id"],
        row["other_id"] if told else None,
        row["detail"] if told else {},
        row["undone_at"],
    )


def _could_read(audiences: list[dict[str, Any]] | None, principal: Principal) -> bool:
    """Whether somebody was among the readers of both entities at that time."""
    known = [Audience(one["everybody"], frozenset(one["users"]), frozenset(one["groups"])) for one in audiences or ()]
    return bool(known) and all(audience.admits(principal.user_id, principal.groups) for audience in known)
