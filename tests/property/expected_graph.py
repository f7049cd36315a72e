"""What a tenant's graph and derived rows must be, worked out anew from its texts and declarations alone.

Nothing here is shared with the product but the extractor, the canonical form of a name and the shapes of the port: the
formulas of the weights, the resolution of names and the counting stand here a second time, in plain Python.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any
from uuid import UUID, uuid5

from tests.chaos.observing import differences
from tests.property.stages import Stage

from memory_os.domain.extraction import EXTRACTOR, EXTRACTOR_VERSION, DeclaredNames, ExtractedMention, extract
from memory_os.domain.names import canonical_name
from memory_os.graph.port import EntityNode, GraphDump, LinkEdge, MemoryNode, NodeRef, TypedEdge

Row = Mapping[str, Any]
_DERIVED = UUID("6d656d6f-7279-5f6f-735f-656e74697479")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATEMENTS = {
    "memories": "SELECT id, label, status, version, user_id, valid_from, valid_to, text, title FROM memories",
    "entities": "SELECT id, name, entity_type, declared, aliases, mention_records, mention_occurrences, "
    "mention_confidence FROM entities",
    "names": "SELECT canonical_name, entity_id, surface FROM entity_names",
    "mentions": "SELECT memory_id, canonical_name, entity_id, occurrences, confidence FROM mentions",
    "pairs": "SELECT entity_a, entity_b, records FROM entity_pairs",
    "extractions": "SELECT memory_id, extractor, extractor_version FROM extractions",
    "edges": "SELECT id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id, confidence, "
    "co_reference_count, claimed_confidence FROM edges",
    "links": "SELECT id, entity_id, layer, target_id, relationship, confidence, valid_from, valid_to FROM entity_links",
    "events": "SELECT id, status, aggregate_type, aggregate_id, last_error FROM outbox_events",
}


class InvariantBrokenError(AssertionError):
    """The stores are not what the canonical rows say that they are."""


@dataclass(frozen=True, slots=True)
class Mentioned:
    """One entity in one memory, by all names of it together."""

    occurrences: int
    confidence: float


class Canonical:
    """The canonical rows of one tenant as they are, with what follows from them.

    Args:
        stage: The stores.
        tenant_id: Whose rows.
    """

    def __init__(self, stage: Stage, tenant_id: UUID) -> None:
        self.tenant_id = tenant_id
        self.rows = {
            name: stage.rows(f"{statement} WHERE tenant_id = %(tenant)s", tenant=tenant_id)
            for name, statement in _STATEMENTS.items()
        }
        self.entities = {row["id"]: row for row in self.rows["entities"]}
        self.names = [
            (canonical, row["id"], surface)
            for row in self.entities.values()
            if row["declared"]
            for canonical, surface in _own_names(row).items()
        ]
        index = DeclaredNames((canonical, surface) for canonical, _, surface in self.names)
        self._found: dict[UUID, tuple[ExtractedMention, ...]] = {
            row["id"]: extract(row["text"], index, row["title"]) for row in self.rows["memories"]
        }
        self._bearers: dict[str, set[UUID]] = defaultdict(set)
        for canonical, entity_id, _ in self.names:
            self._bearers[canonical].add(entity_id)

    def resolve(self, canonical: str) -> UUID:
        """The entity that a name stands for: the only one declared under it, else the derived one of the name."""
        bearers = self._bearers[canonical]
        return next(iter(bearers)) if len(bearers) == 1 else uuid5(_DERIVED, f"{self.tenant_id}:{canonical}")

    def mentioned(self) -> dict[tuple[UUID, UUID], Mentioned]:
        """What each memory mentions."""
        found: dict[tuple[UUID, UUID], Mentioned] = {}
        for memory_id, mentions in self._found.items():
            for mention in mentions:
                key = memory_id, self.resolve(mention.key)
                before = found.get(key, Mentioned(0, 0.0))
                found[key] = Mentioned(
                    before.occurrences + mention.occurrences, max(before.confidence, mention.confidence)
                )
        return found

    def graph(self) -> GraphDump:
        """`project(canonical)`."""
        mentioned = self.mentioned()
        of_entity: dict[UUID, list[Mentioned]] = defaultdict(list)
        for (_, entity_id), mention in mentioned.items():
            of_entity[entity_id].append(mention)
        edges, links = [_edge(row) for row in self.rows["edges"]], [_link(row) for row in self.rows["links"]]
        ends = [end for edge in edges for end in (edge.source, edge.target)] + [link.target for link in links]
        held = {UUID(end.id) for end in ends if end.kind == "entity"} | {UUID(link.entity_id) for link in links}
        living = {row["id"] for row in self.entities.values() if row["declared"]} | held | set(of_entity)
        return GraphDump(
            memories={str(row["id"]): _memory(row) for row in self.rows["memories"]},
            entities={str(ident): self._entity(ident, of_entity[ident]) for ident in living},
            records=frozenset(end.id for end in ends if end.kind == "record"),
            mentions={
                (str(memory_id), str(entity_id)): _weight(mention.confidence + 0.2 * (mention.occurrences - 1))
                for (memory_id, entity_id), mention in mentioned.items()
            },
            co_occurrences={
                (str(a), str(b)): (_weight(0.5 + 0.05 * (count - 1)), count)
                for (a, b), count in _count_pairs(mentioned).items()
            },
            edges={edge.id: edge for edge in edges},
            links={link.id: link for link in links},
        )

    def _entity(self, ident: UUID, mentions: Sequence[Mentioned]) -> EntityNode:
        row = self.entities.get(ident)
        if row is None:
            raise InvariantBrokenError(f"the entity {ident} is named or held, and has no row")
        occurrences = sum(mention.occurrences for mention in mentions)
        best = max((mention.confidence for mention in mentions), default=0.0)
        strength = _weight(best + 0.2 * (occurrences - 1)) if occurrences else 0.0
        return EntityNode(str(ident), row["name"], row["entity_type"], strength, row["declared"])

    def faults(self) -> list[str]:
        """Where the derived rows are not what the texts and declarations say."""
        rows = self.rows
        expected_names = {(canonical, entity): surface for canonical, entity, surface in self.names}
        names = {(row["canonical_name"], row["entity_id"]): row["surface"] for row in rows["names"]}
        expected_mentions = {
            (memory_id, mention.key): (self.resolve(mention.key), mention.occurrences, mention.confidence)
            for memory_id, mentions in self._found.items()
            for mention in mentions
        }
        mentions = {
            (row["memory_id"], row["canonical_name"]): (row["entity_id"], row["occurrences"], row["confidence"])
            for row in rows["mentions"]
        }
        mentioned = self.mentioned()
        pairs = {(row["entity_a"], row["entity_b"]): row["records"] for row in rows["pairs"]}
        counts = {
            ident: (row["mention_records"], row["mention_occurrences"], row["mention_confidence"])
            for ident, row in self.entities.items()
        }
        marks = {row["memory_id"]: (row["extractor"], row["extractor_version"]) for row in rows["extractions"]}
        held_against = {
            "names": (names, expected_names),
            "mentions": (mentions, expected_mentions),
            "pairs": (pairs, _count_pairs(mentioned)),
            "counts": (counts, _count_entities(self.entities, mentioned)),
            "marks of extraction": (marks, dict.fromkeys(self._found, (EXTRACTOR, EXTRACTOR_VERSION))),
        }
        return [
            f"{what}: {line}"
            for what, (found, expected) in held_against.items()
            for line in differences(expected, found)
        ]


def _own_names(row: Row) -> dict[str, str]:
    """The canonical names of a declared entity, each with the first of its spellings."""
    names: dict[str, str] = {}
    for surface in (row["name"], *row["aliases"]):
        if canonical := canonical_name(surface):
            names.setdefault(canonical, surface)
    return names


def _count_pairs(mentioned: Mapping[tuple[UUID, UUID], Mentioned]) -> dict[tuple[UUID, UUID], int]:
    of_memory: dict[UUID, set[UUID]] = defaultdict(set)
    for memory_id, entity_id in mentioned:
        of_memory[memory_id].add(entity_id)
    return dict(Counter(pair for entities in of_memory.values() for pair in combinations(sorted(entities), 2)))


def _count_entities(
    entities: Mapping[UUID, Row], mentioned: Mapping[tuple[UUID, UUID], Mentioned]
) -> dict[UUID, tuple[int, int, float]]:
    counts: dict[UUID, tuple[int, int, float]] = dict.fromkeys(entities, (0, 0, 0.0))
    for (_, entity_id), mention in mentioned.items():
        records, occurrences, best = counts.get(entity_id, (0, 0, 0.0))
        counts[entity_id] = records + 1, occurrences + mention.occurrences, max(best, mention.confidence)
    return counts


def _weight(value: float) -> float:
    """At most 5, six decimals with halves up, and the fifteen digits that a graph keeps."""
    return float(f"{math.floor(min(5.0, value) * 1e6 + 0.5) / 1e6:.15g}")


def _memory(row: Row) -> MemoryNode:
    return MemoryNode(
        str(row["id"]),
        row["label"],
        row["status"],
        row["version"],
        _microseconds(row["valid_from"]),
        _microseconds(row["valid_to"]),
        row["user_id"],
    )


def _edge(row: Row) -> TypedEdge:
    source, target = (
        NodeRef("memory", str(row[f"{side}_memory_id"]))
        if row[f"{side}_memory_id"]
        else NodeRef("entity", str(row[f"{side}_entity_id"]))
        for side in ("source", "target")
    )
    confidence = float(f"{row['confidence']:.15g}")
    claimed = row["claimed_confidence"]
    weight = None if claimed is None or claimed >= row["confidence"] else float(f"{claimed:.15g}")
    return TypedEdge(str(row["id"]), row["type"], source, target, confidence, row["co_reference_count"], weight)


def _link(row: Row) -> LinkEdge:
    kind: Any = row["layer"] if row["layer"] in ("memory", "entity") else "record"
    return LinkEdge(
        str(row["id"]),
        str(row["entity_id"]),
        NodeRef(kind, str(row["target_id"])),
        row["relationship"],
        float(f"{row['confidence']:.15g}"),
        _microseconds(row["valid_from"]),
        _microseconds(row["valid_to"]),
    )


def _microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def check(stage: Stage, tenant_id: UUID) -> GraphDump:
    """Hold a drained tenant's derived rows and graph against what they must be; gives the graph.

    Raises:
        InvariantBrokenError: Something differs, or an event is neither done nor discarded.
    """
    canonical = Canonical(stage, tenant_id)
    left = [row for row in canonical.rows["events"] if row["status"] not in ("done", "discarded")]
    if left:
        raise InvariantBrokenError(f"events are left: {left}")
    if faults := canonical.faults():
        raise InvariantBrokenError("the derived rows differ (expected -> found):\n" + "\n".join(faults))
    graph = stage.dump(tenant_id)
    if faults := differences(canonical.graph(), graph):
        raise InvariantBrokenError("the graph differs (expected -> found):\n" + "\n".join(faults))
    return graph
