"""Merging an entity into another: names, links and edges move, and what mentions it is resolved anew.

A person says that the two are one. Nothing here guesses it from their names, and nothing here forbids it because of
them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, update

from memory_os.admin.audit import record
from memory_os.checking import check_version
from memory_os.domain.audiences import Audience
from memory_os.domain.principal import Principal
from memory_os.entities.checking import distinct_aliases
from memory_os.entities.model import MAX_ALIASES, Entity, EntityMerge, StoredEntity
from memory_os.entities.moving import EDGES, LINKS, move_relations
from memory_os.entities.reading import get_entity, read_entities, returned_columns
from memory_os.entities.vectors import EmbeddedTexts
from memory_os.entities.writing import check_declared, embedded_text
from memory_os.errors import ConflictError, FieldError, NotFoundError
from memory_os.outbox.events import DELETE, UPSERT, NewEvent, Outbox
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.entities
_KEPT = (
    *("id", "name", "entity_type", "aliases", "summary", "payload", "confidence", "status", "visibility", "user_id"),
    *("readers", "created_at", "updated_at", "version"),
)
"""What the audit log keeps of an entity that goes."""


async def texts_of_merge(tx: Transaction, merge: EntityMerge) -> list[str]:
    """The texts to embed for a merge: the one that `into` will have, or none where it stays as it is.

    Raises:
        NotFoundError: If this reader does not see both entities.
        ConflictError: If they can't be merged.
    """
    source, into = await _read(tx, merge, lock=False)
    aliases = _check_both(source, into)
    return [] if aliases == into.aliases else [embedded_text(into.name, aliases, into.summary)]


async def merge_entities(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    merge: EntityMerge,
    vectors: EmbeddedTexts,
    *,
    if_match: int | None,
    request_id: str | None,
) -> StoredEntity:
    """Make one checked entity part of another. Its summary and payload go with it; the audit log keeps them.

    Its deletion, and the new names of the other, have the projection extract again from the memories that mention
    either: in whatever order the two events come, both find mentions that don't say what the names say.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who merges.
        merge: Which two.
        vectors: The vectors of what `texts_of_merge` gave.
        if_match: The version of `into` that the client saw.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader does not see both entities.
        PreconditionFailedError: If `if_match` is not the version of `into`.
        ConflictError: If one of them is derived, the merge would show one to readers who may not see it, or there
            would be too many aliases.
        EntityMovedError: If the text after the merge is not the one that was embedded.
    """
    source, into = await _read(tx, merge, lock=True)
    check_version(if_match, into.version)
    aliases = _check_both(source, into)
    values: dict[str, Any] = {}
    if aliases != into.aliases:
        values = {"aliases": aliases, **vectors.columns(embedded_text(into.name, aliases, into.summary))}
    edges = await move_relations(tx, EDGES, source.id, into.id)
    links = await move_relations(tx, LINKS, source.id, into.id)
    mine = _TABLE.c.tenant_id == tx.tenant_id
    gone = await tx.row(delete(_TABLE).where(mine, _TABLE.c.id == source.id).returning(_TABLE.c.created_by))
    rows = await tx.rows(
        update(_TABLE)
        .where(mine, _TABLE.c.id == into.id)
        .values(**values, version=_TABLE.c.version + 1, updated_at=func.now())
        .returning(*returned_columns())
    )
    merged = (await read_entities(tx, rows))[0]
    kept = {name: getattr(source, name) for name in _KEPT}
    detail = {
        "from": kept | {"created_by": gone and gone["created_by"]},
        "before": {"aliases": into.aliases},
        "edges": edges.detail,
        "links": links.detail,
    }
    both = [Audience.of(source), Audience.of(into)]
    told = {"from": source.id}
    await record(tx, principal, "entity.merge", "entity", into.id, told, request_id, content={**detail}, readers=both)
    # Whoever looks for the one that went finds out where to.
    where = {"entity_type": source.entity_type, "merged_into": into.id}
    await record(tx, principal, "entity.delete", "entity", source.id, where, request_id)
    events = [
        NewEvent(DELETE, "entity", source.id, source.version + 1),
        NewEvent(UPSERT, "entity", into.id, merged.version),
        *edges.events,
        *links.events,
    ]
    return StoredEntity(merged, await outbox.enqueue(tx, events, request_id))


async def _read(tx: Transaction, merge: EntityMerge, *, lock: bool) -> tuple[Entity, Entity]:
    """Both entities, locked in the order of their ids: two merges of the same two can't wait for each other."""
    found, absent = {}, []
    for pointer, ident in sorted((("/from", merge.source), ("/into", merge.into)), key=lambda end: end[1]):
        try:
            found[pointer] = await get_entity(tx, ident, lock=lock)
        except NotFoundError as error:
            absent.append(FieldError(pointer, error.detail))
    if absent:
        raise NotFoundError("there is no such entity", errors=sorted(absent, key=lambda fault: fault.pointer))
    return found["/from"], found["/into"]


def _check_both(source: Entity, into: Entity) -> list[str]:
    """The aliases that `into` will have; raises `ConflictError` where the two can't be merged."""
    check_declared(source)
    check_declared(into)
    if not Audience.of(source).covers(Audience.of(into)):
        raise ConflictError(
            f"the merge would show the names and links of from, whose visibility is {source.visibility}, to readers of "
            "into who may not see it: give into no more readers than from has, or widen from on purpose first"
        )
    aliases = distinct_aliases(into.name, [*into.aliases, source.name, *source.aliases])
    if len(aliases) > MAX_ALIASES:
        raise ConflictError(
            f"the two have {len(aliases)} aliases together, and an entity has at most {MAX_ALIASES}: remove some first"
        )
    return aliases
