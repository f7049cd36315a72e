"""The Cypher that reads: mentions, counts, dumps. Scalars only, bounded in the query, by GRAPH.RO_QUERY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from memory_os.graph.encoder import render_query
from memory_os.graph.falkor_queries import KINDS, LABELS
from memory_os.graph.falkor_replies import Reply
from memory_os.graph.port import (
    EntityNode,
    GraphDump,
    GraphStats,
    LinkEdge,
    MemoryNode,
    NodeRef,
    TypedEdge,
)

PAGE = 5_000
"""Internal node ids in one page of a dump."""

IDS = 500
"""Ids asked for in one query (an IN list of 2,000 took 123 ms)."""

COUNTS = "CALL db.meta.stats() YIELD labels, relTypes RETURN labels, relTypes"
LAST_NODE = "MATCH (n) RETURN max(ID(n))"
TOP_ENTITIES = (
    "MATCH (n:Entity) WITH n ORDER BY n.strength DESC, n.id LIMIT $limit "
    "RETURN n.id, n.name, n.type, n.strength, n.declared, indegree(n, 'MENTIONS')"
)
MENTIONED = (
    "UNWIND $ids AS id MATCH (m:Memory {id: id}) OPTIONAL MATCH (m)-[:MENTIONS]->(n:Entity) RETURN id, collect(n.id)"
)

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
        "e.id, type(e), labels(a)[0], a.id, labels(b)[0], b.id, e.confidence, e.co_reference_count, e.weight"
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
            key: TypedEdge(key, edge_type, NodeRef(KINDS[al], a), NodeRef(KINDS[bl], b), *values)
            for key, edge_type, al, a, bl, b, *values in edges
        },
        links={
            key: LinkEdge(key, entity, NodeRef(KINDS[label], target), *values)
            for key, entity, label, target, *values in links
        },
    )
