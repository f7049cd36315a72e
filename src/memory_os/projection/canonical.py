"""The canonical rows as rows of a graph, part by part: what a rebuild loads and what a comparison expects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.graph.patches import normalise
from memory_os.graph.port import GraphDataError, GraphPatch, GraphRow, Key, NodeRef, Part, key_of
from memory_os.projection.derivation import EXTRACTED_BY
from memory_os.projection.nodes import entity_node, link_edge, memory_node, mention_edge, pair_edge, typed_edge
from memory_os.storage.database import Transaction

_FIRST = UUID(int=0)
_EDGE_TYPES = frozenset(EDGE_TYPES)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a part comes from: its statement for pages, its statement for given ids, and how a row becomes one."""

    page: str
    given: str
    build: Callable[[Row], GraphRow]


_SOURCES: Mapping[Part, _Source] = {
    "entities": _Source("page_of_entities", "projected_entities", entity_node),
    "memories": _Source("page_of_memories", "projected_memories", memory_node),
    "mentions": _Source("page_of_mentions", "mentions_of_memories", mention_edge),
    "co_occurrences": _Source(
        "page_of_pairs",
        "projected_pairs",
        lambda row: pair_edge(str(row["entity_a"]), str(row["entity_b"]), row["records"]),
    ),
    "edges": _Source("page_of_edges", "projected_edges", typed_edge),
    "links": _Source("page_of_links", "projected_links", link_edge),
    "records": _Source("page_of_records", "projected_records", lambda row: NodeRef("record", str(row["id"]))),
}


async def read_rows(tx: Transaction, part: Part, after: Key, limit: int) -> list[GraphRow]:
    """Rows of one part beyond a key, in the order of their keys, `limit` at most."""
    first, second = [*map(UUID, after), _FIRST, _FIRST][:2]
    given = {"tenant_id": tx.tenant_id, "user_id": None, "after": first, "after_b": second, "page": limit}
    source = _SOURCES[part]
    return [source.build(row) for row in await tx.hot(source.page, given)]


async def read_page(tx: Transaction, part: Part, after: Key, limit: int) -> list[GraphRow]:
    """Like `read_rows`, in the form in which a graph gives them back."""
    return as_stored(part, await read_rows(tx, part, after, limit))


async def look_up(tx: Transaction, part: Part, keys: Collection[Key]) -> dict[Key, GraphRow]:
    """The rows of one part with these keys; what is not there is left out."""
    wanted = {key for key in keys if all(map(is_uuid, key))}  # whatever else is in a graph has no row here
    if not wanted:
        return {}
    source = _SOURCES[part]
    firsts = [UUID(key[0]) for key in sorted(wanted)]
    given: dict[str, Any] = {"tenant_id": tx.tenant_id, "ids": sorted(set(firsts))}
    if part == "memories":
        given |= EXTRACTED_BY
    if part == "co_occurrences":
        given = {"tenant_id": tx.tenant_id, "a": firsts, "b": [UUID(key[1]) for key in sorted(wanted)]}
    rows = as_stored(part, [source.build(row) for row in await tx.hot(source.given, given)])
    return {key: row for row in rows if (key := key_of(row)) in wanted}


def is_uuid(text: str) -> bool:
    """Whether a text that a graph holds can be one of our ids."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def as_stored(part: Part, rows: Sequence[GraphRow]) -> list[GraphRow]:
    """Rows in the form in which a graph gives them back; those that none can hold stay as they are."""
    if part == "records":
        return list(rows)
    values: dict[str, Any] = {part: rows}
    try:
        return list(getattr(normalise(GraphPatch(**values), _EDGE_TYPES), part))
    except GraphDataError:
        if len(rows) == 1:
            return list(rows)
        middle = len(rows) // 2
        return as_stored(part, rows[:middle]) + as_stored(part, rows[middle:])
