"""The canonical row behind an event, as it is now, for whoever has to find out why its projection fails.

Postgres renders the values, so that a row which can't be read any other way (a time beyond the year 9999, say) still
shows: such a row is just what an operator is looking for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec import Struct
from sqlalchemy import ColumnElement, Table, exists, func, or_, select

from memory_os.entities.link_targets import target_is_visible
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TIMES = ("created_at", "updated_at", "version")
_FACTS: Mapping[str, tuple[str, ...]] = {
    "memory": (
        *("label", "layer", "status", "visibility", "user_id", "confidence", "occurred_at", "valid_from", "valid_to"),
        *_TIMES,
    ),
    # How often an entity is mentioned is left out: it counts memories that this reader may not see.
    "entity": ("entity_type", "status", "declared", "visibility", "user_id", "confidence", *_TIMES),
    "entity_link": ("entity_id", "layer", "target_id", "confidence", "valid_from", "valid_to", *_TIMES),
    "edge": (
        *("type", "source_memory_id", "source_entity_id", "target_memory_id", "target_entity_id", "confidence"),
        *("co_reference_count", *_TIMES),
    ),
}
_CONTENT: Mapping[str, tuple[str, ...]] = {
    "memory": ("title", "text"),
    "entity": ("name",),
    "entity_link": ("relationship",),
    "edge": (),
}
_TABLES: Mapping[str, Table] = {
    "memory": tables.memories,
    "entity": tables.entities,
    "entity_link": tables.entity_links,
    "edge": tables.edges,
}


class CanonicalRecord(Struct):
    """A canonical row: `facts` are ids, states, times and figures; `content` is what people wrote."""

    facts: dict[str, Any]
    content: dict[str, Any]


async def find_canonical(tx: Transaction, aggregate_type: str, aggregate_id: UUID) -> CanonicalRecord | None:
    """The row of an aggregate; None where it is gone, or this reader may not see it."""
    columns = _TABLES[aggregate_type].c
    conditions: list[ColumnElement[bool]] = [columns.tenant_id == tx.tenant_id, columns.id == aggregate_id]
    # Links and edges have no readers of their own: they show to who sees both ends.
    if aggregate_type == "entity_link":
        conditions += [_is_there(tx, tables.entities, columns.entity_id), target_is_visible(tx)]
    elif aggregate_type == "edge":
        conditions += [_end_is_visible(tx, columns, "source"), _end_is_visible(tx, columns, "target")]
    row = await tx.row(
        select(
            _as_json(columns, _FACTS[aggregate_type]).label("facts"),
            _as_json(columns, _CONTENT[aggregate_type]).label("content"),
        ).where(*conditions)
    )
    return None if row is None else CanonicalRecord(row["facts"], row["content"])


def _as_json(columns: Any, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - SQLAlchemy's own types
    pairs: list[Any] = []
    for name in names:
        pairs += [name, columns[name]]
    return func.jsonb_build_object(*pairs)


def _is_there(tx: Transaction, table: Table, ident: ColumnElement[Any]) -> ColumnElement[bool]:
    end = table.alias().c
    return exists().where(end.tenant_id == tx.tenant_id, end.id == ident)


def _end_is_visible(tx: Transaction, columns: Any, side: str) -> ColumnElement[bool]:  # noqa: ANN401 - as above
    return or_(
        _is_there(tx, tables.memories, columns[f"{side}_memory_id"]),
        _is_there(tx, tables.entities, columns[f"{side}_entity_id"]),
    )
