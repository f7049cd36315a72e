"""Which runs a tenant is owed: that of the last due moment of each of its cycles, unless its period has had one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_os.domain.cycles.rules import CYCLES, SERVICE_ROLE, CycleName
from memory_os.domain.cycles.schedule import due_cycles, period_of
from memory_os.domain.ids import new_id
from memory_os.storage.database import Transaction

_ACTIVE: Final = "active"

_BY_ITSELF: Final = {"again": False, "token_id": None, "role": SERVICE_ROLE}


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a tenant's cycles run.

    Attributes:
        zone: IANA name of its time zone.
        times: By cycle, its cron expression, and whether it is switched on.
        since: By cycle, when that was said, or the tenant made: nothing is owed from before.
        active: Whether the tenant is served at all.
    """

    zone: str
    times: dict[CycleName, tuple[str, bool]]
    since: dict[CycleName, datetime]
    active: bool

    def crons(self) -> dict[CycleName, str]:
        """By cycle that is switched on, its cron expression."""
        return {cycle: cron for cycle, (cron, enabled) in self.times.items() if enabled}


async def read_schedule(tx: Transaction) -> Schedule | None:
    """The schedule of the tenant of a transaction, or None if the tenant is gone."""
    rows = await tx.hot("cycle_schedule", {"tenant_id": tx.tenant_id})
    if not rows:
        return None
    own = {row["cycle"]: row for row in rows if row["cycle"] is not None}
    times: dict[CycleName, tuple[str, bool]] = {}
    since: dict[CycleName, datetime] = {}
    for cycle in CYCLES.values():
        row = own.get(cycle.name)
        times[cycle.name] = (row["cron"], row["enabled"]) if row else (cycle.cron, True)
        since[cycle.name] = row["updated_at"] if row else rows[0]["created_at"]
    return Schedule(rows[0]["time_zone"], times, since, rows[0]["status"] == _ACTIVE)


async def enter_run(
    tx: Transaction, cycle: CycleName, moment: datetime, *, dry_run: bool, role: str, token_id: UUID | None = None
) -> UUID | None:
    """Enter a run for the period that a moment lies in; None if that has one already. A dry run has none to itself."""
    by = {"again": True, "token_id": token_id, "role": role}
    given = {"cycle": cycle, "period": await find_period(tx, cycle, moment), "moment": moment, "dry_run": dry_run}
    rows = await tx.hot("owe_cycle_run", {"tenant_id": tx.tenant_id, "id": new_id(), **given, **by})
    return rows[0]["id"] if rows else None


async def find_period(tx: Transaction, cycle: CycleName, moment: datetime) -> str:
    """The period of a cycle that a moment lies in, in the tenant's zone."""
    schedule = await read_schedule(tx)
    return period_of(cycle, moment.astimezone(ZoneInfo(schedule.zone if schedule else "UTC")))


async def owe_runs(tx: Transaction, now: datetime) -> list[UUID]:
    """Enter the runs that the tenant is owed at a moment; gives those that are new."""
    schedule = await read_schedule(tx)
    if schedule is None or not schedule.active:
        return []
    entered: list[UUID] = []
    for cycle, period, due in due_cycles(schedule.crons(), schedule.zone, now):
        if due < schedule.since[cycle]:
            continue
        given = {"cycle": cycle, "period": period, "moment": now, "dry_run": False}
        rows = await tx.hot("owe_cycle_run", {"tenant_id": tx.tenant_id, "id": new_id(), **given, **_BY_ITSELF})
        entered += [row["id"] for row in rows]
    return entered
