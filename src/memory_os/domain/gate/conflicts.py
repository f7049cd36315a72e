"""What speaks against two readings being one statement: each function looks for one sort of conflict."""

# ruff: noqa: RUF001 - letters of other scripts are meant

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import combinations
from typing import Final

from memory_os.domain.gate.comparing import STRICT, Comparison, bare
from memory_os.domain.gate.lexicon import LATIN, lexicon
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.word_lists import words
from memory_os.domain.gate.wordnet import are_antonyms

_NAMES: Final = frozenset({"name", "mixed"})
_AMOUNTS: Final = frozenset({"number", "amount", "share", "ordinal"})
_CLASSES: Final = {
    "number": "number", "amount": "number", "share": "number", "ordinal": "number", "time": "time", "date": "date",
    "weekday": "weekday", "period": "period",
}  # fmt: skip
_DAYS: Final = frozenset({"date", "ordinal", "weekday"})
_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis", "non", "non-", "mis")
_ROW: Final = 3
"""Numbers that make a row, whose order says what belongs to what."""
_SLOT_CONTRASTS: Final = frozenset(
    frozenset(pair.split("/"))
    for pair in words("to/from in/on in/out on/off with/for for/from with/from into/from for/against in/from")
)
"""English slots of one noun that say another thing: the train to Oslo, the train from Oslo."""
_CONTRASTS: Final = {
    language: [tuple(pair.split("/")) for pair in pairs.split()]
    for language, pairs in {
        "en": "and/or to/from on/off up/down in/out with/for for/against into/from over/under",
        "de": "und/oder auf/zu an/aus mit/für von/nach von/zu in/aus auf/aus über/unter für/gegen ein/aus",
        "fr": "et/ou avec/pour sur/sous vers/de pour/contre",
        "es": "y/o con/para con/por sobre/bajo hacia/desde a/desde para/contra",
        "it": "e/o con/per a/da su/sotto per/contro",
        "pt": "e/ou com/para com/por sobre/sob para/de",
        "nl": "en/of met/voor aan/uit naar/van op/onder voor/tegen",
        "ru": "и/или в/из с/из с/для на/под к/от в/от",
        "el": "και/ή με/για σε/από στην/από στο/από προς/από",
        "ar": "و/او الى/من مع/بدون",
        "ja": "に/から まで/から",
        "hi": "को/से में/पर",
        "zh": "到/从 里/外 上/里 给/从",
    }.items()
}
"""Small words that say another thing where one side has the one more often and the other side the other."""
_PREFIXABLE: Final = 4
"""Letters of the shortest word that a prefix turns into its opposite."""
_RUN: Final = 2
_UNSPACED_RUN: Final = 4
"""Words, or letters of an unspaced script, that may be another object in the same sentence."""
_NO_FINITE_AFTER: Final = words("is are be was were been being has have had having to 's the a")
"""Before a form on -ed they make it a participle or a noun."""

BLOCKING: Final = ("not", "all", "most", "some", "only", "rare", "maybe", "plan", "must", "was", "ended")
"""Marks that change a claim where one side alone has them."""


def quantity_conflicts(found: Comparison) -> list[tuple[str, Item, Item]]:
    """Quantities of one class that are left over on both sides."""
    conflicts = []
    rights = [item for item in found.right_over if item.sort in QUANTITIES]
    for item in found.left_over:
        if item.sort not in QUANTITIES:
            continue
        for other in rights:
            if _CLASSES[item.sort] == _CLASSES[other.sort] or {item.sort, other.sort} <= _DAYS:
                conflicts.append((_CLASSES[item.sort], item, other))
                rights = [kept for kept in rights if kept is not other]
                break
    return conflicts


def name_conflicts(found: Comparison) -> list[tuple[Item, Item]]:
    """Names and identifiers that are left over on both sides."""
    lefts = [item for item in found.left_over if item.sort in STRICT]
    rights = [item for item in found.right_over if item.sort in STRICT]
    if not (lefts and rights):
        return []
    if any(item.sort in _NAMES for item in (*lefts, *rights)) or (
        lefts[0].sort == rights[0].sort == "first" and found.matched
    ):
        return list(zip(lefts, rights, strict=False))
    return []


def opposites(found: Comparison) -> tuple[list[tuple[Item, Item]], list[tuple[Item, Item]]]:
    """Left-over words that exclude each other, and left-over words that name another thing."""
    language = found.left.language
    against: list[tuple[Item, Item]] = []
    other_things: list[tuple[Item, Item]] = []
    for item in (*found.left_over, *found.left_marks):
        for other in (*found.right_over, *found.right_marks):
            excluding = _excluding(item.keys, other.keys, language)
            if excluding == "other":
                other_things.append((item, other))
            elif excluding or _prefixed(item, other, language):
                against.append((item, other))
    return against, other_things


@lru_cache(maxsize=65_536)
def _excluding(one: frozenset[str], other: frozenset[str], language: str) -> str:
    """Whether two words name `other` things or are `opposite`, by their keys; the empty text for neither."""
    words = lexicon(language)
    keys = {(bare(mine), bare(yours)) for mine in one for yours in other}
    if keys & words.others:
        return "other"
    english = language == "en" and any(are_antonyms(*pair) for pair in keys)
    return "opposite" if english or keys & words.opposites else ""


def _prefixed(one: Item, other: Item, language: str) -> bool:
    """Paid and unpaid, active and inactive."""
    short, long = sorted((one.text.casefold(), other.text.casefold()), key=len)
    if language not in LATIN or len(short) < _PREFIXABLE or not long.endswith(short):
        return False
    return long in {prefix + short for prefix in _PREFIXES}


