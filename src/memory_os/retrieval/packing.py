"""From candidates to the pack: what goes in, within the limit and the budget, and what is said of the rest.

The budget counts the whole answer as it is sent; of a Markdown answer, the Markdown. Where not even one record fits
beside the answer's own fields, it counts the pack alone (without `retrieval_id` and `timings_ms`, some 100 tokens) and
records go without their paths and sources, so that a small budget never looks like an empty memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Final
from uuid import UUID

import msgspec

from memory_os.domain import packing
from memory_os.domain.packing import Fit, fit
from memory_os.domain.token_counting import ESTIMATE, TokenCounter
from memory_os.retrieval.fusing import Candidate
from memory_os.retrieval.log import ItemEntry
from memory_os.retrieval.model import ArmName, ContextPack, GraphState, RetrievalRequest
from memory_os.retrieval.pack_scales import JsonScale, MarkdownScale
from memory_os.retrieval.pack_shapes import (
    COUNTED,
    NO_EXTRAS,
    OMITTED_FOR_LIMIT,
    OMITTED_FOR_RELEVANCE,
    OMITTED_FOR_SAME_SOURCE,
    Answer,
    Extras,
    Items,
    Omissions,
    describe,
    together,
)

LISTED_OMISSIONS: Final = 20
"""Records left out for another reason than the limit that are named by id, if there is room; the others are counted."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A pack that only lacks its id and timings, its size in tokens, and what the log keeps of each candidate."""

    pack: ContextPack
    tokens: int
    entries: Sequence[ItemEntry]

    def finish(self, retrieval_id: UUID, timings: dict[str, float]) -> ContextPack:
        """The pack with its id and its timings in milliseconds."""
        return msgspec.structs.replace(self.pack, retrieval_id=retrieval_id, timings_ms=timings)


