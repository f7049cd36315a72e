"""Forms of a verb that say another thing: should have paid, is being paid, is used to paying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.lemmas import lemma
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.small_words import ARTICLES, BE, HAVE, LONGEST_GAP

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison

_UNREAL: Final = frozenset({"should", "could", "would", "might", "must", "may", "to"})


def forms(found: Comparison) -> list[str]:
    """Should have paid and should pay, is feeding and is fed."""
    if found.left.language != "en":
        return []
    shown = []
    unreal = [
        (
            _unreal(reading),
            _accustomed(reading),
            _caused(reading),
            "could" in reading.lows,
            _scant(reading),
            _cleft(reading),
        )
        for reading in (found.left, found.right)
    ]
    if unreal[0] != unreal[1]:
        shown.append("unreal: one side only")
    if any(_told_inside(found.left, found.right, one, other) for one, other in found.pairs) or any(
        _told_inside(found.right, found.left, other, one) for one, other in found.pairs
    ):
        shown.append("form: told of a thing")
    places = [(_predicate(found.left, being), _predicate(found.right, having)) for being, having in _BEING_AND_HAVING]
    if any(min(pair) >= 0 and pair in {(one.place, other.place) for one, other in found.pairs} for pair in places):
        shown.append("form: is / has")
    for one, other in found.pairs:
        if one.sort in QUANTITIES or one.sort == "mark":
            continue
        if _since(found.left, one) and _since(found.right, other):
            continue
        if {form_of(found.left, one), form_of(found.right, other)} in ({"doing", "done"}, {"to do", "done"}):
            shown.append(f"form: {one.text} / {other.text}")
    return shown


_BEING: Final = frozenset({"is", "are", "was", "were"})
_BEING_AND_HAVING: Final = ((_BEING, HAVE), (HAVE, _BEING))


def _cleft(reading: Reading) -> bool:
    """It is Ida that Gus wants to see, where who does what is not read."""
    cleft = reading.lows[:1] == ("it",) and bool(_BEING & set(reading.lows[1:2]))
    return cleft and bool({"that", "who", "whom"} & set(reading.lows[2:7]))


def _since(reading: Reading, item: Item) -> bool:
    """Has worked here since May, has been working here since May; has been paid is neither."""
    before = reading.lows[max(0, item.place - 2) : item.place]
    low = reading.lows[item.end - 1]
    working = before[-1:] == ("been",) and before[0] in HAVE and low.endswith("ing")
    return bool({"since", "for"} & set(reading.lows[item.end :])) and (
        working or before[-1:] in {(have,) for have in HAVE}
    )


def _told_inside(being: Reading, doing: Reading, one: Item, other: Item) -> bool:
    """The list that Ida wrote is on the wall, Ida wrote the list on the wall."""
    inside = being.copula and one.slot == "S" and bool(one.past) and one.place < being.verb
    return inside and other.place == doing.verb and not doing.copula


def _predicate(reading: Reading, verbs: frozenset[str]) -> int:
    """The place of the word that follows one of some verbs and an article, -1 where none does."""
    for at, low in enumerate(reading.lows[:-2]):
        if low in verbs and reading.lows[at + 1] in {"a", "an", "the"} and reading.lows[max(0, at - 1)] != "there":
            return next((item.place for item in reading.items if item.place == at + 2), -1)
    return -1


def _unreal(reading: Reading) -> bool:
    return any(
        low in HAVE and _UNREAL & set(reading.lows[max(0, at - 2) : at]) and reading.lows[at + 1 : at + 2] != ("to",)
        for at, low in enumerate(reading.lows)
        if at and reading.lows[at - 1] != "to"
    )


def _accustomed(reading: Reading) -> bool:
    """Is used to doing, where used to do says that it is over."""
    return any(low == "used" and reading.lows[at - 1] in BE for at, low in enumerate(reading.lows) if at)


def _scant(reading: Reading) -> bool:
    """Few and little, which are less than a few and a little."""
    return any(low in {"few", "little"} and reading.lows[at - 1 : at] != ("a",) for at, low in enumerate(reading.lows))


def _caused(reading: Reading) -> bool:
    """Has the roof mended, where has mended the roof says who did it."""
    for at, low in enumerate(reading.lows):
        if low in {"has", "have", "had", "get", "gets", "got"} and ARTICLES & set(reading.lows[at + 1 : at + 2]):
            ending = [item for item in reading.items if at + 2 < item.place <= at + 2 + LONGEST_GAP]
            if any(reading.lows[item.place].endswith("ed") or (item.past and item.place > at + 2) for item in ending):
                return True
    return False


def form_of(reading: Reading, item: Item) -> str:
    """`doing` after a form of be, `done` after one of be or have, `to do`, or the empty text."""
    low = reading.lows[item.end - 1]
    before = set(reading.lows[max(0, item.place - 2) : max(item.place, item.end - 1)])
    if low.endswith("ing") and before & BE:
        return "doing"
    if reading.lows[max(0, item.place - 1) : item.place] == ("to",):
        return "to do"
    changed = low != lemma(low, "en") and not low.endswith(("s", "ing"))
    if before & (BE | HAVE) and (item.past or changed or low.endswith("ed")):
        return "done"
    return ""
