"""Whether a question asks for a relation: by its own words, or by asking why. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from memory_os.domain.gate.lemmas import stem
from memory_os.domain.stop_words import COMMON_WORDS

ENGLISH: Final = "en"

_REASONS: Final = frozenset({"MOTIVATED_BY", "CAUSED_BY"})

ASKED_BY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"why": _REASONS, "reason": _REASONS, "because": _REASONS}
)
"""Words that ask for edges of a type without naming it."""

_word = re.compile(r"[^\W_]+")


def question_stems(question: str) -> frozenset[str]:
    """The stems of a question's words, function words too, as `asks_for` takes them."""
    return frozenset(map(_stem, _word.findall(question.casefold())))


def asks_for(stems: frozenset[str], relation: str) -> bool:
    """Whether a question with these stems names a relation (an edge's type, or a link's own words), or asks for it.

    Stems are English; in another language only a word that is the same in both counts.
    """
    words = (word for word in _word.findall(relation.casefold()) if word not in COMMON_WORDS)
    return any(_stem(word) in stems for word in words) or any(
        relation in types for word, types in ASKED_BY.items() if _stem(word) in stems
    )


def _stem(word: str) -> str:
    return stem(word, ENGLISH)
