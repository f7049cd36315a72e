"""The parts of an answer as they are sent: records, where they come from, what was left out, and conflicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from memory_os.domain import packing
from memory_os.retrieval.fusing import Candidate
from memory_os.retrieval.model import ArmName, Conflict, ContextPack, GraphState, Omission, PackItem, PackSource

OMITTED_FOR_LIMIT: Final = "limit"

OMITTED_FOR_RELEVANCE: Final = "relevance"
"""The reason of what is no answer beside the best that was found."""

COUNTED: Final = frozenset({OMITTED_FOR_LIMIT, OMITTED_FOR_RELEVANCE})
"""Reasons of which the number is told, and not each record."""

OMITTED_FOR_SAME_SOURCE: Final = "same_source"
"""The reason of a passage of which a memory in the pack states the same."""

SCORE_DECIMALS: Final = 4

BESIDE: Final = "stands beside a turn that was found"
"""Why a turn of a conversation is there that no arm found by itself."""

_PARTS: Final = ("queue", "read", "text", "embed", "vector", "wait", "graph", "hydrate", "rerank", "pack", "total")
_LONGEST_MS: Final = 99_999.99
"""The timings are known only when the pack is done; until then they count as five digits each."""

_COSTLIEST_ID: Final = UUID("a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0")
"""Stands for the answer's own id, which is drawn by lot: what goes into a pack must not depend on its digits. No id has
more tokens."""

_UNKNOWN_TIMINGS: Final = dict.fromkeys(_PARTS, _LONGEST_MS)

Items = Sequence[packing.PackItem]
Omissions = Sequence[packing.Omission]


@dataclass(frozen=True, slots=True)
class Extras:
    """What is told beside the records where the budget has room: sources, quotes, paths, and what was left out."""

    sources: frozenset[str] = frozenset()
    quotes: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    listed: int = 0

    def __or__(self, other: Extras) -> Extras:
        """All that either tells."""
        return Extras(
            self.sources | other.sources,
            self.quotes | other.quotes,
            self.paths | other.paths,
            max(self.listed, other.listed),
        )


NO_EXTRAS: Final = Extras()


@dataclass(frozen=True, slots=True)
class Answer:
    """What is told whatever goes into the pack.

    Attributes:
        candidates: By id, best first.
        contradictions: Pairs of memories that contradict each other.
        graph: Where the graph stood.
        degraded: Arms that could not be asked, in the order of their names.
    """

    candidates: Mapping[str, Candidate]
    contradictions: Sequence[tuple[UUID, UUID]]
    graph: GraphState
    degraded: Sequence[ArmName]

    def pack(self, items: Items, omitted: Omissions, extras: Extras, *, markdown: bool) -> ContextPack:
        """The answer with these items, but for its id and timings, in whose place the longest stand that there are."""
        return ContextPack(
            retrieval_id=_COSTLIEST_ID,
            items=[self.item(item, extras) for item in items],
            omitted=tell(omitted, extras.listed),
            omitted_count=len(omitted),
            conflicts=self.conflicts(items),
            graph=self.graph,
            no_match=not self.candidates,
            markdown=self.markdown(items, omitted, extras) if markdown else None,
            degraded_arms=list(self.degraded),
            timings_ms=_UNKNOWN_TIMINGS,
        )

    def item(self, item: packing.PackItem, extras: Extras) -> PackItem:
        """A record as it is sent."""
        candidate = self.candidates[item.id]
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

    def markdown(self, items: Items, omitted: Omissions, extras: Extras) -> str:
        """The answer as Markdown."""
        conflicts = [(str(first), str(second)) for first, second in self.contradictions]
        cited = [self.cited(item, extras) for item in items]
        return packing.render_markdown(cited, omitted, conflicts=conflicts, graph=self.graph.state)

    def cited(self, item: packing.PackItem, extras: Extras) -> packing.PackItem:
        """An item with where it comes from, as Markdown shows it."""
        source = self._source(item, extras)
        if source is None:
            return item
        return replace(
            item,
            source=packing.PackSource(str(source.id), source.title, source.date, source.support, source.quote),
        )

    def conflicts(self, items: Items) -> list[Conflict]:
        """What contradicts each other among these items, and which of them are disputed by nothing in the pack."""
        records = [self.candidates[item.id].record for item in items]
        inside = {record.ref.id for record in records} if self.contradictions else ()
        pairs = [pair for pair in self.contradictions if pair[0] in inside and pair[1] in inside]
        paired = {ident for pair in pairs for ident in pair}
        alone = [record.ref.id for record in records if record.status == "disputed" and record.ref.id not in paired]
        return [Conflict("contradicts", list(pair)) for pair in pairs] + [Conflict("disputed", [one]) for one in alone]

    def _source(self, item: packing.PackItem, extras: Extras) -> PackSource | None:
        """Where an item comes from, as much of it as is told."""
        source = self.candidates[item.id].source
        if source is None or item.id not in extras.sources:
            return None
        return source if item.id in extras.quotes else msgspec.structs.replace(source, quote=None)


def tell(omitted: Omissions, listed: int) -> list[Omission]:
    """What was left out: the first of what is listed by id, the others counted by reason."""
    named = [gone for gone in omitted if gone.reason not in COUNTED][:listed]
    counts = Counter(gone.reason for gone in omitted)
    counts.subtract(gone.reason for gone in named)
    return [Omission(gone.reason, UUID(gone.id)) for gone in named] + tell_counts(counts)


def tell_counts(counts: Mapping[str, int]) -> list[Omission]:
    """How many were left out, by reason."""
    return [Omission(reason, count=count) for reason, count in sorted(counts.items()) if count]


def describe(candidate: Candidate) -> packing.PackItem:
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
    reasons: tuple[str, ...] = (candidate.trail.words,) if candidate.trail else ()
    if shared:
        reasons = (*reasons, f"shares {' and '.join(shared)} with the question")
    reasons = reasons or (BESIDE,)
    if place := candidate.ranks.get("rerank"):
        reasons = (*reasons, f"ranked anew as number {place} ({candidate.scores['rerank']:.3f})")
    return reasons


def together(candidates: Iterable[Candidate], contradictions: Sequence[tuple[UUID, UUID]]) -> list[Candidate]:
    """The candidates in their order, but what contradicts a disputed one follows it: both sides are read together."""
    found = {candidate.record.ref.id: candidate for candidate in candidates}
    if not contradictions:
        return list(found.values())
    sides: dict[UUID, list[UUID]] = defaultdict(list)
    for one, other in contradictions:
        sides[one].append(other)
        sides[other].append(one)
    ordered: dict[UUID, Candidate] = {}
    for ident, candidate in found.items():
        ordered.setdefault(ident, candidate)
        if candidate.record.status == "disputed":
            ordered |= {
                other: replace(found[other], weak=False)
                for other in sides[ident]
                if other in found and (other not in ordered or ordered[other].weak)
            }
    return list(ordered.values())
