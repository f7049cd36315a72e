"""The Cypher that reads neighbourhoods: mentions by the kind of node, declared edges at all nodes of a hop together.

The costs that shaped it (FalkorDB 4.16, 533,000 edges, a hub of 25,000): a query costs 0.2 ms before it does anything;
counting a hub's edges 2.4 ms, and reading the first few of them 0.2 ms; an edge of any type (`-[e]-`) is looked for in
every type's matrix, which takes 0.03 ms an edge; 18 types at 16 nodes take 0.8 ms together and 14 ms node by node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from memory_os.graph.encoder import render_query
from memory_os.graph.expansion import (
    CO_OCCURS,
    FOLLOWED,
    HUB,
    LINK,
    MENTIONS,
    SCAN,
    Edge,
    Family,
    Neighbourhood,
    Reach,
    neighbourhood,
    normalise_weight,
)
from memory_os.graph.falkor_queries import KINDS, LABELS
from memory_os.graph.falkor_replies import Reply
from memory_os.graph.port import NodeKind, NodeRef

SCAN_TOGETHER = 1_000
"""Declared edges that are read at all nodes of a hop together; where there are more, each node is read by itself."""

About = Literal["mentions", "co_occurrences"]
Place = tuple[About, NodeKind]
"""A family of derived edges at nodes of one kind."""

HubsAmong = Callable[[str, Sequence[str]], set[str]]
"""Which of some nodes are known as hubs of a family."""

_VALID = (
    f"(type(e) <> '{LINK}' OR "
    "((e.valid_from IS NULL OR e.valid_from <= $as_of) AND (e.valid_to IS NULL OR e.valid_to > $as_of)))"
)
_STRONGEST = (
    "WITH m.id AS far, e.weight AS w ORDER BY w DESC, far LIMIT $followed "
    "WITH collect(far) AS far, collect(w) AS w RETURN size(far) AS seen, far, w"
)
_FEW = (
    "WITH collect(m) AS ms, collect(e) AS es WITH ms, es, size(ms) AS seen "
    "RETURN seen, CASE WHEN seen <= $hub THEN [m IN ms | m.id] END AS far, "
    "CASE WHEN seen <= $hub THEN [e IN es | e.weight] END AS w"
)
_DECLARED = (
    "type(e) AS t, e.id AS eid, startNode(e) = n AS forward, coalesce(e.weight, e.confidence) AS w, "
    "labels(m)[0] AS label, m.id AS far, e.relationship AS relationship"
)
_COLUMNS = "near, nid, t, eid, forward, w, label, far, relationship"
# Each row has a node's id in the place of its kind. One pattern serves all kinds: it is the types that cost.
_NODES = (
    "UNWIND $nodes AS r OPTIONAL MATCH (a:Memory {id: r[0]}) OPTIONAL MATCH (b:Entity {id: r[1]}) "
    "OPTIONAL MATCH (c:Record {id: r[2]}) WITH coalesce(a, b, c) AS n "
)
_PATTERNS: Mapping[Place, str] = {
    ("mentions", "memory"): "(n)-[e:MENTIONS]->(m)",
    ("mentions", "entity"): "(n)<-[e:MENTIONS]-(m)",
    ("co_occurrences", "entity"): "(n)-[e:CO_OCCURS]-(m)",
}
_TYPES_ROW = "MATCH (f:Fence) RETURN 'types' AS about, '' AS kind, '' AS id, 0 AS seen, f.indexed AS far, [] AS w"


@dataclass(frozen=True, slots=True)
class Derived:
    """The question for the derived edges of a hop, all families in one query: a thread is woken up for each query.

    `hubs` are nodes that are known to have more than are followed, and are not asked for. No text asks nothing.
    """

    text: str
    hubs: Mapping[Place, set[str]]


@dataclass(frozen=True, slots=True)
class DerivedEdges:
    """What was read: families by node, the nodes that proved to be hubs, and what the fence's list of types holds."""

    families: Mapping[tuple[NodeKind, str], Mapping[About, Family]]
    new_hubs: Sequence[tuple[About, str]]
    types: Sequence[str]


def ask_derived(nodes: Mapping[NodeKind, Sequence[str]], reach: Reach, known_hubs: HubsAmong) -> Derived:
    """Ask for the mentions and co-occurrences that a hop wants, and at the first for the types that the graph has."""
    places: list[Place] = [("mentions", kind) for kind in nodes if reach.wants_mentions(kind)]
    if "entity" in nodes and reach.wants_stations:
        places.append(("co_occurrences", "entity"))
    texts = [_TYPES_ROW] if reach.first else []
    parameters: dict[str, object] = {"scan": SCAN, "followed": FOLLOWED, "few": HUB + 1, "hub": HUB}
    hubs: dict[Place, set[str]] = {}
    for about, kind in places:
        ranked = reach.first and about == "mentions"
        known = set() if ranked else known_hubs(about, nodes[kind])
        if known:
            hubs[about, kind] = known
        name = f"{about}_{kind}"
        parameters[name] = [ident for ident in nodes[kind] if ident not in known]
        if parameters[name]:
            texts.append(
                f"UNWIND ${name} AS id MATCH (n:{LABELS[kind]} {{id: id}}) CALL {{ WITH n MATCH "
                f"{_PATTERNS[about, kind]} WITH e, m LIMIT {f'$scan {_STRONGEST}' if ranked else f'$few {_FEW}'} }} "
                f"RETURN '{about}' AS about, '{kind}' AS kind, id, seen, far, w"
            )
    return Derived(render_query(" UNION ALL ".join(texts), parameters) if texts else "", hubs)


