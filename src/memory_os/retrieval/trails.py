"""From the graph's paths to ranked records, with the path that explains each one in words.

A trail's score is made of what its reader may see, and of nothing else: the seed's weight, the confidence of the typed
edges and links on it, its length, and how many mentions its reader sees of the entities that it passes through. The
backend's own score chose the paths, but it counts edges of hidden records (in degrees and co-occurrences), and so it
must not be shown or added to what is.

*Bridges.* The trail that multi-hop questions need leads from a hit over an entity that it mentions to another memory
that mentions the same one. How much is mentioned says nothing there, but how rare the entity is does, and most of all
whether it is the memory's subject: its title, or what its text begins with. Measured on MuSiQue, HotpotQA and
2WikiMultihopQA (50 questions each) with bridges that count `seed / log(e + mentions)`, six times that for a subject:
recall@5 rises from 64, 79 and 71 to 70, 88 and 95. The weights were chosen on the same questions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from memory_os.domain.naming import is_subject
from memory_os.domain.relations import asks_for, question_stems
from memory_os.graph.expansion import CO_OCCURS, DERIVED_TYPES, HUB, LINK, MENTIONS, damping
from memory_os.graph.port import NodeRef, Path, Seed, Step
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.hydrating import Hydrated, Record
from memory_os.retrieval.model import PathNode
from memory_os.retrieval.walking import node_of
from memory_os.storage.database import Query, Transaction

PASSING: Final = 0.6
"""What is left of a trail's score after each node that it passes through, but over a bridge. Ours; not tuned."""

CO_OCCURRENCE: Final = 0.3
"""What a step over a co-occurrence is worth, however often the two are named together. Ours; not tuned."""

SUBJECT: Final = 1.0
MENTIONED: Final = SUBJECT / 6
"""What a step from an entity to a memory is worth that is about it, or only mentions it. The share is measured."""

TYPED: Final = 0.6
ASKED: Final = 1.0
"""What a step over a typed edge or a link is worth, times the root of its confidence: less than a bridge to what is
titled so, unless the question asks for that very relation. Set, as the next three, on hand-written questions with their
paths (`benchmarks/path_eval`)."""

ITSELF: Final = 0.35
"""What an entity gains that the question names: it is there by its words, and what is said of it answers more."""

EXPLAINS: Final = 0.1
"""How much sooner a path is taken that leads to what an arm found anyway: it tells why. Its score stays as it is."""

KNOWN: Final = 0.1
"""What is left of a bridge over an entity that the question names: words and vectors find those by themselves, and on
multi-hop questions it was best to leave them out. They are kept for the path that they show."""

CALLED: Final = 0.4
"""What a mention of an entity is worth that the question names, where few mention it: it may be called otherwise there,
so that no word leads to it."""

_UNTYPED: Final = DERIVED_TYPES | {LINK}
"""Steps that no retrieval reinforces: mentions and co-occurrences are counted, links are declared with a window."""

_UNCOUNTED: Final[Mapping[NodeRef, int]] = MappingProxyType({})

NAME_CHARS: Final = 60
"""Longest name of a node in a path."""


@dataclass(frozen=True, slots=True)
class Trail:
    """How the graph led to a record.

    `reinforced` is the co-reference count of the edge that arrived at it, `edges` are the typed edges of the way.
    `declared` tells that somebody stated every step of it, as typed edges and links are, or that it is a mention of
    what the question names.
    """

    ref: Ref
    score: float
    nodes: Sequence[PathNode]
    words: str
    reinforced: int = 0
    edges: Sequence[str] = ()
    declared: bool = True


def ask_leads(tx: Transaction, paths: Iterable[Path]) -> Query | None:
    """What counts how many mentions the reader sees of each entity from which paths follow one; `HUB` at most."""
    bridges = {
        path.steps[at - 1].node if at else path.seed
        for path in paths
        for at in range(len(path.steps))
        if _is_bridge(path, at)
    }
    if not bridges:
        return None
    return Query("count_leads", {"tenant_id": tx.tenant_id, "entities": [node.id for node in bridges], "limit": HUB})


def leads_of(rows: Iterable[Mapping[str, Any]]) -> dict[NodeRef, int]:
    """The counts by entity, from the rows that `ask_leads` asked for."""
    return {NodeRef("entity", str(row["id"])): row["mentions"] for row in rows}


def follow(
    paths: Sequence[Path],
    seeds: Iterable[Seed],
    named: Collection[UUID],
    hydrated: Hydrated,
    limit: int,
    leads: Mapping[NodeRef, int] = _UNCOUNTED,
    found: Collection[Ref] = (),
    question: str = "",
) -> list[Trail]:
    """The best trail to each record, best first; a path with anything that the reader may not see leaves none.

    Args:
        paths: What the graph found, best first.
        seeds: Where it started.
        named: Entities that the question names: the declared ones are found as such, with or without a graph.
        hydrated: What the reader may see.
        limit: Paths that may contribute.
        leads: What `leads_of` gives; an entity that is not there counts as one with very many mentions.
        found: What the other arms found.
        question: In plain words: relations that it asks for count more.
    """
    weights = {seed.node: seed.weight for seed in seeds}
    names = names_of(hydrated)
    trails: dict[Ref, Trail] = {}
    for ident in named:
        record = hydrated.records.get(NodeRef("entity", str(ident)))
        if record is not None and record.declared:
            nodes = [PathNode(record.ref.id, record.ref.type)]
            trails[record.ref] = Trail(record.ref, ITSELF, nodes, f"query -> {shorten(record.name)}")
    known = {NodeRef("entity", str(ident)) for ident in named}
    worth = _Worth(hydrated.records, leads, known, question_stems(question))
    borne_out = [(path, worth.scores(path, weights.get(path.seed, 0.0))) for path in paths if hydrated.bears_out(path)]
    explained = {node_of(ref) for ref in found}
    borne_out.sort(key=lambda pair: (-pair[1][-1] - EXPLAINS * (pair[0].steps[-1].node in explained), _order(pair[0])))
    for path, scores in borne_out[:limit]:
        for length, score in enumerate(scores, start=1):
            record = hydrated.records[path.steps[length - 1].node]
            best = trails.get(record.ref)
            if record.declared and record.ref != hydrated.records[path.seed].ref and (not best or best.score < score):
                trails[record.ref] = _trail(path.seed, path.steps[:length], score, hydrated, names)
    return sorted(trails.values(), key=lambda trail: (-trail.score, str(trail.ref.id)))


