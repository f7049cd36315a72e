"""The 15 labels in 4 layers, their lifecycles, statuses and transitions.

The test for a label: what happens to it in six months? A label is added by adding a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from memory_os.domain.vocabulary import VocabularyError, refuse, show

Layer = Literal["identity", "direction", "intelligence", "world"]
Lifecycle = Literal["evergreen", "until_done", "evolving", "expiring", "immutable", "perishable"]

LAYERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "identity": "Who somebody is.",
        "direction": "Where they are headed.",
        "intelligence": "What was observed and concluded.",
        "world": "Knowledge from outside.",
    }
)

LIFECYCLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "evergreen": "Stays; only supersession or contradiction removes it.",
        "until_done": "Active until completed or abandoned.",
        "evolving": "Stays while it is observed; grows into an Insight when it recurs.",
        "expiring": "Expires at its date.",
        "immutable": "Happened: text, label and times are never edited; it can be disputed or retracted.",
        "perishable": "Goes stale when nobody uses it.",
    }
)

STATUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "active": "Holds, and is found.",
        "completed": "Was done.",
        "abandoned": "Was given up.",
        "expired": "Its date has passed.",
        "superseded": "A newer memory has taken its place.",
        "disputed": "Somebody contradicts it; shown, labelled, with the other side.",
        "archived": "Out of the way, not gone; can be restored.",
        "retracted": "Withdrawn; gone from retrieval, kept in history.",
    }
)

LIVE: Final = ("active", "disputed")
"""Statuses of what the gate holds new memories against; among these an exact key stands once (`memories_exact`)."""

IN_FORCE: Final = ("active", "completed", "abandoned", "disputed")
"""Statuses of what holds within its window; the windows of what was superseded or has expired hold too."""

PAST: Final = frozenset(STATUSES) - frozenset(IN_FORCE)
"""Statuses of what does not hold any more by itself."""

_STEPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "active": ("completed", "abandoned", "expired", "superseded", "disputed", "archived", "retracted"),
        "completed": ("active", "superseded", "disputed", "archived", "retracted"),
        "abandoned": ("active", "superseded", "disputed", "archived", "retracted"),
        "expired": ("active", "superseded", "disputed", "archived", "retracted"),
        "superseded": ("active", "retracted"),
        "disputed": ("active", "superseded", "archived", "retracted"),
        "archived": ("active", "retracted"),
        "retracted": ("active",),
    }
)
"""Every step between statuses; a label allows those whose both ends it has. Undo is no step: it restores what was."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a memory is, and what becomes of it.

    Attributes:
        name: As clients write it.
        layer: One of `LAYERS`.
        lifecycle: One of `LIFECYCLES`.
        statuses: The statuses that its memories may have.
        transitions: From each of these, the statuses that may follow.
        immutable_text: Text, label and times can't be edited or superseded.
        protected: The cycles never archive it for staleness or disuse.
        meaning: What belongs under it, in a sentence.
    """

    name: str
    layer: Layer
    lifecycle: Lifecycle
    statuses: tuple[str, ...]
    transitions: Mapping[str, tuple[str, ...]]
    immutable_text: bool
    protected: bool
    meaning: str


_KEPT: Final = ("active", "superseded", "disputed", "archived", "retracted")
_DOABLE: Final = ("active", "completed", "abandoned", "superseded", "disputed", "archived", "retracted")
_EXPIRING: Final = ("active", "expired", "superseded", "disputed", "archived", "retracted")
_HAPPENED: Final = ("active", "disputed", "archived", "retracted")


def _label(
    name: str, layer: Layer, lifecycle: Lifecycle, statuses: tuple[str, ...], meaning: str, *, protected: bool = False
) -> Label:
    steps = {status: tuple(step for step in _STEPS[status] if step in statuses) for status in statuses}
    return Label(
        name, layer, lifecycle, statuses, MappingProxyType(steps), lifecycle == "immutable", protected, meaning
    )


_ROWS: Final = (
    _label("Attribute", "identity", "evergreen", _KEPT, "A property that somebody or something has."),
    _label("Preference", "identity", "evergreen", _KEPT, "What somebody would rather have.", protected=True),
    _label("Belief", "identity", "evergreen", _KEPT, "What somebody holds to be true.", protected=True),
    _label("Value", "identity", "evergreen", _KEPT, "What somebody holds to be right or worthwhile.", protected=True),
    _label("Skill", "identity", "evergreen", _KEPT, "What somebody can do.", protected=True),
    _label("Goal", "direction", "until_done", _DOABLE, "What somebody wants to reach."),
    _label("Project", "direction", "until_done", _DOABLE, "Work with an end that is under way."),
    _label("Commitment", "direction", "until_done", _DOABLE, "What somebody has promised to do.", protected=True),
    _label("Decision", "direction", "until_done", _DOABLE, "What was settled, and applies until it is replaced."),
    _label("Behavior", "intelligence", "evolving", _KEPT, "What somebody does again and again.", protected=True),
    _label("Insight", "intelligence", "evergreen", _KEPT, "A pattern confirmed across several memories."),
    _label("Opportunity", "intelligence", "expiring", _EXPIRING, "Something that could be taken while it lasts."),
    _label("Event", "intelligence", "immutable", _HAPPENED, "Something that happened at a time."),
    _label("Reference", "world", "perishable", _KEPT, "Knowledge or an idea from outside, not yet acted upon."),
    _label("Resource", "world", "perishable", _KEPT, "Something to be used: a document, a tool, a place."),
)

LABELS: Final[Mapping[str, Label]] = MappingProxyType({label.name: label for label in _ROWS})
"""The 15 labels by name, in the order of their layers."""

RETIRED_LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Fact": "Use Attribute.",
        "Observation": "Use Behavior.",
        "Pattern": "Use Insight.",
        "Idea": "Use Reference.",
        "Metric": 'Use Attribute with an origin that says where it was measured, for example origin: "health_import".',
        "Emotion": "Emotions are not stored: they are stale in minutes.",
    }
)
"""Names that were labels once, with what to do instead."""

_SUCCESSORS: Final = MappingProxyType(
    {"Fact": "Attribute", "Observation": "Behavior", "Pattern": "Insight", "Idea": "Reference", "Metric": "Attribute"}
)
_RETIRED_FOLDED: Final = MappingProxyType({name.casefold(): name for name in RETIRED_LABELS})


def check_label(name: str) -> Label:
    """The label of that name. Raises `VocabularyError` that lists all, and for a retired name says what to use."""
    if label := LABELS.get(name):
        return label
    if retired := _RETIRED_FOLDED.get(name.strip().casefold()):
        raise VocabularyError(
            field="label",
            value=name,
            allowed=LABELS,
            did_you_mean=_SUCCESSORS.get(retired),
            detail=f"The label {retired} is retired. {RETIRED_LABELS[retired]} Allowed: {', '.join(LABELS)}.",
        )
    raise refuse("label", name, LABELS)


def check_status(label: Label | str, status: str) -> None:
    """Raises `VocabularyError` unless memories of that label may have that status."""
    row = check_label(label) if isinstance(label, str) else label
    if status not in row.statuses:
        raise refuse("status", status, row.statuses, noun=f"status of {row.name} memories")


def check_transition(label: Label | str, current: str, new: str) -> None:
    """Raises `VocabularyError`, naming the legal steps, unless that label allows the step from `current` to `new`."""
    row = check_label(label) if isinstance(label, str) else label
    check_status(row, current)
    legal = row.transitions[current]
    if new in legal:
        return
    steps = ", ".join(legal)
    raise VocabularyError(
        field="status",
        value=new,
        allowed=legal,
        did_you_mean=refuse("status", new, legal).did_you_mean if new not in STATUSES else None,
        detail=f"{_article(row.name)} that is {current} can't become {show(new)}. Legal from here: {steps}.",
    )


def _article(name: str) -> str:
    return f"{'An' if name[0] in 'AEIO' else 'A'} {name}"
