"""What links lead to: one table a layer, and the selection of those whose target a reader sees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from sqlalchemy import FromClause, Select, Table, func, literal, select

from memory_os.domain.audiences import Audience
from memory_os.entities.model import LinkedRecord
from memory_os.storage import provenance_tables, tables
from memory_os.storage.database import Transaction
from memory_os.storage.shown_names import shown_name

TARGETS: Final[Mapping[str, Table]] = {
    "entity": tables.entities,
    "memory": tables.memories,
    **tables.RECORD_TABLES,
    "source": provenance_tables.sources,
}
"""The table of each layer that a link can lead to."""

TITLE_CHARS: Final = 500
"""As long as a title can be; of a memory's text the beginning is shown."""

IN_USE: Final = "active"
"""What is shown as the status of a source, which has none: it is there or it is not."""

_TITLES: Final = {"memory": "text"}
"""The column that names a record of a layer, apart from entities; the others have a title."""


async def is_visible(tx: Transaction, layer: str, target_id: UUID) -> bool:
    """Whether this reader sees the record. A foreign key alone would tell of hidden ones."""
    columns = TARGETS[layer].c
    statement = select(columns.id).where(columns.tenant_id == tx.tenant_id, columns.id == target_id)
    return await tx.row(statement) is not None


async def read_audience(tx: Transaction, layer: str, target_id: UUID) -> Audience:
    """The readers of a record that this reader sees; nobody, where it is not there."""
    columns = TARGETS[layer].c
    readers = (columns.visibility, columns.user_id, columns.reader_users, columns.reader_groups)
    row = await tx.row(select(*readers).where(columns.tenant_id == tx.tenant_id, columns.id == target_id))
    return Audience(everybody=False) if row is None else Audience.of_columns(row)


def select_links(tx: Transaction) -> Select[Any]:
    """The links whose target this reader sees; the entity that they lead from is the caller's to look at.

    Each kind of target is joined, since EXISTS under OR is planned as a hash of all visible records.
    """
    links = tables.entity_links
    source: FromClause = links
    found = []
    for layer, table in TARGETS.items():
        target = table.alias(f"target_{layer}")
        source = source.outerjoin(
            target, (target.c.tenant_id == tx.tenant_id) & (target.c.id == links.c[f"target_{layer}_id"])
        )
        found.append(target.c.id)
    return (
        select(links).select_from(source).where(links.c.tenant_id == tx.tenant_id, func.coalesce(*found).is_not(None))
    )


async def read_linked(tx: Transaction, wanted: Iterable[tuple[str, UUID]]) -> dict[tuple[str, UUID], LinkedRecord]:
    """Title and status of records by (layer, id); those that this reader does not see are left out."""
    ids: dict[str, set[UUID]] = defaultdict(set)
    for layer, ident in wanted:
        ids[layer].add(ident)
    found: dict[tuple[str, UUID], LinkedRecord] = {}
    for layer, some in ids.items():
        columns: Any = TARGETS[layer].c
        title = shown_name(TARGETS[layer]) if layer == "entity" else columns[_TITLES.get(layer, "title")]
        status = columns.get("status", literal(IN_USE))
        rows = await tx.rows(
            select(columns.id, func.left(title, TITLE_CHARS).label("title"), status.label("status")).where(
                columns.tenant_id == tx.tenant_id, columns.id.in_(some)
            )
        )
        for row in rows:
            found[layer, row["id"]] = LinkedRecord(layer, row["id"], row["title"], row["status"])
    return found
