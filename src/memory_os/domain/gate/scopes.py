"""What a denial, a restriction, a duty or an ability covers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.clauses import first_after
from memory_os.domain.gate.persons import PERSONS
from memory_os.domain.gate.small_words import DUTIES

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison
    from memory_os.domain.gate.reading import Item, Reading

_VERB_LAST: Final = frozenset({"ja", "ko", "hi"})
_FOCUS: Final = frozenset({"almost", "nearly", "even", "just", "merely"})
_DENYING_NOUNS: Final = frozenset(
    {"no", "nobody", "no one", "none", "nothing", "kein", "keine", "keinen", "keinem", "keiner", "geen"}
)
"""Denials that take the place of somebody or stand before a noun, which the verb beside them denies as well."""
_SCOPED: Final = frozenset({"only", "all"})
_ADVERBS: Final = frozenset({"always", "every time", "at all times", "invariably", "completely", "fully", "entirely"})


def scopes(found: Comparison) -> list[str]:
    """What a denial or a restriction stands before, and the order of two of them."""
    partner = {one.place: other.place for one, other in found.pairs}
    marks = [(one, other) for one, other in found.pairs if one.sort == "mark" and other.sort == "mark"]
    shown = []
    for one, other in marks:
        shared = one.marks & other.marks
        denial = "not" in shared
        if not denial and not (shared & _SCOPED):
            continue
        if _ADVERBS & {one.text.casefold(), other.text.casefold()}:
            continue
        mine, yours = (_target(reading, item) for reading, item in ((found.left, one), (found.right, other)))
        if mine and yours and not any(partner.get(place) in yours for place in mine):
            shown.append(f"scope: {one.text} / {other.text}")
    if found.left.language == "ja" and found.left.words != found.right.words:
        # All of them did not come, not all of them came: a particle tells.
        marked = {mark for one, _ in marks for mark in one.marks}
        shown += ["scope: all / not"] if {"all", "not"} <= marked else []
    if found.left.language == "en":
        for word in _FOCUS & set(found.left.lows) & set(found.right.lows):
            mine_at, yours_at = (
                first_after(reading, reading.lows.index(word)) for reading in (found.left, found.right)
            )
            if partner.get(mine_at, yours_at) != yours_at:
                shown.append(f"scope: {word}")
    for (first, its), (second, seconds) in pairwise(sorted(marks, key=lambda pair: pair[0].place)):
        if "not" in first.marks | second.marks and its.place > seconds.place:
            shown.append(f"scope: {first.text} {second.text} / {seconds.text} {its.text}")
    return shown


def _target(reading: Reading, mark: Item) -> set[int]:
    """Places of the words that a mark may stand for: the next ones, at the end of a clause the one before it."""
    items = [item for item in reading.items if item.sort != "mark"]
    before = [item.place for item in items if item.place < mark.place and not item.light]
    following = [item for item in items if item.place > mark.place]
    full = next((at for at, item in enumerate(following) if not item.light), len(following))
    after = {item.place for item in following[: full + 1]}
    persons = PERSONS.get(reading.language, {})
    last = reading.language in _VERB_LAST
    nearest = reading.lows[mark.place - 1 : mark.place] if last else reading.lows[mark.end : mark.end + 1]
    if "only" in mark.marks and "".join(nearest) in persons:
        return {-1}
    if last or not after or (nearest == (",",) and before):
        return set(before[-1:])
    determiner = mark.text.casefold() in _DENYING_NOUNS and reading.language in {"en", "de", "nl"}
    return after | set(before[-1:]) if determiner else after


def abilities(found: Comparison) -> list[str]:
    """Who can do a thing may never do it."""
    left = any("can" in item.marks for item in (*found.left_marks, *found.left_over))
    right = any("can" in item.marks for item in (*found.right_marks, *found.right_over))
    denied = any("not" in one.marks for one, _ in found.pairs)
    return ["can: one side only"] if left != right and not denied else []


def duties(found: Comparison) -> list[str]:
    """What one need not do is not what one must not do."""
    freed = [_freed(reading) for reading in (found.left, found.right)]
    return ["duty: one side only"] if freed[0] != freed[1] else []


def _freed(reading: Reading) -> bool:
    """Whether a duty is denied: does not have to, muss nicht, needs no."""
    duties, always_before = DUTIES.get(reading.language, (frozenset(), False))
    denials = [item.place for item in reading.items if "not" in item.marks]
    for at, low in enumerate(reading.lows):
        if low in duties and denials:
            return always_before or any(
                at - 3 <= place < at or (low == "need" and place == at + 1) for place in denials
            )
    return False
