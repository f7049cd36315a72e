"""Whole rows of entities, as an act keeps them to put them back, and rows whose ids were mentioned before they came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import Text, cast, exists, func, select, update

from memory_os.entities.model import Entity
from memory_os.entities.reading import read_entities, returned_columns
from memory_os.errors import ConflictError, NotFoundError
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.entities
_DERIVED: Final = ("canonical_name", "search", "mention_records", "mention_occurrences", "mention_confidence")
"""Columns that are computed from others, or from mentions."""

TEXTS: Final = ("name", "entity_type", "aliases", "summary", "payload", "confidence", "status")
READERS: Final = ("visibility", "user_id", "reader_users", "reader_groups")


async def read_row(tx: Transaction, entity_id: UUID) -> dict[str, Any]:
    """All that has to be kept of an entity, the vector as text.

    Raises:
        NotFoundError: If this reader sees no such entity.
    """
    kept = [column for column in _TABLE.c if column.name not in ("tenant_id", "embedding", *_DERIVED)]
    statement = select(*kept, cast(_TABLE.c.embedding, Text).label("embedding"))
    row = await tx.row(statement.where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == entity_id))
    if row is None:
        raise NotFoundError("there is no such entity")
    return dict(row)


async def put_row_back(tx: Transaction, row: Mapping[str, Any]) -> int:
    """Put an entity back as it was, with a version above that of its deletion; that version.

    `hold_mentions` must have been asked for, so that its counts are those of the mentions that it still has.

    Raises:
        ConflictError: If its id is taken by now.
    """
    ident = UUID(row["id"])
    given = {"tenant_id": tx.tenant_id, "row": msgspec.json.encode(row).decode()}
    async with tx.as_steward():
        put = await tx.hot("put_back_entity", given)
        if not put:
            raise ConflictError(f"the id {ident} is taken by another record by now: delete that first")
        await tx.touched("count_mentions", {"tenant_id": tx.tenant_id, "id": ident})
    return int(put[0]["version"])


async def update_row(tx: Transaction, entity_id: UUID, values: Mapping[str, Any]) -> Entity:
    """Set columns of a locked entity, and let its version grow."""
    statement = (
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == entity_id)
        .values(**values, version=_TABLE.c.version + 1, updated_at=func.now())
    )
    return (await read_entities(tx, await tx.rows(statement.returning(*returned_columns()))))[0]


async def hold_mentions(tx: Transaction, entity_id: UUID) -> None:
    """Keep the mentions of an entity that is not there as they are, until the end of the transaction.

    Ask before anything else is locked: workers hold the tenant's lease before they touch a row.
    """
    given = {"tenant_id": tx.tenant_id, "id": entity_id}
    await tx.hot("hold_projection", {"tenant_id": tx.tenant_id})
    async with tx.as_steward():
        await tx.hot("hold_mentioning", given)


async def is_taken(tx: Transaction, entity_id: UUID) -> bool:
    """Whether an entity has this id, be it one that this reader does not see: it could not be stored under it."""
    async with tx.as_steward():
        found = await tx.row(select(_TABLE.c.id).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == entity_id))
    return found is not None


async def is_mentioned(tx: Transaction, entity_id: UUID) -> bool:
    """Whether memories mention an id, be it that of an entity that went and whose mentions still have to follow."""
    mentions = tables.mentions.c
    async with tx.as_steward():
        found = await tx.run(
            select(exists().where(mentions.tenant_id == tx.tenant_id, mentions.entity_id == entity_id))
        )
    return bool(found.scalar_one())


async def count_mentions(tx: Transaction, entity_id: UUID) -> None:
    """Give a new entity the counts of the mentions that its id has already; see `hold_mentions`."""
    async with tx.as_steward():
        await tx.touched("count_mentions", {"tenant_id": tx.tenant_id, "id": entity_id})
