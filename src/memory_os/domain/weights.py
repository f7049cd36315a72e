"""Weights of derived edges and strengths of entities, set absolutely from counts.

Every weight is rounded to `DECIMALS` by one rule that Python and Postgres carry out with the same floating-point
operations, so that a weight computed here, in SQL and read back from either graph compares equal bit for bit.
"""

from __future__ import annotations

from math import floor, isfinite
from typing import Final

CAP: Final = 5.0
"""Upper bound of every weight and strength (the seed's)."""

MENTION_STEP: Final = 0.2
"""What each further occurrence adds to a mention and to an entity's strength (the seed's)."""

CO_OCCURRENCE_START: Final = 0.5
"""Weight of two entities that one record names together (the seed's)."""

CO_OCCURRENCE_STEP: Final = 0.05
"""What each further record adds to it (the seed's)."""

REINFORCEMENT_STEP: Final = 0.05
"""What a retrieval adds to the confidence of an edge that it traversed (the seed's)."""

CONFIDENCE_CAP: Final = 1.0
"""Upper bound of a confidence."""

DECIMALS: Final = 6
"""Decimals that weights keep (ours): finer than any step, coarser than floating-point noise."""

_SCALE: Final = 10.0**DECIMALS

MENTION_WEIGHT_SQL: Final = (
    f"floor(least({CAP}::float8, {{confidence}}::float8 + {MENTION_STEP}::float8 * ({{occurrences}} - 1))"
    f" * {_SCALE}::float8 + 0.5) / {_SCALE}::float8"
)
"""`mention_weight` and `strength` in Postgres: `.format(confidence=..., occurrences=...)` with column names."""

CO_OCCURRENCE_WEIGHT_SQL: Final = (
    f"floor(least({CAP}::float8, {CO_OCCURRENCE_START}::float8 + {CO_OCCURRENCE_STEP}::float8 * ({{records}} - 1))"
    f" * {_SCALE}::float8 + 0.5) / {_SCALE}::float8"
)
"""`co_occurrence_weight` in Postgres: `.format(records=...)` with a column name."""


def mention_weight(confidence: float, occurrences: int) -> float:
    """Weight of a `MENTIONS` edge: the extractor's confidence (0..1), 0.2 more for each repeat, at most 5.0.

    Raises:
        ValueError: A confidence outside 0..1, or fewer than one occurrence: the edge would not exist.
    """
    if not 0.0 <= confidence <= CONFIDENCE_CAP:
        raise ValueError(f"a confidence lies within 0 and 1, not {confidence}")
    _check_count("occurrences", occurrences)
    return _round(min(CAP, confidence + MENTION_STEP * (occurrences - 1)))


def co_occurrence_weight(records: int) -> float:
    """Weight of a `CO_OCCURS` edge between two entities that this many records name together, at most 5.0.

    Raises:
        ValueError: Fewer than one record: the edge would not exist.
    """
    _check_count("records", records)
    return _round(min(CAP, CO_OCCURRENCE_START + CO_OCCURRENCE_STEP * (records - 1)))


def strength(confidence: float, occurrences: int) -> float:
    """Strength of an entity: the curve of `mention_weight` over all its mentions.

    Args:
        confidence: The highest confidence among its mentions (0..1).
        occurrences: The sum of their occurrences; an entity that nothing mentions has strength 0.0.
    """
    return mention_weight(confidence, occurrences) if occurrences else 0.0


def reinforced(confidence: float, count: int) -> float:
    """Confidence of a typed edge (0..1) after `count` (>= 0) co-references, at most 1.0."""
    if not isfinite(confidence) or count < 0:
        raise ValueError("reinforcement needs a finite confidence and a count of at least 0")
    return _round(min(CONFIDENCE_CAP, confidence + REINFORCEMENT_STEP * count))


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise ValueError(f"{name} must be at least 1, not {count}")


def _round(weight: float) -> float:
    # Not round(): it rounds halves of the exact binary value, which SQL has no like of.
    return floor(weight * _SCALE + 0.5) / _SCALE
