"""What both backends do to a patch before they touch a graph: refuse bad values, keep the last of equal rows.

One rule in one place: a patch that one backend takes, the other takes too, and with the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from memory_os.graph.encoder import canonical_float, check_id, check_int, check_text
from memory_os.graph.port import (
    CoOccurrence,
    EntityNode,
    GraphDataError,
    GraphPatch,
    LinkEdge,
    MemoryNode,
    Mention,
    NodeRef,
    TypedEdge,
)

KINDS = ("memory", "entity", "record")
"""The kinds of nodes."""

Row = TypeVar("Row")


def normalise(patch: GraphPatch, edge_types: frozenset[str]) -> GraphPatch:
    """Check every value of a patch and bring it into the form that is stored.

    Args:
        patch: What a caller wants to set.
        edge_types: The closed set of edge types.

    Returns:
        An equal patch with plain, canonical values, at most one row for each key (the last one given wins), and without
        the edges and links that it deletes as well.

    Raises:
        GraphDataError: Some value can't be stored; the message names the row.
    """
    deleted_edges, deleted_links = _ids(patch.deleted_edges), _ids(patch.deleted_links)
    edges = _last(patch.edges, lambda row: _edge(row, edge_types), lambda row: row.id)
    links = _last(patch.links, _link, lambda row: row.id)
    return GraphPatch(
        entities=_last(patch.entities, _entity, lambda row: row.id),
        co_occurrences=_last(patch.co_occurrences, _co_occurrence, lambda row: (row.a, row.b)),
        memories=_last(patch.memories, _memory, lambda row: row.id),
        mentions=_last(patch.mentions, _mention, lambda row: (row.memory_id, row.entity_id)),
        edges=[edge for edge in edges if edge.id not in set(deleted_edges)],
        deleted_edges=deleted_edges,
        links=[link for link in links if link.id not in set(deleted_links)],
        deleted_links=deleted_links,
        deleted_memories=_ids(patch.deleted_memories),
        deleted_entities=_ids(patch.deleted_entities),
        deleted_records=_ids(patch.deleted_records),
        nothing_to_prune=frozenset(patch.nothing_to_prune),
    )


def _last(rows: Iterable[Row], check: Callable[[Row], Row], key: Callable[[Row], object]) -> list[Row]:
    kept: dict[object, Row] = {}
    for row in rows:
        try:
            checked = check(row)
        except GraphDataError as error:
            raise GraphDataError(f"{type(row).__name__} {_name(row)}: {error}") from error
        kept[key(checked)] = checked
    return list(kept.values())


def _name(row: object) -> str:
    """Tell a row apart in a message without repeating its text: `ascii` shows what can't be printed."""
    parts = [getattr(row, field, None) for field in ("id", "memory_id", "entity_id", "a", "b")]
    return ascii("/".join(str(part) for part in parts if part is not None))[:120]


def _ids(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(check_id(value) for value in ids))


def _optional_int(value: int | None) -> int | None:
    return None if value is None else check_int(value)


def _ref(ref: NodeRef) -> NodeRef:
    if ref.kind not in KINDS:
        raise GraphDataError(f"A node is one of {', '.join(KINDS)}.")
    return NodeRef(ref.kind, check_id(ref.id))


def _entity(row: EntityNode) -> EntityNode:
    return EntityNode(
        id=check_id(row.id),
        name=check_text(row.name),
        type=check_text(row.type),
        strength=canonical_float(row.strength),
        declared=bool(row.declared),
    )


def _memory(row: MemoryNode) -> MemoryNode:
    return MemoryNode(
        id=check_id(row.id),
        label=check_text(row.label),
        status=check_text(row.status),
        version=check_int(row.version),
        valid_from=_optional_int(row.valid_from),
        valid_to=_optional_int(row.valid_to),
        user_id=None if row.user_id is None else check_text(row.user_id),
    )


def _mention(row: Mention) -> Mention:
    return Mention(check_id(row.memory_id), check_id(row.entity_id), canonical_float(row.weight))


def _co_occurrence(row: CoOccurrence) -> CoOccurrence:
    checked = CoOccurrence(check_id(row.a), check_id(row.b), canonical_float(row.weight), check_int(row.count))
    if checked.a >= checked.b:
        raise GraphDataError("A pair of entities is written once, the smaller id first.")
    if checked.count < 0:
        raise GraphDataError("A pair of entities can't occur less than never.")
    return checked


def _edge(row: TypedEdge, edge_types: frozenset[str]) -> TypedEdge:
    # The type goes into the text of a query: it must be one of ours, letter by letter.
    if row.type not in edge_types:
        raise GraphDataError(f"{row.type!a} is no edge type.")
    return replace(
        row,
        id=check_id(row.id),
        type=str.__str__(row.type),
        source=_ref(row.source),
        target=_ref(row.target),
        confidence=canonical_float(row.confidence),
        co_reference_count=check_int(row.co_reference_count),
        weight=None if row.weight is None else canonical_float(row.weight),
    )


def _link(row: LinkEdge) -> LinkEdge:
    return replace(
        row,
        id=check_id(row.id),
        entity_id=check_id(row.entity_id),
        target=_ref(row.target),
        relationship=check_text(row.relationship),
        confidence=canonical_float(row.confidence),
        valid_from=_optional_int(row.valid_from),
        valid_to=_optional_int(row.valid_to),
    )
