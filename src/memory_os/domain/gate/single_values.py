"""English statements of what has one value at a time: where somebody works, what something costs, whose it is.

Two such statements of one thing that name different values can't both hold now, however they are worded: "Ida works at
Foss" and "Ida has left Foss and joined Brae". Only turns that are listed count, and only short, plain values: "lives in
Graz on weekdays" may hold beside "lives in Linz". Nothing here ever merges two memories.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memory_os.domain.gate.aliases import Aliases
from memory_os.domain.gate.exact import plain_text
from memory_os.domain.gate.word_lists import words

LONGEST: Final = 200
"""Characters of the longest statement that is read: what is longer says more than one value."""

_VALUE_WORDS: Final = 5
_SUBJECT_WORDS: Final = 6

_BE: Final = "(?:is|are)"
_WAS: Final = "(?:was|were|has been|have been)"
_HAS: Final = "(?:has |have )?"
_MOVED: Final = (
    "(?:moved|changed|switched|raised|lowered|increased|reduced|set|updated|upgraded|downgraded|bumped|postponed|pushed|"
    "extended|brought forward|put off|transferred|relocated|migrated)"
)
_WENT: Final = (
    "(?:moved|changed|switched|gone|went|gone up|went up|gone down|went down|risen|rose|fallen|fell|dropped|grown|grew|"
    "shrunk|shrank|advanced|transferred|relocated|migrated)"
)
_FROM: Final = "(?:from [^,]+? )?"

_TURNS: Final[dict[str, str]] = {
    "employer": f"""
        S (?:works|work) for V
        S {_BE} employed (?:at|by) V
        S {_HAS}started (?:working )?(?:at|for) V
        S {_HAS}left [^,]+? and started at V
    """,
    "workplace": f"""
        S (?:works|work) at V
        S {_BE} employed (?:at|by) V
        S {_HAS}started (?:working )?(?:at|for) V
        S {_HAS}left [^,]+? and started at V
    """,
    "occupation": "S (?:works|work) as (?:a|an|the) V",
    "home": f"""
        S (?:lives|live|resides|reside) in V
        S {_HAS}(?:moved|relocated) {_FROM}to P
    """,
    "base": f"""
        S {_BE} (?:based|located|situated|headquartered) (?:in|at) V
        S {_HAS}its (?:seat|headquarters|head office) in V
    """,
    "manager": f"""
        S (?:reports|report) to V
        S {_BE} (?:managed|supervised) by V
        V (?:manages|supervises) S
    """,
    "owner": f"""
        S {_BE} owned by V
        S (?:belongs|belong) to V
        V (?:owns|own) S
        V {_HAS}(?:taken over|took over) S
        S {_WAS} (?:handed over|handed|passed|passed on) to V
        S {_HAS}passed to V
    """,
    "leader": f"""
        S {_BE} (?:led|headed|chaired) by V
        V (?:leads|heads|chairs) S
    """,
    "responsible": f"V {_BE} (?:responsible for|in charge of) S",
    "price": f"""
        S (?:costs|cost|sells for|sell for) V
        S {_BE} priced at V
    """,
    "version": f"""
        S {_BE} (?:at|on|running) version V
        S (?:runs|run|uses|use) (?:on )?version V
        S {_HAS}(?:been )?{_MOVED} {_FROM}to version V
        S {_WAS} {_MOVED} {_FROM}to version V
    """,
    "host": f"S {_BE} hosted (?:in|on|at|by|with) V",
    "room": f"""
        S (?:sits|sit|works|{_BE}) in room V
        S {_HAS}(?:moved|switched) {_FROM}to room V
        (?:the )?(?:desk|office|seat) of S {_WAS} moved {_FROM}to room V
        (?:the )?(?:desk|office|seat) of S {_BE} (?:in )?room V
        S's (?:desk|office|seat) {_BE} (?:in )?room V
        S's (?:desk|office|seat) {_WAS} moved {_FROM}to room V
    """,
    "phone": f"""
        S can be (?:reached|called|phoned) (?:at|on|under) (?:extension|number)? ?V
        S {_BE} reachable (?:at|on|under) (?:extension|number)? ?V
    """,
    "deadline": f"""
        S {_BE} due (?:on|by|in|at)? ?V
        S (?:must|has to|have to) be (?:done|ready|finished|delivered|submitted) by V
    """,
    "takes place on": f"""
        S (?:takes|take) place on V
        S (?:meets|meet) on V
        S {_BE} held on V
    """,
    "starts at": "S (?:starts|start|begins|begin) at V",
    "opens at": "S (?:opens|open) at V",
    "closes at": "S (?:closes|close) at V",
    "name": f"""
        S {_BE} (?:called|named) V
        S {_WAS} renamed (?:to )?V
    """,
    "spouse": f"S {_BE} married to V",
}
"""Turns of phrase by property: S is what it is a property of, V its value, P a value with a capital.

