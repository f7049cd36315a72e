"""Whether the small words leave open that two texts with the same content words say another thing.

Content words that all have a partner prove nothing alone: "decided not to go" and "did not decide to go", "rose by 5" and
"rose to 5", "her key" and "his key" share them. Each function here looks for one way in which the small words, the
order or the form of a verb may change a statement; where one finds something, the pair is not proven to be the same.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.persons import PERSONS
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.small_words import (
    AFTER_AMOUNTS,
    ALIKE,
    BEFORE_AMOUNTS,
    CHANGERS,
    CLAUSES,
    DUTIES,
    EMPTY,
    OWNING,
    TIME_WORDS,
)

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison

_TIMES: Final = frozenset({"time", "date", "weekday", "period", "ordinal"})
_UNSPACED: Final = frozenset({"zh", "ja"})
_VERB_LAST: Final = frozenset({"ja", "ko", "hi"})
_NAMES: Final = frozenset({"name", "first", "mixed"})
_CORE: Final = frozenset({"S", "O", "V", ""})
_OWNERS: Final = frozenset({"of", "de", "di", "van", "von", "του"})
_BE: Final = frozenset({"is", "are", "was", "were", "be", "been", "being", "am", "'s", "'re", "'m", "get", "gets", "got"})
_HAVE: Final = frozenset({"has", "have", "had", "'ve"})
_UNREAL: Final = frozenset({"should", "could", "would", "might", "must", "may", "to"})
_SCOPED: Final = frozenset({"only", "all"})
_ADVERBS: Final = frozenset({"always", "every time", "at all times", "invariably", "completely", "fully", "entirely"})


def unproven(found: Comparison) -> list[str]:
    """What keeps two readings, whose content words agree, from being proven to say the same; empty if nothing does."""
    return [
        *_small_words(found),
        *_persons(found),
        *_scopes(found),
        *_duties(found),
        *_clauses(found),
        *_amounts(found),
        *_owners(found),
        *_slots(found),
        *_forms(found),
    ]


def _free(reading: Reading) -> Counter[str]:
    """The words that no item has taken, without those that say nothing."""
    taken = {at for item in reading.items for at in range(item.place, item.end)}
    empty = EMPTY.get(reading.language, frozenset())
    persons = PERSONS.get(reading.language, {})
    return Counter(
        low
        for at, low in enumerate(reading.lows)
        if at not in taken and low not in empty and low not in persons and low[-1].isalnum() and not _times(reading, at)
    )


def _times(reading: Reading, at: int) -> bool:
    """Whether a preposition only begins a time: on Fridays, at nine."""
    if reading.lows[at] not in TIME_WORDS.get(reading.language, ()):
        return False
    after = next((item for item in reading.items if item.place > at), None)
    return after is not None and after.sort in _TIMES and after.place - at <= 2  # noqa: PLR2004 - an article between


def _small_words(found: Comparison) -> list[str]:
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
        for side in (more, less):
            side["of"] = 0
            if found.left.passive != found.right.passive:
                side["by"] = 0
        for side, reading in ((more, found.right), (less, found.left)):
            if side["to"] == 1 and any(low.endswith("ing") for low in reading.lows) and not _changers(found):
                side["to"] = 0
    return [f"small word: {word}" for side in (more, less) for word, count in side.items() if count > 0]


def _changers(found: Comparison) -> bool:
    """Stopped to smoke is not stopped smoking."""
    return any(bool({key.removeprefix("l:") for key in one.keys} & CHANGERS) for one, _ in found.pairs) or bool(
        CHANGERS & {*found.left.lows, *found.right.lows}
    )


def _persons(found: Comparison) -> list[str]:
    """His key and her key, I asked him and he asked me."""
    table = PERSONS.get(found.left.language)
    if not table:
        return []
    sides = [_named_persons(reading, table) for reading in (found.left, found.right)]
    if found.left.passive != found.right.passive:
        sides = [Counter({(who, ""): count for (who, _), count in side.items()}) for side in sides]
    more, less = sides[0] - sides[1], sides[1] - sides[0]
    if not (more and less):
        return []
    return [f"person: {next(iter(more))[0]} / {next(iter(less))[0]}"]


def _named_persons(reading: Reading, table: dict[str, tuple[str, str]]) -> Counter[tuple[str, str]]:
    if reading.language not in _UNSPACED:
        return Counter(table[low] for low in reading.lows if low in table)
    text = "".join(reading.lows)
    found: Counter[tuple[str, str]] = Counter()
    for word in sorted(table, key=len, reverse=True):
        if word in text:
            found[table[word]] += text.count(word)
            text = text.replace(word, " ")
    return found


def _scopes(found: Comparison) -> list[str]:
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
    for (first, its), (second, seconds) in pairwise(sorted(marks, key=lambda pair: pair[0].place)):
        if "not" in first.marks | second.marks and its.place > seconds.place:
            shown.append(f"scope: {first.text} {second.text} / {seconds.text} {its.text}")
    return shown


def _target(reading: Reading, mark: Item) -> set[int]:
    """Places of the words that a mark may stand for: the next one, at the end of a clause the one before it."""
    items = [item for item in reading.items if item.sort != "mark" and not item.light]
    before = [item.place for item in items if item.place < mark.place]
    after = [item.place for item in items if item.place > mark.place]
    if reading.language in _VERB_LAST:
        return set(before[-1:])
    if not after:
        return set(before[-1:])
    determiner = mark.text.casefold() in {"no", "kein", "keine", "keinen", "keinem", "keiner", "geen"}
    return {*after[:1], *(before[-1:] if determiner else ())}


def _duties(found: Comparison) -> list[str]:
    """What one need not do is not what one must not do."""
    freed = [_freed(reading) for reading in (found.left, found.right)]
    return ["duty: one side only"] if freed[0] != freed[1] else []


def _freed(reading: Reading) -> bool:
    """Whether a duty is denied: does not have to, muss nicht, needs no."""
    duties, always_before = DUTIES.get(reading.language, (frozenset(), False))
    denials = [item.place for item in reading.items if "not" in item.marks]
    for at, low in enumerate(reading.lows):
        if low in duties and denials:
            return always_before or any(at - 3 <= place < at or (low == "need" and place == at + 1) for place in denials)
    return False


def _clauses(found: Comparison) -> list[str]:
    """Which part of the text depends on the other: the cause, the condition, the time."""
    sides = [_connectives(reading) for reading in (found.left, found.right)]
    if len(sides[0]) != len(sides[1]):
        return ["clause: one side only"]
    if not sides[0]:
        return []
    partner = {one.place: other.place for one, other in found.pairs}
    if [partner[place] for place in sorted(partner)] == sorted(partner.values()) and [
        (sort, _heads(found.left, at)) for sort, at in sides[0]
    ] == [(sort, _heads(found.right, at, partner)) for sort, at in sides[1]]:
        return []
    if len(sides[0]) > 1:
        return ["clause: several"]
    (sort, at), (other_sort, other_at) = sides[0][0], sides[1][0]
    mine, yours = _dependent(found.left, sort, at), _dependent(found.right, other_sort, other_at)
    if mine is None or yours is None or (sort != other_sort and {sort, other_sort} != {"cause", "effect"}):
        return [f"clause: {found.left.lows[at]} / {found.right.lows[other_at]}"]
    if any((place in mine) != (partner[place] in yours) for place in partner):
        return [f"clause: {found.left.lows[at]} / {found.right.lows[other_at]}"]
    return []


def _connectives(reading: Reading) -> list[tuple[str, int]]:
    table = CLAUSES.get(reading.language, {})
    starts = {item.place: item for item in reading.items}
    return [
        (table[low], at)
        for at, low in enumerate(reading.lows)
        if low in table and not (at + 1 in starts and starts[at + 1].sort in QUANTITIES)
    ]


def _heads(reading: Reading, at: int, partner: dict[int, int] | None = None) -> int:
    """The place of the first item after a connective; of its partner on the left where partners are given."""
    place = next((item.place for item in reading.items if item.place > at and not item.light), -1)
    if partner is None:
        return place
    return next((mine for mine, yours in partner.items() if yours == place), -1)


def _dependent(reading: Reading, sort: str, at: int) -> set[int] | None:
    """Places of the items in the clause that a connective begins; None where its end can't be told.

    Of an effect (so, therefore) those of the other clause: its cause.
    """
    places = {item.place for item in reading.items}
    if sort == "relative":
        head = _heads(reading, at)
        return {head}
    if any(place < at for place in places):
        inside = {place for place in places if place > at}
    elif "," in reading.lows[at:]:
        comma = reading.lows.index(",", at)
        inside = {place for place in places if at < place < comma}
    else:
        return None
    return places - inside if sort == "effect" else inside


def _amounts(found: Comparison) -> list[str]:
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
    found = [word for word in words if word in before]
    follows = reading.lows[item.end] if item.end < len(reading.lows) else ""
    if follows in after:
        found.append(follows)
    if reading.language == "ko" and item.end:
        found += [ending for ending in after if reading.lows[item.end - 1].endswith(ending)][:1]
    return found


def _owners(found: Comparison) -> list[str]:
    """Whose thing it is: a name that owns on one side and does something on the other."""
    partner = {one.place: other.place for one, other in found.pairs}
    shown = []
    for one, other in found.pairs:
        if one.sort not in _NAMES and not (one.slot == "of" and other.slot == "of"):
            continue
        mine, yours = one.slot in _OWNERS, other.slot in _OWNERS
        if mine != yours:
            acting, slot = (found.right, other.slot) if mine else (found.left, one.slot)
            if slot not in _CORE or not (OWNING & set(acting.lows)):
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


def _slots(found: Comparison) -> list[str]:
    """Words that hang on another preposition, or on another word by the same one."""
    if found.left.language != "en":
        return []
    alike = {frozenset(pair) for pair in ALIKE["en"]}
    shown = []
    for one, other in found.pairs:
        if one.sort in QUANTITIES or one.sort == "mark" or (one.light and other.light):
            continue
        if one.slot == other.slot:
            if one.slot in _CORE or one.slot == "of":
                continue
            if _hangs_inside(found.left, one) != _hangs_inside(found.right, other):
                shown.append(f"hangs on: {one.slot} {one.text}")
        elif not ({one.slot, other.slot} <= _CORE or {one.slot, other.slot} in alike):
            prepositions = {one.slot, other.slot} - _CORE
            if prepositions == {"of"} or (len(prepositions) == 1 and prepositions <= {"by", "with", "than"}):
                continue
            shown.append(f"slot: {one.slot} / {other.slot} {one.text}")
    return shown


def _hangs_inside(reading: Reading, item: Item) -> bool:
    """Whether it belongs to the subject: the man with the dog saw."""
    if not 0 <= item.place < reading.verb:
        return False
    starts = [other.place for other in reading.items if not other.light and other.slot == "S"]
    return any(place < item.place for place in starts) and "," not in reading.lows[: reading.verb]


def _forms(found: Comparison) -> list[str]:
    """Should have paid and should pay, is feeding and is fed."""
    if found.left.language != "en":
        return []
    shown = []
    unreal = [_unreal(reading) for reading in (found.left, found.right)]
    if unreal[0] != unreal[1]:
        shown.append("unreal: one side only")
    for one, other in found.pairs:
        if one.sort in QUANTITIES or one.sort == "mark":
            continue
        if {_form(found.left, one), _form(found.right, other)} in ({"doing", "done"}, {"to do", "done"}):
            shown.append(f"form: {one.text} / {other.text}")
    return shown


def _unreal(reading: Reading) -> bool:
    return any(
        low in _HAVE and _UNREAL & set(reading.lows[max(0, at - 2) : at]) and reading.lows[at + 1 : at + 2] != ("to",)
        for at, low in enumerate(reading.lows)
        if at and reading.lows[at - 1] != "to"
    )


def _form(reading: Reading, item: Item) -> str:
    low = reading.lows[item.place]
    before = set(reading.lows[max(0, item.place - 2) : item.place])
    if low.endswith("ing") and before & _BE:
        return "doing"
    if reading.lows[max(0, item.place - 1) : item.place] == ("to",):
        return "to do"
    if before & (_BE | _HAVE) and (item.past or low.endswith("ed")):
        return "done"
    return ""
