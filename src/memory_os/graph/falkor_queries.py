"""The Cypher that writes memories, entities, mentions and co-occurrences, and the guard before every write.

Texts are constant and their vocabulary is closed; data goes in as parameters only.

Every write begins by matching the fence with its token *and its step*, and moves the step on. Inside MULTI an error
does not stop the commands behind it, so it is the step that does: once one statement has failed, the rest match
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_os.graph.encoder import render_query
from memory_os.graph.expansion import LINK
from memory_os.graph.port import GraphPatch, NodeKind

LABELS: Mapping[NodeKind, str] = {"memory": "Memory", "entity": "Entity", "record": "Record"}
"""The labels of the nodes."""

KINDS: Mapping[str, NodeKind] = {label: kind for kind, label in LABELS.items()}
"""The other way round."""

BASE_INDEXES = ("Memory", "Entity")
"""Indexes that every graph has. The others (`Record`, `LINK`, each edge type) are made when first needed, since each
costs about 110 KB in every tenant's graph, used or not. The fence needs none: it is the only node of its label."""

BATCH = 1_000
"""Rows in one UNWIND: a row costs about the same in 100 and in 1,000 (measured), and more only hold the server
longer."""

OPEN = "MATCH (f:Fence) WHERE f.token = $token SET f.step = 0"
STEP = "MATCH (f:Fence) WHERE f.token = $token RETURN f.step"
FENCE = "MATCH (f:Fence) WHERE f.token = $token RETURN f.indexed"
TAKE_FENCE = (
    "MERGE (f:Fence {id: 'fence'}) SET f.token = $token, f.epoch = coalesce(f.epoch, $token) RETURN f.indexed, f.epoch"
)
EPOCH = "MATCH (f:Fence) RETURN f.epoch"
INDEXED = "MATCH (f:Fence) RETURN f.indexed"
SET_INDEXED = "MATCH (f:Fence) WHERE f.token = $token SET f.indexed = $indexed"

_GUARD = "MATCH (f:Fence) WHERE f.token = $token AND f.step = $step SET f.step = $step + 1 WITH f UNWIND $rows AS r "

Row = Sequence[object]
Batch = tuple[str, Sequence[Row]]
"""A write and its rows: the text finds the columns of one row as `r[0]`, `r[1]` ..."""


def number_columns(text: str, *names: str) -> str:
    """Replace `r.name` by the name's place in a row: lists are sent and parsed in two thirds of the time of maps."""
    return re.sub(r"\br\.(\w+)", lambda match: f"r[{names.index(match[1])}]", text)


_ENTITIES = number_columns(
    "MERGE (n:Entity {id: r.id}) "
    "SET n.name = r.name, n.type = r.type, n.strength = r.strength, n.declared = r.declared",
    *("id", "name", "type", "strength", "declared"),
)
_MEMORIES = number_columns(
    "MERGE (n:Memory {id: r.id}) SET n.label = r.label, n.status = r.status, n.version = r.version, "
    "n.valid_from = r.valid_from, n.valid_to = r.valid_to, n.user_id = r.user_id",
    *("id", "label", "status", "version", "valid_from", "valid_to", "user_id"),
)
_MENTIONS = number_columns(
    "MATCH (m:Memory {id: r.memory}) MATCH (n:Entity {id: r.entity}) "
    "MERGE (m)-[e:MENTIONS]->(n) SET e.weight = r.weight",
    *("memory", "entity", "weight"),
)
_PAIRS = number_columns(
    "MATCH (a:Entity {id: r.a}) MATCH (b:Entity {id: r.b}) MERGE (a)-[e:CO_OCCURS]->(b) "
    "SET e.weight = r.weight, e.count = r.count",
    *("a", "b", "weight", "count"),
)
_DELETE_PAIRS = number_columns("MATCH (a:Entity {id: r.a})-[e:CO_OCCURS]->(b:Entity {id: r.b}) DELETE e", "a", "b")
_PRUNE_MENTIONS = number_columns(
    "MATCH (m:Memory {id: r.id})-[e:MENTIONS]->(n) WHERE NOT n.id IN r.kept DELETE e", "id", "kept"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One guarded write of at most `BATCH` rows."""

    text: str
    rows: Sequence[Row]

    def render(self, token: str, step: int) -> str:
        """Give the query as it goes on the wire; raises `GraphDataError` for a value that can't be encoded."""
        return render_query(_GUARD + self.text, {"token": token, "step": step, "rows": self.rows})


def split_batches(batches: Iterable[Batch]) -> list[Statement]:
    """Cut batches into statements; a batch without rows gives none."""
    return [
        Statement(text, rows[start : start + BATCH]) for text, rows in batches for start in range(0, len(rows), BATCH)
    ]


def needed_indexes(patch: GraphPatch) -> set[str]:
    """Name the labels and edge types that must have an index on `id` before the patch is written."""
    needed = {*BASE_INDEXES, *(edge.type for edge in patch.edges)}
    ends = [end for edge in patch.edges for end in (edge.source, edge.target)]
    if patch.links:
        needed.add(LINK)
        ends += [link.target for link in patch.links]
    if any(end.kind == "record" for end in ends) or patch.deleted_records:
        needed.add(LABELS["record"])
    return needed


def create_index(name: str) -> str:
    """Make the index on the id of a label, or of an edge type of the closed set."""
    return (
        f"CREATE INDEX FOR (n:{name}) ON (n.id)" if name in KINDS else f"CREATE INDEX FOR ()-[e:{name}]->() ON (e.id)"
    )


def write_derived(patch: GraphPatch) -> Iterator[Batch]:
    """Give the writes of the nodes and of the edges that nobody declared, in the order in which they must run.

    Mentions are set before the co-occurrences and pruned after them. So whichever statement is the last to succeed, the
    mentions in the graph cover every pair that was ever set, and the next projection of the memory finds and mends
    them.
    """
    yield _ENTITIES, [(row.id, row.name, row.type, row.strength, row.declared) for row in patch.entities]
    yield (
        _MEMORIES,
        [
            (row.id, row.label, row.status, row.version, row.valid_from, row.valid_to, row.user_id)
            for row in patch.memories
        ],
    )
    yield _MENTIONS, [(row.memory_id, row.entity_id, row.weight) for row in patch.mentions]
    pairs = patch.co_occurrences
    yield _PAIRS, [(row.a, row.b, row.weight, row.count) for row in pairs if row.count]
    yield _DELETE_PAIRS, [(row.a, row.b) for row in pairs if not row.count]
    known = patch.nothing_to_prune
    kept: dict[str, list[str]] = {row.id: [] for row in patch.memories if row.id not in known}
    for mention in patch.mentions:
        kept.get(mention.memory_id, []).append(mention.entity_id)
    yield _PRUNE_MENTIONS, list(kept.items())
