"""English turns of phrase in one form, before a text is read: each reordering here leaves what is said as it was.

"Tea is what Ida prefers" becomes "Ida prefers tea", "if it rains, she stays" becomes "she stays if it rains". What the
guard proves about the forms holds for the texts, so that no test of it has to know these turns.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from memory_os.domain.gate.lemmas import lemma
from memory_os.domain.gate.slots import VERBS

_OBJECT: Final = r"(?:(?:the|a|an|his|her|their|its|our|my|your) )?\w+(?: \w+)?"
_CLOCK: Final = (
    r"(?=\d|half |quarter |noon|midnight|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b)"
)
_WHEN: Final = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday|Wednesday|"
    "Thursday|Friday|Saturday|Sunday)"
)
_TURNED: Final = frozenset(
    {
        ("newer", "older"), ("younger", "older"), ("smaller", "larger"), ("smaller", "bigger"), ("cheaper", "dearer"),
        ("slower", "faster"), ("lighter", "heavier"), ("weaker", "stronger"),
    }
)  # fmt: skip

_it_is_who = re.compile(r"^it(?:'s| is| was) ([^,]{1,40}?) (?:who|that) (?=(\S+))(.+)$", re.IGNORECASE)
_it_is_whom = re.compile(r"^it(?:'s| is| was) ([^,]{1,40}?) (?:who|whom|that) ([^,]{1,40}?) (\w+)$", re.IGNORECASE)
_the_one_who = re.compile(r"^([^,]{1,40}?) (?:is|was) the (?:one|person) who (?=(\S+))(.+)$")
_what_is = re.compile(r"^what ([^,]{1,40}?) (\w+) (?:is|are|was|were) ([^,]+)$", re.IGNORECASE)
_is_what = re.compile(r"^([^,]+?) (?:is|are|was|were) what ([^,]{1,40}?) (\w+)$")
_fronted = re.compile(
    r"^(when|if|because|before|after|while|unless|until|whenever|although|though|once) ([^,]+), ([^,]+)$", re.IGNORECASE
)
_there_is = re.compile(
    r"^there (?:is|are) ([^,]{1,40}?) in ((?:the|our|my|his|her|their) \w+(?: \w+)?)$", re.IGNORECASE
)
_parts = re.compile(r"\b(?:of|in|on|at|with|for|who|that|which|\w+ing)\b")
_has = re.compile(r"^[^,]* (?:has|have) ")
_belongs = re.compile(r"^((?:the|this|that) \w+(?: \w+)?) belongs? to ((?:the )?\w+(?: \w+)?)$", re.IGNORECASE)
_split_verb = re.compile(
    rf"\b((?:turn|switch)(?:s|ed|es|ing)?) ({_OBJECT}) (on|off)(?=$|[,;.]| (?:at|before|after|when|while|during|if|"
    r"every|each|from|until|by|as|and|for)\b)"
)
_share_of = re.compile(
    r"\ba ((?:\d[\d.,]*|\w+) ?(?:%|per ?cent)) (discount|deposit|fee|surcharge|commission|tip|stake)"
    r"(?=$|[,;.]| (?:on|for|if|when)\b)"
)
_not_that = re.compile(r"^([^,]+), (?:and )?not ((?:the |a |an )?\w+)$")
_likes_better = re.compile(
    r"\blike(s?) ([^,]{1,40}?) (?:better|more)(?=$| than (?!any|every|[A-Z]|I\b|he\b|she\b|they\b|we\b|you\b))"
)
_compares = re.compile(
    r"\b(?:than|over|rather|instead|more|better|best|most|not|n't|never|no|would|'d)\b|\bprefers? .+ to\b"
)
_prefers = re.compile(r"\bprefer(s?)\b")
_likes = re.compile(r"\blike(s?)\b")
_is_at = re.compile(rf"\b(?:is|are) at {_CLOCK}")
_starts_at = re.compile(rf"\b(?:start|begin)(s?) at {_CLOCK}")
_going_to = re.compile(r"\b(?:is|are) going to ([a-z]+)\b")
_who_also = re.compile(r"^([^,]+), who (?=\w+s )([^,]+), (?=\w+s )([^,]+)$")
_than = re.compile(r"^([^,]{1,40}?) (is|are|was|were) (\w+er) than ([^,]{1,40})$")
_favourite = re.compile(r"^([^,']{1,40}?) (is|are) (\w+'s favou?rite [^,]+)$")

_PLAIN: Final = [
    (hint, re.compile(pattern, re.IGNORECASE), form)
    for hint, pattern, form in (
        (", who ", r", who (?:is|was|are|were) (?=an? |the |our )", ", "),
        (" to be ", r"\b(?:is|are) to be (?=\w+(?:ed|en|t)\b)", "must be "),
        (" to ", r"\b(?:amounts?|comes|come) to (?=[\d€$£])", "is "),
        (" lies ", r"^((?:the|our) \w+(?: \w+)?) lies (?=\d|in |on |at |near )", r"\1 is "),
        ("has ", r"\bhas (?=(?:breakfast|lunch|dinner|supper)\b)", "eats "),
        ("have ", r"\bhave (?=(?:breakfast|lunch|dinner|supper)\b)", "eat "),
        ("having ", r"\bhaving (?=(?:breakfast|lunch|dinner|supper)\b)", "eating "),
        ("had ", r"\bhad (?=(?:breakfast|lunch|dinner|supper)\b)", "ate "),
        ("away from", r"(?<=\d) (km|m|kilomet\w+|met(?:re|er)s|miles?|minutes|hours) away from ", r" \1 from "),
        (" how to ", r"\b(learn\w*) how to ", r"\1 to "),
        ("ever ", r"\b(?:do|does) ?(?:not|n't) ever ", "never "),
        ("never forget", r"\bnever forget", "always remember"),
        ("always forget", r"\balways forget", "never remember"),
        ("between ", rf"\bbetween ({_WHEN}) and (?={_WHEN}\b)", r"from \1 to "),
        ("in order to", r"\bin order to\b", "to"),
        ("both ", r"\bboth (?=\w+ and )", ""),
        ("so as to", r"\bso as to\b", "to"),
        ("would rather", r"\bwould rather (?:have )?(?=[^,]* than )", "prefers "),
    )
]
"""What a text must contain (in lower case), what is replaced, and by what."""


def reworded(one: str, other: str) -> tuple[str, str]:
    """Two English texts in `plain_text`'s form with such turns in one form; the texts themselves without any."""
    if one == other:
        return one, other
    left, right = (_alone(text) for text in (one, other))
    for turn in (_liking, _having, _telling_more, _turned, _starting):
        left, right = turn(left, right)
        right, left = turn(right, left)
    return left, right


