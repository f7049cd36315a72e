"""The Cypher that reads: neighbourhoods, counts and dumps. Scalars only, bounded in the query, run with GRAPH.RO_QUERY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from memory_os.graph.encoder import render_query
from memory_os.graph.expansion import CO_OCCURS, LINK, MENTIONS, Neighbourhood, Reach, normalise_weight
from memory_os.graph.falkor_queries import KINDS, LABELS
from memory_os.graph.falkor_server import Reply
from memory_os.graph.port import (
    EntityNode,
    GraphDump,
    GraphStats,
    LinkEdge,
    MemoryNode,
    NodeKind,
    NodeRef,
    Step,
    TypedEdge,
)

PAGE = 5_000
"""Internal node ids in one page of a dump."""

IDS = 500
"""Ids asked for in one query (an IN list of 2,000 took 123 ms)."""

STRONGEST = 15
"""Entities listed in the statistics: the seed's number."""

COUNTS = "CALL db.meta.stats() YIELD labels, relTypes RETURN labels, relTypes"
LAST_NODE = "MATCH (n) RETURN max(ID(n))"
TOP_ENTITIES = (
    "MATCH (n:Entity) WITH n ORDER BY n.strength DESC, n.id LIMIT $limit "
    "RETURN n.id, n.name, n.type, n.strength, n.declared, indegree(n, 'MENTIONS')"
)
MENTIONED = (
    "UNWIND $ids AS id MATCH (m:Memory {id: id}) OPTIONAL MATCH (m)-[:MENTIONS]->(n:Entity) RETURN id, collect(n.id)"
)

_DEGREE = (
    "WITH n RETURN '' AS t, null AS eid, false AS forward, indegree(n) + outdegree(n) AS w, "
    "'' AS label, '' AS far, null AS relationship"
)
_VALID = "WHERE (e.valid_from IS NULL OR e.valid_from <= $as_of) AND (e.valid_to IS NULL OR e.valid_to > $as_of) "

_IN_PAGE = "WHERE ID(a) >= $first AND ID(a) < $first + $page RETURN "
_MEMORIES = f"MATCH (a:Memory) {_IN_PAGE} a.id, a.label, a.status, a.version, a.valid_from, a.valid_to, a.user_id"
_ENTITIES = f"MATCH (a:Entity) {_IN_PAGE} a.id, a.name, a.type, a.strength, a.declared"
_RECORDS = f"MATCH (a:Record) {_IN_PAGE} a.id"
_MENTIONS = f"MATCH (a:Memory)-[e:MENTIONS]->(b:Entity) {_IN_PAGE} a.id, b.id, e.weight"
_PAIRS = f"MATCH (a:Entity)-[e:CO_OCCURS]->(b:Entity) {_IN_PAGE} a.id, b.id, e.weight, e.count"
_LINKS = (
    f"MATCH (a:Entity)-[e:LINK]->(b) {_IN_PAGE} "
    "e.id, a.id, labels(b)[0], b.id, e.relationship, e.confidence, e.valid_from, e.valid_to"
)


def ask_neighbours(
    kind: NodeKind, ids: Sequence[str], reach: Reach, edge_types: Iterable[str], as_of: int | None
) -> str:
    """Ask for the neighbourhoods of nodes of one kind; `read_neighbours` reads the answer.

    Every branch takes at most `reach.scan` edges at a node, and ranks and returns at most `reach.limit` of them.
    """
    branches = [_DEGREE]
    if kind == "memory":
        branches.append(_family(f"(n)-[e:{MENTIONS}]->(m)", "weight"))
    if kind == "entity":
        branches.append(_family(f"(n)<-[e:{MENTIONS}]-(m)", "weight"))
        branches.append(_family(f"(n)-[e:{CO_OCCURS}]-(m)", "weight"))
    branches.append(_family(f"(n)-[e:{LINK}]-(m)", "confidence", "" if as_of is None else _VALID))
    branches.append(_family(f"(n)-[e:{'|'.join(sorted(edge_types))}]-(m)", "confidence"))
    text = (
        f"UNWIND $ids AS id MATCH (n:{LABELS[kind]} {{id: id}}) CALL {{ {' UNION ALL '.join(branches)} }} "
        "RETURN id, t, eid, forward, w, label, far, relationship"
    )
    return render_query(text, {"ids": ids, "limit": reach.limit, "scan": reach.scan, "as_of": as_of})