Somebody moves to Graz, and to the payments team.
"""

_SAME_NOUNS: Final = {
    "boss": "manager", "supervisor": "manager", "line manager": "manager", "cost": "price", "due date": "deadline",
    "extension": "phone", "phone number": "phone", "telephone number": "phone", "headquarters": "base",
    "head office": "base", "location": "base", "head": "leader", "chair": "leader", "lead": "leader", "state": "status",
    "color": "colour", "husband": "spouse", "wife": "spouse", "favorite": "favourite",
}  # fmt: skip
_NOUNS: Final = frozenset(_SAME_NOUNS) | words(
    """
    address age assignee birthday branch budget capacity capital ceo colour coach contact cto currency deadline director
    duration employer fee frequency grade height host interval landlord language leader limit maintainer manager model
    name nickname owner password phase plan port price priority provider quota rank rate rating region rent room salary
    score severity size speed spouse stage status supplier tariff temperature threshold timeout title vendor version
    weight
    """
)
_LONG_NOUNS: Final = (
    "start date|end date|launch date|release date|opening date|time zone|default branch|point of contact|due date|"
    "line manager|phone number|telephone number|head office"
)
_NOUN: Final = (
    rf"(?P<n>{_LONG_NOUNS}|(?:favou?rite|preferred|default|primary|maximum|minimum|maximal|minimal) [\w-]+|[\w-]+)"
)
_NOUN_TURNS: Final = f"""
    (?:the )?(?:new )?{_NOUN} (?:of|for) S {_BE} (?:at |in |on )?V
    S's (?:new )?{_NOUN} {_BE} (?:at |in |on )?V
    V {_BE} the (?:new )?{_NOUN} of S
    V {_BE} S's (?:new )?{_NOUN}
    (?:the )?{_NOUN} (?:of|for) S {_WAS} {_MOVED} {_FROM}to V
    (?:the )?{_NOUN} (?:of|for) S {_HAS}{_WENT} {_FROM}to V
    S's {_NOUN} {_WAS} {_MOVED} {_FROM}to V
    S's {_NOUN} {_HAS}{_WENT} {_FROM}to V
