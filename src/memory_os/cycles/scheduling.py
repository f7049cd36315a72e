"""Which runs a tenant is owed: that of the last due moment of each of its cycles, unless its period has one."""

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


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a tenant's cycles run.

    Attributes:
        zone: IANA name of its time zone.
        since: When the tenant was made: nothing is owed from before.
        crons: By cycle, its cron expression; a cycle that is switched off is absent.
        active: Whether the tenant is served at all.
    """

    zone: str
    since: datetime
    crons: dict[CycleName, str]
    active: bool


async def read_schedule(tx: Transaction) -> Schedule | None:
    """The schedule of the tenant of a transaction, or None if the tenant is gone."""
    rows = await tx.hot("cycle_schedule", {"tenant_id": tx.tenant_id})
    if not rows:
        return None
    own = {row["cycle"]: row for row in rows if row["cycle"] is not None}
    crons: dict[CycleName, str] = {}
    for cycle in CYCLES.values():
        row = own.get(cycle.name)
        if row is None:
            crons[cycle.name] = cycle.cron
        elif row["enabled"]:
            crons[cycle.name] = row["cron"]
    first = rows[0]
    return Schedule(first["time_zone"], first["created_at"], crons, first["status"] == _ACTIVE)


async def enter_run(
    tx: Transaction, cycle: CycleName, moment: datetime, *, dry_run: bool, role: str, token_id: UUID | None = None
) -> UUID | None:
    """Enter a run for the period that a moment lies in; None if that has one already. A dry run has none to itself."""
    schedule = await read_schedule(tx)
    zone = schedule.zone if schedule else "UTC"
    period = period_of(cycle, moment.astimezone(ZoneInfo(zone)))
    given = {"id": new_id(), "cycle": cycle, "period": period, "moment": moment, "dry_run": dry_run}
    rows = await tx.hot("owe_cycle_run", {"tenant_id": tx.tenant_id, **given, "token_id": token_id, "role": role})
    return rows[0]["id"] if rows else None


async def owe_runs(tx: Transaction, now: datetime) -> list[UUID]:
    """Enter the runs that the tenant is owed at a moment; gives those that are new."""
    schedule = await read_schedule(tx)
    if schedule is None or not schedule.active:
        return []
    entered: list[UUID] = []
    for cycle, period, due in due_cycles(schedule.crons, schedule.zone, now):
        if due < schedule.since:
            continue
        given = {"id": new_id(), "cycle": cycle, "period": period, "moment": now, "dry_run": False}
        rows = await tx.hot(
            "owe_cycle_run", {"tenant_id": tx.tenant_id, **given, "token_id": None, "role": SERVICE_ROLE}
        )
        entered += [row["id"] for row in rows]
    return entered
