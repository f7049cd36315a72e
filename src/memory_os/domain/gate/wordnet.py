"""Synonyms and antonyms of English from WordNet (see `words/wordnet.txt` for its licence), by lemma.

They are wider than the lists of `lexicon`, and a synonym in one sense is none in another: they only count as a loose
match.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from importlib.resources import files

from memory_os.domain.gate.lemmas import lemma


def senses(word: str) -> frozenset[int]:
    """The groups of synonyms that a lemma is in."""
    return _tables()[0].get(word, frozenset())


def are_antonyms(one: str, other: str) -> bool:
    """Whether two lemmas are antonyms in a frequent sense of both."""
    return (one, other) in _tables()[1]


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, frozenset[int]], frozenset[tuple[str, str]]]:
    groups: defaultdict[str, set[int]] = defaultdict(set)
    antonyms: set[tuple[str, str]] = set()
    section = ""
    text = files("memory_os.domain.gate").joinpath("words", "wordnet.txt").read_text("utf-8")
    for number, line in enumerate(text.splitlines()):
        if line.startswith(("#", "[")):
            section = line
            continue
        words = [lemma(word, "en") for word in line.split()]
        if section == "[synonyms]":
            for word in words:
                groups[word].add(number)
        else:
            antonyms |= {(words[0], words[1]), (words[1], words[0])}
    return {word: frozenset(found) for word, found in groups.items()}, frozenset(antonyms)
