"""Capitalised phrases in a text: the part of the heuristic extractor that works in scripts with capitals.

A capital that only begins a sentence proves nothing, so every phrase says whether it does. All of it is one pass over
the words with a capital in them; the words between are looked at only as the gap from one to the next.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from memory_os.domain.code_points import CASED_BLOCKS, UNSPACED_LETTERS, characters, regex_class
from memory_os.domain.stop_words import (
    ABBREVIATIONS,
    BRIDGES,
    DATES,
    HONORIFICS,
    NAME_ABBREVIATIONS,
    NOT_NAMES,
    NOT_PLURALS,
    PRONOUNS,
    QUANTITIES,
    SMALL_WORDS,
    STARTERS,
    YEAR_PREPOSITIONS,
)

LONGEST_NAME: Final = 120
"""Characters that a derived name may have; what is longer is no name."""

MOST_WORDS: Final = 8
"""Words that a capitalised or quoted phrase may have; more are a heading, a shout or a sentence."""

_SHOUT: Final = 3
"""This many words in capitals in a row are a shout, not acronyms."""

_INVISIBLE: Final = "\\u0300-\\u036f\\u00ad\\u200b-\\u200d\\u2060\\ufeff"
"""What may stand inside a word beside letters and digits: combining accents, soft hyphen, zero-width characters."""

_capital = "A-Z" + "".join(letter for letter in characters(CASED_BLOCKS) if letter != letter.lower())
_inside = f"0-9A-Za-z{regex_class(CASED_BLOCKS)}{_INVISIBLE}"
_word = re.compile(
    f"(?<![{_inside}_])"
    f"(?:[{_capital}][{_inside}]*|[a-z][A-Z][{_inside}]+|[0-9]+[A-Z][{_inside}]*)"
    rf"(?:[\-\u2010\u2011'\u2019&][{_inside}]+|\.[a-z]{{2,3}}(?![{_inside}_.])|\.[A-Z](?![{_inside}_]))*"
    rf"(?:(?:\+\+|\#)(?![{_inside}_#+]))?"
)
_possessive = re.compile("['\u2019](?:s|S)$")
_contraction = re.compile("['\u2019](?:m|re|ve|ll|d)$")
_negation = re.compile("n['\u2019]t$")
_initials = re.compile(rf"[{_capital}](?:\.[{_capital}])*")
_hyphen = re.compile("[-\u2010\u2011]")
_number_gap = re.compile(r" (?:No\. ?|#)?\d[\d.,/\-\u2013]{0,15}[a-z]? $")
_number_after = re.compile(rf" (?:No\. ?|#)?(\d+(?:[.,/\-\u2013]\d+)*[a-z]?)(?![{_inside}_])(?: ?([^\W\d]+|%))?")
_year_before = re.compile(r"(?:^|[\s(])((?:19|20)\d\d(?:[/\-\u2013](?:\d{4}|\d\d))?) $")
_last_word = re.compile(r"(\w+)\W*$")
_lower_letter = re.compile("[a-z\u00df-\u00f6\u00f8-\u00ff\u03b1-\u03c9\u0430-\u044f]")
_unspaced_after = re.compile(f" ?[{regex_class(UNSPACED_LETTERS)}]")

_OPENING: Final = frozenset(" \t\u00a0\u3000\"'(\u2018\u2019\u201c\u201d\u201e\u00ab\u2039[{*>\u2022\u00bf\u00a1")
_QUOTES: Final = frozenset("\"'\u2018\u201c\u201e\u00ab\u2039")
_BULLETS: Final = frozenset("-\u2013\u2014*+#\u2022")
_ENDS: Final = frozenset(".!?\u2026\u3002\uff01\uff1f\u061f\u0964\n\r\u2028\u2029)")
_CONTEXT: Final = 32
"""Characters before a phrase that are looked at for a year or the word before it."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A capitalised phrase: its span, its words, and what speaks for it being a name.

    Attributes:
        start: First character.
        end: One past the last character.
        initial: It begins a sentence, so its first capital proves nothing.
        second: Where its second word starts; equals `end` for a single word.
        strong: Its form is no ordinary word's: an acronym, a digit, an inner capital, C++.
        words: Its words as written.
    """

    start: int
    end: int
    initial: bool
    second: int
    strong: bool
    words: tuple[str, ...]


@dataclass(slots=True)
class _Word:
    start: int
    end: int
    text: str
    closes: bool = False
    """Nothing may follow in the same phrase: a possessive or a cut compound (John's, Detroit-style)."""


@dataclass(slots=True)
class _Open:
    """The phrase that is being put together."""

    words: list[_Word] = field(default_factory=list)
    initial: bool = False


def find_capitalised(text: str) -> list[Phrase]:
    """The capitalised phrases of a text in order, without those that are no names by their words alone. Linear time."""
    blocked = _Blocked(text)
    shouting = not _lower_letter.search(text)
    return [
        phrase
        for opened in _assemble(text, blocked)
        if (phrase := _finish(text, opened, shouting=shouting)) is not None
    ]


def _assemble(text: str, blocked: _Blocked) -> Iterator[_Open]:
    """Words with capitals, joined where nothing but a bridge lies between them."""
    current = _Open()
    for match in _word.finditer(text):
        word = _trim_word(match.start(), match[0])
        if word is None or blocked.holds(match.start()) or _stuck(text, match.start(), match.end()):
            if current.words:
                yield current
                current = _Open()
            continue
        if current.words and not _joins(text, current.words[-1], word.start):
            yield current
            current = _Open()
        if not current.words:
            current.initial = _begins_sentence(text, word)
        current.words.append(word)
    if current.words:
        yield current


def _trim_word(start: int, written: str) -> _Word | None:
    """The word without possessive, contraction and small-letter tail; None for what is never part of a name."""
    word, closes = written, False
    if "'" in word or "\u2019" in word:
        if _negation.search(word):
            return None
        short = _possessive.sub("", _contraction.sub("", word))
        word, closes = short, short != word
    if parts := _hyphen.findall(word):
        word, cut = _cut_compound(word, len(parts))
        closes = closes or cut
    folded = word.casefold()
    if not word or folded in PRONOUNS or folded in DATES:
        return None
    return _Word(start, start + len(word), word, closes)


def _cut_compound(word: str, hyphens: int) -> tuple[str, bool]:
    """Detroit-style -> Detroit; Coca-Cola, F-16 and Stratford-upon-Avon stay whole."""
    kept = word
    for _ in range(min(hyphens, MOST_WORDS)):
        place = max(kept.rfind("-"), kept.rfind("\u2010"), kept.rfind("\u2011"))
        if place < 0 or not kept[place + 1 : place + 2].islower():
            break
        kept = kept[:place]
    return kept, kept != word


def _stuck(text: str, start: int, end: int) -> bool:
    """Whether the word is a piece of something else: an identifier, a path, an address, a tag."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if after == "_" or (after == ":" and text.startswith(("://", "::"), end)):
        return True
    if before in ("@", "#"):
        return start > 1 and not text[start - 2].isspace()
    if before in ("\\", "=", "?", "%", "~", "$"):
        return True
    return before in (".", ":") and start > 1 and (text[start - 2].isalnum() or text[start - 2] == before == ":")


def _joins(text: str, last: _Word, start: int) -> bool:
    """Whether what lies between two words lets them be one name."""
    if last.closes:
        return False
    gap = text[last.end : start]
    if gap in (" ", "\u00a0") or gap in BRIDGES:
        return True
    if gap == ". ":
        return _initials.fullmatch(last.text) is not None or last.text.casefold() in NAME_ABBREVIATIONS
    return gap[:1] == " " and gap[-1] == " " and _number_gap.match(gap) is not None


def _begins_sentence(text: str, word: _Word) -> bool:
    """Whether nothing but marks lie between the word and the end of a sentence, a line or the text before it."""
    place, quoted = word.start, False
    while place and text[place - 1] in _OPENING:
        place -= 1
        quoted = quoted or text[place] in _QUOTES
    if place and text[place - 1] in _BULLETS:
        line = text[max(0, place - _CONTEXT) : place].rstrip("".join(_BULLETS) + " \t")
        return not line or line[-1] in "\n\r"
    if not place:
        return True
    mark = text[place - 1]
    if mark in ",:":
        return quoted
    if mark == ".":
        return _stop_ends(text, place - 1, word)
    if mark == ")":
        # "2) Call Ann" begins an item; "the boss (Ann) Ben" does not.
        return text[max(0, place - 2) : place - 1].isdigit()
    return mark in _ENDS


def _stop_ends(text: str, stop: int, word: _Word) -> bool:
    """Whether the full stop at `stop` ends a sentence, or only an abbreviation or initial."""
    found = _last_word.search(text[max(0, stop - _CONTEXT) : stop])
    before = found[1].casefold() if found else ""
    if before in NAME_ABBREVIATIONS or (len(before) == 1 and before.isalpha()):
        return False
    # "Acme Inc. Then ..." and "Acme Inc. Berlin": what follows decides.
    return before not in ABBREVIATIONS or word.text.casefold() in STARTERS


def _finish(text: str, opened: _Open, *, shouting: bool) -> Phrase | None:
    """Drop what is no part of the name from both edges, add a number or year that is; None if nothing is left."""
    first, last = 0, len(opened.words)
    while first < last and _drops_front(text, opened.words, first, initial=opened.initial):
        first += 1
    while first < last and _drops_back(opened.words[last - 1].text.casefold()):
        last -= 1
    words = opened.words[first:last]
    if not words or len(words) > MOST_WORDS or _is_shout(words, shouting=shouting):
        return None
    start, end = words[0].start, words[-1].end
    number = None if words[-1].closes else _number_after.match(text, end)
    if number and not _is_amount(number[2]):
        end = number.end(1)
    start = _reach_year(text, start, single=len(words) == 1)
    alone = len(words) == 1 and start == words[0].start and end == words[0].end
    strong = _is_strong(words[0].text)
    if end - start > LONGEST_NAME or (alone and len(words[0].text) == 1):
        return None
    return Phrase(
        start=start,
        end=end,
        initial=opened.initial and first == 0 and start == words[0].start and not _unspaced_after.match(text, end),
        second=words[1].start if len(words) > 1 else end,
        strong=strong or end != words[-1].end,
        words=tuple(word.text for word in words),
    )


def _drops_front(text: str, words: list[_Word], first: int, *, initial: bool) -> bool:
    word, alone = words[first].text.casefold(), first + 1 == len(words)
    if word in HONORIFICS:
        return alone or text[words[first].end : words[first + 1].start] not in BRIDGES
    return word in SMALL_WORDS or word in NOT_NAMES or (word in STARTERS and (initial or alone))


def _drops_back(word: str) -> bool:
    # A single letter stays: Plan A, Vitamin C.
    return len(word) > 1 and (word in SMALL_WORDS or word in NOT_NAMES or word in HONORIFICS)


def _is_shout(words: list[_Word], *, shouting: bool) -> bool:
    capitals = all(word.text.isupper() and word.text.isalpha() for word in words)
    return capitals and (len(words) >= _SHOUT or (shouting and len(words) > 1))


def _is_amount(word: str | None) -> bool:
    """Whether the word after a number makes it an amount (5 kg, 3 times) and not a part of a name (Room 101 is)."""
    folded = (word or "").casefold()
    return folded in QUANTITIES or (folded.endswith("s") and folded not in NOT_PLURALS)


def _reach_year(text: str, start: int, *, single: bool) -> int:
    """The start of a year that belongs to the name: "2023/2024 Tax Return"; a plain year only before several words."""
    found = _year_before.search(text[max(0, start - _CONTEXT) : start])
    if found is None:
        return start
    year = found[1]
    before = _last_word.search(text[max(0, start - 2 * _CONTEXT) : start - len(year) - 1])
    plain = year.isdigit()
    if plain and (single or (before and before[1].casefold() in YEAR_PREPOSITIONS)):
        return start
    return start - len(year) - 1


def _is_strong(word: str) -> bool:
    letters = [character for character in word if character.isalpha()]
    capitals = sum(character.isupper() for character in letters)
    return len(word) > 1 and (capitals > 1 or not word[0].isupper() or any(c.isdigit() or c in "+#" for c in word))


class _Blocked:
    """The runs without a space that are addresses, paths or identifiers: no names stand in them."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        if not any(mark in text for mark in "@/\\"):
            return
        for match in re.finditer(r"\S+", text):
            chunk = match[0]
            if "://" in chunk or "@" in chunk.strip("@") or chunk.count("/") > 1 or chunk.count("\\") > 1:
                self._starts.append(match.start())
                self._ends.append(match.end())

    def holds(self, place: int) -> bool:
        if not self._starts:
            return False
        index = bisect_right(self._starts, place) - 1
        return index >= 0 and place < self._ends[index]