def make_pack(
    candidates: Sequence[Candidate],
    contradictions: Sequence[tuple[UUID, UUID]],
    graph: GraphState,
    request: RetrievalRequest,
    degraded: Sequence[ArmName],
    counter: TokenCounter = ESTIMATE,
) -> Packed:
    """Pack the candidates, best first.

    Args:
        candidates: Best first.
        contradictions: Pairs of memories that contradict each other.
        graph: Where the graph stood.
        request: Limit, budget and format.
        degraded: Arms that could not be asked.
        counter: Counts the tokens.
    """
    by_id = {str(candidate.record.ref.id): candidate for candidate in together(candidates, contradictions)}
    answer = Answer(by_id, contradictions, graph, sorted(degraded))
    packer = _Packer(answer, request, counter)
    chosen = packer.choose(request.budget_tokens)
    aim, step = request.budget_tokens, 1
    while not counter.sums and chosen.items and (excess := chosen.tokens - request.budget_tokens) > 0:
        # The parts were counted apart, and the whole is more: aim lower, and ever lower, until it fits.
        aim, step = aim - max(step, excess), 2 * step
        chosen = packer.choose(max(0, aim))
    return packer.close(chosen)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What goes in, what does not, what is told beside it, and what all that counts."""

    items: Items
    omitted: Omissions
    extras: Extras
    tokens: int


class _Packer:
    def __init__(self, answer: Answer, request: RetrievalRequest, counter: TokenCounter) -> None:
        self._answer, self._candidates = answer, answer.candidates
        self._limit = request.limits.memories
        self._is_markdown = request.format == "markdown"
        self._scale = (MarkdownScale if self._is_markdown else JsonScale)(answer, counter)
        self._described: dict[str, packing.PackItem] = {}

    def choose(self, budget: int) -> _Chosen:
        """Choose the records, then give the room that is left to sources, quotes, paths, and what was left out."""
        said = self._stated(self._candidates, self._candidates)
        fitted, bare = self._fit(said, budget)
        while lone := said - self._stated(said, {item.id for item in fitted.included}):
            said -= lone
            fitted, bare = self._fit(said, budget)
        items, omitted, tokens, extras = fitted.included, fitted.omitted, fitted.tokens, NO_EXTRAS
        if not bare:
            extras, size = self._widen(items, omitted, budget)
            tokens = max(tokens, size)
        if not self._scale.counter.sums:
            tokens = self._scale.exact(items, omitted, extras)
        return _Chosen(items, omitted, extras, tokens)

    def close(self, chosen: _Chosen) -> Packed:
        """The pack as it is sent, and what the log keeps."""
        items, omitted = chosen.items, chosen.omitted
        pack = self._answer.pack(items, omitted, chosen.extras, markdown=self._is_markdown)
        return Packed(pack, chosen.tokens, self._entries(items, omitted))

    def _stated(self, idents: Iterable[str], among: Container[str]) -> set[str]:
        """Those of these records that are passages which a memory among the others states."""
        return {
            ident
            for ident in idents
            if (memories := self._candidates[ident].stated_by) and any(str(one) in among for one in memories)
        }

    def _fit(self, said: AbstractSet[str], budget: int) -> tuple[Fit, bool]:
        """The records that fit, but for those that are said already; and whether they have to go bare."""
        found = [ident for ident, one in self._candidates.items() if ident not in said and not one.weak]
        wanted = [self._describe(ident) for ident in found[: self._limit]]
        beyond = [packing.Omission(ident, OMITTED_FOR_LIMIT) for ident in found[self._limit :]]
        beyond += [
            packing.Omission(ident, OMITTED_FOR_SAME_SOURCE if ident in said else OMITTED_FOR_RELEVANCE)
            for ident, one in self._candidates.items()
            if ident in said or one.weak
        ]
        self._scale.begin(beyond, bare=False)
        if size := self._whole(wanted, beyond, budget):
            return Fit(tuple(wanted), tuple(beyond), size), False
        fitted = fit(wanted, budget, self._scale, beyond)
        if not wanted or fitted.included:
            return fitted, False
        self._scale.begin(beyond, bare=True)
        return fit([replace(item, why=()) for item in wanted], budget, self._scale, beyond), True

    def _whole(self, wanted: Items, beyond: Omissions, budget: int) -> int:
        """What all of it counts with everything that can be told beside it, or 0: then it has to be packed one by one.

        Mostly all of it fits, and each record is weighed once instead of twice.
        """
        if sum(len(item.text) for item in wanted) > self._scale.counter.longest * budget:
            return 0
        size = self._scale.whole(wanted, beyond, reduce(or_, self._further(wanted, beyond), NO_EXTRAS))
        return size if size <= budget else 0

    def _describe(self, ident: str) -> packing.PackItem:
        if ident not in self._described:
            self._described[ident] = describe(self._candidates[ident])
        return self._described[ident]

    def _widen(self, items: Items, omitted: Omissions, budget: int) -> tuple[Extras, int]:
        """As many extras as there is room for, the first ones first; and the tokens of it all.

        All of them are tried at once, then each half: mostly all or most fit.
        """
        taken, tokens = NO_EXTRAS, 0
        steps = self._further(items, omitted)
        waiting = [steps] if steps else []
        while waiting:
            some = waiting.pop()
            wider = reduce(or_, some, taken)
            size = self._scale.whole(items, omitted, wider)
            if size <= budget:
                taken, tokens = wider, max(tokens, size)
            elif len(some) > 1:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
        return taken, tokens

    def _further(self, items: Items, omitted: Omissions) -> list[Extras]:
        """What there could be told beside the records, the most useful first."""
        left = min(LISTED_OMISSIONS, sum(gone.reason not in COUNTED for gone in omitted))
        found = [(frozenset({item.id}), self._candidates[item.id]) for item in items]
        sources = [Extras(sources=item) for item, candidate in found if candidate.source]
        quotes = [Extras(quotes=item) for item, candidate in found if candidate.source and candidate.source.quote]
        paths = [Extras(paths=item) for item, candidate in found if candidate.trail]
        return sources + quotes + paths + [Extras(listed=count) for count in range(1, left + 1)]

    def _entries(self, items: Items, omitted: Omissions) -> list[ItemEntry]:
        inside = {item.id for item in items}
        reasons = {gone.id: gone.reason for gone in omitted}
        return [
            ItemEntry(
                ref=candidate.record.ref,
                in_pack=ident in inside,
                reason=reasons.get(ident),
                score=candidate.score,
                arms={arm: {"rank": rank, "score": candidate.scores[arm]} for arm, rank in candidate.ranks.items()},
                path=candidate.trail.nodes if candidate.trail else (),
                edges=[UUID(edge_id) for edge_id in candidate.trail.edges] if candidate.trail else (),
            )
            for ident, candidate in self._candidates.items()
        ]
