"""The canonical row behind an event, as it is now, for whoever has to find out why its projection fails.

Postgres renders the values, so that a row which can't be read any other way (a time beyond the year 9999, say) still
shows: such a row is just what an operator is looking for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Table, func, select

from memory_os.entities.link_targets import is_visible
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
    row = await tx.row(
        select(
            _as_json(columns, _FACTS[aggregate_type]).label("facts"),
            _as_json(columns, _CONTENT[aggregate_type]).label("content"),
        ).where(columns.tenant_id == tx.tenant_id, columns.id == aggregate_id)
    )
    # Links and edges have no readers of their own: they show to who sees both ends.
    if row is None or not all([await is_visible(tx, *end) for end in _ends(aggregate_type, row["facts"])]):
        return None
    # Postgres sorts the keys of jsonb by their length; a reader wants them in the order of their meaning.
    facts = {name: row["facts"][name] for name in _FACTS[aggregate_type]}
    return CanonicalRecord(facts, {name: row["content"][name] for name in _CONTENT[aggregate_type]})


def _as_json(columns: Any, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - SQLAlchemy's own types
    pairs: list[Any] = []
    for name in names:
        pairs += [name, columns[name]]
    return func.jsonb_build_object(*pairs)


def _ends(aggregate_type: str, facts: Mapping[str, Any]) -> list[tuple[str, UUID]]:
    """The records at both ends of a link or an edge, as layer and id."""
    if aggregate_type == "entity_link":
        return [("entity", UUID(facts["entity_id"])), (facts["layer"], UUID(facts["target_id"]))]
    if aggregate_type == "edge":
        ends = [(layer, facts[f"{side}_{layer}_id"]) for side in ("source", "target") for layer in ("memory", "entity")]
        return [(layer, UUID(ident)) for layer, ident in ends if ident]
    return []
