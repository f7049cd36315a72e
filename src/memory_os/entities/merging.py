"""Merging an entity into another: names, links and edges move, and what mentions it is resolved anew.

A person says that the two are one; nothing here guesses it from their names. Only where the digits of these differ has
it to be said twice. The act keeps all that it takes to undo it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import delete

from memory_os.admin.audit import record
from memory_os.checking import check_version
from memory_os.domain.audiences import Audience
from memory_os.domain.digits import digits_of
from memory_os.domain.principal import Principal
from memory_os.entities.act_model import Doubt, MergedEntity, MergePlan, PlannedEntity
from memory_os.entities.acts import adopt_acts, note_act
from memory_os.entities.checking import distinct_aliases
from memory_os.entities.model import MAX_ALIASES, Entity, EntityMerge
from memory_os.entities.moving import EDGES, LINKS, look_at_moves, move_relations
from memory_os.entities.planning import count_mentioning, planned_relations, shared_names
from memory_os.entities.reading import get_entity
from memory_os.entities.rows import read_row, update_row
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
    aliases = _check_both(source, into, merge)
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
) -> MergedEntity:
    """Make one checked entity part of another. Its summary and payload go with it; the act keeps them.

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
        ConflictError: If one of them is derived, the merge would show one to readers who may not see it, there would
            be too many aliases, or the digits of the names differ.
        EntityMovedError: If the text after the merge is not the one that was embedded.
    """
    source, into = await _read(tx, merge, lock=True)
    check_version(if_match, into.version)
    aliases = _check_both(source, into, merge)
    values: dict[str, Any] = {}
    if aliases != into.aliases:
        values = {"aliases": aliases, **vectors.columns(embedded_text(into.name, aliases, into.summary))}
    before = {"row": await read_row(tx, source.id), "into": _kept(await read_row(tx, into.id)), "after": aliases}
    edges = await move_relations(tx, EDGES, source.id, into.id)
    links = await move_relations(tx, LINKS, source.id, into.id)
    acts = await adopt_acts(tx, source.id, into.id)
    await tx.run(delete(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == source.id))
    merged = await update_row(tx, into.id, values)
    both = [Audience.of(source), Audience.of(into)]
    told = {"from": source.id, "into": into.id, "name": source.name, "entity_type": source.entity_type}
    act_id = await note_act(
        tx,
        principal,
        "merge",
        into.id,
        other_id=source.id,
        detail={**told, "aliases": source.aliases},
        before={
            **before,
            "edges": edges.before,
            "links": links.before,
            "joined": [*edges.joined, *links.joined],
            "acts": acts,
        },
        readers=both,
        request_id=request_id,
    )
    await _log(tx, principal, source, into, act_id, request_id)
    events = [
        NewEvent(DELETE, "entity", source.id, source.version + 1),
        NewEvent(UPSERT, "entity", into.id, merged.version),
        *edges.events,
        *links.events,
    ]
    return MergedEntity(merged, act_id, await outbox.enqueue(tx, events, request_id))


async def _log(
    tx: Transaction, principal: Principal, source: Entity, into: Entity, act_id: UUID, request_id: str | None
) -> None:
    told = {"from": source.id, "act_id": act_id}
    content = {"from": {name: getattr(source, name) for name in _KEPT}, "before": {"aliases": into.aliases}}
    both = [Audience.of(source), Audience.of(into)]
    await record(tx, principal, "entity.merge", "entity", into.id, told, request_id, content=content, readers=both)
    # Whoever looks for the one that went finds out where to.
    where = {"entity_type": source.entity_type, "merged_into": into.id}
    await record(tx, principal, "entity.delete", "entity", source.id, where, request_id)


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """What an undo has to know of the entity that stays."""
    names = ("aliases", "embedding", "embedding_model", "first_seen", "last_seen")
    return {name: row[name] for name in names} | {"text": embedded_text(row["name"], row["aliases"], row["summary"])}


async def plan_merge(tx: Transaction, merge: EntityMerge, if_match: int | None) -> MergePlan:
    """What a merge would do, as far as this reader sees it; nothing is changed.

    Raises:
        NotFoundError, PreconditionFailedError, ConflictError: As the merge itself would.
    """
    source, into = await _read(tx, merge, lock=False)
    check_version(if_match, into.version)
    aliases = _check_both(source, into, merge)
    return MergePlan(
        PlannedEntity(into.id, into.name, into.entity_type, aliases),
        PlannedEntity(source.id, source.name, source.entity_type, source.aliases),
        planned_relations(await look_at_moves(tx, EDGES, source.id, into.id)),
        planned_relations(await look_at_moves(tx, LINKS, source.id, into.id)),
        await count_mentioning(tx, [source.id, into.id]),
        [*_doubts(source, into), *await shared_names(tx, [into.name, *aliases], [source.id, into.id])],
    )


def _doubts(source: Entity, into: Entity) -> list[Doubt]:
    doubts = list[Doubt]()
    if digits_of(source.name) != digits_of(into.name):
        doubts.append(Doubt("digits_differ", _digits(source, into)))
    if source.entity_type != into.entity_type:
        told = f"from is of type {source.entity_type}, into of type {into.entity_type}"
        doubts.append(Doubt("types_differ", told))
    if source.status != into.status:
        doubts.append(Doubt("statuses_differ", f"from is {source.status}, into is {into.status}"))
    if source.summary or source.payload:
        doubts.append(Doubt("summary_goes", "from has a summary or a payload, which go with it until it is undone"))
    return doubts


def _digits(source: Entity, into: Entity) -> str:
    mine, theirs = (" ".join(digits_of(entity.name)) or "none" for entity in (source, into))
    return f"the digits of the two names differ: {mine} in from, {theirs} in into"


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


def _check_both(source: Entity, into: Entity, merge: EntityMerge) -> list[str]:
    """The aliases that `into` will have; raises `ConflictError` where the two can't be merged."""
    check_declared(source)
    check_declared(into)
    if not Audience.of(source).covers(Audience.of(into)):
        raise ConflictError(
            f"the merge would show the names and links of from, whose visibility is {source.visibility}, to readers of "
            "into who may not see it: give into no more readers than from has, or widen from on purpose first"
        )
    if digits_of(source.name) != digits_of(into.name) and not merge.despite_digits:
        raise ConflictError(
            f"{_digits(source, into)}, and differing digits mean different things. If the two are one all the same, "
            "say despite_digits"
        )
    aliases = distinct_aliases(into.name, [*into.aliases, source.name, *source.aliases])
    if len(aliases) > MAX_ALIASES:
        raise ConflictError(
            f"the two have {len(aliases)} aliases together, and an entity has at most {MAX_ALIASES}: remove some first"
        )
    return aliases
