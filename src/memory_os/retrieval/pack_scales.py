"""What an answer counts, as JSON and as Markdown: each part is weighed once, and the parts are added up."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from memory_os.domain import packing
from memory_os.domain.pack_markdown import (
    FENCE_INFO,
    MARKER,
    PREAMBLE,
    SHORTEST_FENCE,
    closing_lines,
    describe,
    fence_length,
)
from memory_os.domain.token_counting import Tally, TokenCounter
from memory_os.retrieval.model import Conflict, Omission
from memory_os.retrieval.pack_shapes import NO_EXTRAS, Answer, Extras, Items, Omissions, tell, tell_counts

CALL_FIELDS: Final = frozenset({"retrieval_id", "timings_ms"})
"""Fields that tell of the call and not of what was found."""

_NOTHING: Final = Tally(0)
_TWO_FIGURES: Final = 10

_encode = msgspec.json.Encoder().encode


class JsonScale:
    """Weighs an answer as JSON. Records are counted apart from each other: they have no fewer tokens so.

    Args:
        answer: What is told whatever goes into the pack.
        counter: Counts the tokens.
    """

    def __init__(self, answer: Answer, counter: TokenCounter) -> None:
        self.counter = counter
        self._answer = answer
        disputed = any(candidate.record.status == "disputed" for candidate in answer.candidates.values())
        self._peaceful = not answer.contradictions and not disputed
        self._known: Counter[str] = Counter()
        self._left_out: frozenset[str] = frozenset()
        self._fields: dict[str, object] = {}
        self._items: dict[tuple[object, ...], Tally] = {}
        self._frames: dict[tuple[object, ...], int] = {}

    def begin(self, known: Omissions, *, bare: bool) -> None:
        """Weigh packs beside which these records are known to be left out; `bare` without what tells of the call."""
        self._known = Counter(gone.reason for gone in known)
        self._left_out = CALL_FIELDS if bare else frozenset()
        self._fields = {}
        self._frames.clear()

    def item(self, item: packing.PackItem) -> Tally:
        """See `packing.Scale`."""
        return self._item(item, NO_EXTRAS)

    def pack(self, items: Items, weight: Tally, left_out: int | None) -> int:
        """See `packing.Scale`."""
        conflicts = [] if self._peaceful else self._answer.conflicts(items)
        key = (left_out, *(ident for conflict in conflicts for ident in conflict.items))
        if (size := self._frames.get(key)) is None:
            counts = _counts(self._known, left_out)
            size = self._frames[key] = self._frame(conflicts, tell_counts(counts), counts.total())
        return size + weight.pieces

    def whole(self, items: Items, omitted: Omissions, extras: Extras) -> int:
        """What the answer counts with these extras."""
        key = ("listed", extras.listed, len(items), len(omitted))
        if (frame := self._frames.get(key)) is None:
            told = tell(omitted, extras.listed)
            frame = self._frames[key] = self._frame(self._answer.conflicts(items), told, len(omitted))
        return frame + sum(self._item(item, extras).pieces for item in items)

    def exact(self, items: Items, omitted: Omissions, extras: Extras) -> int:
        """What the answer counts as it is sent."""
        answer = msgspec.structs.asdict(self._answer.pack(items, omitted, extras, markdown=False))
        return self.counter.json(_encode(self._sent(answer))).tokens

    def _item(self, item: packing.PackItem, extras: Extras) -> Tally:
        ident = item.id
        told = (ident in extras.sources, ident in extras.quotes, ident in extras.paths)
        key = (ident, item.text, bool(item.why), told)
        if (tally := self._items.get(key)) is None:
            tokens = self.counter.json(_encode(self._answer.item(item, extras))).tokens
            tally = self._items[key] = Tally(tokens)
        return tally

    def _frame(self, conflicts: list[Conflict], omitted: list[Omission], count: int) -> int:
        if not self._fields:
            empty = self._answer.pack((), (), NO_EXTRAS, markdown=False)
            self._fields = self._sent(msgspec.structs.asdict(empty))
        told = {**self._fields, "conflicts": conflicts, "omitted": omitted, "omitted_count": count}
        return self.counter.json(_encode(told)).tokens

    def _sent(self, answer: dict[str, object]) -> dict[str, object]:
        return {name: value for name, value in answer.items() if value is not None and name not in self._left_out}


class MarkdownScale:
    """Weighs an answer as Markdown. Lines add up, so what it tells is what the whole counts, by the estimate.

    Args:
        answer: What is told whatever goes into the pack.
        counter: Counts the tokens.
    """

    def __init__(self, answer: Answer, counter: TokenCounter) -> None:
        self.counter = counter
        self._answer = answer
        self._conflicts = [(str(first), str(second)) for first, second in answer.contradictions]
        self._known: Counter[str] = Counter()
        self._head = counter.text(f"{MARKER}\n{PREAMBLE}\n")
        self._items: dict[tuple[object, ...], Tally] = {}
        self._runs: dict[tuple[object, ...], int] = {}

    def begin(self, known: Omissions, *, bare: bool) -> None:
        """Weigh packs beside which these records are known to be left out. Markdown tells nothing of the call."""
        del bare
        self._known = Counter(gone.reason for gone in known)

    def item(self, item: packing.PackItem) -> Tally:
        """See `packing.Scale`."""
        key = _key(item)
        if (tally := self._items.get(key)) is None:
            entry = describe(item)
            if entry.run >= SHORTEST_FENCE:
                self._runs[key] = entry.run
            tally = self._items[key] = self.counter.text(f"\n## 1. {entry.heading}\n{FENCE_INFO}\n{entry.body}\n\n")
        return tally

    def pack(self, items: Items, weight: Tally, left_out: int | None) -> int:
        """See `packing.Scale`."""
        return self._sum(items, weight, _counts(self._known, left_out))

    def whole(self, items: Items, omitted: Omissions, extras: Extras) -> int:
        """What the answer counts with these extras."""
        if not extras.sources:
            return 0
        cited = [self._answer.cited(item, extras) for item in items]
        weight = _NOTHING
        for item in cited:
            weight = weight.plus(self.item(item))
        return self._sum(cited, weight, Counter(gone.reason for gone in omitted))

    def exact(self, items: Items, omitted: Omissions, extras: Extras) -> int:
        """What the answer counts as it is sent."""
        return self.counter.text(self._answer.markdown(items, omitted, extras)).tokens

    def _sum(self, items: Items, weight: Tally, omitted: Counter[str]) -> int:
        runs = [self._runs.get(_key(item), 0) for item in items] if self._runs else []
        length = 2 * len(items) * fence_length(runs)
        figures = max(0, len(items) - _TWO_FIGURES + 1)  # the numbers from 10 on have one more byte, and no more pieces
        closing = "".join(f"{line}\n" for line in self._closing(items, omitted))
        total = weight.plus(self._head).plus(self.counter.text(closing))
        return total.plus(Tally(length, 0, length + figures)).tokens

    def _closing(self, items: Items, omitted: Counter[str]) -> list[str]:
        pairs: list[tuple[int, int]] = []
        if self._conflicts:
            numbers = {item.id: number for number, item in enumerate(items, start=1)}
            pairs = [
                (numbers[one], numbers[other]) for one, other in self._conflicts if one in numbers and other in numbers
            ]
        return closing_lines(len(items), pairs, omitted, self._answer.graph.state)


def _key(item: packing.PackItem) -> tuple[object, ...]:
    return (item.id, item.text, item.shortened, item.why, item.source)


def _counts(known: Counter[str], left_out: int | None) -> Counter[str]:
    """How many are left out, by reason."""
    if left_out is None:
        return Counter()
    return known + Counter({packing.OMITTED_FOR_BUDGET: left_out})
