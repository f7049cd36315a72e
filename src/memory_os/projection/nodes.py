"""`project(canonical)`: how each canonical row looks in the graph. Projector and rebuild use these and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_os.domain.weights import co_occurrence_weight, mention_weight, strength
from memory_os.graph.port import CoOccurrence, EntityNode, LinkEdge, MemoryNode, Mention, NodeRef, TypedEdge

Row = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(moment: datetime | None) -> int | None:
    """Epoch microseconds, exact over the whole range of years, since floats are not."""
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def memory_node(row: Row) -> MemoryNode:
    """A row of `memories`."""
    return MemoryNode(
        id=str(row["id"]),
        label=row["label"],
        status=row["status"],
        version=row["version"],
        valid_from=microseconds(row["valid_from"]),
        valid_to=microseconds(row["valid_to"]),
        user_id=row["user_id"],
    )


def entity_node(row: Row) -> EntityNode:
    """A row of `entities`; its strength follows the mention curve over all its mentions."""
    return EntityNode(
        id=str(row["id"]),
        name=row["name"],
        type=row["entity_type"],
        strength=strength(row["mention_confidence"], row["mention_occurrences"]),
        declared=row["declared"],
    )


def mention_edge(row: Row) -> Mention:
    """All mentions of one entity in one memory, as `mentions_of_memories.sql` sums them."""
    return Mention(str(row["memory_id"]), str(row["entity_id"]), mention_weight(row["confidence"], row["occurrences"]))


def pair_edge(a: str, b: str, records: int) -> CoOccurrence:
    """A row of `entity_pairs`; 0 records where there is none, which removes the edge."""
    return CoOccurrence(a, b, co_occurrence_weight(records) if records else 0.0, records)


def typed_edge(row: Row) -> TypedEdge:
    """A row of `edges`; it weighs what was claimed, or less where it is less sure by now."""
    claimed = row["claimed_confidence"]
    return TypedEdge(
        id=str(row["id"]),
        type=row["type"],
        source=_end(row["source_memory_id"], row["source_entity_id"]),
        target=_end(row["target_memory_id"], row["target_entity_id"]),
        confidence=row["confidence"],
        co_reference_count=row["co_reference_count"],
        weight=claimed if claimed is not None and claimed < row["confidence"] else None,
    )


def link_edge(row: Row) -> LinkEdge:
    """A row of `entity_links`; what is neither memory nor entity is a bare record node."""
    kinds = {"memory": "memory", "entity": "entity"}
    kind = kinds.get(row["layer"], "record")
    return LinkEdge(
        id=str(row["id"]),
        entity_id=str(row["entity_id"]),
        target=NodeRef(kind, str(row["target_id"])),  # type: ignore[arg-type]  # one of the three kinds by construction
        relationship=row["relationship"],
        confidence=row["confidence"],
        valid_from=microseconds(row["valid_from"]),
        valid_to=microseconds(row["valid_to"]),
    )


def _end(memory_id: object, entity_id: object) -> NodeRef:
    return NodeRef("memory", str(memory_id)) if memory_id is not None else NodeRef("entity", str(entity_id))
