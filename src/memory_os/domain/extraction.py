"""The heuristic extractor: declared names, quoted phrases, capitalised phrases and titles, offline, in any script.

Known limits, by design: a name that only ever begins sentences is not found until it is declared; German nouns look
like names, and so does a title in capitals (Kitchen Rota), but none in a script without them; speech in quotation marks
is told from a quoted name by its form alone; Black Friday ends at its weekday.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from memory_os.domain.capitals import LONGEST_NAME, MOST_WORDS, Phrase, find_capitalised
from memory_os.domain.code_points import IGNORED, UNSPACED_LETTERS, regex_class
from memory_os.domain.declared_names import DeclaredMatch, DeclaredNames
from memory_os.domain.names import canonical_name
from memory_os.domain.stop_words import COMMON_WORDS, NAME_WORDS, NOT_NAMES, PRONOUNS, SPEECH_VERBS
from memory_os.domain.titles import find_titled

__all__ = [
    "CONFIDENCE",
    "EXTRACTOR",
    "EXTRACTOR_VERSION",
    "MAX_MENTIONS",
    "DeclaredNames",
    "ExtractedMention",
    "extract",
]

EXTRACTOR: Final = "heuristic"
EXTRACTOR_VERSION: Final = 2
"""Goes up whenever `extract` or `canonical_name` may answer differently; older mentions are then extracted anew."""

MAX_MENTIONS: Final = 64
"""Names kept of one text: the most certain, and of equally certain ones the earliest."""

CONFIDENCE: Final[Mapping[str, float]] = MappingProxyType(
    {"declared": 1.0, "quoted": 0.8, "phrase": 0.7, "form": 0.7, "word": 0.6}
)
"""Confidence of a mention by what speaks for it: it is declared; it is quoted; several capitalised words; a form that
no ordinary word has (an acronym, a digit, an inner capital); one capitalised word inside a sentence. Ours."""

Kind = Literal["declared", "quoted", "capitalised"]


@dataclass(frozen=True, slots=True)
class ExtractedMention:
    """A name in a text and its title.

    Attributes:
        name: As its first occurrence is written, white space collapsed.
        key: Canonical form; of a declared name, the canonical form of its entity.
        confidence: 0..1, of the most certain occurrence.
        occurrences: How many times text and title name it.
        spans: Where in the text, as half-open spans of characters, ascending; what the title names has none, so that
            they may be fewer than the occurrences, and none at all.
        kind: What the most certain occurrence is.
    """

    name: str
    key: str
    confidence: float
    occurrences: int
    spans: tuple[tuple[int, int], ...]
    kind: Kind


class _Found(NamedTuple):
    start: int
    end: int
    key: str
    kind: Kind
    confidence: float


_QUOTES: Final = (
    ("\u201c", "\u201d"),
    ("\u201e", "\u201c\u201d"),
    ("\u00ab", "\u00bb"),
    ("\u00bb", "\u00ab"),
    ("\u2039", "\u203a"),
    ("\u300c", "\u300d"),
    ("\u300e", "\u300f"),
    ("\u300a", "\u300b"),
    ("\u3008", "\u3009"),
    ("\u3010", "\u3011"),
)
"""Opening marks and what may close them; the single marks that are also apostrophes have a pattern of their own."""

_quoted = re.compile(
    "|".join(
        [
            rf'"(?!\s)([^"\n\r]{{1,{LONGEST_NAME}}})(?<!\s)"',
            *(f"{opening}([^{opening}{closing}\n\r]{{1,{LONGEST_NAME}}})[{closing}]" for opening, closing in _QUOTES),
            rf"(?<!\w)\u2018(?!\s)([^\u2018\n\r]{{1,{LONGEST_NAME}}}?)(?<!\s)\u2019(?!\w)",
            rf"(?<![\w'])'(?![\s'])([^'\n\r]{{1,{LONGEST_NAME}}})(?<!\s)'(?!\w)",
        ]
    )
)
_sentence_end = re.compile(r"[.!?\u2026]$|[.!?]\s|[\u3002\uff01\uff1f]")
_tail_marks = " \t,;:.!?\u2026\u3002\uff0c\uff01\uff1f"
_first_word = re.compile(r"[^\W\d_]+")
_last_word = re.compile(r"([^\W\d_]+)[\s,:\uff1a\uff0c]*$")
_meaningful = re.compile(r"\w")
_ignored = re.compile(f"[{regex_class(IGNORED)}]+")
_unspaced = re.compile(f"[{regex_class(UNSPACED_LETTERS)}]")

_LONGEST_UNSPACED: Final = 24
"""Letters that a quoted name may have in a script without spaces; longer quotations are sentences."""

_SPEECH_WORDS: Final = 2
"""A quotation of more words than this that ends like a sentence is one."""

_CONTEXT: Final = 24
"""Characters before a quotation in which the word before it is looked for."""


_UNDER_TITLE: Final = "\n\n"
"""Between title and text: no name, sentence or quotation goes across an empty line."""


def extract(text: str, declared: DeclaredNames, title: str | None = None) -> tuple[ExtractedMention, ...]:
    """The names in a text, one mention a key, in the order of their first occurrence; at most `MAX_MENTIONS`.

    Declared names always match and win over what overlaps them; a longer phrase around one is a name of its own. Runs
    in time linear in the text.

    Args:
        text: The text.
        declared: The names that always match.
        title: Read as the line before the text. One that is a name by its form as a whole is a mention, even of a
            single word. What the text begins with again is counted once, as the text's.
    """
    head = (title or "").strip()
    lead = head + _UNDER_TITLE if head else ""
    whole = lead + text
    known = declared.find(whole)
    quoted = _find_quoted(whole)
    found = [_Found(match.start, match.end, match.key, "declared", CONFIDENCE["declared"]) for match in known]
    taken = _Spans(known)
    found += [quote for quote in quoted if not taken.cover(quote.start, quote.end)]
    phrases = _join(find_capitalised(whole), find_titled(head))
    found += _name_phrases(whole, phrases, taken, _Spans(quoted))
    if lead:
        rest = text.lstrip()
        found = _count_once(found, _repeated(head, rest), len(whole) - len(rest))
    return _merge(whole, found, len(lead))


def _join(phrases: Sequence[Phrase], titled: Iterable[Phrase]) -> list[Phrase]:
    """The phrases of a text with those that its title consists of, of which none is doubted for where it stands."""
    by_span = {(phrase.start, phrase.end): phrase for phrase in phrases}
    for phrase in titled:
        known = by_span.get((phrase.start, phrase.end))
        by_span[phrase.start, phrase.end] = replace(known, initial=phrase.initial) if known else phrase
    return list(by_span.values())


def _repeated(head: str, rest: str) -> int:
    """How many characters of a title stand at the beginning of the text, too."""
    shorter = min(len(head), len(rest))
    return next((place for place in range(shorter) if head[place] != rest[place]), shorter)


def _count_once(found: Sequence[_Found], repeated: int, begin: int) -> list[_Found]:
    """What was found, without names in the first `repeated` characters that are found again as far behind `begin`."""
    places = {(occurrence.start, occurrence.end, occurrence.key) for occurrence in found}
    return [
        occurrence
        for occurrence in found
        if occurrence.end > repeated or (begin + occurrence.start, begin + occurrence.end, occurrence.key) not in places
    ]


def _find_quoted(text: str) -> list[_Found]:
    """The quotations that can be names: short, no speech, no key of a structure."""
    found = []
    for match in _quoted.finditer(text):
        group = match.lastindex or 0
        content = match[group]
        name = content.strip().rstrip(_tail_marks)
        if not name or _is_speech(text, match.start(), content.strip(), name) or text.startswith(":", match.end()):
            continue
        start = match.start(group) + len(content) - len(content.lstrip())
        if key := canonical_name(name):
            found.append(_Found(start, start + len(name), key, "quoted", CONFIDENCE["quoted"]))
    return found


def _is_speech(text: str, start: int, content: str, name: str) -> bool:
    """Whether a quotation is something said, or a word that names nothing."""
    words = name.split()
    first = _first_word.match(name)
    opener = first[0].casefold() if first else ""
    if len(words) > MOST_WORDS or opener in PRONOUNS or not _meaningful.search(name):
        return True
    if len(words) == 1 and (name.casefold() in COMMON_WORDS - NAME_WORDS or name.casefold() in NOT_NAMES):
        return True
    if _unspaced.search(name) and len(name) > _LONGEST_UNSPACED:
        return True
    if _sentence_end.search(content) and (len(words) > _SPEECH_WORDS or _sentence_end.search(name)):
        return True
    before = _last_word.search(text[max(0, start - _CONTEXT) : start])
    return before is not None and before[1].casefold() in SPEECH_VERBS


def _name_phrases(text: str, phrases: Sequence[Phrase], known: _Spans, quoted: _Spans) -> Iterable[_Found]:
    """The capitalised phrases that are names of their own."""
    inside = {word.casefold() for phrase in phrases for word in phrase.words[phrase.initial :]}
    for phrase in phrases:
        if quoted.touch(phrase.start, phrase.end) or not _is_own_name(phrase, known):
            continue
        alone = len(phrase.words) == 1
        if phrase.initial and alone and not phrase.strong and phrase.words[0].casefold() not in inside:
            continue
        evidence = "form" if phrase.strong else "word" if alone else "phrase"
        if key := canonical_name(text[phrase.start : phrase.end]):
            yield _Found(phrase.start, phrase.end, key, "capitalised", CONFIDENCE[evidence])


def _is_own_name(phrase: Phrase, known: _Spans) -> bool:
    """Whether the phrase is more than the declared names in it: not when it is one, or one after a sentence's start."""
    inner = known.touch(phrase.start, phrase.end)
    if not inner:
        return True
    whole = all(phrase.start <= start and end <= phrase.end for start, end in inner)
    start, end = inner[0][0], inner[-1][1]
    if not whole or (len(inner) == 1 and (start, end) == (phrase.start, phrase.end)):
        return False
    return not (phrase.initial and start == phrase.second and end == phrase.end)


