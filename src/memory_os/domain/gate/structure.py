"""Whether the small words leave open that two texts with the same content words say another thing.

Content words that all have a partner prove nothing alone: "decided not to go" and "did not decide to go", "rose by 5" and
"rose to 5", "her key" and "his key" share them. Each function here looks for one way in which the small words, the
order or the form of a verb may change a statement; where one finds something, the pair is not proven to be the same.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.lemmas import lemma
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
    PHRASES,
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
_ARTICLES: Final = frozenset(
    {"a", "an", "the", "this", "that", "these", "those", "my", "your", "his", "her", "its", "our", "their", "no"}
)
_BE: Final = frozenset({"is", "are", "was", "were", "be", "been", "being", "am", "'s", "'re", "'m", "get", "gets", "got"})
_HAVE: Final = frozenset({"has", "have", "had", "'ve"})
_UNREAL: Final = frozenset({"should", "could", "would", "might", "must", "may", "to"})
_COMPOUNDING: Final = frozenset({"for", "of", "in", "at", "on"})
_FOCUS: Final = frozenset({"almost", "nearly", "even", "just", "merely"})
_DENYING_NOUNS: Final = frozenset({"no", "nobody", "no one", "none", "nothing", "kein", "keine", "keinen", "keinem", "keiner", "geen"})
"""Denials that take the place of somebody or stand before a noun, which the verb beside them denies as well."""
_LONGEST_GAP: Final = 2
_SCOPED: Final = frozenset({"only", "all"})
_ADVERBS: Final = frozenset({"always", "every time", "at all times", "invariably", "completely", "fully", "entirely"})


def unproven(found: Comparison) -> list[str]:
    """What keeps two readings, whose content words agree, from being proven to say the same; empty if nothing does."""
    return [
        *_small_words(found),
        *_persons(found),
        *_scopes(found),
        *_duties(found),
        *_abilities(found),
        *_clauses(found),
        *_amounts(found),
        *_owners(found),
        *_slots(found),
        *_forms(found),
        *_rows(found),
    ]


def _free(reading: Reading) -> Counter[str]:
    """The words that no item has taken, without those that say nothing."""
    taken = {at for item in reading.items for at in range(item.place, item.end)}
    empty = EMPTY.get(reading.language, frozenset())
    persons = PERSONS.get(reading.language, {})
    lows, _ = _small(reading)
    return Counter(
        low
        for at, low in enumerate(lows)
        if at not in taken and low not in empty and low not in persons and low[-1:].isalnum() and not _times(reading, at)
    )


@lru_cache(maxsize=4_096)
def _small(reading: Reading) -> tuple[tuple[str, ...], frozenset[int]]:
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
            if side["to"] == 1 and any(low.endswith("ing") for low in reading.lows) and not _changers(found):
                side["to"] = 0
    return [f"small word: {word}" for side in (more, less) for word, count in side.items() if count > 0]


def _explained(found: Comparison) -> Counter[str]:
    """Prepositions that a compound, a passive or a coordination on the other side makes up for."""
    explained: Counter[str] = Counter()
    for one, other in found.pairs:
        for item, theirs, reading, against in (
            (one, other, found.left, found.right),
            (other, one, found.right, found.left),
        ):
            if theirs.slot in _CORE and not item.joined and _makes_up(found, item, theirs, reading, against):
                explained[item.slot] += 1
    return explained


def _makes_up(found: Comparison, item: Item, theirs: Item, reading: Reading, against: Reading) -> bool:
    """Whether an item with a preposition is the same as its partner without one."""
    if item.slot == "by":
        return theirs.slot == "S" and theirs.sort not in QUANTITIES
    if item.slot == "with":
        return theirs.slot == "S" and theirs.sort in _NAMES and _coordinated(against, theirs)
    if item.slot not in _COMPOUNDING:
        return False
    # The rent for the studio is the studio rent.
    head = next((pair for pair in found.pairs if _after(against, theirs) in pair), None)
    before = max((other.end for other in reading.items if other.place < item.place), default=-1)
    return head is not None and any(part.end == before for part in head if part in reading.items)


def _after(reading: Reading, item: Item) -> Item | None:
    return next((other for other in reading.items if other.place == item.end), None)


def _coordinated(reading: Reading, item: Item) -> bool:
    names = [other for other in reading.items if other.slot == "S" and other.sort in _NAMES]
    return len(names) > 1 and "and" in reading.lows[names[0].place : names[-1].place] and item in names


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
    if found.left.language == "en":
        for word in _FOCUS & set(found.left.lows) & set(found.right.lows):
            mine_at, yours_at = (_heads(reading, reading.lows.index(word)) for reading in (found.left, found.right))
            if partner.get(mine_at, yours_at) != yours_at:
                shown.append(f"scope: {word}")
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
    determiner = mark.text.casefold() in _DENYING_NOUNS
    return {*after[:1], *(before[-1:] if determiner else ())}


def _abilities(found: Comparison) -> list[str]:
    """Who can do a thing may never do it."""
    left = any("can" in item.marks for item in (*found.left_marks, *found.left_over))
    right = any("can" in item.marks for item in (*found.right_marks, *found.right_over))
    return ["can: one side only"] if left != right else []


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
    lows, _ = _small(reading)
    return [
        (table[low], at)
        for at, low in enumerate(lows)
        if low in table
        and lows[at + 1 : at + 2]
        and lows[at + 1][-1:].isalnum()
        and not (at + 1 in starts and starts[at + 1].sort in QUANTITIES)
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
    end = next((place for place in range(at, len(reading.lows)) if reading.lows[place] in {",", ";"}), -1)
    if end < 0 and not any(place < at for place in places):
        return None
    inside = {place for place in places if at < place and (end < 0 or place < end)}
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
            passive = found.left.passive if mine else found.right.passive
            possessive = passive and slot == "S" and bool({"his", "her", "their"} & set(acting.lows))
            if slot not in _CORE or not (possessive or OWNING & set(acting.lows)):
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
    shown = []
    verbs = any(one.place == found.left.verb and other.place == found.right.verb for one, other in found.pairs)
    active = verbs and not (found.left.passive or found.right.passive or found.left.copula or found.right.copula)
    for one, other in found.pairs:
        if one.sort in QUANTITIES or one.sort == "mark" or (one.light and other.light):
            continue
        if active and {one.slot, other.slot} == {"S", "O"}:
            shown.append(f"slot: {one.slot} / {other.slot} {one.text}")
        if one.slot == other.slot:
            inside = one.slot not in _CORE and one.slot != "of" and (
                _hangs_inside(found.left, one) != _hangs_inside(found.right, other)
            )
            if inside:
                shown.append(f"hangs on: {one.slot} {one.text}")
            continue
        mine, yours = _direct_slot(found.left, one), _direct_slot(found.right, other)
        prepositions = {mine, yours} - _CORE
        if not prepositions or mine == yours or frozenset({mine, yours}) in _ALIKE_SLOTS:
            continue
        if len(prepositions) == 1 and (
            prepositions <= {"of", "by", "than", "without"}
            or _makes_up(found, one, other, found.left, found.right)
            or _makes_up(found, other, one, found.right, found.left)
        ):
            continue
        shown.append(f"slot: {mine} / {yours} {one.text}")
    return shown


_ALIKE_SLOTS: Final = frozenset({frozenset(pair) for pair in ALIKE["en"]} | {frozenset({"with", "without"})})
"""With nothing and without: the denials are compared elsewhere."""


def _direct_slot(reading: Reading, item: Item) -> str:
    """The slot of an item that stands right behind its preposition; of others the empty one."""
    if item.slot in _CORE:
        return ""
    lows, phrases = _small(reading)
    for at in range(item.place - 1, max(-1, item.place - 2 - _LONGEST_GAP), -1):
        if at in phrases:
            return lows[at]
        if lows[at] == item.slot or (item.slot == "than" and lows[at] in {"over", "to", "of"}):
            return item.slot
        if lows[at] not in _ARTICLES:
            break
    return item.slot if item.slot == "of" else ""


def _hangs_inside(reading: Reading, item: Item) -> bool:
    """Whether it belongs to the subject: the man with the dog saw."""
    if not 0 <= item.place < reading.verb:
        return False
    starts = [other.place for other in reading.items if not other.light and other.slot == "S"]
    return any(place < item.place for place in starts) and "," not in reading.lows[: reading.verb]


def _rows(found: Comparison) -> list[str]:
    """At noon the cat and at night the dog, the cat at night and the dog at noon."""
    pairs = [pair for pair in found.pairs if pair[0].sort != "mark" and not (pair[0].light and pair[1].light)]
    heads = [(one, other) for one, other in pairs if one.slot == other.slot and one.slot not in _CORE and one.slot != "of"]
    shown = []
    for (first, its), (second, seconds) in combinations(heads, 2):
        if first.slot != second.slot or first.place == second.place:
            continue
        crossed = (first.place < second.place) != (its.place < seconds.place)
        if not (_parted(found.left, first, second) and _parted(found.right, its, seconds)):
            continue
        others = [pair for pair in pairs if pair[0].slot != first.slot]
        crossings = [
            (one.place < two.place) != (other.place < another.place)
            for (one, other), (two, another) in combinations(others, 2)
        ]
        if any(crossings) != crossed:
            shown.append(f"row: {first.text} / {second.text}")
    return shown


def _parted(reading: Reading, one: Item, other: Item) -> bool:
    low, high = sorted((one.place, other.place))
    return bool({",", ";", "and", "but"} & set(reading.lows[low:high]))


def _forms(found: Comparison) -> list[str]:
    """Should have paid and should pay, is feeding and is fed."""
    if found.left.language != "en":
        return []
    shown = []
    unreal = [
        (_unreal(reading), _accustomed(reading), _caused(reading), "could" in reading.lows)
        for reading in (found.left, found.right)
    ]
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


def _accustomed(reading: Reading) -> bool:
    """Is used to doing, where used to do says that it is over."""
    return any(low == "used" and reading.lows[at - 1] in _BE for at, low in enumerate(reading.lows) if at)


def _caused(reading: Reading) -> bool:
    """Has the roof mended, where has mended the roof says who did it."""
    for at, low in enumerate(reading.lows):
        if low in {"has", "have", "had", "get", "gets", "got"} and _ARTICLES & set(reading.lows[at + 1 : at + 2]):
            ending = [item for item in reading.items if at + 2 < item.place <= at + 2 + _LONGEST_GAP]
            if any(reading.lows[item.place].endswith("ed") or (item.past and item.place > at + 2) for item in ending):
                return True
    return False


def _form(reading: Reading, item: Item) -> str:
    low = reading.lows[item.end - 1]
    before = set(reading.lows[max(0, item.place - 2) : max(item.place, item.end - 1)])
    if low.endswith("ing") and before & _BE:
        return "doing"
    if reading.lows[max(0, item.place - 1) : item.place] == ("to",):
        return "to do"
    changed = low != lemma(low, "en") and not low.endswith(("s", "ing"))
    if before & (_BE | _HAVE) and (item.past or changed or low.endswith("ed")):
        return "done"
    return ""
