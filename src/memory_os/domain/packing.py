"""The context pack: what an item is, and how many of them fit into a budget of tokens.

The budget counts the serialized pack, all of it: headers, metadata, quoting and the note of what was left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from memory_os.domain.pack_items import Omission, PackItem, PackSource, PackStep
from memory_os.domain.pack_markdown import quote_as_data, render_markdown
from memory_os.domain.sentences import sentence_ends
from memory_os.domain.token_counting import ESTIMATE, Tally, TokenCounter, estimate_tokens

__all__ = [
    "Fit",
    "Omission",
    "PackItem",
    "PackSource",
    "PackStep",
    "Scale",
    "estimate_tokens",
    "fit",
    "quote_as_data",
    "render_markdown",
    "shorten",
]

SHORTEST: Final = 16
"""Tokens that a shortened text must be allowed, or the item is left out: less says nothing. Ours."""

OMITTED_FOR_BUDGET: Final = "budget"
"""The reason of an item that did not fit."""

_TRIES: Final = 3
"""Attempts at shortening one item; each learns from the last how much its serialization adds."""

_SLACK: Final = 32
"""Tokens by which an item alone may seem too large and still be tried: taking it drops its note of omission."""


class Scale(Protocol):
    """Tells what a serialized pack counts, without serializing all of it at every step."""

    @property
    def counter(self) -> TokenCounter:
        """What it counts with."""
        ...

    def item(self, item: PackItem) -> Tally:
        """What one item adds."""
        ...

    def pack(self, items: Sequence[PackItem], weight: Tally, left_out: int | None) -> int:
        """Tokens of the pack.

        Args:
            items: The items in it.
            weight: What they add, each of them by `item`.
            left_out: How many were left out for the budget, beside those that were known to be left out before; None
                for a pack without any note of what was left out.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fit:
    """What fits: the items in their order, some shortened; what was left out; and what the whole pack counts."""

    included: tuple[PackItem, ...]
    omitted: tuple[Omission, ...]
    tokens: int


def shorten(text: str, max_tokens: int, counter: TokenCounter = ESTIMATE) -> str:
    """The longest beginning of a text that ends a sentence and counts `max_tokens` or fewer; "" if none is."""
    most = counter.longest * max(0, max_tokens)
    if len(text) <= most and counter.text(text).tokens <= max_tokens:
        return text
    # No beginning of more characters can fit; the cut's own end is no sentence's.
    cut = text[: most + 1]
    ends = [end for end in sentence_ends(cut) if end < len(cut)]
    fitting = bisect_right(ends, max_tokens, key=lambda end: counter.text(text[:end].rstrip()).tokens)
    return text[: ends[fitting - 1]].rstrip() if fitting else ""


def fit(items: Sequence[PackItem], budget_tokens: int, scale: Scale, omitted: Sequence[Omission] = ()) -> Fit:
    """Pack the items, best first, into a budget that counts the serialized pack.

    An item that is too large is shortened at a sentence or left out, and packing goes on with the next: one large hit
    never empties the pack. At every step the pack is measured as if all that is still to come were left out, so that
    the note of what was left out is paid for.

    Args:
        items: Best first.
        budget_tokens: At least 0. A budget below the empty pack's own size leaves all items out, and only then is the
            result larger than the budget.
        scale: What the budget is measured on; it knows of `omitted`.
        omitted: What is already known to be left out; it stays first in the note.

    Raises:
        ValueError: A negative budget.
    """
    if budget_tokens < 0:
        raise ValueError(f"a budget is at least 0 tokens, not {budget_tokens}")
    packer = _Packer(len(items), budget_tokens, scale)
    for item in items:
        packer.add(item)
    taken = {item.id for item in packer.taken}
    left = (Omission(item.id, OMITTED_FOR_BUDGET) for item in items if item.id not in taken)
    return Fit(tuple(packer.taken), (*omitted, *left), packer.tokens)


class _Packer:
    """The pack as it grows."""

    def __init__(self, count: int, budget: int, scale: Scale) -> None:
        self._count, self._budget, self._scale = count, budget, scale
        self._weight = Tally(0)
        self.taken: list[PackItem] = []
        self.tokens = scale.pack((), self._weight, count)
        self._empty = scale.pack((), self._weight, None)

    def add(self, item: PackItem) -> None:
        """Take the item whole, shortened, or not at all."""
        room = self._budget - self.tokens
        if room <= 0:
            return
        counter = self._scale.counter
        if len(item.text) <= counter.longest * (room + _SLACK) and self._take(item) <= 0:
            return
        alone = replace(item, text="")
        bare = self._scale.pack((alone,), self._scale.item(alone), None) - self._empty
        if bare <= room + _SLACK:
            self._take_shortened(item, room - bare + _SLACK // 2)

    def _take_shortened(self, item: PackItem, room: int) -> None:
        counter = self._scale.counter
        for _ in range(_TRIES):
            if room < SHORTEST or not (text := shorten(item.text, room, counter)):
                return
            excess = self._take(replace(item, text=text, shortened=text != item.text))
            if excess <= 0:
                return
            room = min(room, counter.text(text).tokens) - excess

    def _take(self, item: PackItem) -> int:
        """Take the item if the pack with it is within the budget; answers by how much it would be over."""
        taken, weight = [*self.taken, item], self._weight.plus(self._scale.item(item))
        tokens = self._scale.pack(taken, weight, self._count - len(taken))
        if tokens <= self._budget:
            self.taken, self._weight, self.tokens = taken, weight, tokens
        return tokens - self._budget
