"""The best of an answer ranked anew. Whatever happens here, the answer stays: at worst in the order it was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import structlog

from memory_os.domain.principal import Principal
from memory_os.retrieval.fusing import DECIMALS, FLOOR, Candidate
from memory_os.retrieval.pack_shapes import describe
from memory_os.retrieval.token_scoring import Text, TokenScorer
from memory_os.storage.database import Scope

if TYPE_CHECKING:
    from memory_os.reranking.http import HttpReranker  # its library comes in when it is made

log = structlog.get_logger(__name__)

ARM: Final = "rerank"
"""What the scores are called among those of the arms."""

DEPTH: Final = 30
"""Candidates that are ranked anew; 20 and 50 are as good."""

TOKENS_WEIGHT: Final = 0.3
"""What the best score by tokens adds, in spans of the fused scores of the candidates that are ranked anew.

Recall@5, @10 and @20 on a third of LoCoMo's development questions (419): 72.1, 80.8, 86.6 without; 73.5, 82.0, 87.0 at
0.15; 74.1, 82.0, 87.1 at 0.3; 74.0, 81.9, 86.8 at 0.4.
"""

ENDPOINT_WEIGHT: Final = 1.0
"""The same for an endpoint: a cross-encoder counts as much as all else together. Ours; not tuned."""


@dataclass(frozen=True, slots=True)
class Reranked:
    """Candidates, best first; `whole` is false where some or all could not be scored anew."""

    candidates: list[Candidate]
    whole: bool


class Reranking:
    """What an instance offers to rank with.

    Args:
        scorer: Scores by tokens, or by an endpoint; it is closed with this.
        weight: What its best score adds; None for the default of its kind.
    """

    def __init__(self, scorer: TokenScorer | HttpReranker, weight: float | None = None) -> None:
        self._scorer = scorer
        default = TOKENS_WEIGHT if isinstance(scorer, TokenScorer) else ENDPOINT_WEIGHT
        self._weight = default if weight is None else weight

    async def close(self) -> None:
        """Close the scorer."""
        await self._scorer.close()

    async def rerank(self, principal: Principal, question: str, candidates: Sequence[Candidate]) -> Reranked:
        """Rank the best candidates anew; never raises for anything that goes wrong on the way.

        Args:
            principal: Who asks; token vectors are read under row-level security.
            question: In plain words.
            candidates: As fused, best first.
        """
        best = candidates[:DEPTH]
        if not best:
            return Reranked([], whole=True)
        try:
            scores = await self._score(principal, question, best)
        except Exception as error:  # noqa: BLE001 - the answer must not fail for want of a better order
            log.warning("retrieval_without_rerank", error_class=type(error).__name__, error=_harmless(error))
            return Reranked(list(candidates), whole=False)
        ranked = mix(best, scores, self._weight)
        return Reranked([*ranked, *candidates[len(best) :]], whole=None not in scores)

    async def _score(
        self, principal: Principal, question: str, candidates: Sequence[Candidate]
    ) -> Sequence[float | None]:
        if isinstance(self._scorer, TokenScorer):
            texts = [Text(candidate.record.ref, describe(candidate).text) for candidate in candidates]
            return await self._scorer.score(Scope.of(principal), question, texts)
        return await self._scorer.score(question, [_document(candidate) for candidate in candidates])


def mix(candidates: Sequence[Candidate], scores: Sequence[float | None], weight: float) -> list[Candidate]:
    """The candidates in their new order: to each fused score is added where the new score stands between its bounds.

    To take the new scores for the old ones would be worse by far: of 80.8 (recall@10 on LoCoMo's development questions)
    67.8 would be left, and mixed there are 82.0. A candidate that was not scored stands where its fused score stands,
    and so keeps its place among the others.

    Args:
        candidates: As fused, best first.
        scores: By candidate the new score on any scale, or None.
        weight: What the best new score adds, in spans of the fused scores.
    """
    known = [score for score in scores if score is not None]
    if not known:
        return list(candidates)
    fused = [candidate.score for candidate in candidates]
    span = (max(fused) - min(fused)) or abs(max(fused)) or 1.0
    places = {score: place for place, score in reversed(list(enumerate(sorted(known, reverse=True), start=1)))}
    ranked = []
    for candidate, score in zip(candidates, scores, strict=True):
        share = _share(candidate.score, fused) if score is None else _share(score, known)
        mixed = round(candidate.score + weight * span * share, DECIMALS)
        if score is None:
            ranked.append(replace(candidate, score=mixed))
            continue
        ranks, own = {**candidate.ranks, ARM: places[score]}, {**candidate.scores, ARM: round(score, DECIMALS)}
        ranked.append(replace(candidate, score=mixed, ranks=ranks, scores=own))
    least = FLOOR * max(candidate.score for candidate in ranked)
    lifted = [replace(one, weak=False) if one.weak and one.score >= least else one for one in ranked]
    return sorted(lifted, key=lambda candidate: -candidate.score)


def _share(score: float, scores: Sequence[float]) -> float:
    """Where a score stands between the least and the greatest, 0..1."""
    least, greatest = min(scores), max(scores)
    return (score - least) / (greatest - least) if greatest > least else 1.0


def _document(candidate: Candidate) -> str:
    """A record as an endpoint reads it: its title, if it has one, and its text."""
    item = describe(candidate)
    return f"{item.title}\n{item.text}" if item.title else item.text


def _harmless(error: Exception) -> str | None:
    """The message of an error of ours, which holds no text and no secret; of another nobody knows."""
    return str(error) if type(error).__module__.startswith("memory_os.") else None
