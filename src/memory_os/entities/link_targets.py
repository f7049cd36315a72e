"""What links lead to: one table a layer, and the condition that a reader sees the record at the other end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Table, exists, func, or_, select

from memory_os.entities.model import LinkedRecord
from memory_os.storage import tables
from memory_os.storage.database import Transaction

TARGETS: Final[Mapping[str, Table]] = {
    "entity": tables.entities,
    "memory": tables.memories,
    **tables.RECORD_TABLES,
}
"""The table of each layer that a link can lead to."""

TITLE_CHARS: Final = 500
"""As long as a title can be; of a memory's text the beginning is shown."""

_TITLES: Final = {"entity": "name", "memory": "text"}
"""The column that names a record of a layer; the others have a title."""


async def is_visible(tx: Transaction, layer: str, target_id: UUID) -> bool:
    """Whether this reader sees the record. A foreign key alone would tell of hidden ones."""
    columns = TARGETS[layer].c
    statement = select(columns.id).where(columns.tenant_id == tx.tenant_id, columns.id == target_id)
    return await tx.row(statement) is not None


def target_is_visible(tx: Transaction) -> ColumnElement[bool]:
    """The condition on `entity_links` that this reader sees what the link leads to."""
    links = tables.entity_links.c
    conditions = []
    for layer, table in TARGETS.items():
        target = table.alias(f"target_{layer}").c
        conditions.append(exists().where(target.tenant_id == tx.tenant_id, target.id == links[f"target_{layer}_id"]))
    return or_(*conditions)


async def read_linked(tx: Transaction, wanted: Iterable[tuple[str, UUID]]) -> dict[tuple[str, UUID], LinkedRecord]:
    """Title and status of records by (layer, id); those that this reader does not see are left out."""
    ids: dict[str, set[UUID]] = defaultdict(set)
    for layer, ident in wanted:
        ids[layer].add(ident)
    found: dict[tuple[str, UUID], LinkedRecord] = {}
    for layer, some in ids.items():
        columns: Any = TARGETS[layer].c
        title = columns[_TITLES.get(layer, "title")]
        rows = await tx.rows(
            select(columns.id, func.left(title, TITLE_CHARS).label("title"), columns.status).where(
                columns.tenant_id == tx.tenant_id, columns.id.in_(some)
            )
        )
        for row in rows:
            found[layer, row["id"]] = LinkedRecord(layer, row["id"], row["title"], row["status"])
    return found
