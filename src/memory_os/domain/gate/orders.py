"""Words that changed places where their order says what belongs to what."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.attachments import direct_slot
from memory_os.domain.gate.fillers import item_after
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.small_words import LONGEST_GAP

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison


def rows(found: Comparison) -> list[str]:
    """At noon the cat and at night the dog, the cat at night and the dog at noon."""
    pairs = [pair for pair in found.pairs if pair[0].sort != "mark" and not (pair[0].light and pair[1].light)]
    heads = [
        (one, other)
        for one, other in pairs
        if one.slot == other.slot
        and one.slot != "of"
        and direct_slot(found.left, one) == direct_slot(found.right, other) != ""
    ]
    shown = []
    for (first, its), (second, seconds) in combinations(heads, 2):
        if first.slot != second.slot or first.place == second.place:
            continue
        crossed = (first.place < second.place) != (its.place < seconds.place)
        if not (_parted(found.left, first, second) and _parted(found.right, its, seconds)):
            continue
        named = Counter(one.text.casefold() for one, _ in pairs)
        others = [
            pair
            for pair in pairs
            if pair not in heads and "V" not in {pair[0].slot, pair[1].slot} and named[pair[0].text.casefold()] == 1
        ]
        if not any(
            _between(reading, *ends) for reading, ends in ((found.left, (first, second)), (found.right, (its, seconds)))
        ):
            continue
        crossings = [
            (one.place < two.place) != (other.place < another.place)
            for (one, other), (two, another) in combinations(others, 2)
        ]
        if any(crossings) != crossed:
            shown.append(f"row: {first.text} / {second.text}")
    return shown


def orders(found: Comparison) -> list[str]:
    """Four of six and six of four, the house dog and the dog house, Monday the 3rd and the third Monday."""
    if found.left.words == found.right.words:
        return []
    pairs = [pair for pair in found.pairs if pair[0].sort != "mark"]
    crossed = [
        (first, second)
        for first, second in combinations(pairs, 2)
        if (first[0].place < second[0].place) != (first[1].place < second[1].place)
    ]
    shown = []
    for first, second in crossed:
        amounts = sum(pair[0].sort in QUANTITIES for pair in (first, second))
        if (amounts == 2 and len(crossed) == 1) or (not amounts and _compound(found, first, second)):  # noqa: PLR2004 - both
            shown.append(f"order: {first[0].text} / {second[0].text}")
    if _neighbours_swapped(found):
        shown.append("order: neighbours")
    for one, other in pairs:
        if one.sort == "ordinal" and _before_day(found.left, one) != _before_day(found.right, other):
            shown.append(f"order: {one.text}")
        if one.sort == "share":
            mine, yours = (item_after(reading, item) for reading, item in ((found.left, one), (found.right, other)))
            partner = next((pair[1] for pair in pairs if pair[0] is mine), yours)
            near = [_near_after(reading, item) for reading, item in ((found.left, one), (found.right, other))]
            if (near[0] is None) != (near[1] is None) or (partner is not yours):
                shown.append(f"order: {one.text}")
    return shown


def _neighbours_swapped(found: Comparison) -> bool:
    """A big dog and a small cat, a small dog and a big cat."""
    partner = {one.place: other.place for one, other in found.pairs}
    mine, yours = (
        {item.end: item.place for item in reading.items if item.sort not in QUANTITIES and not item.light}
        for reading in (found.left, found.right)
    )
    right = {item.place: yours.get(item.place, -1) for item in found.right.items}
    beside = [(partner[mine[place]], partner[place]) for place in partner if mine.get(place, -1) in partner]
    moved = {(before, right[after]): after for before, after in beside if right.get(after, before) not in {before, -1}}
    return any((other, before) in moved for before, other in moved)


def _near_after(reading: Reading, item: Item) -> Item | None:
    """The word that follows an item with no more than articles between."""
    return next((other for other in reading.items if 0 <= other.place - item.end <= LONGEST_GAP), None)


def _before_day(reading: Reading, item: Item) -> bool:
    after = item_after(reading, item)
    return after is not None and after.sort == "weekday"


def _compound(found: Comparison, first: tuple[Item, Item], second: tuple[Item, Item]) -> bool:
    """Whether two nouns that stand side by side changed places."""
    items = (*first, *second)
    if "V" in {item.slot for item in items} or any(item.light for item in items):
        return False
    if (
        any(one.text.casefold() != other.text.casefold() for one, other in (first, second))
        and found.left.language == "en"
    ):
        return False
    for reading, one, other in ((found.left, first[0], second[0]), (found.right, first[1], second[1])):
        low, high = sorted((one, other), key=lambda item: item.place)
        between = reading.lows[low.end : high.place]
        apart = between if reading.language == "de" else between[:1]
        if reading.language == "en" and between:
            return False
        if reading.language not in {"en", "de"} or not set(apart) <= _GENITIVE:
            return False
    return found.left.language == "en" or all(item.text[:1].isupper() for item in items)


_GENITIVE: Final = frozenset({"der", "des", "dem", "den", "eines", "einer", "von", "vom"})


def _between(reading: Reading, one: Item, other: Item) -> bool:
    low, high = sorted((one.place, other.place))
    return any(low < item.place < high and not item.light for item in reading.items)


def _parted(reading: Reading, one: Item, other: Item) -> bool:
    low, high = sorted((one.place, other.place))
    return bool({",", ";", "and", "but"} & set(reading.lows[low:high]))
