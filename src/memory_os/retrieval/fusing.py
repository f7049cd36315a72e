"""One order out of the arms' scores, and the mild boosts that follow."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from math import prod
from types import MappingProxyType
from typing import Final
from uuid import UUID

from memory_os.domain.labels import LABELS, PAST
from memory_os.domain.ranking import (
    boost,
    confidence_boost,
    min_max_fusion,
    recency_boost,
    reciprocal_rank_fusion,
    reinforcement_boost,
)
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.hydrating import Hydrated, Record
from memory_os.retrieval.model import Fusion, PackSource
from memory_os.retrieval.trails import Trail

GRAPH: Final = 0.9
"""What a trail of score 1 adds to a record's relevance (0..1.2). Not brought to 0..1 within the question: a weak trail
stays weak. Measured on multi-hop questions; within the question it would cost 5 to 10 points on 2WikiMultihopQA.
"""

FLOOR: Final = 0.3
"""The share of the best score below which nothing is an answer, unless edges that somebody declared lead to it: beside
what fits well, strangers only take room."""

FADED: Final = 0.8
"""What is left of the score of what was superseded, corrected or let go, where history is asked for: what took its
place comes first. Ours; not tuned."""

ARM_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType({"vector": 1.0, "text": 1.0, "graph": 0.6})
"""What each arm counts where hits alone are fused, by ranks or scores. The graph brings context rather than answers."""

DECIMALS: Final = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that some arm found: its fused score, and by arm its rank (from 1) and its own score.

    `source` is where it comes from; of a passage, `stated_by` are the memories that state the same from it. What is
    `weak` is no answer beside the best.
    """

    record: Record
    score: float
    ranks: Mapping[str, int]
    scores: Mapping[str, float]
    trail: Trail | None
    source: PackSource | None = None
    stated_by: frozenset[UUID] = frozenset()
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Arms:
    """What each arm found, best first."""

    words: Mapping[Ref, float]
    vector: Mapping[Ref, float]
    trails: Sequence[Trail]

    def by_name(self) -> dict[str, Mapping[Ref, float]]:
        """Scores by the arm's name."""
        return {"vector": self.vector, "text": self.words, "graph": {trail.ref: trail.score for trail in self.trails}}


def fuse(
    arms: Arms, relevance: Mapping[Ref, float], hydrated: Hydrated, now: datetime, fusion: Fusion = "relevance"
) -> list[Candidate]:
    """Candidates, best first, ties by id.

    Args:
        arms: What each arm found.
        relevance: How well everything answers that may be an answer.
        hydrated: What the reader may see; anything else is dropped.
        now: The time asked about, from which ages are counted.
        fusion: By relevance (better on all development data), or by the hits of the arms alone: their scores or ranks.
    """
    by_ref = {trail.ref: trail for trail in arms.trails}
    answers = {record.ref: record for record in hydrated.records.values() if record.declared}
    seen: dict[str, dict[Ref, float]] = {
        name: {ref: score for ref, score in hits.items() if ref in answers} for name, hits in arms.by_name().items()
    }
    ranks = {name: {ref: rank for rank, ref in enumerate(hits, start=1)} for name, hits in seen.items()}
    match fusion:
        case "ranks":
            rankings = {name: list(hits) for name, hits in seen.items()}
            fused = dict(reciprocal_rank_fusion(rankings, weights=ARM_WEIGHTS))
        case "min_max":
            fused = dict(min_max_fusion(seen, ARM_WEIGHTS))
        case "relevance":
            found = seen["vector"].keys() | seen["text"].keys()
            fused = _by_relevance(relevance, found, seen["graph"], answers)
    factors = {ref: _factor(answers[ref], by_ref.get(ref), now) for ref in fused}
    ordered = boost(fused.items(), factors)
    least = FLOOR * ordered[0][1] if ordered and fusion == "relevance" else 0.0
    return [
        Candidate(
            record=answers[ref],
            score=round(score, DECIMALS),
            ranks={name: places[ref] for name, places in ranks.items() if ref in places},
            scores={name: round(hits[ref], DECIMALS) for name, hits in seen.items() if ref in hits},
            trail=(trail := by_ref.get(ref)),
            weak=score < least and not (trail and trail.declared),
        )
        for ref, score in ordered
    ]


def _by_relevance(
    relevance: Mapping[Ref, float], found: AbstractSet[Ref], trails: Mapping[Ref, float], answers: Container[Ref]
) -> dict[Ref, float]:
    # What only a path led to that the reader may not see, or that did not hold then, is weighed, and yet was not found.
    fused = {
        ref: max(0.0, score)
        for ref, score in relevance.items()
        if ref in answers and (ref.type == "passage" or ref in found or ref in trails)
    }
    for ref, score in trails.items():
        fused[ref] = fused.get(ref, 0.0) + GRAPH * score
    return fused


def _factor(record: Record, trail: Trail | None, now: datetime) -> float:
    label = LABELS.get(record.label or "") if record.ref.type == "memory" else None
    age = (now - record.date).total_seconds()
    return prod(
        (
            confidence_boost(record.confidence),
            recency_boost(label.lifecycle if label else "immutable", age),
            reinforcement_boost(trail.reinforced if trail else 0),
            FADED if record.status in PAST else 1.0,
        )
    )
