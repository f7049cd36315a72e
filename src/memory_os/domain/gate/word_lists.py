"""Lists of words, written as one text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, parted by white space."""
    return frozenset(text.split())
