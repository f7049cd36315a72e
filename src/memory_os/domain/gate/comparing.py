"""Two readings beside each other: which items say the same, and what is left over on each side."""

# ruff: noqa: PLR0911 - the sorts of matches, one after the other

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final

from memory_os.domain.gate.counting import Quantity
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.wordnet import senses

STRICT: Final = frozenset({"name", "first", "mixed"})
"""Sorts that may be names, which match by their letters alone."""

_COMPOUND: Final = 6
"""Letters of the shortest word that may be two words on the other side."""
_HYPHENED: Final = 2
"""Tokens between the starts of two parts with a hyphen between them."""
_STEM: Final = 4
"""Shorter stems collide."""
_LOOSE: Final = 1.0
_SAME: Final = 2.0
_EQUAL: Final = 3.0
_DISTANCE: Final = 0.4
"""What an item at the other end of the text loses: of two equal partners the nearer one is taken."""


@dataclass(slots=True)
class Comparison:
    """What was found."""

    left: Reading
    right: Reading
    pairs: list[tuple[Item, Item]] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    """Pairs that agree only loosely: derived words, synonyms of one sense, less precise dates."""
    left_over: list[Item] = field(default_factory=list)
    right_over: list[Item] = field(default_factory=list)
    left_marks: list[Item] = field(default_factory=list)
    right_marks: list[Item] = field(default_factory=list)

    def turned(self) -> Comparison:
        """The same with its sides exchanged."""
        return Comparison(
            self.right,
            self.left,
            [(other, one) for one, other in self.pairs],
            self.loose,
            self.right_over,
            self.left_over,
            self.right_marks,
            self.left_marks,
        )

    @property
    def covers(self) -> tuple[float, float]:
        """Shares of each side's content words that have a partner (1.0 for a side without any)."""
        sides = []
        for over in (self.left_over, self.right_over):
            rest = sum(item.sort not in QUANTITIES and not item.light for item in over)
            sides.append(self.matched / (self.matched + rest) if self.matched + rest else 1.0)
        return sides[0], sides[1]

    @property
    def matched(self) -> int:
        """How many content words have a partner."""
        return sum(one.sort not in QUANTITIES and not (one.light and other.light) for one, other in self.pairs)


def compare(left: Reading, right: Reading) -> Comparison:
    """Align two readings in one language: each item takes the best free partner, in the order of the left text."""
    found = Comparison(left, right)
    free = list(right.items)
    rest: list[Item] = []
    for item in left.items:
        scored = [(_score(item, other, left, right), at) for at, other in enumerate(free)]
        score, at = max(scored, default=(0.0, -1), key=lambda pair: pair[0])
        if score <= 0:
            rest.append(item)
            continue
        partner = free.pop(at)
        found.pairs.append((item, partner))
        if _match(item, partner, left.language) == _LOOSE:
            found.loose.append(f"{item.text} ~ {partner.text}")
    pairs, rest, free = _join_compounds(rest, free)
    turned, free, rest = _join_compounds(free, rest)
    found.pairs += pairs + [(one, other) for other, one in turned]
    found.left_marks = [item for item in rest if item.sort == "mark"]
    found.right_marks = [item for item in free if item.sort == "mark"]
    found.left_over = [item for item in rest if item.sort != "mark"]
    found.right_over = [item for item in free if item.sort != "mark"]
    return found


def bare(key: str) -> str:
    """A key without its sort: the lemma or the group."""
    return key.removeprefix("l:")


def _score(one: Item, other: Item, left: Reading, right: Reading) -> float:
    value = _match(one, other, left.language)
    if not value:
        return 0.0
    return value - _DISTANCE * abs(one.place / (1 + len(left.lows)) - other.place / (1 + len(right.lows)))


def _match(one: Item, other: Item, language: str) -> float:
    if one.quantity or other.quantity:
        return _quantity_match(one.quantity, other.quantity)
    if "ended" in one.marks and "ended" in other.marks:
        return _SAME
    if one.sort == "mark" or other.sort == "mark":
        if one.sort != other.sort or not one.marks & other.marks:
            return 0.0
        return _EQUAL if one.keys & other.keys else _SAME
    strict = one.sort in STRICT and other.sort in STRICT
    shared = one.keys & other.keys
    if shared:
        return _word_match(one, other, language, by_letters=strict and all(key.startswith("l:") for key in shared))
    if strict or one.marks or other.marks:
        return 0.0
    return _LOOSE if _related(one, other, language) else 0.0


def _word_match(one: Item, other: Item, language: str, *, by_letters: bool) -> float:
    """Of two items that share a lemma or a group of synonyms."""
    if one.text.casefold() == other.text.casefold():
        return _EQUAL
    if by_letters:
        return 0.0  # Daniel and Daniela share what a lemma drops.
    if language in {"ru", "el"} and one.text[:1].isupper() and other.text[:1].isupper():
        return _LOOSE  # Another case of one name, or the other sex.
    return _SAME


def _related(one: Item, other: Item, language: str) -> bool:
    if any(len(word) >= _STEM for word in one.stems & other.stems):
        return True
    words = [item.sort in {"word", "first"} and " " not in item.text for item in (one, other)]
    return language == "en" and all(words) and _share_sense(one.keys, other.keys)


@lru_cache(maxsize=65_536)
def _share_sense(one: frozenset[str], other: frozenset[str]) -> bool:
    return any(senses(bare(mine)) & senses(bare(yours)) for mine in one for yours in other)


def _quantity_match(one: Quantity | None, other: Quantity | None) -> float:
    if one is None or other is None:
        return 0.0
    same = one.sort == other.sort and one.value == other.value
    if one.bound != other.bound:
        # More than 800 is not 800; whether it is a bound or a guess is for the rules.
        return _LOOSE if same and {one.bound[:1], other.bound[:1]} != {"<", ">"} else 0.0
    if same:
        return _LOOSE if one.doubtful != other.doubtful else _EQUAL
    if one.sort == other.sort == "date":
        parts = list(zip(one.value, other.value, strict=True))
        fits = all(mine is None or yours is None or mine == yours for mine, yours in parts)
        return _LOOSE if fits and any(mine == yours is not None for mine, yours in parts) else 0.0
    if {one.sort, other.sort} == {"number", "ordinal"} and one.value[0] == other.value[0]:
        return _SAME
    return 0.0


def _join_compounds(apart: list[Item], whole: list[Item]) -> tuple[list[tuple[Item, Item]], list[Item], list[Item]]:
    """Match stand + up with standup; gives the pairs and what is left of both sides."""
    pairs: list[tuple[Item, Item]] = []
    for joined in list(whole):
        text = _letters(joined.text)
        for first, second in pairwise(apart):
            one = _letters(first.text + second.text)
            if (
                len(text) >= _COMPOUND
                and text.rstrip("s") == one.rstrip("s")
                and second.place - first.place <= _HYPHENED
            ):
                pairs.append((first, joined))
                apart = [item for item in apart if item is not first and item is not second]
                whole = [item for item in whole if item is not joined]
                break
    return pairs, apart, whole


def _letters(text: str) -> str:
    return text.casefold().replace("-", "").replace(" ", "")