def shorten(text: str) -> str:
    """A name or the beginning of a text as one line of at most `NAME_CHARS`."""
    line = " ".join(text[: NAME_CHARS * 4].split())
    return line if len(line) <= NAME_CHARS else line[: NAME_CHARS - 1].rstrip() + "…"


def describe(nodes: Sequence[PathNode], names: Mapping[UUID, str]) -> str:
    """A path in words: `query -> Detroit pizza -PART_OF-> cooking`; an edge walked backwards reads `←PART_OF-`."""
    parts = ["query"]
    for node in nodes:
        name = names.get(node.id, "?")
        if node.via is None:
            parts.append(f"-> {name}")
        else:
            parts.append(f"←{node.via}- {name}" if node.against else f"-{node.via}-> {name}")
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class _Worth:
    """What steps are worth to this reader. `known` are the entities that the question names."""

    records: Mapping[NodeRef, Record]
    leads: Mapping[NodeRef, int]
    known: Collection[NodeRef]
    stems: frozenset[str]

    def scores(self, path: Path, weight: float) -> list[float]:
        """The score of the trail to each node of the path but the seed."""
        scores = []
        score = weight
        for at, step in enumerate(path.steps):
            score *= self._step(path, at)
            scores.append(score * (ITSELF if step.type == MENTIONS and step.node.kind == "entity" else 1.0))
        return scores

    def _step(self, path: Path, at: int) -> float:
        """The worth of a step, and what passing through the node before it leaves."""
        step = path.steps[at]
        start = path.steps[at - 1].node if at else path.seed
        passing = PASSING if at else 1.0
        if _is_bridge(path, at):
            passing = 1 / damping(self.leads.get(start, HUB))
            if not at and not self._says(start, step.node):
                return CALLED * passing
            worth = SUBJECT if self._is_subject(start, step.node) else MENTIONED
            return prod((worth, passing, KNOWN if start in self.known else 1.0))
        if step.type == MENTIONS:
            return passing
        if step.type == CO_OCCURS:
            return passing * CO_OCCURRENCE
        return passing * sqrt(step.weight) * (ASKED if asks_for(self.stems, step.relationship or step.type) else TYPED)

    def _says(self, entity: NodeRef, memory: NodeRef) -> bool:
        """Whether a memory has the entity's own name in its words, and not another one for it."""
        record = self.records[memory]
        return self.records[entity].name.casefold() in f"{record.title or ''}\n{record.text}".casefold()

    def _is_subject(self, entity: NodeRef, memory: NodeRef) -> bool:
        """Whether a memory's title, or else its text, begins with the entity's name."""
        record = self.records[memory]
        return is_subject(self.records[entity].name, record.title, record.text)


def _is_bridge(path: Path, at: int) -> bool:
    """Whether a step leads from an entity, whatever led there, to one of the memories that mention it."""
    step, start = path.steps[at], path.steps[at - 1].node if at else path.seed
    return step.type == MENTIONS and start.kind == "entity"


def _order(path: Path) -> tuple[object, ...]:
    """Among equals the shorter, then by ids: the graph's own order follows from degrees, which count hidden edges."""
    return len(path.steps), path.seed.id, [(step.type, step.edge_id or "", step.node.id) for step in path.steps]


def _trail(seed: NodeRef, steps: Sequence[Step], score: float, hydrated: Hydrated, names: Mapping[UUID, str]) -> Trail:
    start = hydrated.records[seed]
    nodes = [PathNode(start.ref.id, start.ref.type)]
    for step in steps:
        ref = hydrated.records[step.node].ref
        via = step.relationship or step.type if step.type == LINK else step.type
        nodes.append(PathNode(ref.id, ref.type, via, not step.forward))
    last = steps[-1]
    reinforced = hydrated.edges.get(last.edge_id, 0) if last.edge_id else 0
    edges = [step.edge_id for step in steps if step.edge_id and step.type not in _UNTYPED]
    declared = all(step.type not in DERIVED_TYPES for step in steps) or (seed.kind == "entity" and len(steps) == 1)
    return Trail(Ref(nodes[-1].type, nodes[-1].id), score, nodes, describe(nodes, names), reinforced, edges, declared)


def names_of(hydrated: Hydrated) -> dict[UUID, str]:
    """The short name of each record that the reader may see."""
    return {record.ref.id: shorten(record.name) for record in hydrated.records.values()}
