"""The word lists of the guard, one file a language under `words/`, as tables to look phrases up in.

A file has sections: `[drop]` words that carry no content, `[light]` words that may be missing on one side, marks
(`[not]`, `[ended]`, `[was]`, `[now]`, `[all]`, `[most]`, `[some]`, `[only]`, `[rare]`, `[maybe]`, `[plan]`, `[must]`,
`[can]`), `[same]` groups of words that can stand for each other, `[opposite]` pairs that can't both be true of one
thing, and `[other]` pairs that name another thing or event. Entries are parted by commas, the two of a pair by `|`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

from memory_os.domain.gate import word_lists
from memory_os.domain.gate.exact import plain_text
from memory_os.domain.gate.lemmas import fold_word, lemma

LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "el", "ar", "hi", "zh", "ja", "ko")
LATIN: Final = ("en", "de", "fr", "es", "it", "pt", "nl")

MARKS: Final = word_lists.words("not ended was now all most some only rare maybe plan must can")


@dataclass(frozen=True, slots=True)
class Entry:
    """What the lists say of one word or phrase."""

    sorts: frozenset[str]
    """`drop`, `light` and marks."""
    concepts: frozenset[str]
    """Groups of `[same]` that it is in."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The tables of one language."""

    language: str
    entries: dict[tuple[str, ...], Entry]
    longest: dict[str, int]
    """By the first word: how many words the longest phrase that begins with it has."""
    opposites: frozenset[tuple[str, str]]
    others: frozenset[tuple[str, str]]
    drops: frozenset[str]

    def find(self, words: tuple[str, ...]) -> Entry | None:
        """The entry of a phrase, given as written or as lemmas."""
        return self.entries.get(words)


@lru_cache(maxsize=len(LANGUAGES))
def lexicon(language: str) -> Lexicon:
    """The tables of a language; read from the package once."""
    sections = _sections(language)
    sorts: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    concepts: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for section, lines in sections.items():
        if section in {"opposite", "other"}:
            continue
        for number, line in enumerate(lines):
            for phrase in line.split(","):
                for words in _spellings(phrase, language):
                    if section == "same":
                        concepts[words].add(f"{language}:{number}")
                    else:
                        sorts[words].add(section)
    entries = {
        words: Entry(frozenset(sorts.get(words, ())), frozenset(concepts.get(words, ())))
        for words in (*sorts, *concepts)
    }
    longest: dict[str, int] = {}
    for phrase_key in entries:
        longest[phrase_key[0]] = max(longest.get(phrase_key[0], 1), len(phrase_key))
    drops = frozenset(words[0] for words, entry in entries.items() if len(words) == 1 and "drop" in entry.sorts)
    return Lexicon(
        language,
        entries,
        longest,
        _pairs(sections.get("opposite", []), language, entries),
        _pairs(sections.get("other", []), language, entries),
        drops,
    )


def phrase_words(phrase: str, language: str) -> tuple[str, ...]:
    """A phrase of the lists as the words (or, in Chinese and Japanese, the letters) that texts are read as."""
    plain = fold_word(plain_text(phrase).lower(), language).strip()
    if language in {"zh", "ja"}:
        return tuple(plain.replace(" ", ""))
    if language == "en":
        # As `tokens` parts them: can't is can + n't.
        plain = (
            plain.replace("can't", "can n't").replace("won't", "will n't").replace("n't", " n't").replace("'s", " 's")
        )
    elif language in {"fr", "it"}:
        plain = plain.replace("'", " ")
    return tuple(plain.replace("-", " ").split())


def _spellings(phrase: str, language: str) -> set[tuple[str, ...]]:
    words = phrase_words(phrase, language)
    if not words:
        return set()
    return {words, tuple(lemma(word, language) for word in words)}


def _pairs(lines: list[str], language: str, entries: dict[tuple[str, ...], Entry]) -> frozenset[tuple[str, str]]:
    found = set()
    for line in lines:
        left, right = (_keys(side, language, entries) for side in line.split("|"))
        found |= {(one, other) for one in left for other in right if one != other}
    return frozenset(found | {(other, one) for one, other in found})


def _keys(phrase: str, language: str, entries: dict[tuple[str, ...], Entry]) -> set[str]:
    """What an item of a text that is this phrase has as keys: its joined lemma and its groups."""
    words = phrase_words(phrase, language)
    keys = {"".join(words) if language in {"zh", "ja"} else " ".join(lemma(word, language) for word in words)}
    entry = entries.get(words)
    if entry and len(entry.concepts) == 1:
        # A word of many senses (open, hard) would lend its opposite to words that have none.
        keys |= entry.concepts
    return keys


def _sections(language: str) -> dict[str, list[str]]:
    text = files("memory_os.domain.gate").joinpath("words", f"{language}.txt").read_text("utf-8")
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections
