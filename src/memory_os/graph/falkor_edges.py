"""The Cypher of what was declared: typed edges, links and records, and of deletions.

An edge is found again by its id, which says nothing about its type and ends. So a patch with edges, links or deletions
first asks where they are now (through the index of each type that the graph has), and then writes exactly what differs:
an edge that stays in its place is updated there, one that moved is deleted and made anew.

A *record* has no event of its own: the edge or link that names it makes it, and it goes with its last edge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_os.graph.encoder import render_query
from memory_os.graph.expansion import LINK
from memory_os.graph.falkor_queries import KINDS, LABELS, Batch, Row, number_columns
from memory_os.graph.port import GraphPatch, NodeRef

_EDGE_COLUMNS = ("id", "source", "target", "confidence", "count", "weight")
_EDGE_VALUES = "SET e.confidence = r.confidence, e.co_reference_count = r.count, e.weight = r.weight"
_LINK_COLUMNS = ("id", "source", "target", "relationship", "confidence", "valid_from", "valid_to")
_LINK_VALUES = (
    "SET e.relationship = r.relationship, e.confidence = r.confidence, "
    "e.valid_from = r.valid_from, e.valid_to = r.valid_to"
)

Key = tuple[bool, str]
"""Whether it is a link, and its id: links and typed edges are counted apart."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an edge or link lies."""

    type: str
    source: NodeRef
    target: NodeRef


@dataclass(frozen=True, slots=True)
class Present:
    """What a patch meets: where its edges and links are now, and records that its deletions may leave alone."""

    places: Mapping[Key, Sequence[Place]]
    records: Collection[str]


def find_places(patch: GraphPatch, indexed: Collection[str]) -> str | None:
    """Ask where the edges and links that a patch names are now.

    Args:
        patch: A normalised patch.
        indexed: Labels and edge types that the graph has.

    Returns:
        A query that answers rows for `read_places`; None when there is nothing to find.
    """
    ids = {
        "edges": [*(edge.id for edge in patch.edges), *patch.deleted_edges],
        "links": [*(link.id for link in patch.links), *patch.deleted_links],
    }
    parts = [
        f"UNWIND ${name} AS id MATCH (a)-[e:{edge_type} {{id: id}}]->(b) "
        f"RETURN '{edge_type}' AS t, id, labels(a)[0] AS al, a.id AS aid, labels(b)[0] AS bl, b.id AS bid"
        for edge_type in _edge_types(indexed)
        for name in ("links" if edge_type == LINK else "edges",)
        if ids[name]
    ]
    return render_query(" UNION ALL ".join(parts), ids) if parts else None


def read_places(rows: Iterable[Sequence[object]]) -> dict[Key, list[Place]]:
    """Read the answer to `find_places`."""
    places: dict[Key, list[Place]] = defaultdict(list)
    for edge_type, key, source_label, source_id, target_label, target_id in rows:
        source = NodeRef(KINDS[str(source_label)], str(source_id))
        target = NodeRef(KINDS[str(target_label)], str(target_id))
        places[edge_type == LINK, str(key)].append(Place(str(edge_type), source, target))
    return places


def find_records(patch: GraphPatch, indexed: Collection[str]) -> str | None:
    """Ask which records lie beside the nodes that a patch deletes, one id a row; None when there can be none."""
    ids = {"memories": patch.deleted_memories, "entities": patch.deleted_entities}
    types = "|".join(_edge_types(indexed))
    if not types or LABELS["record"] not in indexed:
        return None
    parts = [
        f"UNWIND ${name} AS id MATCH (:{label} {{id: id}})-[:{types}]-(x:Record) RETURN DISTINCT x.id AS id"
        for name, label in (("memories", LABELS["memory"]), ("entities", LABELS["entity"]))
        if ids[name]
    ]
    return render_query(" UNION ALL ".join(parts), ids) if parts else None


