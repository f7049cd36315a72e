"""BM25, and how much of each word's list of records a search reads: the formulas, without any text or database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log1p
from typing import Final

K1: Final = 1.2
"""How soon further occurrences of a word stop counting; the usual value."""

B: Final = 0.3
"""How much a long record is held against it. Measured on LoCoMo's development turns: better than the usual 0.75."""

USUAL_WORDS: Final = 16
"""The length that counts as usual: so many different words, function words dropped.

A constant and no average: what a word weighs in a record must not change with other records, since it is stored.
"""

LEXEMES: Final = 24
"""Words of one question that are searched; of more the rarest are taken, which tell the most."""

WHOLE_LIST: Final = 1_000
"""Up to so many records a word's list is read whole."""

LIST_HEAD: Final = 300
"""Records that are read of a longer list, those in which the word weighs most.

The others are not lost if another word leads to them: what the word weighs in them is computed then.
"""

READ_LIMIT: Final = 4_000
"""Records that are read for one question over all words: about 4 ms."""


@dataclass(frozen=True, slots=True)
class Frequency:
    """In how many records that the reader may read a word stands.

    Attributes:
        lexeme: The word's stem.
        records: Their number; where counting was given up, at least so many.
        is_whole: Whether it was counted to the end.
    """

    lexeme: str
    records: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Read:
    """What is read for one word.

    Attributes:
        lexeme: The word's stem.
        rarity: The question's side of BM25 for it.
        most: Entries of each of its lists that are read at most; 0 for none.
        is_cut: Whether its lists may be longer.
    """

    lexeme: str
    rarity: float
    most: int
    is_cut: bool


def impact(occurrences: int, length: int) -> float:
    """The document's side of BM25: what a word weighs in a record, 0 for a word that does not occur, below `K1` + 1.

    Args:
        occurrences: How often the word occurs.
        length: How many different words the record has, function words dropped.
    """
    return occurrences * (K1 + 1) / (occurrences + K1 * (1 - B + B * length / USUAL_WORDS))


def rarity(records_with: int, records: int) -> float:
    """The question's side of BM25 (its idf), never negative.

    Args:
        records_with: Records that have the word.
        records: All records; a smaller number than the first, as stale counts may give, is raised to it.
    """
    return log1p((max(records, records_with) - records_with + 0.5) / (records_with + 0.5))


def plan_reads(frequencies: Iterable[Frequency], records: int, lists: int) -> Sequence[Read]:
    """What to read for the words of a question, rarest first: whole lists of rare words, the heads of others'.

    Args:
        frequencies: Of each word.
        records: How many records there are to search.
        lists: How many lists each word has (for all of the tenant, for the reader alone, ...).

    Returns:
        At most `LEXEMES` reads; the sum of what they read is at most `READ_LIMIT`, and one list's head.
    """
    ordered = sorted(frequencies, key=lambda one: (one.records, not one.is_whole, one.lexeme))
    reads: list[Read] = []
    left = READ_LIMIT
    for one in [word for word in ordered if word.records][:LEXEMES]:
        is_rare = one.is_whole and one.records <= min(WHOLE_LIST, left)
        most = WHOLE_LIST if is_rare else min(LIST_HEAD, max(left, 0) // lists)
        left -= one.records if is_rare else min(most * lists, one.records)
        reads.append(Read(one.lexeme, rarity(one.records, records), most, not is_rare))
    return reads
