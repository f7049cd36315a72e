"""What a rule is to a run: it plans the next few changes, makes them, and takes one back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_os.domain.cycles.rules import CycleName
from memory_os.domain.principal import Principal
from memory_os.outbox.events import NewEvent, Outbox
from memory_os.storage.database import Transaction

TargetKind = Literal["memory", "entity", "edge", "insight", "profile"]

RunStatus = Literal["waiting", "running", "done", "failed", "undone"]

Cursor = Mapping[str, Any]
"""Where a rule stands between two batches, as JSON."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a cycle, as its rules see it.

    Attributes:
        id: Which run.
        cycle: Of which cycle.
        moment: What everything in it is reckoned from.
        principal: Who acts: the service, in the name of nobody.
        outbox: Where what a service of another area enqueues goes; what a rule gives back as events is enqueued for it.
    """

    id: UUID
    cycle: CycleName
    moment: datetime
    principal: Principal
    outbox: Outbox


@dataclass(frozen=True, slots=True)
class Planned:
    """One change: what it is done to, and the state before and after, as JSON; never the text of a memory.

    `work` is what making it takes beyond that, and is not kept.
    """

    kind: TargetKind
    target: UUID
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    other: UUID | None = None
    work: Any = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The next changes of a rule, and where it stands after them; None where nothing is left."""

    changes: Sequence[Planned]
    cursor: Cursor | None


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a plan.

    Attributes:
        changes: The changes that were made; others were overtaken by a write meanwhile.
        events: Their projections.
        acts: By target, the act that keeps what was done to a memory.
    """

    changes: Sequence[Planned]
    events: Sequence[NewEvent] = ()
    acts: Mapping[UUID, UUID] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Undoing:
    """Who takes something back, and where the events of other areas go."""

    principal: Principal
    outbox: Outbox
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """How one rule works.

    Attributes:
        plan: Gives the next changes after a cursor (None: from the beginning). It writes nothing.
        make: Makes planned changes in the transaction that planned them.
        take_back: Undoes one change for somebody, given its action; gives the events. Raises `ConflictError` where it
            can't be undone any more.
    """

    plan: Callable[[Transaction, Run, Cursor | None], Awaitable[Plan]]
    make: Callable[[Transaction, Run, Sequence[Planned]], Awaitable[Made]]
    take_back: Callable[[Transaction, Undoing, Mapping[str, Any]], Awaitable[list[NewEvent]]]
