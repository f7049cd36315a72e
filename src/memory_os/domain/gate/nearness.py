"""Nearness by words and letters, which nominates where an embedder does not know the language or there is no vector."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from memory_os.domain.gate.exact import plain_text
from memory_os.domain.gate.lemmas import stem
from memory_os.domain.gate.lexicon import lexicon
from memory_os.domain.gate.tokens import guess_language

NEAR: Final = 0.4
"""Score from which a pair counts as near; measured with `benchmarks/dedup.py`, which prints what it nominates."""

_words = re.compile(r"\w+")
_UNSPACED: Final = frozenset({"zh", "ja", "ko"})
_GRAM: Final = 3


def lexically_near(a: str, b: str) -> bool:
    """Whether two texts share so many words or letters that the guard should look at them; symmetric."""
    return lexical_score(a, b) >= NEAR


def lexical_score(a: str, b: str) -> float:
    """Shared content words or letter groups as a share of all (Dice), 0 to 1; the higher of both measures.

    Words are stemmed and small words left out; in Chinese, Japanese and Korean pairs of letters take their place.
    """
    left, right = plain_text(a), plain_text(b)
    language = guess_language(left, right)
    return max(
        _dice(_stems(left, language), _stems(right, language)), _dice(_grams(left, language), _grams(right, language))
    )


def _dice(left: frozenset[str], right: frozenset[str]) -> float:
    return 2 * len(left & right) / (len(left) + len(right)) if left and right else 0.0


@lru_cache(maxsize=4_096)
def _stems(text: str, language: str) -> frozenset[str]:
    if language in _UNSPACED:
        return frozenset()
    drops = lexicon(language).drops
    return frozenset(stem(word, language) for word in _words.findall(text.lower()) if word not in drops)


@lru_cache(maxsize=4_096)
def _grams(text: str, language: str) -> frozenset[str]:
    size = 2 if language in _UNSPACED else _GRAM
    form = " ".join(_words.findall(text.lower()))
    if not form:
        return frozenset()
    form = form.replace(" ", "") if language in _UNSPACED else f" {form} "
    return frozenset(form[at : at + size] for at in range(max(1, len(form) - size + 1)))
