"""What is done to a memory after it was stored: each act is kept, and most of them can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

ActKind = Literal[
    "change",
    "merge",
    "supersede",
    "complete",
    "abandon",
    "expire",
    "dispute",
    "archive",
    "retract",
    "restore",
    "undo",
]


@dataclass(frozen=True, slots=True)
class Act:
    """A kind of act.

    Attributes:
        kind: As histories show it.
        status: The status that the memory has after it, or None where the act is about something else.
        undoable: It can be taken back, so that all is as it was before.
        meaning: What it does, in a sentence.
    """

    kind: ActKind
    status: str | None
    undoable: bool
    meaning: str


_ROWS: Final = (
    Act("change", None, False, "Fields were changed; change them back to take it back."),
    Act("merge", None, True, "A memory that said the same became part of it."),
    Act("supersede", "superseded", True, "Another memory took its place."),
    Act("complete", "completed", True, "It was done."),
    Act("abandon", "abandoned", True, "It was given up."),
    Act("expire", "expired", True, "Its date has passed."),
    Act("dispute", "disputed", True, "Somebody contradicted it."),
    Act("archive", "archived", True, "It was put out of the way."),
    Act("retract", "retracted", True, "It was withdrawn."),
    Act("restore", "active", True, "It became active again."),
    Act("undo", None, False, "An act was taken back."),
)

ACTS: Final[Mapping[str, Act]] = MappingProxyType({act.kind: act for act in _ROWS})
"""The kinds of acts by name."""

CALLS: Final[Mapping[str, str]] = MappingProxyType({"superseded": "supersede", "disputed": "dispute"})
"""Statuses that no plain change may set, since more belongs to them, with the call that does."""
