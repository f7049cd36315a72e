"""The shapes of runs, actions and schedules, as requests bring them and answers show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct

from memory_os.domain.cycles.rules import CYCLES
from memory_os.domain.shapes import NO_NUL, Moment, one_of

CycleWord = Annotated[str, one_of(CYCLES)]
Cron = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        pattern=NO_NUL,
        description="Minute, hour, day of the month, month, day of the week, in the tenant's time zone.",
        examples=["0 2 * * *"],
    ),
]


class RunRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which cycle to run, and as of when.

    A dry run notes what would be done and does nothing. `moment` is what everything in the run is reckoned from, and
    decides for which period it is; it is now unless it is given, and lies never in the future.
    """

    cycle: CycleWord
    dry_run: bool = False
    moment: Moment | None = None


class CycleRun(Struct):
    """A run of a cycle.

    Attributes:
        period: The night, the ISO week or the month that it is for, in the tenant's time zone.
        moment: What everything in it is reckoned from.
        status: `waiting`, `running`, `done`, `failed`, or `undone` when nothing of it stands any more.
        rule: Where it stands, or what it did last.
        counts: By rule, how many changes were made, or would be.
        error: What kind of error stopped the last batch, where one failed; its words may quote a record.
        attempts: How often in a row a batch has failed; after five times the run has.
        retry_at: When it is tried again after that.
        role: Whose token asked for it; `cycle` is the schedule, `root` the command line.
    """

    id: UUID
    cycle: str
    period: str
    moment: datetime
    dry_run: bool
    status: str
    rule: str | None
    counts: dict[str, int]
    error: str | None
    attempts: int
    retry_at: datetime | None
    role: str
    token_id: UUID | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    undone_at: datetime | None


class CycleAction(Struct):
    """One change that a run made, or would make: ids and states, never words.

    Attributes:
        number: Its place in the run.
        target_kind: What was changed: `memory`, `entity`, `edge`, `insight` or `profile`.
        other_id: What else takes part, such as the memory into which another was merged.
        before: The state before.
        after: The state after.
        act_id: What it left in the history of a memory.
        undone_at: When it was taken back.
    """

    id: UUID
    run_id: UUID
    number: int
    rule: str
    target_kind: str
    target_id: UUID
    other_id: UUID | None
    before: dict[str, Any]
    after: dict[str, Any]
    act_id: UUID | None
    undone_at: datetime | None


class KeptAction(Struct):
    """An action that could not be taken back, and why."""

    id: UUID
    reason: str


class UndoneRun(Struct):
    """What became of a run that was to be undone.

    Attributes:
        run: The run; it is `undone` when nothing of it stands.
        undone: How many actions were taken back by this call.
        kept: How many could not be.
        actions: The first hundred of those.
        position: What to wait for until the graph follows.
    """

    run: CycleRun
    undone: int
    kept: int
    actions: list[KeptAction]
    position: int


class UndoneAction(Struct):
    """An action that was taken back, and the position to wait for until the graph follows."""

    action: CycleAction
    position: int


class CycleTime(Struct, forbid_unknown_fields=True, frozen=True):
    """When a cycle runs; without `cron` at its usual time."""

    cron: Cron | None = None
    enabled: bool = True


class ScheduleDraft(Struct, forbid_unknown_fields=True):
    """When the tenant's cycles run; one that is left out runs at its usual time."""

    nightly: CycleTime = CycleTime()
    weekly: CycleTime = CycleTime()
    monthly: CycleTime = CycleTime()


class CyclePlan(Struct):
    """When a cycle runs: `next_due` is in the tenant's time zone, and null for one that is switched off."""

    cron: str
    enabled: bool
    next_due: datetime | None


class CycleSchedule(Struct):
    """When the tenant's cycles run."""

    time_zone: str
    nightly: CyclePlan
    weekly: CyclePlan
    monthly: CyclePlan
