"""The bounds of the forgetting rules on real rows: a microsecond, a count, or a hundredth on either side."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from tests.integration.cycles.conftest import DAY, NOW, Cycling

pytestmark = pytest.mark.anyio

TICK = timedelta(microseconds=1)
LEAP_DAY = datetime(2024, 2, 29, 2, 0, tzinfo=UTC)
MONTH_END = datetime(2026, 3, 31, 23, 59, 59, 999999, tzinfo=UTC)


async def touched(cycling: Cycling, cycle: Any, rule: str, moment: datetime = NOW) -> set[str]:
    """What a rule acted on in a run."""
    run = await cycling.run(cycle, moment)
    return {str(action["target_id"]) for action in cycling.actions(run) if action["rule"] == rule}


async def edges_with(cycling: Cycling, cases: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """An edge with each of these columns, by the name of its case."""
    hub = await cycling.memory("The hub is known.")
    found = {}
    for name, values in cases.items():
        spoke = await cycling.memory(f"Spoke {name} is known.", "Attribute")
        found[name] = await cycling.edge(hub, spoke, str(values.get("type", "SUPPORTS")))
        cycling.put("edges", found[name], **values)
    return found


WEAK = {"used_at": NOW - 31 * DAY, "confidence": 0.2, "co_reference_count": 0}
KEPT = ("EXTRACTED_FROM", "SUPERSEDES", "COMMITTED_TO", "EVOLVED_INTO")


async def test_edges_are_pruned_on_the_far_side_of_each_bound(cycling: Cycling) -> None:
    cases: dict[str, dict[str, Any]] = {
        "29 days": {**WEAK, "used_at": NOW - 29 * DAY},
        "just under 30 days": {**WEAK, "used_at": NOW - 30 * DAY + TICK},
        "30 days": {**WEAK, "used_at": NOW - 30 * DAY},
        "31 days": WEAK,
        "0.29": {**WEAK, "confidence": 0.29},
        "0.30": {**WEAK, "confidence": 0.3},
        "0.31": {**WEAK, "confidence": 0.31},
        "used twice": {**WEAK, "co_reference_count": 2},
        "used three times": {**WEAK, "co_reference_count": 3},
        "just claimed": {**WEAK, "used_at": NOW + DAY},
        "of no confidence": {**WEAK, "confidence": 0.0},
        **{kind: {**WEAK, "type": kind} for kind in KEPT},
        "DUPLICATES": {**WEAK, "type": "DUPLICATES"},
    }
    made = await edges_with(cycling, cases)
    pruned = {"30 days", "31 days", "0.29", "used twice", "of no confidence", "DUPLICATES"}
    assert await touched(cycling, "monthly", "prune_edges") == {made[name] for name in pruned}


async def test_an_edge_fades_from_a_week_of_disuse_on_and_by_a_step_at_least(cycling: Cycling) -> None:
    # By 5 % after 0.074 half-lives: 4.44 days of those that last 60, 27.01 of those that last 365.
    filed = {"type": "TAGGED_WITH", "confidence": 0.8}
    cases: dict[str, dict[str, Any]] = {
        "rested": {**filed, "used_at": NOW - 7 * DAY},
        "by less than a step": {**filed, "used_at": NOW - (7 + 4.43) * DAY},
        "by a step": {**filed, "used_at": NOW - (7 + 4.45) * DAY},
        "built": {**filed, "type": "REQUIRES", "used_at": NOW - (7 + 27.0) * DAY},
        "built long ago": {**filed, "type": "REQUIRES", "used_at": NOW - (7 + 27.1) * DAY},
        "faded already": {**filed, "used_at": NOW - 100 * DAY, "faded_at": NOW - 4.43 * DAY},
        "faded before": {**filed, "used_at": NOW - 100 * DAY, "faded_at": NOW - 4.45 * DAY},
        "faded later": {**filed, "used_at": NOW - 100 * DAY, "faded_at": NOW + DAY},
        "of no confidence": {**filed, "confidence": 0.0, "used_at": NOW - 400 * DAY},
        "of next to none": {**filed, "confidence": 5e-324, "used_at": NOW - 67 * DAY, "claimed_confidence": 5e-324},
        **{kind: {**filed, "type": kind, "used_at": NOW - 400 * DAY} for kind in (*KEPT, "DUPLICATES")},
    }
    made = await edges_with(cycling, cases)
    faded = {"by a step", "built long ago", "faded before", "of next to none"}
    assert await touched(cycling, "nightly", "decay_edges") == {made[name] for name in faded}
    (row,) = cycling.rows("SELECT confidence, claimed_confidence FROM edges WHERE id = %s", made["of next to none"])
    assert row == {"confidence": 0.0, "claimed_confidence": 0.0}


async def test_what_commitments_are_tied_by_does_not_fade(cycling: Cycling) -> None:
    promise = await cycling.memory("She promised to come.", "Commitment")
    plan = await cycling.memory("There is a plan.", "Project")
    old = {"used_at": NOW - 400 * DAY, "confidence": 0.2}
    for ends in ((promise, plan), (plan, promise)):
        await cycling.edge(*ends, "SUPPORTS", **old)
    assert await touched(cycling, "nightly", "decay_edges") == set()


@pytest.mark.parametrize("moment", [NOW, LEAP_DAY, MONTH_END])
async def test_opportunities_expire_at_their_moment(cycling: Cycling, moment: datetime) -> None:
    dates = {"past": moment - TICK, "now": moment, "a microsecond later": moment + TICK, "open": None}
    made = {}
    for name, date in dates.items():
        made[name] = await cycling.memory(f"The fair is {name}.", "Opportunity")
        cycling.put("memories", made[name], valid_to=date, created_at=moment - 9 * DAY)
    other = await cycling.memory("The rent was low.", "Attribute")
    cycling.put("memories", other, valid_to=moment - DAY)
    expected = {made["past"], made["now"]}
    assert await touched(cycling, "nightly", "expire_opportunities", moment) == expected


async def test_an_opportunity_that_is_disputed_or_archived_is_left_alone(cycling: Cycling) -> None:
    for status in ("disputed", "archived", "retracted", "superseded", "expired"):
        made = await cycling.memory(f"The fair is {status}.", "Opportunity")
        cycling.put("memories", made, valid_to=NOW, status=status)
    assert await touched(cycling, "nightly", "expire_opportunities") == set()


@pytest.mark.parametrize("moment", [NOW, LEAP_DAY, MONTH_END])
async def test_world_items_go_stale_after_ninety_days_of_disuse(cycling: Cycling, moment: datetime) -> None:
    ages = {"89 days": 89 * DAY, "just under": 90 * DAY - TICK, "90 days": 90 * DAY, "91 days": 91 * DAY}
    made = {}
    for label in ("Reference", "Resource", "Attribute"):
        for name, age in ages.items():
            made[label, name] = await cycling.memory(f"A {label} of {name}.", label)
            cycling.put("memories", made[label, name], created_at=moment - age, updated_at=moment - age)
    stale = {(label, name) for label in ("Reference", "Resource") for name in ("90 days", "91 days")}
    assert await touched(cycling, "nightly", "mark_stale", moment) == {made[case] for case in stale}
    marked = cycling.rows("SELECT id, stale_at FROM memories WHERE stale_at IS NOT NULL")
    assert {str(row["id"]): row["stale_at"] for row in marked} == {made[case]: moment for case in stale}


async def test_a_change_makes_what_was_stale_fresh_again_and_undo_stale(cycling: Cycling) -> None:
    paper = await cycling.memory("The paper is long.", "Reference")
    cycling.put("memories", paper, created_at=NOW - 100 * DAY, updated_at=NOW - 100 * DAY)
    first = await cycling.run("nightly")
    cycling.put("memories", paper, used_at=NOW + DAY)
    second = await cycling.run("nightly", NOW + 2 * DAY)
    stale = "SELECT stale_at FROM memories WHERE id = %s"
    assert cycling.rows(stale, paper) == [{"stale_at": None}]
    (kept,) = await cycling.undo(first)  # there is no mark of it any more
    assert cycling.rows("SELECT rule FROM cycle_actions WHERE id = %s", kept) == [{"rule": "mark_stale"}]
    assert await cycling.undo(second) == []
    assert cycling.rows(stale, paper) == [{"stale_at": NOW}]


async def test_what_is_done_to_a_memory_while_the_batch_waits_counts(cycling: Cycling) -> None:
    """Somebody puts off a date in a transaction that the batch has to wait for."""
    fair = await cycling.memory("The fair is near.", "Opportunity")
    paper = await cycling.memory("The paper is old.", "Reference")
    cycling.put("memories", fair, valid_to=NOW)
    cycling.put("memories", paper, created_at=NOW - 100 * DAY, updated_at=NOW - 100 * DAY)
    run = await cycling.enter("nightly")
    async with await psycopg.AsyncConnection.connect(cycling.urls.owner_url) as writer:
        await writer.execute("UPDATE memories SET valid_to = %s WHERE id = %s", (NOW + DAY, fair))
        await writer.execute("UPDATE memories SET updated_at = %s WHERE id = %s", (NOW, paper))

        async def make() -> None:
            while await cycling.step() is not None:
                pass

        making = asyncio.create_task(make())
        waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        while not cycling.rows(waiting):  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.02)
        await writer.commit()
        await making
    assert [action for action in cycling.actions(run) if str(action["target_id"]) == fair] == []
    statuses = cycling.rows("SELECT status FROM memories WHERE id = %s", fair)
    assert statuses == [{"status": "active"}]
    assert cycling.rows("SELECT stale_at FROM memories WHERE id = %s", paper) == [{"stale_at": None}]
