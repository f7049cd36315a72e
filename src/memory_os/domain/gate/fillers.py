"""Words between the content words that one side has alone: prepositions, particles, conjunctions."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.numerals import BOUNDS
from memory_os.domain.gate.persons import PERSONS
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.small_words import ALIKE, CHANGERS, CORE, EMPTY, NAMES, PHRASES, TIME_WORDS, TIMES

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison

_UNSPACED: Final = frozenset({"zh", "ja"})
_COMPOUNDING: Final = frozenset({"for", "of", "in", "at", "on"})


def small_words(found: Comparison) -> list[str]:
    """Those that one side alone has and that nothing on the other side makes up for."""
    language = found.left.language
    if language in _UNSPACED or language == "ko":
        return []
    left, right = _free(found.left), _free(found.right)
    more, less = left - right, right - left
    for one, other in ALIKE.get(language, ()):
        for mine, yours in ((one, other), (other, one)):
            same = min(more[mine], less[yours])
            more[mine] -= same
            less[yours] -= same
    if language == "en":
        both = Counter(set(found.left.lows) & set(found.right.lows))
        explained = _explained(found)
        for side in (more, less):
            side["of"] = 0
            side.subtract(explained)
            for word in both & side:
                side[word] -= 1  # By train or by bus, by train or bus.
            if found.left.passive != found.right.passive:
                side["by"] = 0
        for side, reading in ((more, found.right), (less, found.left)):
            if side["to"] == 1 and any(low.endswith("ing") for low in reading.lows) and not changers(found):
                side["to"] = 0
    return [f"small word: {word}" for side in (more, less) for word, count in side.items() if count > 0]


def _free(reading: Reading) -> Counter[str]:
    """The words that no item has taken, without those that say nothing."""
    taken = {at for item in reading.items for at in range(item.place, item.end)}
    empty = EMPTY.get(reading.language, frozenset())
    persons = PERSONS.get(reading.language, {})
    lows, _ = small(reading)
    for item in reading.items:
        if item.quantity and item.quantity.bound:
            taken |= _bound_words(reading, item)
    return Counter(
        low
        for at, low in enumerate(lows)
        if at not in taken
        and low not in empty
        and low not in persons
        and low[-1:].isalnum()
        and not _times(reading, at)
    )


def _bound_words(reading: Reading, item: Item) -> set[int]:
    """The places of "more than" and the like, which the quantity carries."""
    for end in (item.place, item.place - 1):
        for size in (4, 3, 2, 1):
            if reading.lows[max(0, end - size) : end] in BOUNDS:
                return set(range(end - size, end))
    return set()


@lru_cache(maxsize=4_096)
def small(reading: Reading) -> tuple[tuple[str, ...], frozenset[int]]:
    """The words with phrases such as "owing to" as one word in their last place, and the places of such phrases."""
    lows = list(reading.lows)
    places = set()
    for at, low in enumerate(reading.lows):
        for phrase, word in PHRASES.get(low, ()) if reading.language == "en" else ():
            if reading.lows[at : at + len(phrase)] == phrase:
                lows[at : at + len(phrase)] = [*[""] * (len(phrase) - 1), word]
                places |= set(range(at, at + len(phrase)))
                break
    return tuple(lows), frozenset(places)


def _times(reading: Reading, at: int) -> bool:
    """Whether a preposition only begins a time: on Fridays, at nine."""
    if reading.lows[at] not in TIME_WORDS.get(reading.language, ()):
        return False
    after = next((item for item in reading.items if item.place > at), None)
    return after is not None and after.sort in TIMES and after.place - at <= 2  # noqa: PLR2004 - an article between


def _explained(found: Comparison) -> Counter[str]:
    """Prepositions that a compound, a passive or a coordination on the other side makes up for."""
    explained: Counter[str] = Counter()
    for one, other in found.pairs:
        for item, theirs, reading, against in (
            (one, other, found.left, found.right),
            (other, one, found.right, found.left),
        ):
            if theirs.slot in CORE and not item.joined and makes_up(found, item, theirs, reading, against):
                explained[item.slot] += 1
    return explained


def makes_up(found: Comparison, item: Item, theirs: Item, reading: Reading, against: Reading) -> bool:
    """Whether an item with a preposition is the same as its partner without one."""
    if item.slot == "by":
        return theirs.slot == "S" and theirs.sort not in QUANTITIES
    if item.slot == "with":
        return theirs.slot == "S" and theirs.sort in NAMES and _coordinated(against, theirs)
    if item.slot not in _COMPOUNDING or item.sort in NAMES:
        return False
    # The rent for the studio is the studio rent.
    head = next((pair for pair in found.pairs if item_after(against, theirs) in pair), None)
    before = max((other.end for other in reading.items if other.place < item.place), default=-1)
    return head is not None and any(part.end == before for part in head if part in reading.items)


def item_after(reading: Reading, item: Item) -> Item | None:
    """The item that begins where another one ends."""
    return next((other for other in reading.items if other.place == item.end), None)


def _coordinated(reading: Reading, item: Item) -> bool:
    names = [other for other in reading.items if other.slot == "S" and other.sort in NAMES]
    return len(names) > 1 and "and" in reading.lows[names[0].place : names[-1].place] and item in names


def changers(found: Comparison) -> bool:
    """Stopped to smoke is not stopped smoking."""
    return any(bool({key.removeprefix("l:") for key in one.keys} & CHANGERS) for one, _ in found.pairs) or bool(
        CHANGERS & {*found.left.lows, *found.right.lows}
    )
