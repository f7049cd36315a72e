"""What fades, what expires, what goes stale and what is put away; every bound of it is here.

Days are of 24 hours. "For 30 days" holds from exactly 30 days on; "below 0.3" does not hold of 0.3 itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from memory_os.domain.edge_types import EDGE_TYPES, Category
from memory_os.domain.labels import LABELS

REST: Final = timedelta(days=7)
"""An edge that was used in this time does not fade."""

HALF_LIVES: Final[Mapping[Category, timedelta | None]] = MappingProxyType(
    {
        "motivation and causation": timedelta(days=180),
        "structural": timedelta(days=365),
        "knowledge": timedelta(days=180),
        "goal and commitment": timedelta(days=90),
        "organization": timedelta(days=60),
        "lifecycle": None,
        "provenance": None,
    }
)
"""In what time of disuse an edge loses half of its confidence, by the category of its type; None is never. How things
are built outlasts what they are filed under. Ours: the sources name no figures."""

STEP: Final = 0.05
"""The share of its confidence that an edge must have lost since it was written last to be written again."""

UNUSED: Final = timedelta(days=30)
WEAK: Final = 0.3
SELDOM: Final = 3
"""An edge is pruned that was not used for so long, is less sure than this, and was used fewer times than this."""

STALE_AFTER: Final = timedelta(days=90)
"""A Reference or Resource that nobody has used, changed or confirmed for so long is stale. Ours: the sources name no
figure; a quarter is what a team's documents mostly live."""


@dataclass(frozen=True, slots=True)
class UsedEdge:
    """An edge as the rules see it.

    Attributes:
        type: One of the 18.
        confidence: 0 to 1.
        references: How often answers used it.
        used: When one used it last, or else when it was claimed.
        faded: Up to when it has faded already; None where it has not.
        committed: A Commitment is at one of its ends.
    """

    type: str
    confidence: float
    references: int
    used: datetime
    faded: datetime | None = None
    committed: bool = False


def fading_types() -> tuple[str, ...]:
    """The types of edges that may fade."""
    return tuple(kind.name for kind in EDGE_TYPES.values() if not kind.protected and HALF_LIVES[kind.category])


def prunable_types() -> tuple[str, ...]:
    """The types of edges that may be pruned."""
    return tuple(kind.name for kind in EDGE_TYPES.values() if not kind.protected)


def half_life(edge: UsedEdge) -> timedelta | None:
    """In what time of disuse the edge loses half of its confidence; None where it never fades."""
    kind = EDGE_TYPES[edge.type]
    return None if kind.protected or edge.committed else HALF_LIVES[kind.category]


def faded_confidence(edge: UsedEdge, now: datetime) -> float:
    """The confidence of an edge after the time that it has not been used in, beyond its rest.

    What one run takes and the next one takes adds up to what one run at the end would take.
    """
    life = half_life(edge)
    since = max(edge.used + REST, edge.faded or edge.used)
    if life is None or now <= since:
        return edge.confidence
    share: float = 0.5 ** ((now - since) / life)
    return edge.confidence * share


def is_prunable(edge: UsedEdge, now: datetime) -> bool:
    """Whether an edge is put away: unused for `UNUSED`, below `WEAK`, used fewer than `SELDOM` times, not protected."""
    if EDGE_TYPES[edge.type].protected:
        return False
    return now - edge.used >= UNUSED and edge.confidence < WEAK and edge.references < SELDOM


def is_expired(label: str, valid_to: datetime | None, now: datetime) -> bool:
    """Whether a memory has come to its date: an Opportunity whose time is over."""
    return LABELS[label].lifecycle == "expiring" and valid_to is not None and valid_to <= now


def expiring_labels() -> tuple[str, ...]:
    """The labels whose memories expire at their date."""
    return tuple(label.name for label in LABELS.values() if label.lifecycle == "expiring")


def perishable_labels() -> tuple[str, ...]:
    """The labels whose memories go stale."""
    return tuple(label.name for label in LABELS.values() if label.lifecycle == "perishable")


def retirable_labels() -> tuple[str, ...]:
    """The labels whose memories are archived with what they refer to."""
    return tuple(label.name for label in LABELS.values() if goes_with_retired(label.name))


def is_stale(label: str, used: datetime, now: datetime) -> bool:
    """Whether a memory has gone stale by disuse.

    Args:
        label: One of the 15.
        used: When it was handed out, changed or confirmed last, or else stored.
        now: The moment of the run.
    """
    return LABELS[label].lifecycle == "perishable" and now - used >= STALE_AFTER


def goes_with_retired(label: str) -> bool:
    """Whether a memory is archived once what it refers to is retired: those with a protected label stay."""
    return not LABELS[label].protected