def _merge(whole: str, found: Iterable[_Found], lead: int) -> tuple[ExtractedMention, ...]:
    """The mentions of a text that begins after `lead` characters of title."""
    by_key: dict[str, list[_Found]] = {}
    for occurrence in sorted(found):
        by_key.setdefault(occurrence.key, []).append(occurrence)
    named = list(by_key.values())  # in the order of their first occurrences
    if len(named) > MAX_MENTIONS:
        surest = sorted(named, key=lambda occurrences: (-_best(occurrences).confidence, occurrences[0]))
        named = sorted(surest[:MAX_MENTIONS], key=lambda occurrences: occurrences[0])
    return tuple(_mention(whole, occurrences, lead) for occurrences in named)


def _best(occurrences: Iterable[_Found]) -> _Found:
    return max(occurrences, key=lambda occurrence: occurrence.confidence)


def _mention(whole: str, occurrences: Sequence[_Found], lead: int) -> ExtractedMention:
    best, first = _best(occurrences), occurrences[0]
    return ExtractedMention(
        name=" ".join(_ignored.sub("", whole[first.start : first.end]).split()),
        key=first.key,
        confidence=best.confidence,
        occurrences=len(occurrences),
        spans=tuple((one.start - lead, one.end - lead) for one in occurrences if one.start >= lead),
        kind=best.kind,
    )


class _Spans:
    """Ascending spans that do not overlap, searched by place."""

    __slots__ = ("_spans", "_starts")

    def __init__(self, found: Sequence[DeclaredMatch | _Found]) -> None:
        self._spans = [(match.start, match.end) for match in found]
        self._starts = [start for start, _ in self._spans]

    def touch(self, start: int, end: int) -> list[tuple[int, int]]:
        """The spans that share a character with this one."""
        if not self._spans:
            return []
        first = max(0, bisect_right(self._starts, start) - 1)
        last = bisect_right(self._starts, end - 1)
        return [span for span in self._spans[first:last] if span[1] > start]

    def cover(self, start: int, end: int) -> bool:
        """Whether one span holds all of this one."""
        return any(left <= start and end <= right for left, right in self.touch(start, end))