@lru_cache(maxsize=4_096)
def _alone(text: str) -> str:
    """What is done to a text whatever stands beside it."""
    if text.endswith("?"):
        return text
    end = text[len(text.rstrip(" .!")) :]
    plain = text.rstrip(" .!")
    low = plain.lower()
    for hint, pattern, form in _PLAIN:
        if hint in low:
            plain = pattern.sub(form, plain)
    if " going to " in low:
        plain = _going_to.sub(lambda found: f"will {found[1]}" if _finite(found[1]) else found[0], plain)
    if "turn" in low or "switch" in low:
        plain = _split_verb.sub(r"\1 \3 \2", plain)
    if "%" in low or "cent" in low:
        plain = _share_of.sub(r"a \2 of \1", plain)
    if "like" in low:
        plain = _likes_better.sub(r"prefer\1 \2", plain)
    for turn in (_cleft, _placed):
        plain = turn(plain)
    return plain + end


def _cleft(text: str) -> str:
    """It is Ida who, the one who, what Ida likes is."""
    for pattern in (_it_is_who, _the_one_who) if " who " in text or " that " in text else ():
        found = pattern.match(text)
        if found and _finite(found[2]):
            return f"{found[1]} {found[3]}"
    found = _it_is_whom.match(text) if text[:2].lower() == "it" else None
    if found and _finite(found[3]):
        return f"{_start(found[2])} {found[3]} {found[1]}"
    found = _what_is.match(text) if text.startswith(("What ", "what ")) else None
    if found and _finite(found[2]):
        return f"{_start(found[1])} {found[2]} {found[3]}"
    found = _is_what.match(text) if " what " in text else None
    if found and _finite(found[3]):
        return f"{_start(found[2])} {found[3]} {_inside(found[1])}"
    found = _favourite.match(text) if " favo" in text else None
    return f"{found[3]} {found[2]} {_inside(found[1])}" if found else text


