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
        (_unreal(reading), _accustomed(reading), _caused(reading), "could" in reading.lows, _scant(reading))
        for reading in (found.left, found.right)
    ]
    if unreal[0] != unreal[1]:
        shown.append("unreal: one side only")
    for one, other in found.pairs:
        if one.sort in QUANTITIES or one.sort == "mark":
            continue
        if {form_of(found.left, one), form_of(found.right, other)} in ({"doing", "done"}, {"to do", "done"}):
            shown.append(f"form: {one.text} / {other.text}")
    return shown


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
