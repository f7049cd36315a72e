"""When cycles are due, in time zones whose clocks change, at the ends of months and on leap days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.cycles.rules import CYCLES, RULES, CycleName, rules_of
from memory_os.domain.cycles.schedule import cron_fault, due_cycles, last_due, next_due, period_of

CRONS: dict[CycleName, str] = {cycle.name: cycle.cron for cycle in CYCLES.values()}
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia")


def local(zone: str, *parts: int) -> datetime:
    return datetime(*parts, tzinfo=ZoneInfo(zone))  # type: ignore[misc, arg-type]  # years to minutes


def test_every_rule_is_of_one_cycle() -> None:
    assert [rule.name for cycle in CYCLES for rule in rules_of(cycle)] == list(RULES)


def test_a_night_is_due_at_two_and_not_before() -> None:
    cron = CYCLES["nightly"].cron
    two = local("Europe/Berlin", 2026, 5, 4, 2, 0)
    assert last_due(cron, "Europe/Berlin", two) == two
    assert last_due(cron, "Europe/Berlin", two - timedelta(microseconds=1)) == local("Europe/Berlin", 2026, 5, 3, 2, 0)
    assert next_due(cron, "Europe/Berlin", two) == local("Europe/Berlin", 2026, 5, 5, 2, 0)


@pytest.mark.parametrize(
    ("zone", "gap", "at"),
    [
        ("Europe/Berlin", (2026, 3, 29), datetime(2026, 3, 29, 1, 0, tzinfo=UTC)),
        ("America/New_York", (2026, 3, 8), datetime(2026, 3, 8, 7, 0, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("cron", ["0 2 * * *", "30 2 * * *"])
def test_the_night_that_lacks_an_hour_has_one_run(
    zone: str, gap: tuple[int, int, int], at: datetime, cron: str
) -> None:
    runs = runs_between(cron, zone, local(zone, *gap, 0, 0), 48)
    assert [run.astimezone(UTC) for run in runs[:1]] == [at]
    assert len({period_of("nightly", run) for run in runs}) == len(runs) == 2


@pytest.mark.parametrize(("zone", "night"), [("Europe/Berlin", (2026, 10, 25)), ("America/New_York", (2026, 11, 1))])
@pytest.mark.parametrize("cron", ["0 2 * * *", "30 1 * * *", "30 2 * * *"])
def test_the_night_that_has_an_hour_twice_has_one_run(zone: str, night: tuple[int, int, int], cron: str) -> None:
    runs = runs_between(cron, zone, local(zone, *night, 0, 0), 49)
    assert [f"{run:%Y-%m-%d}" for run in runs] == ["{:04}-{:02}-{:02}".format(*night), f"{runs[1]:%Y-%m-%d}"]


def runs_between(cron: str, zone: str, start: datetime, hours: int) -> list[datetime]:
    """What is found by asking every ten minutes, as the scheduler does."""
    begun = start.astimezone(UTC)
    asked = [begun + timedelta(minutes=10 * step) for step in range(6 * hours)]
    return [due for due in dict.fromkeys(last_due(cron, zone, now) for now in asked) if due >= start]


@pytest.mark.parametrize(
    ("now", "period", "due"),
    [
        ((2027, 12, 31, 23, 59), "2027-12", (2027, 12, 1)),
        ((2028, 1, 1, 2, 0), "2028-01", (2028, 1, 1)),
        ((2028, 2, 29, 12, 0), "2028-02", (2028, 2, 1)),
        ((2028, 3, 1, 1, 59), "2028-02", (2028, 2, 1)),
        ((2028, 3, 1, 2, 0), "2028-03", (2028, 3, 1)),
    ],
)
def test_a_month_is_due_on_its_first(now: tuple[int, ...], period: str, due: tuple[int, int, int]) -> None:
    found = last_due(CRONS["monthly"], "Asia/Kathmandu", local("Asia/Kathmandu", *now))
    assert found == local("Asia/Kathmandu", *due, 2, 0)
    assert period_of("monthly", found) == period


def test_a_leap_day_is_a_night_like_any_other() -> None:
    found = last_due(CRONS["nightly"], "UTC", datetime(2028, 2, 29, 3, 0, tzinfo=UTC))
    assert period_of("nightly", found) == "2028-02-29"
    never = last_due("0 2 29 2 *", "UTC", datetime(2027, 6, 1, tzinfo=UTC))
    assert never == datetime(2024, 2, 29, 2, 0, tzinfo=UTC)


def test_a_week_is_due_on_sunday_and_has_an_iso_number() -> None:
    found = last_due(CRONS["weekly"], "UTC", datetime(2027, 1, 5, tzinfo=UTC))
    assert (found, period_of("weekly", found)) == (datetime(2027, 1, 3, 2, 0, tzinfo=UTC), "2026-W53")


def test_what_was_missed_for_long_is_owed_once_and_in_order() -> None:
    owed = due_cycles(CRONS, "UTC", datetime(2026, 11, 1, 2, 0, tzinfo=UTC))
    assert [(cycle, period) for cycle, period, _ in owed] == [
        ("nightly", "2026-11-01"),
        ("weekly", "2026-W44"),
        ("monthly", "2026-11"),
    ]
    assert due_cycles({"weekly": CRONS["weekly"]}, "UTC", datetime(2026, 11, 1, 2, tzinfo=UTC)) == owed[1:2]


@pytest.mark.parametrize(
    ("cron", "fault"),
    [
        ("0 2 * * *", None),
        ("*/15 1-3 * * 1-5", None),
        ("0 2 * *", "five fields"),
        ("0 2 * * * *", "five fields"),
        ("0 25 * * *", "Bad hour"),
        ("0 2 30 2 *", "Bad day-of-month"),
        ("nightly", "five fields"),
    ],
)
def test_a_cron_expression_is_checked(cron: str, fault: str | None) -> None:
    found = cron_fault(cron)
    assert (found is None) is (fault is None)
    assert fault is None or fault in str(found)


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2024, 1, 1), datetime(2032, 1, 1)),  # noqa: DTZ001 - made aware below
    st.sampled_from(sorted(CRONS)),
)
def test_the_last_due_moment_is_past_and_the_next_one_is_the_next(zone: str, at: datetime, cycle: CycleName) -> None:
    now, cron = at.replace(tzinfo=UTC), CRONS[cycle]
    last, following = last_due(cron, zone, now), next_due(cron, zone, now)
    assert last.astimezone(UTC) <= now < following.astimezone(UTC)
    assert last_due(cron, zone, following) == following
    assert period_of(cycle, last) != period_of(cycle, following)
