"""Who does what to whom: items that changed places between two readings."""

# ruff: noqa: RUF001 - letters of other scripts are meant

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from memory_os.domain.gate.comparing import STRICT, Comparison
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.word_lists import words

_LONGEST_RUN: Final = 4
"""Words of a name or phrase that can change places with another."""
_SURE: Final = 0.85
"""Share of content words that must be shared before exchanged common nouns say anything."""
_MOSTLY: Final = 0.8
_JOINING: Final = words("and or & und oder et ou y e o и или και ή و 和 与 और en of the")
_ORDER_WORDS: Final = words("before after than als que 比 より 보다 以前 之前 чем до после antes después")
_MUTUAL: Final = words(
    "cousin sibling twin neighbour neighbor colleague friend roommate flatmate classmate relative spouse"
)
"""What two people are to each other."""
_ORDER_SLOTS: Final = frozenset({"than", "before", "after", "until"})
_AGENTS: Final = frozenset({"by", "von", "durch", "par", "por", "door", "da", "από", "от"})
"""Slots of who acts in a passive, in the languages whose passive is not read otherwise."""
_MOVING: Final = words(
    """
    in on at for with from since until during without via about under over near per im am um bei seit für
    mit aus nach ab bis dans en sur chez pour depuis avec sans desde para sin per da presso na no em за в во
    на с от из у к для до после w z ze u do v ve k ke på i hos från till op om bij vanuit σε στο στη στην
    για από με في من على منذ
    """
)
"""Small words that begin a place or a time."""
_PASSIVES: Final = {"zh": ("被", "由"), "ja": ("られ", "され"), "hi": ("द्वारा",)}
_MOVABLE: Final = words("早上 上午 下午 晚上 中午 早晨 今天 明天 昨天 周末 现在 目前 通常 经常")
"""Chinese words of time, which stand before or after who acts."""


@dataclass(slots=True)
class Exchanges:
    """What changed places."""

    swapped: list[str] = field(default_factory=list)
    """Pairs that hold each other's slots."""
    doubtful: list[str] = field(default_factory=list)
    """Pairs whose order changed without a reason that the rules know."""
    ordering: bool = False
    """The exchange is of a comparison or of an order in time."""


def exchanges(found: Comparison) -> Exchanges:
    """All of them in a comparison."""
    result = Exchanges()
    pairs = [
        (one, other)
        for one, other in found.pairs
        if one.sort not in QUANTITIES and one.sort != "mark" and not (one.light and other.light)
    ]
    check = _Check(found, pairs, result)
    for first, second in combinations([(pair, _acting(pair)) for pair in pairs], 2):
        check.one(first[0], second[0], first[1], second[1])
    exchange = _transposed(found.left.words, found.right.words)
    if exchange and not result.swapped:
        result.swapped.append(exchange[0])
        result.ordering = bool(_ORDER_WORDS & exchange[1])
    for word in _ORDER_WORDS & set(found.left.lows) & set(found.right.lows):
        moved = _moved_across(found, pairs, word)
        if moved:
            result.swapped.append(moved)
            result.ordering = True
    if not result.swapped:
        result.doubtful += _voices(found, pairs, crossing=check.crossed)
    return result


Pairs = list[tuple[Item, Item]]