def write_declared(patch: GraphPatch, present: Present) -> Iterator[Batch]:
    """Give the writes of edges and links and of all deletions, in the order in which they must run.

    Args:
        patch: A normalised patch.
        present: What it meets, as read under the same WATCH.
    """
    wanted = _wanted(patch)
    yield from _delete_places(
        (key[1], place)
        for key, places in present.places.items()
        for place in places
        if key not in wanted or place != wanted[key][0]
    )
    yield from _set_places(wanted)
    for label, ids in ((LABELS["memory"], patch.deleted_memories), (LABELS["entity"], patch.deleted_entities)):
        yield from _delete_nodes(label, "DETACH DELETE n", ids)
    # Every record that an edge leaves may be lonely now; one that an edge has just reached, only if its other end went.
    left = [place for places in present.places.values() for place in places]
    if patch.deleted_memories or patch.deleted_entities:
        left += [place for place, _ in wanted.values()]
    ends = [end for place in left for end in (place.source, place.target)]
    lonely = dict.fromkeys(
        [*present.records, *(end.id for end in ends if end.kind == "record"), *patch.deleted_records]
    )
    yield from _delete_nodes(LABELS["record"], "WHERE indegree(n) + outdegree(n) = 0 DELETE n", lonely)


def _wanted(patch: GraphPatch) -> dict[Key, tuple[Place, Row]]:
    """Give the place of each edge and link, and the values that follow its id and ends in a row."""
    edges = {
        (False, edge.id): (
            Place(edge.type, edge.source, edge.target),
            (edge.confidence, edge.co_reference_count, edge.weight),
        )
        for edge in patch.edges
    }
    links = {
        (True, link.id): (
            Place(LINK, NodeRef("entity", link.entity_id), link.target),
            (link.relationship, link.confidence, link.valid_from, link.valid_to),
        )
        for link in patch.links
    }
    return {**edges, **links}


def _delete_nodes(label: str, how: str, ids: Collection[str]) -> Iterator[Batch]:
    """Delete nodes of one label, after a look at one of them.

    FalkorDB 4.16 deletes without bringing the label's matrix to the graph's size. If nodes of other labels have
    made the graph grow since the label was last scanned, the node goes and the label keeps its number: reading the
    label fails then ("Attempted to access undefined attribute"), or shows whichever node gets that number next. Finding
    the node through its index is no scan; the first statement is one, and costs nothing (measured).
    """
    if ids:
        yield f"MATCH (n:{label}) RETURN ID(n) LIMIT 1", [()]
        yield f"MATCH (n:{label} {{id: r[0]}}) {how}", [(ident,) for ident in ids]


def _edge_types(indexed: Collection[str]) -> list[str]:
    return sorted(name for name in indexed if name not in KINDS)


def _delete_places(gone: Iterable[tuple[str, Place]]) -> Iterator[Batch]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for key, place in gone:
        rows[place.type].append((key,))
    for edge_type, ids in rows.items():
        yield f"MATCH ()-[e:{edge_type} {{id: r[0]}}]->() DELETE e", ids


def _set_places(wanted: Mapping[Key, tuple[Place, Row]]) -> Iterator[Batch]:
    rows: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for (_, key), (place, values) in wanted.items():
        group = (place.type, LABELS[place.source.kind], LABELS[place.target.kind])
        rows[group].append((key, place.source.id, place.target.id, *values))
    for (edge_type, source, target), edges in rows.items():
        columns, values = (_LINK_COLUMNS, _LINK_VALUES) if edge_type == LINK else (_EDGE_COLUMNS, _EDGE_VALUES)
        write = (
            f"MATCH (a:{source} {{id: r.source}}) MATCH (b:{target} {{id: r.target}}) "
            f"MERGE (a)-[e:{edge_type} {{id: r.id}}]->(b) {values}"
        )
        for text in (*_make_records(source, target), write):
            yield number_columns(text, *columns), edges


def _make_records(source: str, target: str) -> Iterator[str]:
    """Make the records that edges name, each only where the edge's other end is there: no ghosts."""
    record = LABELS["record"]
    if source == target == record:
        yield "MERGE (a:Record {id: r.source}) MERGE (b:Record {id: r.target})"
    elif target == record:
        yield f"MATCH (a:{source} {{id: r.source}}) MERGE (b:Record {{id: r.target}})"
    elif source == record:
        yield f"MATCH (b:{target} {{id: r.target}}) MERGE (a:Record {{id: r.source}})"
