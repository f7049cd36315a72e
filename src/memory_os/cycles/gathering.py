"""Communities among the edges that answers use, each among records of the same readers."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from memory_os.domain.audiences import Audience
from memory_os.domain.cycles.insights import HOLDING, LARGEST, MEMORIES, ORIGIN, tie_strength
from memory_os.graph.communities import find_communities
from memory_os.storage.database import Transaction

MOST_EDGES: Final = 20_000
"""Edges that communities are looked for among, the most used ones: some two seconds, and a tenant has few as sure."""

Row = Mapping[str, Any]
Node = tuple[Literal["memory", "entity"], UUID]


@dataclass(frozen=True, slots=True)
class EdgeBounds:
    """Which edges are read.

    Attributes:
        references: Used so often at least.
        confidence: As sure as this at least.
        since: Used at this moment or later, where it matters.
        until: Used at this moment or before.
    """

    references: int
    confidence: float = 0.0
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Community:
    """Records that belong together.

    Attributes:
        audience: The readers of each of its memories. All of them may read its entities, too.
        memories: Ids, in their order.
        entities: Likewise.
        references: By member, how often answers used its edges within the community.
        strength: The mean strength of these edges.
        layers: Of its memories.
        entity_types: Of its entities.
    """

    audience: Audience
    memories: tuple[UUID, ...]
    entities: tuple[UUID, ...] = ()
    references: Mapping[UUID, int] | None = None
    strength: float = 0.0
    layers: frozenset[str] = frozenset()
    entity_types: frozenset[str] = frozenset()

    @property
    def members(self) -> tuple[UUID, ...]:
        """The ids of all its members."""
        return tuple(sorted((*self.memories, *self.entities)))


async def gather(tx: Transaction, bounds: EdgeBounds, counts: Callable[[Row], bool], least: int) -> list[Community]:
    """The communities of at least so many records among the edges that count.

    The same rows give the same communities in the same order: those that all may read first.
    """
    given: dict[str, Any] = {"references": bounds.references, "confidence": bounds.confidence, "most": MOST_EDGES}
    given |= {"since": bounds.since, "until": bounds.until}
    edges = [row for row in await tx.hot("used_edges", {"tenant_id": tx.tenant_id, **given}) if counts(row)]
    nodes = await _nodes(tx, edges)
    shared: dict[Audience, list[Row]] = defaultdict(list)
    for edge in edges:
        audience = _common(nodes.get(_end(edge, "source")), nodes.get(_end(edge, "target")))
        if audience is not None:
            shared[audience].append(edge)
    found: list[Community] = []
    for audience in sorted(shared, key=_order):
        ties = [(_name(_end(edge, "source")), _name(_end(edge, "target")), _weight(edge)) for edge in shared[audience]]
        parts = await asyncio.to_thread(find_communities, ties, least)
        found += [_community(audience, part, inner, nodes) for part, inner in _parted(parts, shared[audience])]
    return [one for one in found if len(one.memories) >= MEMORIES]


def _parted(parts: Sequence[Collection[str]], edges: Sequence[Row]) -> list[tuple[set[Node], list[Row]]]:
    """The nodes of each part, and the edges within it."""
    place = {name: number for number, names in enumerate(parts) for name in names}
    found: list[tuple[set[Node], list[Row]]] = [(set(), []) for _ in parts]
    for edge in edges:
        ends = (_end(edge, "source"), _end(edge, "target"))
        numbers = [place.get(_name(node)) for node in ends]
        for number, node in zip(numbers, ends, strict=True):
            if number is not None:
                found[number][0].add(node)
        if numbers[0] is not None and numbers[0] == numbers[1]:
            found[numbers[0]][1].append(edge)
    return found


async def _nodes(tx: Transaction, edges: Iterable[Row]) -> dict[Node, Row]:
    ends = {_end(edge, side) for edge in edges for side in ("source", "target")}
    given = {
        "memories": sorted(ident for kind, ident in ends if kind == "memory"),
        "entities": sorted(ident for kind, ident in ends if kind == "entity"),
        "statuses": list(HOLDING),
        "origin": ORIGIN,
    }
    rows = await tx.hot("insight_nodes", {"tenant_id": tx.tenant_id, **given}) if ends else []
    return {(row["kind"], row["id"]): {**row, "audience": Audience.of_columns(row)} for row in rows}


def _common(first: Row | None, second: Row | None) -> Audience | None:
    """The readers of both ends of an edge, where it counts: of memories these have to be the same."""
    if first is None or second is None:
        return None
    if first["kind"] == "entity":
        first, second = second, first
    audience: Audience = first["audience"]
    same = second["audience"] == audience if second["kind"] == "memory" else second["audience"].covers(audience)
    return audience if same else None


def _community(
    audience: Audience, part: Collection[Node], edges: Sequence[Row], nodes: Mapping[Node, Row]
) -> Community:
    """The community of these nodes, or of those of them that are tied most closely where they are too many."""
    pulls: dict[Node, float] = dict.fromkeys(part, 0.0)
    for edge in edges:
        for side in ("source", "target"):
            pulls[_end(edge, side)] += _weight(edge)
    kept = set(sorted(part, key=lambda node: (-round(pulls[node], 9), _name(node)))[:LARGEST])
    inner = [edge for edge in edges if _end(edge, "source") in kept and _end(edge, "target") in kept]
    references: Counter[UUID] = Counter()
    for edge in inner:
        for _, ident in (_end(edge, "source"), _end(edge, "target")):
            references[ident] += edge["co_reference_count"]
    memories, entities = (sorted(node for node in kept if node[0] == kind) for kind in ("memory", "entity"))
    return Community(
        audience,
        tuple(ident for _, ident in memories),
        tuple(ident for _, ident in entities),
        references,
        round(sum(map(_weight, inner)) / len(inner), 6) if inner else 0.0,
        frozenset(nodes[node]["domain"] for node in memories),
        frozenset(nodes[node]["domain"] for node in entities),
    )


def _weight(edge: Row) -> float:
    return tie_strength(edge["confidence"], edge["co_reference_count"])


def _end(edge: Row, side: str) -> Node:
    memory = edge[f"{side}_memory_id"]
    return ("entity", edge[f"{side}_entity_id"]) if memory is None else ("memory", memory)


def _name(node: Node) -> str:
    return f"{node[0]}:{node[1]}"


def _order(audience: Audience) -> tuple[bool, list[str], list[str]]:
    return not audience.everybody, sorted(audience.users), sorted(audience.groups)
