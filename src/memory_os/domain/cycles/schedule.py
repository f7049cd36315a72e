"""When a cycle is due: cron in the tenant's own time zone, one run a period, and a missed one is made up for once.

The night on which the clocks change has one run like any other: a time that does not exist is taken as the next one
that does, and of one that comes twice the first counts (as Debian's cron has it, and `cronsim`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from memory_os.domain.cycles.rules import CYCLES, CycleName

_PERIODS: Final = {"nightly": "%Y-%m-%d", "weekly": "%G-W%V", "monthly": "%Y-%m"}


def cron_fault(expression: str) -> str | None:
    """What is wrong with a cron expression, or None; it has five fields, and comes true at some time."""
    if len(expression.split()) != 5:  # noqa: PLR2004 - minute, hour, day, month, weekday; a sixth would be seconds
        return "must have five fields: minute, hour, day of the month, month, day of the week"
    try:
        next(CronSim(expression, datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC"))))
    except CronSimError as error:
        return str(error)
    except StopIteration:
        return "never comes true"
    return None


def last_due(expression: str, zone: str, now: datetime) -> datetime:
    """The last moment up to now at which a cycle was due, in the tenant's zone.

    Args:
        expression: A cron expression without a fault.
        zone: IANA name.
        now: With its offset.
    """
    after = (now + timedelta(microseconds=1)).astimezone(ZoneInfo(zone))  # now itself counts
    found: datetime = next(CronSim(expression, after, reverse=True))
    return found


def next_due(expression: str, zone: str, now: datetime) -> datetime:
    """The first moment after now at which a cycle is due, in the tenant's zone; arguments as of `last_due`."""
    found: datetime = next(CronSim(expression, now.astimezone(ZoneInfo(zone))))
    return found


def period_of(cycle: CycleName, due: datetime) -> str:
    """The period that a run is for: the night, the ISO week or the month of the moment at which it was due.

    Args:
        cycle: Which cycle.
        due: When it was due, in the tenant's zone.
    """
    return due.strftime(_PERIODS[cycle])


def due_cycles(crons: dict[CycleName, str], zone: str, now: datetime) -> list[tuple[CycleName, str, datetime]]:
    """Each cycle with the period that its last due moment belongs to, and that moment, in the order of `CYCLES`."""
    found: list[tuple[CycleName, str, datetime]] = []
    for cycle in CYCLES.values():
        if (cron := crons.get(cycle.name)) is not None:
            due = last_due(cron, zone, now)
            found.append((cycle.name, period_of(cycle.name, due), due))
    return found
