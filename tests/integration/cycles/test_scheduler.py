"""The worker enters what tenants are owed, makes it batch by batch, and minds what fails."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from tests.fixtures.service import TenantFactory, TestTenant
from tests.integration.cycles.conftest import DAY, Cycling

from memory_os.cycles.running import PAUSES_S, _note, attempt
from memory_os.cycles.works import WORKS
from memory_os.domain.cycles.rules import RULES
from memory_os.storage.database import Database
from memory_os_workers import cycler, process
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

START = datetime(2026, 3, 2, 1, 0, tzinfo=UTC)
"""A Monday in the night, an hour before the nightly cycle."""


@pytest.fixture(autouse=True)
def _old(cycling: Cycling) -> None:
    """The tenant has been there for long."""
    since(cycling, START - 90 * DAY)


def since(cycling: Cycling, moment: datetime) -> None:
    execute(cycling, "UPDATE tenants SET created_at = %s", moment)


def execute(cycling: Cycling, statement: str, *values: Any) -> None:
    cycling.rows(f"WITH done AS ({statement} RETURNING 1) SELECT * FROM done", *values)


def runs(cycling: Cycling, tenant_id: UUID | None = None) -> list[tuple[str, str, str]]:
    """The cycles, periods and statuses of a tenant's runs, in their order."""
    found = cycling.rows(
        "SELECT cycle, period, status FROM cycle_runs WHERE tenant_id = %s ORDER BY created_at, id",
        tenant_id or cycling.tenant.tenant_id,
    )
    return [(row["cycle"], row["period"], row["status"]) for row in found]


async def test_what_was_missed_is_made_up_for_once(cycling: Cycling, worker: WorkerContext) -> None:
    await cycler.look(worker, START)
    expected = [("nightly", "2026-03-01", "done"), ("weekly", "2026-W09", "done"), ("monthly", "2026-03", "done")]
    assert runs(cycling) == expected
    await cycler.look(worker, START + timedelta(minutes=59))
    assert runs(cycling) == expected
    await cycler.look(worker, START + timedelta(hours=1))
    assert runs(cycling) == [*expected, ("nightly", "2026-03-02", "done")]
    await cycler.look(worker, START + 40 * DAY)  # after a service that was down for weeks
    assert [run[:2] for run in runs(cycling)[4:]] == [
        ("nightly", "2026-04-10"),
        ("weekly", "2026-W14"),
        ("monthly", "2026-04"),
    ]


async def test_a_new_tenant_is_owed_nothing_from_before(cycling: Cycling, worker: WorkerContext) -> None:
    since(cycling, START)
    await cycler.look(worker, START + timedelta(minutes=30))
    assert runs(cycling) == []


async def test_an_undone_run_is_not_made_again_by_itself(cycling: Cycling, worker: WorkerContext) -> None:
    await cycler.look(worker, START)
    (night,) = cycling.rows("SELECT id FROM cycle_runs WHERE cycle = 'nightly'")
    assert await cycling.undo(night["id"]) == []
    before = runs(cycling)
    assert before[0] == ("nightly", "2026-03-01", "undone")
    await cycler.look(worker, START + timedelta(minutes=1))
    assert runs(cycling) == before


async def test_times_of_its_own_hold_from_when_they_were_given(cycling: Cycling, worker: WorkerContext) -> None:
    body = {"nightly": {"cron": "0 5 * * *"}, "weekly": {"enabled": False}, "monthly": {"enabled": False}}
    answer = await cycling.client.put("/v1/cycles/schedule", json=body, headers=cycling.tenant.headers("admin"))
    assert answer.status_code == 200
    execute(cycling, "UPDATE cycle_schedules SET updated_at = %s", START)
    await cycler.look(worker, START + timedelta(hours=3))
    assert runs(cycling) == []  # yesterday at five it ran at other times
    await cycler.look(worker, START + timedelta(hours=4))
    assert runs(cycling) == [("nightly", "2026-03-02", "done")]


async def test_the_zone_of_the_tenant_decides(cycling: Cycling, worker: WorkerContext) -> None:
    execute(cycling, "UPDATE tenants SET time_zone = 'Pacific/Auckland'")  # 13 hours ahead
    await cycler.look(worker, START - timedelta(hours=13))
    assert runs(cycling)[0] == ("nightly", "2026-03-01", "done")
    await cycler.look(worker, START - timedelta(hours=12))
    assert runs(cycling)[-1] == ("nightly", "2026-03-02", "done")


async def test_a_paused_tenant_is_owed_nothing(cycling: Cycling, worker: WorkerContext) -> None:
    await cycling.enter("monthly", START)
    execute(cycling, "UPDATE tenants SET status = 'suspended'")
    await cycler.look(worker, START)
    assert runs(cycling) == [("monthly", "2026-03", "waiting")]
    execute(cycling, "UPDATE tenants SET status = 'active'")
    await cycler.look(worker, START)
    assert {run[2] for run in runs(cycling)} == {"done"}


