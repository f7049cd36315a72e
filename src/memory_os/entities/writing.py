"""Storing, changing and deleting entities: rows and events in one unit of work."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec import UNSET
from sqlalchemy import delete, func, update
from sqlalchemy.dialects.postgresql import insert

from memory_os.admin.audit import record
from memory_os.changes import changed_columns, values_before
from memory_os.checking import check_version
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.edges.holding import entities_beside, reconsider, relations_beside
from memory_os.entities.checking import check_patch, distinct_aliases
from memory_os.entities.model import Entity, EntityDraft, EntityPatch, StoredEntity
from memory_os.entities.reading import find_entity, get_entity, read_entities, returned_columns
from memory_os.entities.rows import count_mentions, hold_mentions, is_mentioned
from memory_os.errors import ConflictError
from memory_os.memories.model import Deleted
from memory_os.memories.writing import Embedded, vector_literal
from memory_os.outbox.events import DELETE, UPSERT, NewEvent, Outbox
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.entities


class EntityMovedError(Exception):
    """Somebody changed the entity while its new text was being embedded: the vector would be of a text it never had."""


def embedded_text(name: str, aliases: list[str], summary: str | None) -> str:
    """The text whose vector an entity has: its name, its aliases, its summary."""
    return ". ".join(part for part in (name, ", ".join(aliases), summary) if part)


def text_after(patch: EntityPatch, current: Entity) -> str | None:
    """The text to embed for a change; None where the change leaves it as it is."""
    name = current.name if patch.name is UNSET else patch.name
    aliases = distinct_aliases(name, current.aliases if patch.aliases is UNSET else patch.aliases)
    summary = current.summary if patch.summary is UNSET else patch.summary
    after = embedded_text(name, aliases, summary)
    return None if after == embedded_text(current.name, current.aliases, current.summary) else after


async def store_entity(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    draft: EntityDraft,
    embedded: Embedded,
    request_id: str | None,
) -> tuple[StoredEntity, bool]:
    """Store a checked entity, or find it where its id was stored with the same name and type before.

    Returns:
        The entity, and whether it is new.

    Raises:
        ConflictError: If its id is taken by another record.
    """
    ident = draft.id or new_id()
    mentioned = draft.id is not None and await is_mentioned(tx, ident)
    if mentioned:
        await hold_mentions(tx, ident)  # it is that of an entity that went, and whose mentions have still to follow
    values = {
        "tenant_id": tx.tenant_id,
        "id": ident,
        "declared": True,
        "name": draft.name,
        "entity_type": draft.entity_type,
        "aliases": distinct_aliases(draft.name, draft.aliases),
        "summary": draft.summary,
        "payload": draft.payload,
        "confidence": draft.confidence,
        "visibility": draft.visibility,
        "user_id": principal.user_id,
        "reader_users": draft.readers.users if draft.readers else [],
        "reader_groups": draft.readers.groups if draft.readers else [],
        "created_by": principal.token_id,
        **_vector(embedded),
    }
    statement = insert(_TABLE).values(values).on_conflict_do_nothing(index_elements=["tenant_id", "id"])
    rows = await tx.rows(statement.returning(*returned_columns()))
    if rows:
        if mentioned:
            await count_mentions(tx, ident)
        entity = await get_entity(tx, ident) if mentioned else (await read_entities(tx, rows))[0]
        event = NewEvent(UPSERT, "entity", ident, entity.version)
        return StoredEntity(entity, await outbox.enqueue(tx, [event], request_id)), True
    known = await find_entity(tx, ident)
    same = known and known.declared and (known.name, known.entity_type) == (draft.name, draft.entity_type)
    if known is None or not same:
        raise ConflictError(
            f"the id {ident} is taken by another record: leave the id out, or change that record with PATCH"
        )
    return StoredEntity(known, 0), False


async def change_entity(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    entity_id: UUID,
    patch: EntityPatch,
    *,
    text: str | None,
    embedded: Embedded,
    if_match: int | None,
    request_id: str | None,
) -> StoredEntity:
    """Apply a patch under the entity's row lock, with an audit entry of what was there before.

    Args:
        tx: The unit of work.
        outbox: Where the projection is enqueued.
        principal: Who changes.
        entity_id: Which entity.
        patch: What to change.
        text: The text that was embedded for this change; None where it leaves the text as it is.
        embedded: Its vector.
        if_match: The version that the client saw.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader sees no such entity.
        PreconditionFailedError: If `if_match` is not its version.
        InvalidInputError: If the patch breaks a rule.
        ConflictError: If the entity is a derived one.
        EntityMovedError: If the text after the change is not the one that was embedded.
    """
    current = await get_entity(tx, entity_id, lock=True)
    check_version(if_match, current.version)
    check_declared(current)
    check_patch(patch, current, principal)
    values = _values(patch, current)
    if not values:
        return StoredEntity(current, 0)
    if text_after(patch, current) != text:
        raise EntityMovedError
    if text is not None:
        values |= _vector(embedded)
    rows = await tx.rows(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == entity_id)
        .values(**values, version=_TABLE.c.version + 1, updated_at=func.now())
        .returning(*returned_columns())
    )
    changed = (await read_entities(tx, rows))[0]
    before = values_before(current, values)
    await record(
        tx,
        principal,
        "entity.change",
        "entity",
        entity_id,
        {"fields": sorted(before)},
        request_id,
        content={"before": before},
        readers=[Audience.of(current), Audience.of(changed)],
    )
    event = NewEvent(UPSERT, "entity", entity_id, changed.version)
    return StoredEntity(changed, await outbox.enqueue(tx, [event], request_id))


async def delete_entity(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    entity_id: UUID,
    *,
    if_match: int | None,
    request_id: str | None,
) -> Deleted:
    """Delete a declared entity with its names, links and edges; what mentions it is resolved anew by the projection.

    Raises:
        NotFoundError: If this reader sees no such entity.
        PreconditionFailedError: If `if_match` is not its version.
        ConflictError: If the entity is a derived one.
    """
    current = await get_entity(tx, entity_id, lock=True)
    check_version(if_match, current.version)
    check_declared(current)
    beside, relations = await entities_beside(tx, entity_id), await relations_beside(tx, entity_id)
    await tx.run(delete(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == entity_id))
    detail = {"entity_type": current.entity_type}
    await record(tx, principal, "entity.delete", "entity", entity_id, detail, request_id)
    events = [NewEvent(DELETE, "entity", entity_id, current.version + 1), *relations, *reconsider(beside)]
    return Deleted(1, await outbox.enqueue(tx, events, request_id))


def check_declared(entity: Entity) -> None:
    """Refuse to change a derived entity by hand.

    Raises:
        ConflictError: If it is one.
    """
    if not entity.declared:
        raise ConflictError(
            "a derived entity follows the memories that name it: declare one of that name instead, "
            "and the mentions move to it"
        )


def _values(patch: EntityPatch, current: Entity) -> dict[str, Any]:
    values = changed_columns(patch, current)
    if "name" in values or "aliases" in values:
        aliases = distinct_aliases(values.get("name", current.name), values.pop("aliases", current.aliases))
        if aliases != current.aliases:
            values["aliases"] = aliases
    return values


def _vector(embedded: Embedded) -> dict[str, Any]:
    """The two columns of a vector, both null where the embedder was down."""
    if embedded.vectors is None:
        return {"embedding": None, "embedding_model": None}
    return {"embedding": vector_literal(embedded.vectors[0]), "embedding_model": embedded.identity.model}