def marks_of(items: list[Item]) -> set[str]:
    """All marks of some items."""
    return {mark for item in items for mark in item.marks}


def negations(found: Comparison) -> tuple[int, int]:
    """How many left-over negations each side has."""
    left = sum("not" in item.marks for item in (*found.left_marks, *found.left_over))
    right = sum("not" in item.marks for item in (*found.right_marks, *found.right_over))
    return left, right


def negates_another(found: Comparison) -> bool:
    """Whether paired negations stand before words that are not each other's partners."""
    partner = {one.place: other.place for one, other in found.pairs}
    for one, other in found.pairs:
        if "not" not in one.marks or one.sort != "mark":
            continue
        mine, yours = _targets(found.left, one), _targets(found.right, other)
        if mine and yours and not any(partner.get(at) in yours for at in mine):
            return True
    return False


def _targets(reading: Reading, mark: Item) -> list[int]:
    """Places of what a negation may deny: the words after it, in languages that deny at the end those before it."""
    places = [item.place for item in reading.items if item.sort != "mark" and not item.light]
    before = [place for place in places if place < mark.place]
    after = [place for place in places if place > mark.place]
    if reading.language in {"ja", "ko", "hi"}:
        return before[-2:]
    return after[:2] if after else before[-1:]


def tense_changes(found: Comparison) -> list[str]:
    """Verbs that stand in the past on one side and in the present on the other."""
    if found.left.language != "en":
        return []
    changes = []
    for one, other in found.pairs:
        if one.sort == other.sort == "word":
            mine, yours = _finite_past(found.left, one), _finite_past(found.right, other)
            if None not in {mine, yours} and mine != yours:
                changes.append(f"{one.text} / {other.text}")
    return changes


def _finite_past(reading: Reading, item: Item) -> bool | None:
    """Whether a verb is a past or a present; None for what may be a participle or no verb."""
    if _NO_FINITE_AFTER & set(reading.lows[max(0, item.place - 3) : item.place]):
        return None
    main = item.place == reading.verb
    if item.past is None:
        return False if main and " " not in item.text else None
    if item.past and (main or not item.text.endswith("ed")):
        return True
    return False if main and not item.past else None


def number_swaps(found: Comparison) -> bool:
    """Whether two paired quantities changed places: three cats and two dogs, two cats and three dogs."""
    partner = {one.place: other.place for one, other in found.pairs if _is_word(one)}
    counted = [(one, other) for one, other in found.pairs if one.sort in _CLASSES and not one.light]
    beside = [(_neighbour(found.left, one), _neighbour(found.right, other)) for one, other in counted]
    if any(item.sort in _AMOUNTS and item.light for item in (*found.left_over, *found.right_over)):
        # One pill twice, two pills once.
        return any(
            one.sort in _AMOUNTS and mine and yours and partner.get(mine.place) != yours.place
            for (one, _), (mine, yours) in zip(counted, beside, strict=True)
        )
    crossing: dict[str, bool] = {}
    for first, second in combinations(range(len(counted)), 2):
        sort = _CLASSES[counted[first][0].sort]
        if sort != _CLASSES[counted[second][0].sort]:
            continue
        (mine, mine_now), (yours, yours_now) = beside[first], beside[second]
        if (
            mine and yours and mine_now and yours_now
            and mine is not yours
            and partner.get(mine.place) == yours_now.place
            and partner.get(yours.place) == mine_now.place
        ):  # fmt: skip
            return True
        crossed = (counted[first][0].place < counted[second][0].place) != (
            counted[first][1].place < counted[second][1].place
        )
        crossing[sort] = crossing.get(sort, False) or crossed
    # Monday at nine and Tuesday at ten, Monday at ten and Tuesday at nine.
    rows = sum(_CLASSES[one.sort] == "number" for one, _ in counted) >= _ROW
    return len(set(crossing.values())) > 1 or (rows and crossing.get("number", False))


def _is_word(item: Item) -> bool:
    return item.sort not in QUANTITIES and item.sort != "mark"


def _neighbour(reading: Reading, quantity: Item) -> Item | None:
    """The word that a quantity belongs to: the one just after it, else the one before it."""
    words = [item for item in reading.items if _is_word(item)]
    after = next((item for item in words if item.place > quantity.place), None)
    if after and after.place - quantity.end <= 1:
        return after
    return next((item for item in reversed(words) if item.place < quantity.place), after)


def one_slot_differs(found: Comparison) -> bool:
    """Whether the texts are word for word the same but for one run of words: the same template with another object."""
    mine, yours = found.left.words, found.right.words
    shorter = min(len(mine), len(yours))
    start = 0
    while start < shorter and mine[start] == yours[start]:
        start += 1
    end = 0
    while end < shorter - start and mine[-1 - end] == yours[-1 - end]:
        end += 1
    changed = (len(mine) - start - end, len(yours) - start - end)
    longest = _UNSPACED_RUN if found.left.language in {"zh", "ja"} else _RUN
    return min(changed) > 0 and max(changed) <= longest and start + end >= max(2, *changed)


def contrasts(found: Comparison) -> list[str]:
    """Small words, otherwise left aside, that make another claim: on and off, to and from."""
    left, right = Counter(found.left.lows), Counter(found.right.lows)
    more, less = left - right, right - left
    pairs = [
        f"{one} / {other}"
        for one, other in _CONTRASTS.get(found.left.language, ())
        if (more[one] and less[other]) or (more[other] and less[one])
    ]
    if found.left.language == "en":
        pairs += [
            f"{one.slot} {one.text} / {other.slot} {other.text}"
            for one, other in found.pairs
            if one.sort not in QUANTITIES and {one.slot, other.slot} in _SLOT_CONTRASTS
        ]
    return pairs
