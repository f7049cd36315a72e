"""One tenant's graph in memory: a networkx multigraph under the rules of the graph port.

Nodes are keyed by `kind:id`. Edges are keyed by their type where a pair of nodes has one of it (mentions, co-
occurrences), and by `edge:id` or `link:id` where an edge has an id of its own; `_places` finds the ends of these again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import Any, TypeVar

import msgspec
import networkx as nx

from memory_os.graph.expansion import (
    CO_OCCURS,
    HUB,
    LINK,
    MENTIONS,
    SCAN,
    Edge,
    Neighbourhood,
    Reach,
    neighbourhood,
    normalise_weight,
    strongest_edges,
)
from memory_os.graph.port import (
    STRONGEST,
    CoOccurrence,
    EntityNode,
    GraphDump,
    GraphPatch,
    GraphStats,
    LinkEdge,
    MemoryNode,
    Mention,
    NodeKind,
    NodeRef,
    TypedEdge,
)

Values = Mapping[str, Any]
EdgeRow = Mention | CoOccurrence | TypedEdge | LinkEdge
Row = TypeVar("Row", EntityNode, MemoryNode)
EdgeKind = TypeVar("EdgeKind", Mention, CoOccurrence, TypedEdge, LinkEdge)


class PropertyGraph:
    """A graph that takes normalised patches and answers what the port asks. Nothing here waits or fails half-way.

    Args:
        content: What `content` gave of another graph; an empty one by default.
    """

    def __init__(self, content: Mapping[str, Any] | None = None) -> None:
        # The default of `edges` has changed between releases of networkx; a file must not depend on it.
        # A node's key goes by another name than its own `id`, which it would overwrite.
        self._graph = nx.node_link_graph(content, edges="edges", name="node") if content else nx.MultiDiGraph()
        self._places: dict[str, tuple[str, str]] = {
            key: (source, target)
            for source, target, key in self._graph.edges(keys=True)
            if key not in {MENTIONS, CO_OCCURS}
        }

    def content(self) -> dict[str, Any]:
        """Give the whole graph as plain values."""
        return dict(nx.node_link_data(self._graph, edges="edges", name="node"))

    def apply(self, patch: GraphPatch) -> None:
        """Set what a normalised patch says."""
        for entity in patch.entities:
            self._graph.add_node(f"entity:{entity.id}", kind="entity", **msgspec.to_builtins(entity))
        for memory in patch.memories:
            self._graph.add_node(f"memory:{memory.id}", kind="memory", **msgspec.to_builtins(memory))
        self._set_mentions(patch)
        for pair in patch.co_occurrences:
            source, target = f"entity:{pair.a}", f"entity:{pair.b}"
            if pair.count:
                self._set(source, target, CO_OCCURS, {"type": CO_OCCURS, "weight": pair.weight, "count": pair.count})
            else:
                self._remove(source, target, CO_OCCURS)
        self._set_declared(patch)
        for node in (
            *(f"memory:{key}" for key in patch.deleted_memories),
            *(f"entity:{key}" for key in patch.deleted_entities),
        ):
            self._delete_node(node)
        self._delete_lonely_records(f"record:{key}" for key in patch.deleted_records)

    def mentioned_entities(self, memory_ids: Iterable[str]) -> dict[str, frozenset[str]]:
        """The entities that each memory mentions; absent memories are left out."""
        return {
            memory: frozenset(
                self._graph.nodes[target]["id"]
                for _, target, key in self._graph.out_edges(f"memory:{memory}", keys=True)
                if key == MENTIONS
            )
            for memory in memory_ids
            if f"memory:{memory}" in self._graph
        }

    def neighbourhood(self, ref: NodeRef, reach: Reach, as_of: int | None) -> Neighbourhood | None:
        """The edges around a node that a hop wants, family by family; None where there is no such node."""
        node = f"{ref.kind}:{ref.id}"
        if node not in self._graph:
            return None
        rooms = {
            MENTIONS: (SCAN if reach.first else HUB + 1) * reach.wants_mentions(ref.kind),
            CO_OCCURS: (HUB + 1) * reach.wants_stations,
        }
        families: dict[str, list[Edge]] = {"": [], MENTIONS: [], CO_OCCURS: []}
        for far, forward, edge in self._around(node):
            kind = edge["type"] if edge["type"] in rooms else ""
            if len(families[kind]) < rooms.get(kind, SCAN) and far != node and _is_valid(edge, as_of):
                families[kind].append(self._edge(far, forward, edge))
        mentions, pairs = families[MENTIONS], families[CO_OCCURS]
        strongest = strongest_edges(mentions) if reach.first else mentions
        return neighbourhood(reach, (len(mentions), strongest), (len(pairs), pairs), families[""])

    def stats(self) -> GraphStats:
        """Counts and the strongest entities."""
        kinds = [kind for _, kind in self._graph.nodes(data="kind")]
        types: dict[str, int] = {}
        for _, _, edge_type in self._graph.edges(data="type"):
            types[edge_type] = types.get(edge_type, 0) + 1
        entities = (_read(EntityNode, values) for _, values in self._nodes("entity"))
        strongest = nsmallest(STRONGEST, entities, key=lambda entity: (-entity.strength, entity.id))
        return GraphStats(
            nodes=len(kinds),
            edges=sum(types.values()),
            entity_nodes=kinds.count("entity"),
            memory_nodes=kinds.count("memory"),
            edges_by_type=dict(sorted(types.items())),
            top_entities=[(entity, self._count_mentions(entity.id)) for entity in strongest],
        )

    def dump(self) -> GraphDump:
        """Everything in the graph."""
        records = self._nodes("record")
        return GraphDump(
            memories={values["id"]: _read(MemoryNode, values) for _, values in self._nodes("memory")},
            entities={values["id"]: _read(EntityNode, values) for _, values in self._nodes("entity")},
            records=frozenset(values["id"] for _, values in records),
            mentions={(row.memory_id, row.entity_id): row.weight for row in self._rows(Mention)},
            co_occurrences={(row.a, row.b): (row.weight, row.count) for row in self._rows(CoOccurrence)},
            edges={row.id: row for row in self._rows(TypedEdge)},
            links={row.id: row for row in self._rows(LinkEdge)},
        )

    def count_nodes(self) -> dict[str, int]:
        """The number of nodes by kind."""
        return dict(Counter(kind for _, kind in self._graph.nodes(data="kind")))

    def node_ids(self, kind: NodeKind) -> Iterator[str]:
        """The ids of the nodes of one kind."""
        return (values["id"] for _, values in self._nodes(kind))

    def node_row(self, ref: NodeRef) -> EntityNode | MemoryNode | NodeRef | None:
        """A node as a row of the port; None where it is not there."""
        node = f"{ref.kind}:{ref.id}"
        if node not in self._graph:
            return None
        if ref.kind == "record":
            return ref
        values = self._graph.nodes[node]
        return _read(MemoryNode, values) if ref.kind == "memory" else _read(EntityNode, values)

    def rows_from(self, ref: NodeRef) -> Iterator[EdgeRow]:
        """The edges that start at a node, as rows of the port."""
        node = f"{ref.kind}:{ref.id}"
        if node in self._graph:
            for edge in self._graph.out_edges(node, keys=True, data=True):
                yield self._row(*edge)

    def placed_ids(self, prefix: str) -> Iterator[str]:
        """The ids of typed edges (`edge:`) or links (`link:`)."""
        return (key.removeprefix(prefix) for key in self._places if key.startswith(prefix))

    def placed_row(self, key: str) -> EdgeRow | None:
        """The edge `edge:id` or link `link:id` as a row of the port; None where it is not there."""
        ends = self._places.get(key)
        return None if ends is None else self._row(*ends, key, self._graph.edges[(*ends, key)])

    def _rows(self, kind: type[EdgeKind]) -> Iterator[EdgeKind]:
        rows = (self._row(*edge) for edge in self._graph.edges(keys=True, data=True))
        return (row for row in rows if isinstance(row, kind))

    def _row(self, source: str, target: str, key: str, edge: Values) -> EdgeRow:
        ends = self._ref(source), self._ref(target)
        if key == MENTIONS:
            return Mention(ends[0].id, ends[1].id, edge["weight"])
        if key == CO_OCCURS:
            return CoOccurrence(ends[0].id, ends[1].id, edge["weight"], edge["count"])
        if edge["type"] == LINK:
            values = (edge[name] for name in ("relationship", "confidence", "valid_from", "valid_to"))
            return LinkEdge(edge["id"], ends[0].id, ends[1], *values)
        count, weight = edge["co_reference_count"], edge.get("weight")
        return TypedEdge(edge["id"], edge["type"], *ends, edge["confidence"], count, weight)

    def _set_mentions(self, patch: GraphPatch) -> None:
        listed = {(f"memory:{mention.memory_id}", f"entity:{mention.entity_id}") for mention in patch.mentions}
        for memory in patch.memories:
            mentioned = [
                edge for edge in self._graph.out_edges(f"memory:{memory.id}", keys=True) if edge[2] == MENTIONS
            ]
            for source, target, key in mentioned:
                if (source, target) not in listed:
                    self._remove(source, target, key)
        for mention in patch.mentions:
            values = {"type": MENTIONS, "weight": mention.weight}
            self._set(f"memory:{mention.memory_id}", f"entity:{mention.entity_id}", MENTIONS, values)

    def _set_declared(self, patch: GraphPatch) -> None:
        for edge in patch.edges:
            values = {
                "type": edge.type,
                "id": edge.id,
                "confidence": edge.confidence,
                "co_reference_count": edge.co_reference_count,
                "weight": edge.weight,
            }
            self._place(f"edge:{edge.id}", edge.source, edge.target, values)
        for edge_id in patch.deleted_edges:
            self._displace(f"edge:{edge_id}")
        for link in patch.links:
            values = {
                "type": LINK,
                "id": link.id,
                "relationship": link.relationship,
                "confidence": link.confidence,
                "valid_from": link.valid_from,
                "valid_to": link.valid_to,
            }
            self._place(f"link:{link.id}", NodeRef("entity", link.entity_id), link.target, values)
        for link_id in patch.deleted_links:
            self._displace(f"link:{link_id}")

    def _place(self, key: str, source: NodeRef, target: NodeRef, values: Values) -> None:
        """Put an edge with an id between its ends, wherever it was; records are made, other ends must be there."""
        ends = [f"{ref.kind}:{ref.id}" for ref in (source, target)]
        if self._places.get(key) != (ends[0], ends[1]):
            self._displace(key)
        if any(
            ref.kind != "record" and node not in self._graph for ref, node in zip((source, target), ends, strict=True)
        ):
            return
        for ref, node in zip((source, target), ends, strict=True):
            if node not in self._graph:
                self._graph.add_node(node, kind="record", id=ref.id)
        self._set(ends[0], ends[1], key, values)
        self._places[key] = (ends[0], ends[1])

    def _displace(self, key: str) -> None:
        ends = self._places.pop(key, None)
        if ends is not None:
            self._remove(*ends, key)
            self._delete_lonely_records(ends)

    def _delete_node(self, node: str) -> None:
        if node not in self._graph:
            return
        around = list(self._graph.predecessors(node)) + list(self._graph.successors(node))
        keys = [key for *_, key in (*self._graph.in_edges(node, keys=True), *self._graph.out_edges(node, keys=True))]
        self._graph.remove_node(node)
        for key in keys:
            self._places.pop(key, None)
        self._delete_lonely_records(around)

    def _delete_lonely_records(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            if node in self._graph and self._graph.nodes[node]["kind"] == "record" and not self._graph.degree(node):
                self._graph.remove_node(node)

    def _set(self, source: str, target: str, key: str, values: Values) -> None:
        if source in self._graph and target in self._graph:
            self._graph.add_edge(source, target, key=key, **values)

    def _remove(self, source: str, target: str, key: str) -> None:
        if self._graph.has_edge(source, target, key=key):
            self._graph.remove_edge(source, target, key=key)

    def _around(self, node: str) -> Iterator[tuple[str, bool, Values]]:
        for _, far, edge in self._graph.out_edges(node, data=True):
            yield far, True, edge
        for far, _, edge in self._graph.in_edges(node, data=True):
            yield far, False, edge

    def _edge(self, far: str, forward: bool, edge: Values) -> Edge:
        end = self._ref(far)
        weight = normalise_weight(edge["type"], _weight(edge))
        return Edge(weight, edge["type"], edge.get("id"), forward, end.kind, end.id, edge.get("relationship"))

    def _ref(self, node: str) -> NodeRef:
        values = self._graph.nodes[node]
        return NodeRef(values["kind"], values["id"])

    def _nodes(self, kind: str) -> Iterator[tuple[str, Values]]:
        return ((node, values) for node, values in self._graph.nodes(data=True) if values["kind"] == kind)

    def _count_mentions(self, entity_id: str) -> int:
        return sum(key == MENTIONS for *_, key in self._graph.in_edges(f"entity:{entity_id}", keys=True))


def _weight(edge: Values) -> float:
    weight = edge.get("weight")  # files of older versions have none for typed edges
    return float(edge["confidence"] if weight is None else weight)


def _is_valid(edge: Values, as_of: int | None) -> bool:
    """Whether a link holds at a time: its window is half open. Other edges have none."""
    if as_of is None or edge["type"] != LINK:
        return True
    begun = edge["valid_from"] is None or edge["valid_from"] <= as_of
    return begun and (edge["valid_to"] is None or edge["valid_to"] > as_of)


def _read(row: type[Row], values: Values) -> Row:
    return row(**{name: value for name, value in values.items() if name != "kind"})
