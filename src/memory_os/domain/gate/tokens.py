"""Texts as tokens, and the guess of their language."""

from __future__ import annotations

import re
import sys
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memory_os.domain.gate.lemmas import fold_word, lemma
from memory_os.domain.gate.lexicon import LATIN, lexicon

_marks = "".join(mark for mark in map(chr, range(0x300, 0xFFFF)) if unicodedata.category(mark) in {"Mn", "Mc"})
_FRACTIONS: Final = "\u00bc-\u00be\u2150-\u215e"
_L: Final = rf"(?:[^\W\d_{_FRACTIONS}]|[{re.escape(_marks)}])"
_HAN: Final = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA: Final = "\u3041-\u309f\u31f0-\u31ff"
_KATAKANA: Final = "\u30a1-\u30fa\u30fc-\u30fe"
_ENDINGS: Final = "md|py|txt|json|yaml|yml|toml|csv|pdf|xlsx?|docx?|js|ts|html|sql|sh|com|org|net|io|dev|example"
_token = re.compile(
    rf"""
    (?P<mixed>
        [\w.+-]{{1,64}}@[\w-]+\.[\w.]*\w
      | https?://\S{{0,500}}\w
      | [A-Za-z_.][\w.\-]{{0,64}}(?:/[\w.\-]{{0,64}}\w)+
      | [A-Za-z_][\w\-]{{0,64}}\.(?:{_ENDINGS})\b
      | [A-Za-z]+_\w+
      | [A-Z]+[-/]?\d[\w]*(?:[-.]\w+)*
      | [a-z]{{1,2}}-?\d[\w]*(?:[-.]\w+)*
    )
  | (?P<date>\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{4}})
  | (?P<clock>\d{{1,2}}(?::\d{{2}}(?::\d{{2}})?|h\d{{2}})(?![0-9A-Za-z]))
  | (?P<number>\d{{1,3}}(?:\ \d{{3}})+(?![\d])(?:[.,]\d+)?|\d+(?:[.,'\u2019]\d+)*)
  | (?P<katakana>[{_KATAKANA}]+)
  | (?P<letter>[{_HAN}{_KANA}])
  | (?P<word>(?:(?![{_HAN}{_KANA}{_KATAKANA}]){_L})+(?:'(?:(?![{_HAN}{_KANA}]){_L})+)*)
  | (?P<sign>\S)
    """,
    re.VERBOSE,
)
_scripts: Final = (
    ("ja", re.compile(f"[{_KANA}{_KATAKANA}]")),
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("zh", re.compile(f"[{_HAN}]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, letter of an unspaced script, number or sign, with what the rules ask of it."""

    text: str
    low: str
    lemma: str
    start: int
    end: int
    sort: str
    capital: bool
    """Begins with a capital."""
    first: bool
    """Begins a sentence, where a capital says nothing."""


def guess_language(*texts: str) -> str:
    """The language of texts that are held to be in one: by script, and in Latin script by the small words."""
    text = " ".join(texts)
    if text.isascii() is False:
        for language, pattern in _scripts:
            found = pattern.findall(text)
            letters = sum(character.isalpha() for character in text)
            if found and (language == "ja" or 3 * len(found) > letters):
                return language
    words = re.findall(r"n't|[^\W\d_]{2,}|\b[aàyeèéo]\b", text.lower())
    totals = [0] * len(_LATIN)
    for word in words:
        for at, weight in _spoken(word):
            totals[at] += weight
    return _LATIN[max(range(len(_LATIN)), key=lambda at: (totals[at], _LATIN[at] == "en"))]


_LATIN: Final = tuple(LATIN)


@lru_cache(maxsize=32_768)
def _spoken(word: str) -> tuple[tuple[int, int], ...]:
    """The languages that a word speaks for, by their places in `_LATIN`, and how much."""
    weights = ((at, _weights(language).get(word, 0)) for at, language in enumerate(_LATIN))
    return tuple((at, weight) for at, weight in weights if weight)


@lru_cache(maxsize=len(LATIN))
def _weights(language: str) -> dict[str, int]:
    """How much a word speaks for a language: its small words more than its others."""
    entries = lexicon(language).entries
    return {words[0]: 2 if entry.sorts else 1 for words, entry in entries.items() if len(words) == 1}


_SHORTENED: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_CONTRACTED: Final = re.compile(r"(?:(?<=\w)n't|'(?:s|re|ve|ll|d|m))$")


def tokens(text: str, language: str) -> list[Token]:
    """The tokens of a text in `plain_text`'s form, in order."""
    found: list[Token] = []
    first = True
    for match in _token.finditer(text):
        sort, piece, start = str(match.lastgroup), match[0], match.start()
        if sort == "word":
            for part, offset in _parts(piece, language):
                found.append(_word(part, start + offset, language, first=first))
                first = False
            continue
        low = sys.intern(fold_word(piece.lower(), language))
        found.append(Token(piece, low, low, start, match.end(), sort, piece[:1].isupper(), first))
        if sort != "sign":
            first = False
        elif piece in ".!?:;":
            first = True
    return found


def _word(part: str, start: int, language: str, *, first: bool) -> Token:
    low = sys.intern(fold_word(part.lower(), language))
    return Token(part, low, lemma(low, language), start, start + len(part), "word", part[:1].isupper(), first)


def _parts(piece: str, language: str) -> list[tuple[str, int]]:
    """A word without what is written onto it: don't, Ann's, l'avion."""
    if language == "en":
        return _english_parts(piece)
    if language in {"fr", "it"} and "'" in piece and not piece.lower().startswith("aujourd'hui"):
        parts, offset = [], 0
        for part in piece.split("'"):
            if part:
                parts.append((part, offset))
            offset += len(part) + 1
        return parts
    return [(piece, 0)]


def _english_parts(piece: str) -> list[tuple[str, int]]:
    low = piece.lower()
    if low == "cannot":
        return [("can", 0), ("not", 3)]
    match = _CONTRACTED.search(low)
    if match and match.start():
        base = low[: match.start()]
        return [(_SHORTENED.get(base, piece[: match.start()]), 0), (piece[match.start() :], match.start())]
    if low.startswith(("o'", "d'")):
        return [(piece.replace("'", ""), 0)]
    return [(piece.rstrip("'"), 0)]
