"""From the graph's paths to ranked records, with the path that explains each one in words.

A trail's score is made of what its reader may see, and of nothing else: the seed's weight, the confidence of the typed
edges and links on it, and its length. The backend's own score chose the paths, but it counts edges of hidden records
(in degrees and co-occurrences), and so it must not be shown or added to what is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from memory_os.graph.expansion import CO_OCCURS, DERIVED_TYPES, LINK, MENTIONS, WEIGHT_CAP
from memory_os.graph.port import NodeRef, Path, Seed, Step
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.hydrating import Hydrated
from memory_os.retrieval.model import PathNode

PASSING: Final = 0.5
"""What is left of a trail's score after each node that it passes through. Ours; not tuned."""

CO_OCCURRENCE: Final = 0.3
"""What a step over a co-occurrence is worth, however often the two are named together. Ours; not tuned."""

_UNTYPED: Final = DERIVED_TYPES | {LINK}
"""Steps that no retrieval reinforces: mentions and co-occurrences are counted, links are declared with a window."""

NAME_CHARS: Final = 60
"""Longest name of a node in a path."""


@dataclass(frozen=True, slots=True)
class Trail:
    """How the graph led to a record.

    `reinforced` is the co-reference count of the edge that arrived at it, `edges` are the typed edges of the way.
    """

    ref: Ref
    score: float
    nodes: Sequence[PathNode]
    words: str
    reinforced: int = 0
    edges: Sequence[str] = ()


def follow(
    paths: Sequence[Path], seeds: Iterable[Seed], named: Iterable[UUID], hydrated: Hydrated, limit: int
) -> list[Trail]:
    """The best trail to each record, best first; a path with anything that the reader may not see leaves none.

    Args:
        paths: What the graph found, best first.
        seeds: Where it started.
        named: Entities that the question names: the declared ones are found as such, with or without a graph.
        hydrated: What the reader may see.
        limit: Paths that may contribute.
    """
    weights = {seed.node: seed.weight for seed in seeds}
    names = names_of(hydrated)
    trails: dict[Ref, Trail] = {}
    for ident in named:
        record = hydrated.records.get(NodeRef("entity", str(ident)))
        if record is not None and record.declared:
            nodes = [PathNode(record.ref.id, record.ref.type)]
            trails[record.ref] = Trail(record.ref, 1.0, nodes, f"query -> {shorten(record.name)}")
    borne_out = [(path, _scores(path, weights.get(path.seed, 0.0))) for path in paths if hydrated.bears_out(path)]
    borne_out.sort(key=lambda pair: (-pair[1][-1], _order(pair[0])))
    for path, scores in borne_out[:limit]:
        for length, score in enumerate(scores, start=1):
            record = hydrated.records[path.steps[length - 1].node]
            known = trails.get(record.ref)
            if record.declared and record.ref != hydrated.records[path.seed].ref and (not known or known.score < score):
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


def _scores(path: Path, weight: float) -> list[float]:
    """The score of the trail to each node of the path but the seed."""
    scores = []
    score = weight
    for index, step in enumerate(path.steps):
        score *= _worth(step) * (PASSING if index else 1.0)
        scores.append(score)
    return scores


def _order(path: Path) -> tuple[object, ...]:
    """Among equals the shorter, then by ids: the graph's own order follows from degrees, which count hidden edges."""
    return len(path.steps), path.seed.id, [(step.type, step.edge_id or "", step.node.id) for step in path.steps]


def _worth(step: Step) -> float:
    if step.type == MENTIONS:
        return min(1.0, step.weight * WEIGHT_CAP)  # the extractor's confidence and the repeats within one memory
    return CO_OCCURRENCE if step.type == CO_OCCURS else step.weight


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
    return Trail(Ref(nodes[-1].type, nodes[-1].id), score, nodes, describe(nodes, names), reinforced, edges)


def names_of(hydrated: Hydrated) -> dict[UUID, str]:
    """The short name of each record that the reader may see."""
    return {record.ref.id: shorten(record.name) for record in hydrated.records.values()}