def _placed(text: str) -> str:
    """A clause in front goes to the end; what belongs to one is one's own; this, not that is this rather than that."""
    found = _fronted.match(text)
    if found:
        return f"{_start(found[3])} {found[1].lower()} {found[2]}"
    found = _belongs.match(text) if " belong" in text else None
    if found:
        return f"{_start(found[2])} owns {_inside(found[1])}"
    found = _not_that.match(text) if " not " in text else None
    return f"{found[1]} rather than {found[2]}" if found else text


def _liking(one: str, other: str) -> tuple[str, str]:
    """Prefers tea, likes tea: the same where neither names anything that it is liked better than."""
    if (
        "prefer" in one
        and "like" in other
        and _prefers.search(one)
        and _likes.search(other)
        and not (_compares.search(one) or _compares.search(other))
    ):
        return one, _likes.sub(r"prefer\1", other, count=1)
    return one, other


def _having(one: str, other: str) -> tuple[str, str]:
    """What there is in a place is what the place has."""
    if not one.startswith(("There ", "there ")):
        return one, other
    end = one[len(one.rstrip(" .!")) :]
    found = _there_is.match(one.rstrip(" .!"))
    if found and _has.search(other) and not _parts.search(found[1]):
        return f"{_start(found[2])} has {found[1]}{end}", other
    return one, other


def _telling_more(one: str, other: str) -> tuple[str, str]:
    """Ida, who lives here, sings: she lives here and sings."""
    found = _who_also.match(one.rstrip(" .!")) if ", who " in one else None
    if found and " and " in other and " who " not in other:
        return f"{found[1]} {found[2]} and {found[3]}", other
    return one, other


def _turned(one: str, other: str) -> tuple[str, str]:
    """Younger than Ida, where the other text says that Ida is older."""
    if " than " not in one or " than " not in other:
        return one, other
    found, against = _than.match(one.rstrip(" .!")), _than.match(other.rstrip(" .!"))
    if not (found and against) or (found[3], against[3]) not in _TURNED:
        return one, other
    return f"{_start(found[4])} {found[2]} {against[3]} than {_inside(found[1])}", other


def _starting(one: str, other: str) -> tuple[str, str]:
    """Is at nine, starts at nine; where both say what happens at nine, it stays as it is."""
    return (
        (_is_at.sub(r"starts at ", one), other)
        if " at " in one and _is_at.search(one) and _starts_at.search(other)
        else (one, other)
    )


def _finite(word: str) -> bool:
    """Whether a word is a finite form of a known verb, or one that helps a verb."""
    low = word.lower()
    return low in {"is", "was", "has", "had", "will", "can", "must"} or (
        word == low and not low.endswith("ing") and lemma(low, "en") in VERBS
    )


def _start(text: str) -> str:
    return text[:1].upper() + text[1:]


def _inside(text: str) -> str:
    """A beginning of a sentence in the middle of one; a name alone keeps its capital where it can be told."""
    first, _, rest = text.partition(" ")
    return (
        f"{first.lower()} {rest}"
        if rest and first.lower() != first and not first.isupper() and rest.islower()
        else text
    )