"""

_named_changes: Final = [
    re.compile(rf"(?P<s>.+?) (?:{_WAS} {_MOVED}|{_HAS}{_WENT}) from (?P<o>[^,]+?) to (?P<v>[^,]+)"),
    re.compile(rf"(?P<s>.+?) {_HAS}left (?P<o>[^,]+?) (?:for|and (?:joined|went to|gone to|moved to)) (?P<v>[^,]+)"),
]
"""Changes that name what was before: switched from tea to coffee."""

_now: Final = re.compile(
    r"^(?:now|currently|at present|from now on|as of (?:now|today)|since (?:last|this) (?:week|month|year)|"
    r"from (?:today|tomorrow|next (?:week|month|year))(?: on)?),? "
    r"|,? (?:now|currently|from now on|these days|at the moment|as of (?:now|today)|instead)$"
    r"|(?<= )(?:now|currently|presently|meanwhile) "
)
_hedged: Final = re.compile(
    r"[?;:\"(\[]|\b(?:not|never|no|cannot|used|formerly|previously|once|would|will|may|might|could|should|if|unless|"
    r"whether|perhaps|maybe|probably|about|almost|wants|plans|hopes|considers|likely|until|said|says|thinks|believes)\b"
    r"|n't\b|n't "
)
"""What is denied, past, planned, guessed or reported is no value that holds."""
_QUALIFYING: Final = words(
    """
    and or but also too both sometimes usually often mostly mainly partly when while because except every each during
    after before with as only another other others besides plus per via at in on for since than which who that whose
    """
)
"""Within a value they say more than a value; at its beginning some are part of it ("in review")."""
_NOT_SUBJECTS: Final = words(
    "he she it they we you this that these those there here who which what someone somebody everyone everybody nobody"
)
_INDEFINITE: Final = words(
    "a an some any every each all many most several few one two three four both no another other"
)
_VERBAL: Final = words(
    "is are was were has have had be been being does do did can must and or which who that whose when while because"
)
_article: Final = re.compile(r"^(?:the|our|my) ")
_days: Final = re.compile(
    r"\b(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b|\b(?P<date>january|february|march|april|may|june|july|"
    r"august|september|october|november|december)\b|\b(?P<hour>noon|midnight)\b"
)


@dataclass(frozen=True, slots=True)
class Value:
    """What a statement says that a property of something is."""

    of: str
    property: str
    value: str


_PARTS: Final = {"S": "(?P<s>.+?)", "V": "(?P<v>.+?)", "P": "(?P<v>(?P<p>.+?))"}


def _compile(turns: str) -> list[re.Pattern[str]]:
    lines = filter(None, (line.strip() for line in turns.splitlines()))
    return [re.compile(re.sub(r"(?<!\w)(?<!\(\?)[SVP]\b", lambda part: _PARTS[part[0]], line)) for line in lines]


_turns: Final = [(name, turn) for name, turns in _TURNS.items() for turn in _compile(turns)]
_noun_turns: Final = _compile(_NOUN_TURNS)


def new_value(existing: str, new: str, aliases: Aliases) -> str | None:
    """What two texts say of one property, "works at Foss / works at Brae", or None where they name no two values.

    Symmetric, but for a change that names the value before it, which has to be the new text.

    Args:
        existing: The text that is stored.
        new: The one that is to be written.
        aliases: The tenant's declared names, by which two values or subjects may be one.
    """
    mine, yours = _values(existing), _values(new)
    for one in mine:
        for other in yours:
            if one.property == other.property and _same(one.of, other.of, aliases):
                differ = _differ(one.value, other.value, aliases)
                return f"{one.property}: {one.value} / {other.value}" if differ else None
    return _ended_by(existing, new)


def of_one_property(one: str, other: str, aliases: Aliases) -> bool:
    """Whether two texts name values of one property of one thing, be they equal or not."""
    yours = _values(other)
    return bool(yours) and any(
        mine.property == value.property and _same(mine.of, value.of, aliases)
        for mine in _values(one)
        for value in yours
    )


def apart(existing: str, new: str, aliases: Aliases) -> tuple[str, str] | None:
    """Why two texts that name values can't be about one of them: `other_property` or `other_subject`, and which ones.

    None where they may be, or where one of them names no value.
    """
    mine, yours = _values(existing), _values(new)
    pairs = [(one, other) for one in mine for other in yours]
    alike = [(one, other) for one, other in pairs if one.property == other.property]
    if not alike:
        same = next(((one, other) for one, other in pairs if _same(one.of, other.of, aliases)), None)
        return ("other_property", f"property: {same[0].property} / {same[1].property}") if same else None
    if any(_may_be_one(one.of, other.of, aliases) for one, other in alike):
        return None
    return "other_subject", f"subject: {alike[0][0].of} / {alike[0][1].of}"


def _ended_by(existing: str, new: str) -> str | None:
    """Whether the new text names a change from what the existing one says of the same thing."""
    before, after = _plain(existing), _plain(new)
    for turn in _named_changes if before and after else ():
        change = turn.fullmatch(after)
        if change is None or not _is_subject(change["s"]):
            continue
        subject, old, value = (_bare(change[name]) for name in ("s", "o", "v"))
        rest = f" {before} ".replace(f" {subject} ", " ", 1)
        if rest != f" {before} " and f" {old} " in rest and f" {value} " not in rest:
            return f"{old} / {value}"
    return None


def _same(one: str, other: str, aliases: Aliases) -> bool:
    return one == other or (
        len(aliases) > 0 and (key := _key(one, aliases)) is not None and key == _key(other, aliases)
    )


def _may_be_one(one: str, other: str, aliases: Aliases) -> bool:
    """Whether two may name the same, one perhaps with fewer words."""
    mine, yours = set(one.split()), set(other.split())
    return mine <= yours or yours <= mine or _same(one, other, aliases)


def _key(text: str, aliases: Aliases) -> str | None:
    """The entity that a text names, and nothing else."""
    return next((match.key for match in aliases.find(text) if match.end - match.start == len(text)), None)


def _differ(one: str, other: str, aliases: Aliases) -> bool:
    """Whether two values can't be one, written in two ways or with more or fewer words."""
    if _may_be_one(one, other, aliases) or _sort(one) != _sort(other):
        return False
    return _sort(one) != "number" or _digits(one) != _digits(other)


