"""What hangs on what: quantities on their prepositions, things on their owners, words on other words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.comparing import bare
from memory_os.domain.gate.fillers import changers, makes_up, small
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.small_words import (
    AFTER_AMOUNTS,
    ALIKE,
    ARTICLES,
    BEFORE_AMOUNTS,
    CORE,
    LONGEST_GAP,
    NAMES,
    OWNING,
    TIMES,
)
from memory_os.domain.gate.verb_forms import form_of
from memory_os.domain.gate.word_lists import words

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison

_OWNERS: Final = frozenset({"of", "de", "di", "van", "von", "του"})


def amounts(found: Comparison) -> list[str]:
    """Rose by 5 and rose to 5: what stands beside a quantity and says how it is meant."""
    language = found.left.language
    before, after = BEFORE_AMOUNTS.get(language, frozenset()), AFTER_AMOUNTS.get(language, frozenset())
    shown = []
    for one, other in found.pairs:
        if one.sort not in QUANTITIES:
            continue
        sides = [_beside(reading, item, before, after) for reading, item in ((found.left, one), (found.right, other))]
        if sides[0] != sides[1]:
            shown.append(f"beside {one.text}: {' '.join(sides[0])} / {' '.join(sides[1])}")
    return shown


def _beside(reading: Reading, item: Item, before: frozenset[str], after: frozenset[str]) -> list[str]:
    words = [reading.lows[at] for at in range(max(0, item.place - 2), item.place)]
    found = [word for word in words if word in before and not (item.quantity and item.quantity.bound)]
    follows = reading.lows[item.end] if item.end < len(reading.lows) else ""
    if reading.language == "ja":
        follows = "".join(reading.lows[item.end : item.end + 2])
        follows = follows if follows in after else follows[:1]
    if follows in after or (follows == "に" and item.sort not in TIMES):
        found.append(follows)
    if reading.language == "ko" and item.end:
        found += [ending for ending in after if reading.lows[item.end - 1].endswith(ending)][:1]
    return found


def owners(found: Comparison) -> list[str]:
    """Whose thing it is: a name that owns on one side and does something on the other."""
    partner = {one.place: other.place for one, other in found.pairs}
    shown = []
    for one, other in found.pairs:
        if one.sort not in NAMES and not (one.slot == "of" and other.slot == "of"):
            continue
        mine, yours = one.slot in _OWNERS, other.slot in _OWNERS
        if mine != yours:
            acting, slot = (found.right, other.slot) if mine else (found.left, one.slot)
            passive = found.left.passive if mine else found.right.passive
            possessive = passive and slot == "S" and bool({"his", "her", "their"} & set(acting.lows))
            if slot not in CORE or not (possessive or OWNING & set(acting.lows)):
                shown.append(f"owner: {one.text}")
        elif mine and found.left.language == "en":
            theirs = [_owned(reading, item) for reading, item in ((found.left, one), (found.right, other))]
            if theirs[0] in partner and theirs[1] in partner.values() and partner[theirs[0]] != theirs[1]:
                shown.append(f"owner: {one.text}")
    return shown


def _owned(reading: Reading, owner: Item) -> int:
    """The place of what somebody owns: after 's the next word, before "of" the last one."""
    if owner.end < len(reading.lows) and reading.lows[owner.end] == "'s":
        return next((item.place for item in reading.items if item.place > owner.end), -1)
    return -1


