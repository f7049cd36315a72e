"""Links of entities: declared relationships with a window of validity, shown only to who sees both ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, delete, func, or_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from memory_os.admin.audit import record
from memory_os.checking import check_version
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.edges.holding import reconsider
from memory_os.entities.link_targets import is_visible, read_audience, select_links
from memory_os.entities.model import Link, LinkDraft, StoredLink
from memory_os.entities.reading import check_entity
from memory_os.errors import ConflictError, FieldError, InvalidInputError, NotFoundError
from memory_os.memories.model import Deleted
from memory_os.outbox.events import DELETE, UPSERT, NewEvent, Outbox
from memory_os.storage import tables
from memory_os.storage.clock import transaction_time
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = tables.entity_links


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """What a list is narrowed to; None leaves a field alone. `valid_at` keeps links whose window holds that moment."""

    valid_at: datetime | None = None
    relationship: str | None = None
    layer: str | None = None


def holds(columns: Any, moment: datetime) -> ColumnElement[bool]:  # noqa: ANN401 - the columns of any table with a window
    """The condition that a window [valid_from, valid_to) holds a moment: a boundary belongs to the later one only."""
    begun = or_(columns.valid_from.is_(None), columns.valid_from <= moment)
    condition: ColumnElement[bool] = begun & or_(columns.valid_to.is_(None), columns.valid_to > moment)
    return condition


async def store_link(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    entity_id: UUID,
    draft: LinkDraft,
    request_id: str | None,
) -> tuple[StoredLink, bool]:
    """Store a checked link, or find it where its id was stored with the same ends and relationship before.

    Returns:
        The link, and whether it is new.

    Raises:
        NotFoundError: If this reader sees no such entity.
        InvalidInputError: If the target is not there for this reader, or is the entity itself.
        ConflictError: If its id is taken by another record.
    """
    await check_entity(tx, entity_id)
    if draft.layer == "entity" and draft.target_id == entity_id:
        raise _bad_target("an entity can't be linked to itself")
    if not await is_visible(tx, draft.layer, draft.target_id):
        raise _bad_target(f"there is no such {draft.layer}")
    ident = draft.id or new_id()
    values = {
        "tenant_id": tx.tenant_id,
        "id": ident,
        "entity_id": entity_id,
        "layer": draft.layer,
        "target_id": draft.target_id,
        "relationship": draft.relationship,
        "confidence": draft.confidence,
        "valid_from": draft.valid_from,
        "valid_to": draft.valid_to,
        "created_by": principal.token_id,
    }
    statement = insert(_TABLE).values(values).on_conflict_do_nothing(index_elements=["tenant_id", "id"])
    row = await tx.row(statement.returning(_TABLE))
    if row is not None:
        event = NewEvent(UPSERT, "entity_link", ident, row["version"])
        return StoredLink(link_of(row), await outbox.enqueue(tx, [event], request_id)), True
    known = await tx.row(_visible(tx, entity_id).where(_TABLE.c.id == ident))
    same = ("layer", "target_id", "relationship")
    if known is None or any(known[name] != getattr(draft, name) for name in same):
        raise ConflictError(f"the id {ident} is taken by another record: leave the id out")
    return StoredLink(link_of(known), 0), False


async def list_links(
    tx: Transaction, entity_id: UUID, wanted: LinkFilter, cursor: str | None, limit: int
) -> Page[Link]:
    """The links of an entity, newest first, one page at a time.

    Raises:
        NotFoundError: If this reader sees no such entity.
    """
    await check_entity(tx, entity_id)
    columns = _TABLE.c
    statement = _visible(tx, entity_id)
    for column in ("relationship", "layer"):
        if (value := getattr(wanted, column)) is not None:
            statement = statement.where(columns[column] == value)
    if wanted.valid_at is not None:
        statement = statement.where(holds(columns, wanted.valid_at))
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([link_of(row) for row in page], next_cursor)


async def close_link(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    entity_id: UUID,
    link_id: UUID,
    valid_to: datetime | None,
    request_id: str | None,
) -> StoredLink:
    """End a link at a moment, by default now. A link that ends by then already stays as it is.

    Raises:
        NotFoundError: If this reader sees no such entity or link.
        InvalidInputError: If the link would end before it begins.
        ConflictError: If it has ended before the moment that the client names.
    """
    current = await _locked(tx, entity_id, link_id)
    end = valid_to or await transaction_time(tx)
    if current.valid_to is not None and current.valid_to <= end:
        if valid_to is not None and valid_to != current.valid_to:
            raise ConflictError(f"the link has ended at {current.valid_to.isoformat()} already")
        return StoredLink(current, 0)
    if current.valid_from is not None and end < current.valid_from:
        raise InvalidInputError(
            "the link can't be closed like that",
            errors=[FieldError("/valid_to", f"the link begins at {current.valid_from.isoformat()} only")],
        )
    row = await tx.row(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == link_id)
        .values(valid_to=end, version=_TABLE.c.version + 1, updated_at=func.now())
        .returning(_TABLE)
    )
    if row is None:
        raise AssertionError("a locked row can't be gone")
    before = {"before": {"valid_to": current.valid_to}}
    await record(tx, principal, "entity_link.close", "entity_link", link_id, before, request_id)
    event = NewEvent(UPSERT, "entity_link", link_id, row["version"])
    return StoredLink(link_of(row), await outbox.enqueue(tx, [event], request_id))


async def delete_link(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    entity_id: UUID,
    link_id: UUID,
    *,
    if_match: int | None,
    request_id: str | None,
) -> Deleted:
    """Delete a link, as if it had never been declared; to say that it ended, close it.

    Raises:
        NotFoundError: If this reader sees no such entity or link.
        PreconditionFailedError: If `if_match` is not its version.
    """
    current = await _locked(tx, entity_id, link_id)
    check_version(if_match, current.version)
    await tx.run(delete(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == link_id))
    ends = [await read_audience(tx, *end) for end in (("entity", entity_id), (current.layer, current.target_id))]
    detail = {"entity_id": entity_id, "target_id": current.target_id, "layer": current.layer}
    content = {"relationship": current.relationship}
    await record(
        tx,
        principal,
        "entity_link.delete",
        "entity_link",
        link_id,
        detail,
        request_id,
        content=content,
        readers=ends,
    )
    events = [NewEvent(DELETE, "entity_link", link_id, current.version + 1)]
    events += reconsider([entity_id, current.target_id if current.layer == "entity" else None])
    return Deleted(1, await outbox.enqueue(tx, events, request_id))


def link_of(row: RowMapping) -> Link:
    """A row of `entity_links` as readers see it."""
    return Link(**{name: row[name] for name in Link.__struct_fields__})


def _bad_target(fault: str) -> InvalidInputError:
    return InvalidInputError("the link leads nowhere", errors=[FieldError("/target_id", fault)])


def _visible(tx: Transaction, entity_id: UUID) -> Select[Any]:
    return select_links(tx).where(_TABLE.c.entity_id == entity_id)


async def _locked(tx: Transaction, entity_id: UUID, link_id: UUID) -> Link:
    await check_entity(tx, entity_id)
    row = await tx.row(_visible(tx, entity_id).where(_TABLE.c.id == link_id).with_for_update(of=_TABLE))
    if row is None:
        raise NotFoundError("there is no such link")
    return link_of(row)
