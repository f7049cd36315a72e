"""Profiles: what somebody is and is about, by the ids of the records that say so; and what changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

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


def differ(before: Content, after: Content) -> Diff:
    """What came into each section and what left it; sections in which nothing changed are absent."""
    changes: dict[Section, Mapping[Literal["added", "removed"], Sequence[str]]] = {}
    for section in SECTIONS:
        old, new = before.get(section, ()), after.get(section, ())
        added = [one for one in new if one not in set(old)]
        removed = [one for one in old if one not in set(new)]
        if added or removed:
            changes[section] = {"added": added, "removed": removed}
    return changes
