"""How good rankings are: recall, reciprocal rank and discounted gain, as shares of 100."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2

DEPTH = 10
"""Of the discounted gain."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a method gave for one question, best first, and what it should have; `degraded`: without one of its arms."""

    kind: str
    gold: frozenset[str]
    found: Sequence[str]
    millis: float = 0.0
    degraded: bool = False

    def recall(self, depth: int) -> float:
        """The share of what answers the question that is among the first ones."""
        return len(self.gold & set(self.found[:depth])) / len(self.gold)

    def reciprocal_rank(self) -> float:
        """1 over the place of the first that answers it; 0 if none does."""
        return next((1 / place for place, key in enumerate(self.found, start=1) if key in self.gold), 0.0)

    def gain(self) -> float:
        """Discounted gain (nDCG) at `DEPTH`: 1 for what answers the question and 0 for the rest."""
        seen = sum(1 / log2(place + 1) for place, key in enumerate(self.found[:DEPTH], start=1) if key in self.gold)
        best = sum(1 / log2(place + 1) for place in range(1, min(DEPTH, len(self.gold)) + 1))
        return seen / best


def figures(rankings: Sequence[Ranking], depths: Sequence[int]) -> dict[str, float]:
    """Averages over questions, and the median time."""
    made = {f"R@{depth}": mean(one.recall(depth) for one in rankings) for depth in depths}
    made["MRR"] = mean(one.reciprocal_rank() for one in rankings)
    made[f"nDCG@{DEPTH}"] = mean(one.gain() for one in rankings)
    return made


def by_kind(rankings: Sequence[Ranking], depth: int) -> dict[str, float]:
    """Recall by kind of question."""
    kinds = sorted({one.kind for one in rankings})
    return {kind: mean(one.recall(depth) for one in rankings if one.kind == kind) for kind in kinds}


def mean(shares: Iterable[float]) -> float:
    """In per cent, with one decimal; 0 of nothing."""
    values = list(shares)
    return round(100 * statistics.fmean(values), 1) if values else 0.0


def degraded(rankings: Sequence[Ranking]) -> int:
    """How many answers lacked an arm, which was too slow."""
    return sum(one.degraded for one in rankings)


def median_ms(rankings: Sequence[Ranking]) -> float:
    """The median time of an answer."""
    return round(statistics.median(one.millis for one in rankings), 1)