def read_derived(asked: Derived, replies: Sequence[Reply]) -> DerivedEdges:
    """Read the answer to `ask_derived`; none where there is no graph."""
    families: dict[tuple[NodeKind, str], dict[About, Family]] = defaultdict(dict)
    new_hubs: list[tuple[About, str]] = []
    types: Sequence[str] = ()
    for (about, kind), known in asked.hubs.items():
        for near in known:
            families[kind, near][about] = HUB + 1, ()
    for about, kind, near, seen, far, weights in replies[0] if replies else ():
        if about == "types":
            types = far or ()
            continue
        if far is None:
            new_hubs.append((about, near))
        families[kind, near][about] = seen, _derived_edges(about, kind, near, far or (), weights or ())
    return DerivedEdges(families, new_hubs, types)


def ask_declared(
    nodes: Mapping[NodeKind, Sequence[str]], types: Sequence[str], as_of: int | None, *, apart: bool = False
) -> list[str]:
    """Ask for typed edges and links; nothing is asked where the graph has no types of them.

    Args:
        nodes: The nodes by kind.
        types: The types that the graph has.
        as_of: When links must hold.
        apart: Node by node, which takes long but finds the strongest of each.
    """
    if not types:
        return []
    rows = [[ident if place == kind else "" for place in LABELS] for kind, ids in nodes.items() for ident in ids]
    edges = f"(n)-[e:{'|'.join(types)}]-(m)"
    parameters: dict[str, object] = {"nodes": rows}
    valid = ""
    if as_of is not None and LINK in types:
        valid, parameters["as_of"] = f" WHERE {_VALID}", as_of
    near = "labels(n)[0] AS near, n.id AS nid"
    if apart:
        parameters |= {"scan": SCAN, "followed": FOLLOWED}
        # The order is that of `expansion.edge_order`; texts compare by bytes there and here.
        ranked = f"WITH {near}, {_DECLARED} ORDER BY w DESC, t, eid, label, far, forward DESC LIMIT $followed"
        text = (
            f"{_NODES}WHERE n IS NOT NULL CALL {{ WITH n MATCH {edges}{valid} WITH n, e, m LIMIT $scan {ranked} "
            f"RETURN {_COLUMNS} }} RETURN {_COLUMNS}"
        )
    else:
        parameters["scan"] = SCAN_TOGETHER
        text = f"{_NODES}WHERE n IS NOT NULL MATCH {edges}{valid} WITH n, e, m LIMIT $scan RETURN {near}, {_DECLARED}"
    return [render_query(text, parameters)]


def overflows(declared: Iterable[Reply]) -> bool:
    """Whether there may be more declared edges than were read together, so that some nodes have been left out."""
    return any(len(reply) >= SCAN_TOGETHER for reply in declared)


def read_around(reach: Reach, derived: DerivedEdges, declared: Iterable[Reply]) -> dict[NodeRef, Neighbourhood]:
    """Put all that was read together; a node without edges may be left out."""
    edges: dict[tuple[NodeKind, str], list[Edge]] = defaultdict(list)
    for label, near, *values in chain.from_iterable(declared):
        edge = _declared_edge(values)
        if (edge.kind, edge.id) != (KINDS[label], near):
            edges[KINDS[label], near].append(edge)
    none: Family = (0, ())
    found = {}
    for node in {**derived.families, **edges}:
        families = derived.families.get(node, {})
        mentions, pairs = families.get("mentions", none), families.get("co_occurrences", none)
        found[NodeRef(*node)] = neighbourhood(reach, mentions, pairs, edges.get(node, ()))
    return found


def _derived_edges(about: About, kind: NodeKind, near: str, far: Sequence[str], weights: Sequence[float]) -> list[Edge]:
    pairs = zip(far, weights, strict=True)
    if about == "co_occurrences":
        # A pair is written once, from the smaller id to the larger.
        return [
            Edge(normalise_weight(CO_OCCURS, weight), CO_OCCURS, None, near < ident, "entity", ident)
            for ident, weight in pairs
        ]
    forward = kind == "memory"
    end: NodeKind = "entity" if forward else "memory"
    return [Edge(normalise_weight(MENTIONS, weight), MENTIONS, None, forward, end, ident) for ident, weight in pairs]


def _declared_edge(values: Sequence[Any]) -> Edge:
    edge_type, edge_id, forward, weight, label, far, relationship = values
    return Edge(normalise_weight(edge_type, weight), edge_type, edge_id, forward, KINDS[label], far, relationship)