def _family(pattern: str, weight: str, where: str = "") -> str:
    # Ties are broken as `expansion.step_order` breaks them.
    return (
        f"WITH n MATCH {pattern} {where}WITH n, e, m LIMIT $scan "
        f"WITH type(e) AS t, e.id AS eid, startNode(e) = n AS forward, e.{weight} AS w, labels(m)[0] AS label, m.id AS far, "
        "e.relationship AS relationship ORDER BY w DESC, t, eid, label, far, forward DESC LIMIT $limit "
        "RETURN t, eid, forward, w, label, far, relationship"
    )


def read_neighbours(kind: NodeKind, rows: Iterable[Sequence[Any]]) -> dict[NodeRef, Neighbourhood]:
    """Read the answer to `ask_neighbours`."""
    degrees: dict[NodeRef, int] = {}
    steps: dict[NodeRef, list[Step]] = {}
    for near, edge_type, edge_id, forward, weight, label, far, relationship in rows:
        ref = NodeRef(kind, near)
        if not edge_type:
            degrees[ref] = int(weight)
            continue
        step = Step(
            type=edge_type,
            edge_id=edge_id,
            forward=forward,
            weight=normalise_weight(edge_type, float(weight)),
            node=NodeRef(KINDS[label], far),
            relationship=relationship,
        )
        steps.setdefault(ref, []).append(step)
    return {ref: Neighbourhood(degree, steps.get(ref, [])) for ref, degree in degrees.items()}


def read_mentioned(replies: Iterable[Reply]) -> dict[str, frozenset[str]]:
    """Read the answers to `MENTIONED`."""
    return {memory: frozenset(entities) for reply in replies for memory, entities in reply}


def read_stats(counts: Sequence[Sequence[Any]], strongest: Iterable[Sequence[Any]]) -> GraphStats:
    """Read the answers to `COUNTS` and `TOP_ENTITIES`."""
    labels, types = counts[0]
    nodes = {label: int(labels.get(label, 0)) for label in KINDS}
    edges = {name: int(number) for name, number in sorted(types.items()) if number}
    return GraphStats(
        nodes=sum(nodes.values()),
        edges=sum(edges.values()),
        entity_nodes=nodes[LABELS["entity"]],
        memory_nodes=nodes[LABELS["memory"]],
        edges_by_type=edges,
        top_entities=[(EntityNode(*entity), int(mentions)) for *entity, mentions in strongest],
    )


def ask_page(first: int, edge_types: Iterable[str]) -> list[str]:
    """Ask for the nodes with the internal ids from `first` on, `PAGE` of them, and for the edges that start there."""
    edges = (
        f"MATCH (a)-[e:{'|'.join(sorted(edge_types))}]->(b) {_IN_PAGE} "
        "e.id, type(e), labels(a)[0], a.id, labels(b)[0], b.id, e.confidence, e.co_reference_count"
    )
    texts = (_MEMORIES, _ENTITIES, _RECORDS, _MENTIONS, _PAIRS, _LINKS, edges)
    return [render_query(text, {"first": first, "page": PAGE}) for text in texts]


def read_pages(pages: Iterable[Sequence[Reply]]) -> GraphDump:
    """Put the answers to `ask_page` of all pages together; none is an empty graph."""
    columns: list[Reply] = [list(chain.from_iterable(replies)) for replies in zip(*pages, strict=True)]
    memories, entities, records, mentions, pairs, links, edges = columns or [[] for _ in range(7)]
    return GraphDump(
        memories={row[0]: MemoryNode(*row) for row in memories},
        entities={row[0]: EntityNode(*row) for row in entities},
        records=frozenset(row[0] for row in records),
        mentions={(memory, entity): weight for memory, entity, weight in mentions},
        co_occurrences={(a, b): (weight, count) for a, b, weight, count in pairs},
        edges={
            key: TypedEdge(key, edge_type, NodeRef(KINDS[al], a), NodeRef(KINDS[bl], b), confidence, count)
            for key, edge_type, al, a, bl, b, confidence, count in edges
        },
        links={
            key: LinkEdge(key, entity, NodeRef(KINDS[label], target), *values)
            for key, entity, label, target, *values in links
        },
    )
