"""What a context pack is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PackSource:
    """Where an item comes from: the source's title and date, the kind of support, and the passage quoted."""

    id: str
    title: str | None = None
    date: datetime | None = None
    support: str | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True)
class PackStep:
    """One record on the path to an item, and the edge type or relationship by which the path came to it."""

    id: str
    type: str
    via: str | None = None


@dataclass(frozen=True, slots=True)
class PackItem:
    """One record in a context pack.

    Attributes:
        type: Record type: memory, entity, observation, procedure, outcome, passage.
        id: Its id.
        label: Its label, for a memory; an entity's type, for an entity.
        title: Its title or name, if it has one.
        text: What it says.
        date: When it was said or happened.
        status: Its status, for records that have one.
        valid_from: From when it holds.
        valid_to: Until when it holds, this moment excluded.
        confidence: 0..1.
        score: The fused score it was ranked by.
        arms: By arm that found it, its rank there (from 1).
        why: The paths to it in words.
        path: The strongest path as records.
        source: Its strongest evidence.
        replaced_by: The id of the record that superseded it.
        shortened: Its text was cut at a sentence to fit.
    """

    type: str
    id: str
    label: str | None = None
    title: str | None = None
    text: str = ""
    date: datetime | None = None
    status: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    confidence: float | None = None
    score: float = 0.0
    arms: Mapping[str, int] = field(default_factory=dict)
    why: tuple[str, ...] = ()
    path: tuple[PackStep, ...] = ()
    source: PackSource | None = None
    replaced_by: str | None = None
    shortened: bool = False


@dataclass(frozen=True, slots=True)
class Omission:
    """A record that was found and is not in the pack, and why. Never one that the reader may not see."""

    id: str
    reason: str
