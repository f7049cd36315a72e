"""The Cypher that reads a graph part by part in the order of its keys, for comparing it with the canonical rows.

A page is found through the index of the ids. FalkorDB 4.16's index gives a little more than a range of texts asks for
(measured: 57 of 1,000 beyond the upper bound), and never less, so what comes back is cut to the range here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from memory_os.graph.encoder import render_query
from memory_os.graph.falkor_queries import KINDS
from memory_os.graph.falkor_replies import Reply
from memory_os.graph.port import (
    CoOccurrence,
    EntityNode,
    GraphRow,
    Key,
    LinkEdge,
    MemoryNode,
    Mention,
    NodeRef,
    Part,
    TypedEdge,
    key_of,
)

_ENTITY = ("(a:Entity)", "a.id, a.name, a.type, a.strength, a.declared")
_MEMORY = ("(a:Memory)", "a.id, a.label, a.status, a.version, a.valid_from, a.valid_to, a.user_id")
_RECORD = ("(a:Record)", "a.id")
_MENTION = ("(a:Memory)-[e:MENTIONS]->(b:Entity)", "a.id, b.id, e.weight")
_PAIR = ("(a:Entity)-[e:CO_OCCURS]->(b:Entity)", "a.id, b.id, e.weight, e.count")
_LINK = (
    "(a)-[e:LINK]->(b)",  # a label here has every node of it looked at for each edge
    "e.id, a.id, labels(b)[0], b.id, e.relationship, e.confidence, e.valid_from, e.valid_to",
)
_NODES: Mapping[Part, tuple[str, str]] = {"entities": _ENTITY, "memories": _MEMORY, "records": _RECORD}
_BETWEEN: Mapping[Part, tuple[str, str]] = {"mentions": _MENTION, "co_occurrences": _PAIR}

SCAN = [f"MATCH (n:{label}) RETURN count(n.id), count(n)" for label in KINDS]
"""Reads a property of every node that the matrix of a label has, whether an index knows it or not."""

_BUILD: Mapping[Part, Callable[[Sequence[Any]], GraphRow]] = {
    "entities": lambda row: EntityNode(*row),
    "memories": lambda row: MemoryNode(*row),
    "records": lambda row: NodeRef("record", row[0]),
    "mentions": lambda row: Mention(*row),
    "co_occurrences": lambda row: CoOccurrence(*row),
    "edges": lambda row: TypedEdge(row[0], row[1], _ref(row[2], row[3]), _ref(row[4], row[5]), *row[6:]),
    "links": lambda row: LinkEdge(row[0], row[1], _ref(row[2], row[3]), *row[4:]),
}


def ask_range(part: Part, after: Key, last: Key | None, limit: int, edge_types: Iterable[str]) -> list[str]:
    """Ask for the rows of a part with keys beyond `after` up to `last`; `read_range` reads the answers."""
    parameters: dict[str, object] = {"limit": limit, "after": list(after), "last": list(last or ())}
    if part in _BETWEEN:
        pattern, columns = _BETWEEN[part]
        conditions = ["a.id >= $after[0]", "(a.id > $after[0] OR b.id > $after[1])"] if after else ["a.id >= ''"]
        if last:
            conditions += ["a.id <= $last[0]", "(a.id < $last[0] OR b.id <= $last[1])"]
        order = "a.id, b.id"
    else:
        name = "a" if part in _NODES else "e"
        conditions = [f"{name}.id > $after[0]" if after else f"{name}.id >= ''"]
        if last:
            conditions.append(f"{name}.id <= $last[0]")
        order = f"{name}.id"
        pattern, columns = _NODES.get(part, _LINK)
    texts = [
        f"MATCH {pattern} WHERE {' AND '.join(conditions)} RETURN {columns} ORDER BY {order} LIMIT $limit"
        for pattern, columns in ([(pattern, columns)] if part != "edges" else map(_edges, edge_types))
    ]
    return [render_query(text, parameters) for text in texts]


def read_range(part: Part, replies: Iterable[Reply], after: Key, last: Key | None, limit: int) -> list[GraphRow]:
    """Read the answers to `ask_range`."""
    rows = (row for row in read_rows(part, replies) if key_of(row) > after and (last is None or key_of(row) <= last))
    return sorted(rows, key=key_of)[:limit]


def ask_keys(part: Part, keys: Sequence[Key], edge_types: Iterable[str]) -> list[str]:
    """Ask for the rows of a part with these keys; `read_rows` reads the answers."""
    if part in _BETWEEN:
        pattern, columns = _BETWEEN[part]
        texts = [(pattern, columns)]
        where = "a.id = k[0] AND b.id = k[1]"
    else:
        texts = list(map(_edges, edge_types)) if part == "edges" else [_NODES.get(part, _LINK)]
        where = f"{'a' if part in _NODES else 'e'}.id = k[0]"
    parameters = {"keys": [list(key) for key in keys]}
    return [
        render_query(f"UNWIND $keys AS k MATCH {pattern} WHERE {where} RETURN {columns}", parameters)
        for pattern, columns in texts
    ]


def read_rows(part: Part, replies: Iterable[Reply]) -> list[GraphRow]:
    """Read rows in whatever order they came."""
    return [_BUILD[part](row) for row in chain.from_iterable(replies)]


def read_scan(replies: Sequence[Reply]) -> dict[str, int]:
    """Read the answers to `SCAN`: nodes by kind; none where there is no graph."""
    return {kind: int(reply[0][1]) for kind, reply in zip(KINDS.values(), replies, strict=False)}


def _edges(edge_type: str) -> tuple[str, str]:
    return (
        f"(a)-[e:{edge_type}]->(b)",
        f"e.id, '{edge_type}', labels(a)[0], a.id, labels(b)[0], b.id, e.confidence, e.co_reference_count, e.weight",
    )


def _ref(label: str, ident: str) -> NodeRef:
    return NodeRef(KINDS[label], ident)
