"""Reading a graph in memory part by part in the order of its keys, for comparing it with the canonical rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest

from memory_os.graph.networkx_graph import PropertyGraph
from memory_os.graph.port import CoOccurrence, GraphRow, Key, Mention, NodeKind, NodeRef, Part, key_of

_NODES: Mapping[Part, NodeKind] = {"entities": "entity", "memories": "memory", "records": "record"}
_BETWEEN: Mapping[Part, tuple[NodeKind, type[Mention | CoOccurrence]]] = {
    "mentions": ("memory", Mention),
    "co_occurrences": ("entity", CoOccurrence),
}
_PLACED: Mapping[Part, str] = {"edges": "edge:", "links": "link:"}


def read_page(graph: PropertyGraph, part: Part, after: Key, last: Key | None, limit: int) -> list[GraphRow]:
    """Rows of one part beyond `after`, up to `last` with it, `limit` at most; see the port."""
    if part in _BETWEEN:
        starts = sorted(_within(graph.node_ids(_BETWEEN[part][0]), after[:1], last and last[:1], first=True))
        return nsmallest(limit, _between(graph, part, starts, after, last, limit), key=key_of)
    ids = graph.node_ids(_NODES[part]) if part in _NODES else graph.placed_ids(_PLACED[part])
    return look_up(graph, part, [(ident,) for ident in nsmallest(limit, _within(ids, after, last))])


def look_up(graph: PropertyGraph, part: Part, keys: Sequence[Key]) -> list[GraphRow]:
    """The rows of one part with these keys; what is not there is left out."""
    if part in _BETWEEN:
        kind, row_type = _BETWEEN[part]
        wanted = set(keys)
        starts = dict.fromkeys(key[0] for key in keys)
        found = (row for start in starts for row in graph.rows_from(NodeRef(kind, start)))
        return [row for row in found if isinstance(row, row_type) and key_of(row) in wanted]
    rows: Iterable[GraphRow | None]
    if part in _NODES:
        rows = (graph.node_row(NodeRef(_NODES[part], key[0])) for key in keys)
    else:
        rows = (graph.placed_row(_PLACED[part] + key[0]) for key in keys)
    return [row for row in rows if row is not None]


def _within(ids: Iterable[str], after: Key, last: Key | None, *, first: bool = False) -> Iterator[str]:
    """Ids in the range; `first` keeps the lower bound itself, which may have rows beyond the key."""
    for ident in ids:
        beyond = not after or ident > after[0] or (first and ident == after[0])
        if beyond and (not last or ident <= last[0]):
            yield ident


def _between(
    graph: PropertyGraph, part: Part, starts: Iterable[str], after: Key, last: Key | None, limit: int
) -> Iterator[GraphRow]:
    """Rows that start at these nodes, as many as are sure to hold the smallest `limit` of them."""
    kind, row_type = _BETWEEN[part]
    given = 0
    for start in starts:
        if given >= limit:
            return
        for row in graph.rows_from(NodeRef(kind, start)):
            if isinstance(row, row_type) and key_of(row) > after and (last is None or key_of(row) <= last):
                given += 1
                yield row
