"""What can happen on a day of a simulated year."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Tie:
    """An edge of a new memory: to what (by key), and how sure."""

    type: str
    to: str
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Declare:
    """An entity is declared."""

    key: str
    name: str
    entity_type: str


@dataclass(frozen=True, slots=True)
class Write:
    """Something is noted; `own` are the notes of the person alone, `gated` go through the dedup gate."""

    key: str
    label: str
    text: str
    ties: tuple[Tie, ...] = ()
    valid_to: datetime | None = None
    own: bool = False
    gated: bool = True


@dataclass(frozen=True, slots=True)
class Replace:
    """Something has changed: a new memory takes the place of an old one."""

    key: str
    old: str
    text: str
    own: bool


@dataclass(frozen=True, slots=True)
class Amend:
    """A slip of the pen is corrected."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """A goal is reached (`complete`) or given up (`abandon`)."""

    key: str
    how: str


@dataclass(frozen=True, slots=True)
class Retire:
    """An entity goes out of use."""

    key: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A question, and the keys of what the asker can use of the answer."""

    query: str
    uses: tuple[str, ...] = ()


Step = Declare | Write | Replace | Amend | Finish | Retire | Ask
