"""Splitting an entity: aliases that belong to somebody else go to an entity of their own.

Links and edges stay where they are, since nothing says which of the two they are about; mentions follow the names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, update
from sqlalchemy.dialects.postgresql import insert

from memory_os.admin.audit import record
from memory_os.checking import check_version
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.names import canonical_name
from memory_os.domain.principal import Principal
from memory_os.entities.checking import distinct_aliases
from memory_os.entities.model import Entity, EntitySplit, StoredSplit
from memory_os.entities.reading import find_entity, get_entity, read_entities, returned_columns
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
    current = await get_entity(tx, split.entity, lock=True)
    check_version(if_match, current.version)
    check_declared(current)
    if split.id is not None and (known := await find_entity(tx, split.id)) is not None:
        if not _is_done(split, current, known):
            raise _taken(split)
        return StoredSplit(known, current, 0), False
    parts = _part(split, current)
    made = await _insert(tx, principal, split, current, parts, vectors.columns(parts.text))
    rows = await tx.rows(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == current.id)
        .values(
            aliases=parts.left,
            version=_TABLE.c.version + 1,
            updated_at=func.now(),
            **vectors.columns(parts.left_text),
        )
        .returning(*returned_columns())
    )
    remaining = (await read_entities(tx, rows))[0]
    content = {"before": {"aliases": current.aliases}, "taken": parts.taken, "name": made.name}
    await record(
        tx,
        principal,
        "entity.split",
        "entity",
        current.id,
        {"new": made.id},
        request_id,
        content=content,
        readers=[Audience.of(current)],
    )
    events = [NewEvent(UPSERT, "entity", part.id, part.version) for part in (made, remaining)]
    return StoredSplit(made, remaining, await outbox.enqueue(tx, events, request_id)), True


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
    return (await read_entities(tx, rows))[0]


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
