"""One order out of the arms' scores, and the mild boosts that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import prod
from types import MappingProxyType
from typing import Final
from uuid import UUID

from memory_os.domain.labels import LABELS
from memory_os.domain.ranking import boost, confidence_boost, min_max_fusion, recency_boost, reinforcement_boost
from memory_os.retrieval.arms import ARM_LIMIT, Ref
from memory_os.retrieval.hydrating import Hydrated, Record
from memory_os.retrieval.model import PackSource
from memory_os.retrieval.trails import Trail
from memory_os.retrieval.vectors import SIMILARITY_FLOOR

ARM_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType({"vector": 1.0, "text": 1.0, "graph": 0.6})
"""What each arm counts in the fusion. The graph brings context rather than answers. Ours; not tuned."""

_FLOOR: Final = Ref("memory", UUID(int=0))
"""Stands for the floor of an arm that found fewer than `ARM_LIMIT`: its scale begins there, since the last of a few
hits is not worth nothing. A full arm's scale begins at its weakest hit. Recall@10 on two of LoCoMo's development
conversations (390 questions, turns, no graph): 69.4; every arm from its floor 64.7; every arm from its weakest 69.8.
"""

_FLOORS: Final[Mapping[str, float]] = MappingProxyType({"vector": SIMILARITY_FLOOR, "text": 0.0, "graph": 0.0})

DECIMALS: Final = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that some arm found: its fused score, and by arm its rank (from 1) and its own score.

    `source` is where it comes from; of a passage, `stated_by` are the memories that state the same from it.
    """

    record: Record
    score: float
    ranks: Mapping[str, int]
    scores: Mapping[str, float]
    trail: Trail | None
    source: PackSource | None = None
    stated_by: frozenset[UUID] = frozenset()


def fuse(
    vector: Mapping[Ref, float], words: Mapping[Ref, float], trails: list[Trail], hydrated: Hydrated, now: datetime
) -> list[Candidate]:
    """Candidates, best first, ties by id.

    The default is the weighted sum of min-max scores: over all of LoCoMo's development turns its recall@10 was 66.8
    with BM25 and MiniLM, that of reciprocal rank fusion 55.7 (k = 60) or 65.8 (k = 10).

    Args:
        vector: Similarities, best first.
        words: Text ranks, best first.
        trails: What the graph led to, best first.
        hydrated: What the reader may see; anything else is dropped.
        now: The time asked about, from which ages are counted.
    """
    by_ref = {trail.ref: trail for trail in trails}
    arms = {"vector": vector, "text": words, "graph": {trail.ref: trail.score for trail in trails}}
    seen: dict[str, dict[Ref, float]] = {
        name: {ref: score for ref, score in hits.items() if (record := hydrated.record(ref)) and record.declared}
        for name, hits in arms.items()
    }
    ranks = {name: {ref: rank for rank, ref in enumerate(hits, start=1)} for name, hits in seen.items()}
    records = {ref: record for hits in seen.values() for ref in hits if (record := hydrated.record(ref))}
    factors = {ref: _factor(record, by_ref.get(ref), now) for ref, record in records.items()}
    return [
        Candidate(
            record=records[ref],
            score=round(score, DECIMALS),
            ranks={name: places[ref] for name, places in ranks.items() if ref in places},
            scores={name: round(hits[ref], DECIMALS) for name, hits in seen.items() if ref in hits},
            trail=by_ref.get(ref),
        )
        for ref, score in boost(min_max_fusion(_scaled(seen), ARM_WEIGHTS), factors)
        if ref != _FLOOR
    ]


def _scaled(arms: Mapping[str, Mapping[Ref, float]]) -> dict[str, dict[Ref, float]]:
    """The arms' scores with what their scales begin at."""
    return {
        name: dict(hits) if len(hits) >= ARM_LIMIT else {**hits, _FLOOR: _FLOORS[name]}
        for name, hits in arms.items()
        if hits
    }


def _factor(record: Record, trail: Trail | None, now: datetime) -> float:
    label = LABELS.get(record.label or "") if record.ref.type == "memory" else None
    age = (now - record.date).total_seconds()
    return prod(
        (
            confidence_boost(record.confidence),
            recency_boost(label.lifecycle if label else "immutable", age),
            reinforcement_boost(trail.reinforced if trail else 0),
        )
    )
