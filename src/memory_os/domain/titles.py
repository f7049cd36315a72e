"""Titles that are names: the part of the heuristic extractor that trusts a capital at the beginning.

A sentence's first capital proves nothing, but most titles of one to eight capitalised words are what somebody or
something is called: Inception, Ada Lovelace, Gone with the Wind. Uncased scripts have no such form.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

from memory_os.domain.capitals import LONGEST_NAME, MOST_WORDS, Phrase
from memory_os.domain.stop_words import (
    ABBREVIATIONS,
    ARTICLES,
    BRIDGES,
    COMMON_WORDS,
    DATES,
    HONORIFICS,
    NAME_ABBREVIATIONS,
    NAME_WORDS,
    NOT_NAMES,
    TITLE_WORDS,
)

__all__ = ["find_titled"]

_CONNECTING: Final = TITLE_WORDS | ARTICLES | {word for bridge in BRIDGES for word in bridge.split()}
"""What may be written small in a title that is a name."""

_ORDINARY: Final = (COMMON_WORDS - NAME_WORDS) | DATES | NOT_NAMES
"""A title of these alone names nothing: Notes, Thank You, Monday, January 2024."""

_ADDITIONS: Final = {")": "(", "]": "[", "\uff09": "\uff08"}
_PARTING: Final = frozenset({"-", "\u2013", "\u2014", "|", "/", "\u00b7"})
_PARTING_MARKS: Final = frozenset(",;:")
_STOPS: Final = frozenset(".!?\u2026")
_MARKS: Final = "\"'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a.,;:!?\u2026()[]"

_token = re.compile(r"\S+")
_plain = re.compile(r"[^\W_](?:(?!_)[\w'\u2019.&+#\-\u2010\u2011\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff])*")
_possessive = re.compile("['\u2019][sS]$")


class _Word(NamedTuple):
    start: int
    end: int
    text: str
    kind: str
    """"name" for one with a capital, "number", "small" for a connecting one."""


def find_titled(title: str) -> list[Phrase]:
    """The names that a title consists of: mostly one, several where a colon, a comma or a dash parts them.

    Every word must have a capital, be a number or one of the small words inside names; a bracketed addition at the end
    is left aside. Nothing is found in any other title, in one that shouts, and in one of ordinary words alone.

    A phrase of several words is marked as one that may begin a sentence, since that alone takes nothing from it.
    """
    parts = _read(title)
    if parts is None or not all(_is_framed(part) for part in parts) or _is_shout(parts):
        return []
    return [phrase for part in parts if (phrase := _name_of(part)) is not None]


def _read(title: str) -> list[list[_Word]] | None:
    """The words of each part; None if one of them is no word of a name, or a sentence ends before the title does."""
    parts: list[list[_Word]] = [[]]
    ended = False
    for match in _token.finditer(title, 0, _end_of_name(title)):
        token = match[0]
        if ended:
            return None
        if token in _PARTING:
            parts.append([])
            continue
        word = _word_at(match.start(), token)
        if word is None:
            return None
        parts[-1].append(word)
        ended = token[-1] in _STOPS and not _is_abbreviated(token, word.text)
        if token[-1] in _PARTING_MARKS:
            parts.append([])
    return [part for part in parts if part]


def _end_of_name(title: str) -> int:
    """Where a bracketed addition at the end begins, if there is one and something before it."""
    written = title.rstrip()
    opening = _ADDITIONS.get(written[-1:])
    place = written.rfind(opening) if opening else -1
    return place if place > 0 else len(written)


def _word_at(start: int, token: str) -> _Word | None:
    if token == "&":  # noqa: S105 - a mark, and no secret
        return _Word(start, start + 1, token, "small")
    start += len(token) - len(token.lstrip(_MARKS))
    text = token.strip(_MARKS)
    if not _plain.fullmatch(text):
        return None
    first, inner = text[0], text[1:2]
    if first.isupper() or first.istitle() or (first.islower() and inner.isupper()):
        kind = "name"
    elif first.isdigit():
        kind = "number"
    elif text in _CONNECTING:
        kind = "small"
    else:
        return None
    return _Word(start, start + len(text), text, kind)


def _is_abbreviated(token: str, text: str) -> bool:
    """Whether the full stop belongs to the word: St. Louis, J. Smith, U.S. Steel."""
    if not token.endswith("."):
        return False
    folded = text.casefold()
    return folded in NAME_ABBREVIATIONS or folded in ABBREVIATIONS or all(len(one) == 1 for one in text.split("."))


def _is_framed(part: list[_Word]) -> bool:
    """Whether no small word stands at either end, which only a cut-off sentence has."""
    return part[0].kind != "small" and part[-1].kind != "small"


def _is_shout(parts: list[list[_Word]]) -> bool:
    """Whether the title is several words in nothing but capitals, of which no form tells a name."""
    words = [word.text for part in parts for word in part if word.kind == "name"]
    return len(words) > 1 and all(word.isupper() for word in words)


def _name_of(part: list[_Word]) -> Phrase | None:
    """The name that a part is, without article, honorific and degree at its edges; None if nothing of one is left."""
    first, last = 0, len(part)
    while first < last and _drops(part[first], before=True):
        first += 1
    while first < last and _drops(part[last - 1], before=False):
        last -= 1
    words = part[first:last]
    names = [word for word in words if word.kind == "name"]
    if not any(word.text.casefold() not in _ORDINARY for word in names) or len(names) > MOST_WORDS:
        return None
    start = words[0].start
    end = words[-1].end - (len(found[0]) if (found := _possessive.search(words[-1].text)) else 0)
    if not 1 < end - start <= LONGEST_NAME:
        return None
    return Phrase(
        start=start,
        end=end,
        initial=len(names) > 1,
        second=next((after.start for _, after in pairwise(words)), end),
        strong=False,
        words=tuple(word.text for word in names),
    )


def _drops(word: _Word, *, before: bool) -> bool:
    folded = word.text.casefold()
    if word.kind == "small" or folded in HONORIFICS:
        return True
    return folded in ARTICLES if before else len(folded) > 1 and folded in NOT_NAMES
