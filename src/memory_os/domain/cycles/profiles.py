"""Profiles: what somebody is and is about, by the ids of the records that say so; and what changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal
from uuid import UUID, uuid5

from memory_os.domain.labels import LABELS

Section = Literal["evergreen", "goals", "commitments", "entities"]

SECTIONS: Final[Mapping[Section, str]] = {
    "evergreen": "What holds of them: Attributes, Preferences, Beliefs, Values, Skills.",
    "goals": "What they want to reach, and is not done.",
    "commitments": "What they have promised, and is not done.",
    "entities": "Whom and what their memories name most.",
}

LONGEST: Final = 50
"""Records of a section: the surest and newest. A profile is read whole, when a conversation begins. Ours."""

Content = Mapping[Section, Sequence[str]]
"""Ids by section, the strongest first."""

Diff = Mapping[Section, Mapping[Literal["added", "removed"], Sequence[str]]]


def section_of(label: str) -> Section | None:
    """Which section an active memory of a label belongs to; None for those that no profile holds."""
    if label == "Goal":
        return "goals"
    if label == "Commitment":
        return "commitments"
    kind = LABELS[label]
    return "evergreen" if kind.layer == "identity" and kind.lifecycle == "evergreen" else None


def sections_by_label() -> dict[str, Section]:
    """The labels that profiles hold, each with its section."""
    return {label: section for label in LABELS if (section := section_of(label))}


def differ(before: Content, after: Content) -> Diff:
    """What came into each section and what left it; sections in which nothing changed are absent.

    Another order alone is no change: strength moves each week, and would make a version each week.
    """
    changes: dict[Section, Mapping[Literal["added", "removed"], Sequence[str]]] = {}
    for section in SECTIONS:
        old, new = before.get(section, ()), after.get(section, ())
        known, kept = set(old), set(new)
        added = [one for one in new if one not in known]
        removed = [one for one in old if one not in kept]
        if added or removed:
            changes[section] = {"added": added, "removed": removed}
    return changes


def version_id(origin: UUID, version: int, moment: datetime) -> UUID:
    """The id of a version: the same whenever it is planned, so that a dry run names what a run then writes.

    Args:
        origin: The version before; of a first one, what its audience is known by without being named: the user's first
            memory, or the tenant.
        version: Which version it is.
        moment: What it is reckoned from.
    """
    return uuid5(origin, f"profile {version} {moment.isoformat()}")
