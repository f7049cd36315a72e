"""The context pack: what an item is, and how many of them fit into a budget of tokens.

The budget counts the serialized pack, all of it: headers, metadata, quoting and the note of what was left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_os.domain.pack_items import Omission, PackItem, PackSource, PackStep
from memory_os.domain.pack_markdown import quote_as_data, render_markdown
from memory_os.domain.sentences import sentence_ends

__all__ = [
    "Fit",
    "Omission",
    "PackItem",
    "PackSource",
    "PackStep",
    "Render",
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

_piece = re.compile(
    "[A-Z]{1,2}(?![a-z])|[A-Za-z][a-z]{0,3}"
    "|[0-9]{1,2}| (?=[0-9])"
    "|[\u0080-\u058f]{1,2}|[\u0590-\U0010ffff]"
    "|[^A-Za-z0-9 \u0080-\U0010ffff]"
)
_dear = re.compile("[\u0900-\u0dff\uac00-\ud7a3]")
_dearest = re.compile("[\u200d\U00010000-\U0010ffff]")

Render = Callable[[Sequence[PackItem], Sequence[Omission]], str]
"""Serializes a pack of these items and this note of what was left out.

All that it writes is counted, so it says how many were left out and names the first few at most.
"""


@dataclass(frozen=True, slots=True)
class Fit:
    """What fits: the items in their order, some shortened; what was left out; and the estimate for the whole pack."""

    included: tuple[PackItem, ...]
    omitted: tuple[Omission, ...]
    tokens: int


def estimate_tokens(text: str) -> int:
    """A conservative estimate of the tokens that a model counts for a text; needs no tokenizer.

    Counted are pieces of up to four ASCII letters (two in capitals), up to two digits, each punctuation mark and line
    break, pairs of Latin letters with accents, Greek and Cyrillic letters, each letter of other scripts (CJK), four for
    three in Hangul and the scripts of India, and three for a character beyond the basic plane (emoji). Never less than
    a quarter of the bytes in UTF-8, never less for more text. 0 for the empty text.

    Measured against two byte-pair vocabularies (100k and 200k entries): 1.3 to 1.5 times the count for English, packs
    and code, 1.0 to 4.2 times for eight other languages; only random letters cost more than estimated (0.5 times).
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    pieces = len(_piece.findall(text))
    if size > len(text):
        pieces += len(_dear.findall(text)) // 3 + 2 * len(_dearest.findall(text))
    return max(pieces, -(-size // 4))


def shorten(text: str, max_tokens: int) -> str:
    """The longest beginning of a text that ends a sentence and is estimated at `max_tokens` or fewer; "" if none is."""
    if len(text) <= 4 * max_tokens and estimate_tokens(text) <= max_tokens:
        return text
    # No beginning of more than four characters a token can fit; the cut's own end is no sentence's.
    cut = text[: 4 * max(0, max_tokens) + 1]
    ends = [end for end in sentence_ends(cut) if end < len(cut)]
    fitting = bisect_right(ends, max_tokens, key=lambda end: estimate_tokens(text[:end].rstrip()))
    return text[: ends[fitting - 1]].rstrip() if fitting else ""


def fit(items: Sequence[PackItem], budget_tokens: int, render: Render, omitted: Sequence[Omission] = ()) -> Fit:
    """Pack the items, best first, into a budget that counts the serialized pack.

    An item that is too large is shortened at a sentence or left out, and packing goes on with the next: one large hit
    never empties the pack. At every step the pack is measured as if all that is still to come were left out, so that
    the note of what was left out is paid for.

    Args:
        items: Best first.
        budget_tokens: At least 0. A budget below the empty pack's own size leaves all items out, and only then is the
            result larger than the budget.
        render: What the budget is measured on.
        omitted: What is already known to be left out; it stays first in the note.

    Raises:
        ValueError: A negative budget.
    """
    if budget_tokens < 0:
        raise ValueError(f"a budget is at least 0 tokens, not {budget_tokens}")
    packer = _Packer(items, budget_tokens, render, omitted)
    for place, item in enumerate(items):
        packer.add(place, item)
    return packer.close()


class _Packer:
    """The pack as it grows."""

    def __init__(self, items: Sequence[PackItem], budget: int, render: Render, omitted: Sequence[Omission]) -> None:
        self._items, self._budget, self._render, self._known = items, budget, render, tuple(omitted)
        self._taken: dict[int, PackItem] = {}
        self._tokens = self._measure({})
        self._empty = estimate_tokens(render((), ()))

    def add(self, place: int, item: PackItem) -> None:
        """Take the item whole, shortened, or not at all."""
        room = self._budget - self._tokens
        if room <= 0:
            return
        # Rendering one item alone is cheap beside the whole pack, and tells most that can't fit.
        bare = estimate_tokens(self._render((replace(item, text=""),), ())) - self._empty
        if bare > room + _SLACK:
            return
        if bare + estimate_tokens(item.text) <= room + _SLACK and self._take(place, item) <= 0:
            return
        self._take_shortened(place, item, room - bare + _SLACK // 2)

    def close(self) -> Fit:
        """The finished pack."""
        omitted = self._omissions(self._taken)
        return Fit(tuple(self._taken.values()), omitted, self._tokens)

    def _take_shortened(self, place: int, item: PackItem, room: int) -> None:
        for _ in range(_TRIES):
            if room < SHORTEST or not (text := shorten(item.text, room)):
                return
            excess = self._take(place, replace(item, text=text, shortened=text != item.text))
            if excess <= 0:
                return
            room = min(room, estimate_tokens(text)) - excess

    def _take(self, place: int, item: PackItem) -> int:
        """Take the item if the pack with it is within the budget; answers by how much it would be over."""
        taken = {**self._taken, place: item}
        tokens = self._measure(taken)
        if tokens <= self._budget:
            self._taken, self._tokens = taken, tokens
        return tokens - self._budget

    def _measure(self, taken: Mapping[int, PackItem]) -> int:
        return estimate_tokens(self._render(tuple(taken.values()), self._omissions(taken)))

    def _omissions(self, taken: Mapping[int, PackItem]) -> tuple[Omission, ...]:
        left = (item for place, item in enumerate(self._items) if place not in taken)
        return (*self._known, *(Omission(item.id, OMITTED_FOR_BUDGET) for item in left))
