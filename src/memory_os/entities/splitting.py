"""Splitting an entity: aliases that belong to somebody else go to an entity of their own.

Links and edges stay where they are, since nothing says which of the two they are about; mentions follow the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.dialects.postgresql import insert

from memory_os.admin.audit import record
from memory_os.checking import check_version
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.names import canonical_name
from memory_os.domain.principal import Principal
from memory_os.entities.act_model import PlannedEntity, SplitPlan, StoredSplit
from memory_os.entities.acts import find_split, note_act
from memory_os.entities.checking import distinct_aliases
from memory_os.entities.model import Entity, EntitySplit
from memory_os.entities.planning import count_mentioning, shared_names
from memory_os.entities.reading import find_entity, get_entity, read_entities, returned_columns
from memory_os.entities.rows import count_mentions, hold_mentions, is_taken, read_row, update_row
from memory_os.entities.vectors import EmbeddedTexts
from memory_os.entities.writing import check_declared, embedded_text
from memory_os.errors import ConflictError, FieldError, InvalidInputError
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.entities


@dataclass(frozen=True, slots=True)
class _Parts:
    """The names of both entities after a split, and the texts that they are embedded by."""

    name: str
    aliases: list[str]
    taken: list[str]
    left: list[str]
    text: str
    left_text: str


async def texts_of_split(tx: Transaction, split: EntitySplit) -> list[str]:
    """The texts to embed for a split: of the new entity, and of the old one.

    Raises:
        NotFoundError: If this reader sees no such entity.
        ConflictError: If the entity is a derived one.
        InvalidInputError: If it does not have the aliases.
    """
    current = await get_entity(tx, split.entity)
    check_declared(current)
    parts = _part(split, current)
    return [parts.text, parts.left_text]


async def split_entity(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    split: EntitySplit,
    vectors: EmbeddedTexts,
    *,
    if_match: int | None,
    request_id: str | None,
) -> tuple[StoredSplit, bool]:
    """Declare a new entity by aliases of another, with the same readers; or find it where its id did just that before.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who splits.
        split: The checked split.
        vectors: The vectors of what `texts_of_split` gave.
        if_match: The version of the old entity that the client saw.
        request_id: The request, for the log.

    Returns:
        Both entities, and whether the new one is new.

    Raises:
        NotFoundError: If this reader sees no such entity.
        PreconditionFailedError: If `if_match` is not its version.
        ConflictError: If the entity is a derived one, or the id of the new one is taken.
        InvalidInputError: If it does not have the aliases.
        EntityMovedError: If a text after the split is not one that was embedded.
    """
    if split.id is not None:
        await hold_mentions(tx, split.id)  # it may be that of an entity that went, and is mentioned still
    current = await get_entity(tx, split.entity, lock=True)
    check_version(if_match, current.version)
    check_declared(current)
    if split.id is not None and (known := await find_entity(tx, split.id)) is not None:
        if not _is_done(split, current, known):
            raise _taken(split)
        return StoredSplit(known, current, await find_split(tx, current.id, known.id), 0), False
    parts = _part(split, current)
    before = _kept(await read_row(tx, current.id))
    made = await _insert(tx, principal, split, current, parts, vectors.columns(parts.text))
    values = {"aliases": parts.left, **vectors.columns(parts.left_text)}
    remaining = await update_row(tx, current.id, values)
    readers = [Audience.of(current)]
    act_id = await note_act(
        tx,
        principal,
        "split",
        current.id,
        other_id=made.id,
        detail={"entity": current.id, "new": made.id, "name": made.name, "taken": parts.taken},
        before={"old": before, "left": parts.left, "taken": parts.taken, "made": await read_row(tx, made.id)},
        readers=readers,
        request_id=request_id,
    )
    content = {"before": {"aliases": current.aliases}, "taken": parts.taken, "name": made.name}
    told = {"new": made.id, "act_id": act_id}
    await record(
        tx, principal, "entity.split", "entity", current.id, told, request_id, content=content, readers=readers
    )
    events = [NewEvent(UPSERT, "entity", part.id, part.version) for part in (made, remaining)]
    return StoredSplit(made, remaining, act_id, await outbox.enqueue(tx, events, request_id)), True


async def plan_split(tx: Transaction, split: EntitySplit, if_match: int | None) -> SplitPlan:
    """What a split would do, as far as this reader sees it; nothing is changed.

    Raises:
        NotFoundError, PreconditionFailedError, ConflictError, InvalidInputError: As the split itself would.
    """
    current = await get_entity(tx, split.entity)
    check_version(if_match, current.version)
    check_declared(current)
    if split.id is not None and await is_taken(tx, split.id):
        known = await find_entity(tx, split.id)
        if known is None or not _is_done(split, current, known):
            raise _taken(split)
        return SplitPlan(_planned(known), _planned(current), await count_mentioning(tx, [current.id]), 0, [])
    parts = _part(split, current)
    new = [parts.name, *parts.aliases]
    return SplitPlan(
        PlannedEntity(split.id, parts.name, split.entity_type or current.entity_type, parts.aliases),
        PlannedEntity(current.id, current.name, current.entity_type, parts.left),
        await count_mentioning(tx, [current.id]),
        await count_mentioning(tx, [current.id], parts.taken),
        await shared_names(tx, new, [current.id], beside=[current.name, *parts.left]),
    )


def _planned(entity: Entity) -> PlannedEntity:
    return PlannedEntity(entity.id, entity.name, entity.entity_type, entity.aliases)


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """What an undo has to know of the old entity."""
    names = ("aliases", "embedding", "embedding_model")
    return {name: row[name] for name in names} | {"text": embedded_text(row["name"], row["aliases"], row["summary"])}


def _part(split: EntitySplit, current: Entity) -> _Parts:
    own = {canonical_name(alias): alias for alias in current.aliases}
    asked = [canonical_name(alias) for alias in split.aliases]
    faults = [
        FieldError(f"/aliases/{index}", _fault(form, current)) for index, form in enumerate(asked) if form not in own
    ]
    if faults:
        raise InvalidInputError("the entity can't be split like that", errors=faults)
    taken = [own[form] for form in dict.fromkeys(asked)]
    name = split.name or taken[0]
    aliases = distinct_aliases(name, taken)
    left = [alias for form, alias in own.items() if form not in asked]
    return _Parts(
        name,
        aliases,
        taken,
        left,
        embedded_text(name, aliases, None),
        embedded_text(current.name, left, current.summary),
    )


def _fault(form: str, current: Entity) -> str:
    if form == current.canonical_name:
        return "is the entity's own name: rename the entity, or declare another one of that name"
    return "is no alias of the entity"


async def _insert(
    tx: Transaction,
    principal: Principal,
    split: EntitySplit,
    current: Entity,
    parts: _Parts,
    vector: dict[str, Any],
) -> Entity:
    """Store the new entity. It belongs to the old one's user, not to who splits: the same people may read it."""
    values = {
        "tenant_id": tx.tenant_id,
        "id": split.id or new_id(),
        "declared": True,
        "name": parts.name,
        "entity_type": split.entity_type or current.entity_type,
        "aliases": parts.aliases,
        "visibility": current.visibility,
        "user_id": current.user_id,
        "reader_users": current.readers.users,
        "reader_groups": current.readers.groups,
        "created_by": principal.token_id,
        **vector,
    }
    statement = insert(_TABLE).values(values).on_conflict_do_nothing(index_elements=["tenant_id", "id"])
    rows = await tx.rows(statement.returning(*returned_columns()))
    if not rows:
        raise _taken(split)
    if split.id is not None:
        await count_mentions(tx, split.id)
    return (await read_entities(tx, rows))[0] if split.id is None else await get_entity(tx, split.id)


def _taken(split: EntitySplit) -> ConflictError:
    return ConflictError(f"the id {split.id} is taken by another record: leave the id out")


def _is_done(split: EntitySplit, current: Entity, known: Entity) -> bool:
    """Whether an entity is what this split has made already."""
    asked = {canonical_name(alias) for alias in split.aliases}
    names = {canonical_name(name) for name in (known.name, *known.aliases)}
    left = {canonical_name(alias) for alias in current.aliases}
    return (
        known.declared
        and known.id != current.id
        and asked <= names
        and asked.isdisjoint(left)
        and known.canonical_name == canonical_name(split.name or split.aliases[0])
        and split.entity_type in (None, known.entity_type)
    )