def _digits(value: str) -> list[str]:
    return re.findall(r"\d+", value)


@lru_cache(maxsize=4_096)
def _values(text: str) -> tuple[Value, ...]:
    """The values that a text states; several where it can be read in several ways."""
    plain = _plain(text)
    found = []
    for name, turn in _turns if plain else ():
        read = turn.fullmatch(plain)
        if read and _is_subject(read["s"]) and _is_value(read["v"]):
            place = read.groupdict().get("p")
            if place is None or _is_capital(place, text):
                found.append(Value(_bare(read["s"]), name, _bare(read["v"])))
    for turn in _noun_turns if plain else ():
        read = turn.fullmatch(plain)
        if read and _is_subject(read["s"]) and _is_value(read["v"]) and (noun := _property(read["n"])):
            found.append(Value(_bare(read["s"]), noun, _bare(read["v"])))
    return tuple(found)


def _plain(text: str) -> str:
    """The text in small letters, without what says that it holds now; "" where it is no plain statement."""
    if len(text) > LONGEST:
        return ""
    plain = " ".join(plain_text(text).lower().split()).rstrip(".! ")
    if _hedged.search(plain) or ". " in plain:
        return ""
    return " ".join(_now.sub(" ", plain).split())


def _property(noun: str) -> str | None:
    first, _, kind = noun.partition(" ")
    if kind and noun not in _SAME_NOUNS and noun not in _LONG_NOUNS:
        return f"{_SAME_NOUNS.get(first, first)} {_SAME_NOUNS.get(kind, kind)}"
    return _SAME_NOUNS.get(noun, noun) if noun in _NOUNS or kind else None


def _is_capital(part: str, text: str) -> bool:
    at = text.lower().rfind(part)
    return at >= 0 and text[at].isupper()


def _is_subject(text: str) -> bool:
    parts = text.split()
    return (
        0 < len(parts) <= _SUBJECT_WORDS
        and parts[0] not in _INDEFINITE
        and "," not in text
        and not (len(parts) == 1 and parts[0] in _NOT_SUBJECTS)
        and not _VERBAL & set(parts)
    )


def _is_value(text: str) -> bool:
    parts = text.split()
    return 0 < len(parts) <= _VALUE_WORDS and "," not in text and not (_QUALIFYING | _VERBAL) & set(parts[1:])


def _bare(text: str) -> str:
    return _article.sub("", text.strip())


def _sort(value: str) -> str:
    """A place is not held against a day, nor a name against a number, nor a weekday against a date."""
    if day := _days.search(value):
        return day.lastgroup or "day"
    return "number" if any(character.isdigit() for character in value) else "word"