def slots(found: Comparison) -> list[str]:
    """Words that hang on another preposition, or on another word by the same one."""
    if found.left.language != "en":
        return []
    shown = []
    verbs = any(one.place == found.left.verb and other.place == found.right.verb for one, other in found.pairs)
    done = any("done" in (form_of(found.left, one), form_of(found.right, other)) for one, other in found.pairs)
    active = (
        verbs
        and not done
        and not (found.left.passive or found.right.passive or found.left.copula or found.right.copula)
    )
    for one, other in found.pairs:
        if one.sort in QUANTITIES or one.sort == "mark" or (one.light and other.light):
            continue
        if active and one.sort == "word" and {one.slot, other.slot} == {"S", "O"} and not (_dated(found, one, other)):
            shown.append(f"slot: {one.slot} / {other.slot} {one.text}")
        if one.slot == other.slot:
            inside = (
                one.slot not in CORE
                and one.slot != "of"
                and (_hangs_inside(found.left, one) != _hangs_inside(found.right, other))
            )
            if inside:
                shown.append(f"hangs on: {one.slot} {one.text}")
            continue
        mine, yours = direct_slot(found.left, one), direct_slot(found.right, other)
        prepositions = {mine, yours} - CORE
        if not prepositions or mine == yours or frozenset({mine, yours}) in _ALIKE_SLOTS:
            continue
        if len(prepositions) == 1 and (
            prepositions <= {"of", "by", "than", "without"}
            or makes_up(found, one, other, found.left, found.right)
            or makes_up(found, other, one, found.right, found.left)
        ):
            continue
        if prepositions == {"to"} and _doing(found, one, other):
            continue
        shown.append(f"slot: {mine} / {yours} {one.text}")
    return shown


_DATING: Final = words("last next this each every")
_SPANS: Final = words("year week month morning evening night afternoon day spring summer autumn winter quarter time")


def _dated(found: Comparison, one: Item, other: Item) -> bool:
    """Last year and next spring say when, before the verb or after it."""
    sides = ((found.left, one), (found.right, other))
    return all(
        reading.lows[item.end - 1] in _SPANS and _DATING & set(reading.lows[max(0, item.place - 1) : item.end])
        for reading, item in sides
    )


_NEEDING: Final = words("need want require deserve")


def _doing(found: Comparison, one: Item, other: Item) -> bool:
    """To paint and painting are one thing, but for verbs such as stop and need."""
    ing = [item.text.casefold().endswith("ing") for item in (one, other)]
    same = bool({key for key in one.keys if key.startswith("l:")} & other.keys)
    needing = any({bare(key) for key in mine.keys} & _NEEDING for mine, _ in found.pairs)
    thing = any(
        reading.lows[item.place - 1] in ARTICLES  # The painting is a thing.
        for reading, item in ((found.left, one), (found.right, other))
        if item.place
    )
    return ing[0] != ing[1] and same and not (needing or thing or changers(found))


_ALIKE_SLOTS: Final = frozenset({frozenset(pair) for pair in ALIKE["en"]} | {frozenset({"with", "without"})})
"""With nothing and without: the denials are compared elsewhere."""


def direct_slot(reading: Reading, item: Item) -> str:
    """The slot of an item that stands right behind its preposition; of others the empty one."""
    if item.slot in CORE:
        return ""
    lows, phrases = small(reading)
    for at in range(item.place - 1, max(-1, item.place - 2 - LONGEST_GAP), -1):
        if at in phrases:
            return lows[at]
        if lows[at] == item.slot or (item.slot == "than" and lows[at] in {"over", "to", "of"}):
            return item.slot
        if lows[at] not in ARTICLES:
            break
    return item.slot if item.slot == "of" else ""


def _hangs_inside(reading: Reading, item: Item) -> bool:
    """Whether it belongs to the subject: the man with the dog saw."""
    if not 0 <= item.place < reading.verb:
        return False
    starts = [other.place for other in reading.items if not other.light and other.slot == "S"]
    commas = [at for at, low in enumerate(reading.lows[: reading.verb]) if low == ","]
    apposed = len(commas) == 2 and reading.lows[commas[0] + 1] in ARTICLES  # noqa: PLR2004 - one on each side
    if apposed and commas[0] < item.place < commas[1]:
        return any(commas[0] < place < item.place for place in starts)  # Omar, a carpenter from Leeds, sings.
    return any(place < item.place for place in starts) and not commas