class _Check:
    """Looks at two pairs of partners at a time."""

    def __init__(self, found: Comparison, pairs: Pairs, result: Exchanges) -> None:
        self._left, self._right = found.left, found.right
        self._language = found.left.language
        self._result = result
        self._same_words = sorted(found.left.words) == sorted(found.right.words)
        self._cover = min(found.covers)
        self._copula = found.left.copula or found.right.copula
        self._names = [(one, other) for one, other in pairs if one.sort in STRICT and other.sort in STRICT]
        self.crossed = False
        others = [pair for pair in pairs if pair not in self._names]
        self._mutual = (
            found.left.copula and found.right.copula and len(self._names) == 2 and len(others) == 1  # noqa: PLR2004
            and not found.left_over and not found.right_over
            and any(item.text.casefold() in _MUTUAL for item in others[0])
        )  # fmt: skip

    def one(
        self, first: tuple[Item, Item], second: tuple[Item, Item], slots: tuple[str, str], others: tuple[str, str]
    ) -> None:
        """Note what the two pairs, with their slots on both sides, show; long texts have a million of these."""
        if slots[0] == slots[1] == others[0] == others[1] and (
            (first[0].place < second[0].place) == (first[1].place < second[1].place)
        ):
            return
        mine, yours = (slots[0], others[0]), (slots[1], others[1])
        shown = f"{first[0].text} / {second[0].text}"
        names = all(item.sort in STRICT for item in (*first, *second))
        if names and self._mutual:
            return  # Ann is Bo's cousin: they are cousins.
        if mine[0] != mine[1] and mine == (yours[1], yours[0]) and "V" not in mine:
            self._slots_exchanged(set(mine), shown, names=names)
        elif names and self._other_acts(mine, yours):
            self._result.swapped.append(shown)
        elif self._language in {"ja", "ko", "hi"} and self._other_acts(mine, yours):
            self._result.doubtful.append(shown)
        elif (first[0].place < second[0].place) != (first[1].place < second[1].place):
            self.crossed = True
            self._crossing(first, second, shown, names=names)

    def _slots_exchanged(self, slots: set[str], shown: str, *, names: bool) -> None:
        if slots <= {"S", "O", "with"} and ("with" in slots or self._copula):
            return  # Sharing with somebody goes both ways, and so does being something.
        if names or self._cover >= _SURE or self._language in {"zh", "ja"}:
            self._result.swapped.append(shown)
            self._result.ordering = self._result.ordering or bool(slots & _ORDER_SLOTS)
        else:
            self._result.doubtful.append(shown)

    def _other_acts(self, mine: tuple[str, str], yours: tuple[str, str]) -> bool:
        """The one of the two who acts is not the same."""
        if mine.count("S") != 1 or yours.count("S") != 1 or "with" in (*mine, *yours) or self._copula:
            return False
        return mine.index("S") != yours.index("S")

    def _crossing(self, first: tuple[Item, Item], second: tuple[Item, Item], shown: str, *, names: bool) -> None:
        items = (*first, *second)
        slots = [item.slot for item in items]
        one_slot = len(set(slots)) == 1
        if self._language == "zh":
            if not any(item.text.replace(" ", "") in _MOVABLE for item in items) and first[0].text != second[0].text:
                self._chinese(shown)
        elif self._language == "ja":
            return
        elif not names and self._parted_by_name(first, second):
            self._result.doubtful.append(shown)  # Ann plays the piano and Bo the violin.
        elif names and one_slot:
            if not self._coordinated_once(first, second):
                (self._result.swapped if self._same_words else self._result.doubtful).append(shown)
        elif names and "with" in slots and self._coordinated_once(first, second):
            return
        elif names and slots[0::2] != slots[1::2] and not (self._left.passive or self._right.passive):
            self._result.doubtful.append(shown)
        elif (
            self._language == "de" and self._same_words and one_slot and all(item.text[:1].isupper() for item in items)
        ):
            self._result.swapped.append(shown)

    def _coordinated_once(self, first: tuple[Item, Item], second: tuple[Item, Item]) -> bool:
        """Ann and Bo share what Bo shares with Ann."""
        return _coordinated(self._left, first[0], second[0]) or _coordinated(self._right, first[1], second[1])

    def _chinese(self, shown: str) -> None:
        passive = [sum(word in reading.lows for word in _PASSIVES["zh"]) for reading in (self._left, self._right)]
        if passive[0] == passive[1]:
            (self._result.swapped if self._same_words else self._result.doubtful).append(shown)

    def _parted_by_name(self, first: tuple[Item, Item], second: tuple[Item, Item]) -> bool:
        return any(
            _between(first[0], name, second[0]) and _between(first[1], partner, second[1])
            for name, partner in self._names
            if not any(self._coordinated_once((name, partner), pair) for pair in (first, second))
        )


def _voices(found: Comparison, pairs: Pairs, *, crossing: bool) -> list[str]:
    """Names that act on one side only, and a passive that nothing makes up for."""
    doubtful = [
        f"{one.text} / {other.text}"
        for one, other in pairs
        if found.left.language != "en"
        and one.text[:1].isupper()
        and one.slot != other.slot
        and {one.slot, other.slot} & _AGENTS
    ]
    doubtful += [
        f"{one.text} / {other.text}"
        for one, other in pairs
        if {one.slot, other.slot} == {"S", "O"} and one.sort == "word" and found.left.language in {"ja", "ko"}
    ]
    markers = _PASSIVES.get(found.left.language)
    if markers and not crossing:
        left, right = ("".join(reading.lows) for reading in (found.left, found.right))
        if any((marker in left) != (marker in right) for marker in markers):
            doubtful.append("passive: one side only")
    return doubtful


def _transposed(mine: tuple[str, ...], yours: tuple[str, ...]) -> tuple[str, frozenset[str]] | None:
    """Two runs of words that changed places around others that stayed; with those others."""
    if len(mine) != len(yours) or mine == yours or sorted(mine) != sorted(yours):
        return None
    start, end = 0, len(mine)
    while mine[start] == yours[start]:
        start += 1
    while mine[end - 1] == yours[end - 1]:
        end -= 1
    left, right = mine[start:end], yours[start:end]
    for first in range(1, _LONGEST_RUN + 1):
        for second in range(1, min(_LONGEST_RUN, len(left) - first - 1) + 1):
            middle = left[first : len(left) - second]
            if (left[0] in _MOVING) != (left[-second] in _MOVING):
                continue  # "In the bank works Marek": a place or time may stand anywhere.
            exchanged = left[:first] == right[-first:] and left[-second:] == right[:second]
            if exchanged and middle == right[second : len(right) - first] and not set(middle) <= _JOINING:
                return f"{' '.join(left[:first])} / {' '.join(left[-second:])}", frozenset(middle)
    return None


def _acting(pair: tuple[Item, Item]) -> tuple[str, str]:
    """The slots of both; a topic acts as often as not."""
    one, other = ("S" if item.slot == "T" else item.slot for item in pair)
    return one, other


def _between(one: Item, name: Item, other: Item) -> bool:
    return min(one.place, other.place) < name.place < max(one.place, other.place)


def _moved_across(found: Comparison, pairs: Pairs, word: str) -> str | None:
    """X before Y on one side, Y before X on the other."""
    mine, yours = found.left.lows.index(word), found.right.lows.index(word)
    if mine == 0 or yours == 0 or min(found.covers) < _MOSTLY:
        return None
    forth = [one.text for one, other in pairs if one.place < mine and other.place > yours]
    back = [one.text for one, other in pairs if one.place > mine and other.place < yours]
    return f"{forth[0]} / {back[0]}" if forth and back else None


def _coordinated(reading: Reading, one: Item, second: Item) -> bool:
    low, high = sorted((one.place, second.place))
    return bool(set(reading.lows[low:high]) & (_JOINING - {"of", "the"} | {","}))
