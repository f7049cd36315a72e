"""What of all that was found this reader may see: the one place where ids become records, under row-level security."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_os.graph.expansion import CO_OCCURS, LINK, MENTIONS
from memory_os.graph.port import NodeRef, Path, Step
from memory_os.retrieval.arms import Ref, Window
from memory_os.retrieval.walking import node_of
from memory_os.storage.database import Query, Transaction


@dataclass(frozen=True, slots=True)
class Record:
    """A record as its reader may see it; an entity's `label` is its type, and derived entities are never answers."""

    ref: Ref
    label: str | None
    title: str | None
    text: str
    date: datetime
    status: str
    valid_from: datetime | None
    valid_to: datetime | None
    confidence: float
    declared: bool
    superseded_by: UUID | None

    @property
    def name(self) -> str:
        """What a path calls the record."""
        return self.title or self.text


@dataclass(frozen=True, slots=True)
class Hydrated:
    """What a reader may see: records by graph node, the steps that hold, and contradictions between memories.

    `edges` are the visible typed edges with how often each was co-referenced. `rewritten` are memories that said
    something else at the moment asked about: what they mention now, they need not have mentioned then.
    """

    records: Mapping[NodeRef, Record]
    edges: Mapping[str, int]
    links: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    contradictions: Sequence[tuple[UUID, UUID]]
    rewritten: frozenset[NodeRef] = frozenset()

    def record(self, ref: Ref) -> Record | None:
        """The record of that address, or None where the reader may not see it."""
        return self.records.get(node_of(ref))

    def bears_out(self, path: Path) -> bool:
        """Whether the reader may see every node of a path, and every step of it holds."""
        if path.seed not in self.records:
            return False
        previous = path.seed
        for step in path.steps:
            if step.node not in self.records or not self._holds(previous, step):
                return False
            previous = step.node
        return True

    def _holds(self, start: NodeRef, step: Step) -> bool:
        if step.type == MENTIONS:
            return self.rewritten.isdisjoint((start, step.node))  # it is part of the memory at one of its ends
        if step.type == CO_OCCURS:
            return pair_of(start, step) in self.pairs
        return step.edge_id in (self.links if step.type == LINK else self.edges)


def pair_of(start: NodeRef, step: Step) -> tuple[str, str]:
    """The two entities of a co-occurrence in the order of their ids."""
    first, second = sorted((start.id, step.node.id))
    return first, second


async def hydrate(tx: Transaction, refs: Iterable[Ref], paths: Sequence[Path], window: Window) -> Hydrated:
    """Look up records and the nodes and steps of paths, as this reader may see them; see `ask_records`."""
    records, steps = await tx.together(*ask_records(tx, ids_by_kind(refs, paths), paths, window))
    return hydrated_of(records, steps)


def ask_records(
    tx: Transaction, ids: Mapping[str, list[UUID]], paths: Sequence[Path], window: Window
) -> tuple[Query, Query]:
    """What looks up records, and the steps of paths, as this reader may see them; for `hydrated_of`.

    Args:
        tx: The unit of work, in the reader's scope.
        ids: Records that were found, and the nodes of paths, by kind.
        paths: Paths that were found.
        window: The time asked about.
    """
    given = {"tenant_id": tx.tenant_id, "as_of": window.as_of, "history": window.history, **ids}
    return Query("hydrate_records", given), Query("check_steps", {**given, **steps_of(paths)})


def hydrated_of(records: Iterable[Mapping[str, Any]], steps: Iterable[Mapping[str, Any]]) -> Hydrated:
    """What a reader may see, from the rows that `ask_records` asked for."""
    return assemble(map(record_of, records), steps)


def assemble(
    records: Iterable[Record], steps: Iterable[Mapping[str, Any]], rewritten: frozenset[NodeRef] = frozenset()
) -> Hydrated:
    """What a reader may see, from records and the rows of steps that hold."""
    edges: dict[str, int] = {}
    links: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    contradictions: list[tuple[UUID, UUID]] = []
    for row in steps:
        if row["kind"] == "edge":
            edges[row["key"]] = row["co_reference_count"]
        elif row["kind"] == "link":
            links.add(row["key"])
        else:
            first, second = row["key"].split(" ")
            if row["kind"] == "pair":
                pairs.add((first, second))
            else:
                contradictions.append((UUID(first), UUID(second)))
    by_node = {node_of(record.ref): record for record in records}
    return Hydrated(by_node, edges, frozenset(links), frozenset(pairs), sorted(contradictions), rewritten)


def ids_by_kind(refs: Iterable[Ref], paths: Sequence[Path]) -> dict[str, list[UUID]]:
    """The ids of records and of the nodes of paths, by the parameter that statements take them in."""
    nodes = {node_of(ref) for ref in refs}
    for path in paths:
        nodes |= {path.seed, *(step.node for step in path.steps)}
    names = {"memory": "memories", "entity": "entities", "record": "records"}
    ids: dict[str, list[UUID]] = {name: [] for name in names.values()}
    for node in nodes:
        ids[names[node.kind]].append(UUID(node.id))
    return ids


def steps_of(paths: Sequence[Path]) -> dict[str, list[UUID]]:
    """The ids of what paths go over, by the parameter that statements take them in."""
    edges: set[UUID] = set()
    links: set[UUID] = set()
    pairs: set[tuple[str, str]] = set()
    for path in paths:
        previous = path.seed
        for step in path.steps:
            if step.type == CO_OCCURS:
                pairs.add(pair_of(previous, step))
            elif step.edge_id is not None:
                (links if step.type == LINK else edges).add(UUID(step.edge_id))
            previous = step.node
    return {
        "edges": list(edges),
        "links": list(links),
        "pairs_a": [UUID(first) for first, _ in pairs],
        "pairs_b": [UUID(second) for _, second in pairs],
    }


def record_of(row: Mapping[str, Any]) -> Record:
    """A record from its row."""
    return Record(
        ref=Ref(row["type"], row["id"]),
        label=row["label"],
        title=row["title"],
        text=row["text"],
        date=row["date"],
        status=row["status"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        confidence=row["confidence"],
        declared=row["declared"],
        superseded_by=row["superseded_by"],
    )
