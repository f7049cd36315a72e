"""From candidates to the pack: what goes in, within the limit and the budget, and what is said of the rest.

The budget counts the whole answer as it is sent; of a Markdown answer, the Markdown. Where not even one record fits
beside the answer's own fields, it counts the pack alone (without `retrieval_id` and `timings_ms`, some 100 tokens) and
records go without their paths and sources, so that a small budget never looks like an empty memory.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Final
from uuid import UUID

import msgspec

from memory_os.domain import packing
from memory_os.domain.pack_markdown import render_markdown
from memory_os.domain.packing import Fit, estimate_tokens, fit
from memory_os.retrieval.fusing import Candidate
from memory_os.retrieval.log import ItemEntry
from memory_os.retrieval.model import (
    ArmName,
    Conflict,
    ContextPack,
    GraphState,
    Omission,
    PackItem,
    PackSource,
    RetrievalRequest,
)

OMITTED_FOR_LIMIT: Final = "limit"

OMITTED_FOR_SAME_SOURCE: Final = "same_source"
"""The reason of a passage of which a memory in the pack states the same."""

LISTED_OMISSIONS: Final = 20
"""Records left out for another reason than the limit that are named by id, if there is room; the others are counted."""

_PARTS: Final = ("text", "names", "embed", "vector", "wait", "graph", "hydrate", "pack", "total")
_LONGEST_MS: Final = 99_999.99
"""The timings are known only when the pack is done; until then they count as five digits each."""

_UNKNOWN_TIMINGS: Final = dict.fromkeys(_PARTS, _LONGEST_MS)

_CALL_FIELDS: Final = frozenset({"retrieval_id", "timings_ms"})
"""Fields that tell of the call and not of what was found."""

SCORE_DECIMALS: Final = 4

_structure = re.compile(r'["\[\]{},:]{2,4}')
_MARK: Final = "."
"""Estimated at one token: so many of them stand for a text of that size."""

_Items = Sequence[packing.PackItem]
_Omissions = Sequence[packing.Omission]

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Packed:
    """A pack that only lacks its timings, its size in tokens, and what the log keeps of each candidate."""

    pack: ContextPack
    tokens: int
    entries: Sequence[ItemEntry]

    def finish(self, timings: dict[str, float]) -> ContextPack:
        """The pack with its timings in milliseconds."""
        return msgspec.structs.replace(self.pack, timings_ms=timings)


def make_pack(
    retrieval_id: UUID,
    candidates: Sequence[Candidate],
    contradictions: Sequence[tuple[UUID, UUID]],
    graph: GraphState,
    request: RetrievalRequest,
    degraded: Sequence[ArmName],
) -> Packed:
    """Pack the candidates, best first.

    Args:
        retrieval_id: Of this answer.
        candidates: Best first.
        contradictions: Pairs of memories that contradict each other.
        graph: Where the graph stood.
        request: Limit, budget and format.
        degraded: Arms that could not be asked.
    """
    by_id = {str(candidate.record.ref.id): candidate for candidate in _together(candidates, contradictions)}
    return _Packer(retrieval_id, by_id, contradictions, graph, request, sorted(degraded)).pack()


def _together(candidates: Sequence[Candidate], contradictions: Sequence[tuple[UUID, UUID]]) -> list[Candidate]:
    """The candidates in their order, but what contradicts a disputed one follows it: both sides are read together."""
    found = {candidate.record.ref.id: candidate for candidate in candidates}
    sides: dict[UUID, list[UUID]] = defaultdict(list)
    for one, other in contradictions:
        sides[one].append(other)
        sides[other].append(one)
    ordered: dict[UUID, Candidate] = {}
    for ident, candidate in found.items():
        ordered.setdefault(ident, candidate)
        if candidate.record.status == "disputed":
            ordered |= {other: found[other] for other in sides[ident] if other in found and other not in ordered}
    return list(ordered.values())


def estimate_json(json: bytes) -> int:
    """Tokens of JSON, never less than a quarter of its bytes.

    The estimate for text counts every punctuation mark, but tokenizers join the marks between two values (such as
    `},{"`) to one or two tokens. Measured with OpenAI's cl100k and o200k: 85 and 84 tokens for an empty answer
    (estimated: 100, mark by mark 141), 106 and 107 for a record without text (124, mark by mark 171).
    """
    return max(estimate_tokens(_structure.sub('"', json.decode())), -(-len(json) // 4))


@dataclass(frozen=True, slots=True)
class _Extras:
    """What is told beside the records where the budget has room: sources, quotes, paths, and what was left out."""

    sources: frozenset[str] = frozenset()
    quotes: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    listed: int = 0

    def __or__(self, other: _Extras) -> _Extras:
        """All that either tells."""
        return _Extras(
            self.sources | other.sources,
            self.quotes | other.quotes,
            self.paths | other.paths,
            max(self.listed, other.listed),
        )


_NO_EXTRAS: Final = _Extras()


class _Packer:
    def __init__(
        self,
        retrieval_id: UUID,
        candidates: Mapping[str, Candidate],
        contradictions: Sequence[tuple[UUID, UUID]],
        graph: GraphState,
        request: RetrievalRequest,
        degraded: Sequence[ArmName],
    ) -> None:
        self._retrieval_id = retrieval_id
        self._candidates = candidates
        self._contradictions = contradictions
        self._graph = graph
        self._request = request
        self._degraded = list(degraded)
        self._sizes: dict[tuple[object, ...], int] = {}

    def pack(self) -> Packed:
        """Choose the records, then give the room that is left to sources, quotes, paths, and what was left out."""
        said = self._stated(self._candidates, self._candidates)
        fitted, bare = self._choose(said)
        while lone := said - self._stated(said, {item.id for item in fitted.included}):
            said -= lone
            fitted, bare = self._choose(said)
        items, omitted, tokens, extras = fitted.included, fitted.omitted, fitted.tokens, _NO_EXTRAS
        if not bare:
            extras, size = self._widen(items, omitted, self._further(items, omitted))
            tokens = max(tokens, size)
        return Packed(self._answer(items, omitted, extras), tokens, self._entries(items, omitted))

    def _stated(self, idents: Iterable[str], among: Container[str]) -> set[str]:
        """Those of these records that are passages which a memory among the others states."""
        return {ident for ident in idents if any(str(one) in among for one in self._candidates[ident].stated_by)}

    def _choose(self, said: AbstractSet[str]) -> tuple[Fit, bool]:
        """The records that fit, but for those that are said already; and whether they have to go bare."""
        limit, budget = self._request.limits.memories, self._request.budget_tokens
        found = [_describe(candidate) for ident, candidate in self._candidates.items() if ident not in said]
        wanted = found[:limit]
        beyond = [packing.Omission(item.id, OMITTED_FOR_LIMIT) for item in found[limit:]]
        beyond += [packing.Omission(ident, OMITTED_FOR_SAME_SOURCE) for ident in self._candidates if ident in said]
        fitted = fit(wanted, budget, self._stand_in(frozenset()), beyond)
        if not wanted or fitted.included:
            return fitted, False
        return fit([replace(item, why=()) for item in wanted], budget, self._stand_in(_CALL_FIELDS), beyond), True

    def _widen(self, items: _Items, omitted: _Omissions, steps: Sequence[_Extras]) -> tuple[_Extras, int]:
        """As many of these extras as there is room for, the first ones first; and the tokens of it all.

        All of them are tried at once, then each half: mostly all or most fit, and a Markdown pack is rendered for each
        try.
        """
        taken, tokens = _NO_EXTRAS, 0
        waiting = [steps] if steps else []
        while waiting:
            some = waiting.pop()
            wider = reduce(or_, some, taken)
            size = self._tokens(items, omitted, wider, frozenset())
            if size <= self._request.budget_tokens:
                taken, tokens = wider, max(tokens, size)
            elif len(some) > 1:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
        return taken, tokens

    def _stand_in(self, left_out: frozenset[str]) -> packing.Render:
        """Renders something as long, in tokens, as the answer without the fields that are left out."""
        if self._request.format == "markdown":
            return lambda items, omitted: self._markdown(items, omitted, _NO_EXTRAS)
        return lambda items, omitted: _MARK * self._tokens(items, omitted, _NO_EXTRAS, left_out)

    def _tokens(self, items: _Items, omitted: _Omissions, extras: _Extras, left_out: frozenset[str]) -> int:
        if self._request.format == "markdown":
            return estimate_tokens(self._markdown(items, omitted, extras)) if extras.sources else 0
        # The packer measures at every step, so each record is estimated once; apart they have no fewer tokens.
        answer = msgspec.structs.asdict(self._answer((), omitted, extras))
        fields = {name: value for name, value in answer.items() if value is not None and name not in left_out}
        fields["conflicts"] = self._conflicts(items)
        return estimate_json(_encode(fields)) + sum(self._size(item, extras) for item in items)

    def _size(self, item: packing.PackItem, extras: _Extras) -> int:
        told = (item.id in some for some in (extras.sources, extras.quotes, extras.paths))
        key = (item.id, item.text, bool(item.why), *told)
        if key not in self._sizes:
            self._sizes[key] = estimate_json(_encode(self._item(item, extras)))
        return self._sizes[key]

    def _markdown(self, items: _Items, omitted: _Omissions, extras: _Extras) -> str:
        conflicts = [(str(first), str(second)) for first, second in self._contradictions]
        cited = [replace(item, source=_in_words(self._source(item, extras))) for item in items]
        return render_markdown(cited, omitted, conflicts=conflicts, graph=self._graph.state)

    def _source(self, item: packing.PackItem, extras: _Extras) -> PackSource | None:
        """Where an item comes from, as much of it as is told."""
        source = self._candidates[item.id].source
        if source is None or item.id not in extras.sources:
            return None
        return source if item.id in extras.quotes else msgspec.structs.replace(source, quote=None)

    def _answer(self, items: _Items, omitted: _Omissions, extras: _Extras) -> ContextPack:
        return ContextPack(
            retrieval_id=self._retrieval_id,
            items=[self._item(item, extras) for item in items],
            omitted=_tell(omitted, extras.listed),
            omitted_count=len(omitted),
            conflicts=self._conflicts(items),
            graph=self._graph,
            no_match=not self._candidates,
            markdown=self._markdown(items, omitted, extras) if self._request.format == "markdown" else None,
            degraded_arms=list(self._degraded),
            timings_ms=_UNKNOWN_TIMINGS,
        )

    def _item(self, item: packing.PackItem, extras: _Extras) -> PackItem:
        candidate = self._candidates[item.id]
        record = candidate.record
        return PackItem(
            type=record.ref.type,
            id=record.ref.id,
            label=record.label,
            title=item.title,
            text=item.text,
            date=record.date,
            status=record.status,
            valid_from=record.valid_from,
            valid_to=record.valid_to,
            confidence=record.confidence,
            score=item.score,
            arms=dict(item.arms),
            why=list(item.why),
            path=list(candidate.trail.nodes) if candidate.trail and item.id in extras.paths else [],
            source=self._source(item, extras),
            superseded_by=record.superseded_by,
            shortened=item.shortened,
        )

    def _conflicts(self, items: _Items) -> list[Conflict]:
        inside = {self._candidates[item.id].record.ref.id for item in items}
        pairs = [pair for pair in self._contradictions if inside.issuperset(pair)]
        paired = {ident for pair in pairs for ident in pair}
        alone = [
            record.ref.id
            for item in items
            if (record := self._candidates[item.id].record).status == "disputed" and record.ref.id not in paired
        ]
        return [Conflict("contradicts", list(pair)) for pair in pairs] + [Conflict("disputed", [one]) for one in alone]

    def _further(self, items: _Items, omitted: _Omissions) -> list[_Extras]:
        """What there could be told beside the records, the most useful first."""
        left = min(LISTED_OMISSIONS, sum(gone.reason != OMITTED_FOR_LIMIT for gone in omitted))
        found = [(frozenset({item.id}), self._candidates[item.id]) for item in items]
        sources = [_Extras(sources=item) for item, candidate in found if candidate.source]
        quotes = [_Extras(quotes=item) for item, candidate in found if candidate.source and candidate.source.quote]
        paths = [_Extras(paths=item) for item, candidate in found if candidate.trail]
        return sources + quotes + paths + [_Extras(listed=count) for count in range(1, left + 1)]

    def _entries(self, items: _Items, omitted: _Omissions) -> list[ItemEntry]:
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


def _describe(candidate: Candidate) -> packing.PackItem:
    """A candidate as the packer weighs it. What is no memory or passage has its title or name before its text."""
    record = candidate.record
    named = record.ref.type not in ("memory", "passage")
    text = "\n".join(part for part in (record.title, record.text) if part) if named else record.text
    return packing.PackItem(
        type=record.ref.type,
        id=str(record.ref.id),
        label=record.label,
        title=None if named else record.title,
        text=text,
        date=record.date,
        status=record.status,
        valid_from=record.valid_from,
        valid_to=record.valid_to,
        confidence=record.confidence,
        score=round(candidate.score, SCORE_DECIMALS),
        arms=candidate.ranks,
        why=_reasons(candidate),
        replaced_by=str(record.superseded_by) if record.superseded_by else None,
    )


def _reasons(candidate: Candidate) -> tuple[str, ...]:
    """Why the record is there: the path that led to it, and what it shares with the question."""
    shared = [word for arm, word in (("text", "words"), ("vector", "meaning")) if arm in candidate.ranks]
    path = (candidate.trail.words,) if candidate.trail else ()
    return (*path, f"shares {' and '.join(shared)} with the question") if shared else path


def _in_words(source: PackSource | None) -> packing.PackSource | None:
    """A source as Markdown shows it."""
    if source is None:
        return None
    return packing.PackSource(str(source.id), source.title, source.date, source.support, source.quote)


def _tell(omitted: _Omissions, listed: int) -> list[Omission]:
    """What was left out: the first beyond the limit's by id, the others counted by reason."""
    named = [gone for gone in omitted if gone.reason != OMITTED_FOR_LIMIT][:listed]
    counts = Counter(gone.reason for gone in omitted)
    counts.subtract(gone.reason for gone in named)
    told = [Omission(gone.reason, UUID(gone.id)) for gone in named]
    return told + [Omission(reason, count=count) for reason, count in sorted(counts.items()) if count]