async def fail_once(cycling: Cycling, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cycler looks once while every batch of the tenant raises."""

    async def fail(tx: Any, *rest: Any) -> None:
        if tx.tenant_id == cycling.tenant.tenant_id:
            raise ValueError("no such luck")
        await _note(tx, *rest)

    with monkeypatch.context() as patched:
        patched.setattr("memory_os.cycles.running._note", fail)
        await cycler.look(worker, START)


def end_pause(cycling: Cycling) -> None:
    execute(cycling, "UPDATE cycle_runs SET retry_at = now() WHERE retry_at IS NOT NULL")


async def test_a_batch_that_fails_is_tried_again_and_others_go_on(
    cycling: Cycling, worker: WorkerContext, tenant_factory: TenantFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [tenant_factory(), tenant_factory()]
    since(cycling, START - 90 * DAY)
    await fail_once(cycling, worker, monkeypatch)
    end_pause(cycling)
    assert runs(cycling)[0] == ("nightly", "2026-03-01", "running")
    for other in others:
        assert [run[2] for run in runs(cycling, other.tenant_id)] == ["done"] * 3
    await fail_once(cycling, worker, monkeypatch)
    end_pause(cycling)
    (row,) = cycling.rows(
        "SELECT attempts, error, rule FROM cycle_runs WHERE tenant_id = %s AND cycle = 'nightly'",
        cycling.tenant.tenant_id,
    )
    assert (row["attempts"], row["rule"]) == (2, None)
    assert row["error"].startswith("ValueError in fail, test_scheduler.py:")  # its words may quote a record
    await cycler.look(worker, START)
    assert {run[2] for run in runs(cycling)} == {"done"}
    (row,) = cycling.rows(
        "SELECT attempts, error FROM cycle_runs WHERE tenant_id = %s AND cycle = 'nightly'", cycling.tenant.tenant_id
    )
    assert row == {"attempts": 0, "error": None}


async def test_pauses_grow_and_hold_back_what_comes_after(
    cycling: Cycling, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = []
    for _ in PAUSES_S:
        await fail_once(cycling, worker, monkeypatch)
        (row,) = cycling.rows(
            "SELECT extract(epoch FROM retry_at - now())::float AS pause FROM cycle_runs WHERE cycle = 'nightly'"
        )
        pauses.append(row["pause"])
        await cycler.look(worker, START)
        assert [run[2] for run in runs(cycling)] == ["running", "waiting", "waiting"]
        end_pause(cycling)
    assert pauses == pytest.approx(PAUSES_S, abs=5)
    await fail_once(cycling, worker, monkeypatch)
    assert [run[2] for run in runs(cycling)] == ["failed", "waiting", "waiting"]
    await cycler.look(worker, START)
    assert [run[2] for run in runs(cycling)] == ["failed", "done", "done"]


async def test_a_tenant_whose_rows_can_not_be_read_keeps_nobody_else(
    cycling: Cycling, worker: WorkerContext, tenant: TestTenant, tenant_factory: TenantFactory
) -> None:
    other = tenant_factory()
    since(cycling, START - 90 * DAY)
    execute(cycling, "UPDATE tenants SET time_zone = 'Nowhere/Land' WHERE tenant_id = %s", tenant.tenant_id)
    await cycler.look(worker, START)
    assert runs(cycling) == []
    assert [run[2] for run in runs(cycling, other.tenant_id)] == ["done"] * 3


async def test_a_batch_that_the_database_ends_is_not_made_for_ever(
    cycling: Cycling, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def freeze(tx: Any, *_: Any) -> None:
        (row,) = await tx.rows(text("SELECT pg_backend_pid() AS pid"))
        cycling.rows("SELECT pg_terminate_backend(%s)", row["pid"])
        await tx.rows(text("SELECT 1"))

    run = await cycling.enter("nightly", START)
    with monkeypatch.context() as patched:
        patched.setattr("memory_os.cycles.running._note", freeze)
        await cycler.look(worker, START)
    (row,) = cycling.rows("SELECT status, attempts, error FROM cycle_runs WHERE id = %s", run)
    assert (row["status"], row["attempts"]) == ("running", 1)
    assert row["error"] == "AdminShutdown (57P01)"
    end_pause(cycling)
    await cycler.look(worker, START)
    assert {run[2] for run in runs(cycling)} == {"done"}


async def test_without_a_database_the_run_is_left_as_it_is(cycling: Cycling) -> None:
    run = await cycling.enter("nightly", START)
    away = Database("postgresql://nobody@127.0.0.1:1/none", pool_size=1)
    with pytest.raises(OperationalError):
        await attempt(away, cycling.scope, cycling.outbox, run)
    assert runs(cycling) == [("nightly", "2026-03-02", "waiting")]


async def test_two_workers_make_each_change_once(cycling: Cycling, worker: WorkerContext) -> None:
    for number in range(5):
        ident = await cycling.memory(f"Fair number {number} is open.", "Opportunity")
        cycling.put("memories", ident, valid_to=START - DAY, created_at=START - 2 * DAY)
    await asyncio.gather(cycler.look(worker, START), cycler.look(worker, START))
    await cycler.look(worker, START)
    assert {run[2] for run in runs(cycling)} == {"done"}
    (row,) = cycling.rows("SELECT count(*) AS n, count(DISTINCT target_id) AS m FROM cycle_actions")
    assert (row["n"], row["m"]) == (5, 5)


async def test_a_worker_that_stops_leaves_the_run_where_it_is(
    cycling: Cycling, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await cycling.enter("nightly", START)

    async def stop(_: WorkerContext, __: float) -> None:
        worker.stopping.set()

    with monkeypatch.context() as patched:
        patched.setattr(WorkerContext, "pause", stop)
        await asyncio.wait_for(cycler.run(worker), 5)
    (row,) = cycling.rows("SELECT status, rule FROM cycle_runs WHERE id = %s", run)
    assert row["status"] == "running"
    assert row["rule"] is not None
    worker.stopping.clear()
    await cycler.look(worker, START)
    (row,) = cycling.rows("SELECT status FROM cycle_runs WHERE id = %s", run)
    assert row["status"] == "done"


async def test_every_worker_has_a_cycler_and_every_rule_a_work() -> None:
    assert process.ACTORS["cycler"] is cycler.run
    assert WORKS.keys() == RULES.keys()
