"""Six weeks of the simulated year, lived with cycles and without: what `benchmarks/year.py` shows of a whole one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import httpx
import pytest
from benchmarks.year.checking import check, check_loop, check_recall, recall
from benchmarks.year.clock import Clock
from benchmarks.year.history import START, date_of, make_history
from benchmarks.year.living import MORNING, NIGHT, Life, live_all
from benchmarks.year.looping import loop
from benchmarks.year.reviewing import review
from benchmarks.year.steps import Ask, Write
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory

from memory_os.api.services import Services
from memory_os.settings import Settings
from memory_os_workers.context import WorkerContext

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

DAYS = 42
TOO_SHORT = {"memories in force level off", "edges level off"}
"""What takes longer than this year."""


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """Vectors that cost nothing."""
    return service_settings.model_copy(
        update={"embedding_provider": "deterministic-for-tests", "memory_os_allow_test_embedder": True}
    )


async def test_a_short_year_forgets_what_it_should_and_nothing_else(
    client: httpx.AsyncClient,
    services: Services,
    worker: WorkerContext,
    database_urls: DatabaseUrls,
    tenant_factory: TenantFactory,
) -> None:
    history, lives, looped = make_history(DAYS, notes=0.6), list[Life](), dict[str, Any]()
    for name in ("with cycles", "without"):
        tenant = tenant_factory()
        clock = Clock(database_urls.owner_url, tenant.tenant_id)
        lives.append(Life(name, client, tenant.headers("admin"), services, worker, clock, cycles=name == "with cycles"))

    async def midway(life: Life, moment: datetime) -> None:
        if life.cycles:
            looped[life.name] = await loop(life, history, moment, 20)

    await live_all(lives, history, after_night=review, midway=midway, tell=lambda _: None)
    evening, night = (date_of(DAYS - 1) + hour for hour in (MORNING, NIGHT))
    found = [await recall(life, history, evening) for life in lives]
    checks = await check(lives[0], history, night)
    check_loop(checks, looped["with cycles"])
    check_recall(checks, *found)
    for life in lives:
        life.clock.close()
    assert [name for name in checks.failed if name not in TOO_SHORT] == [], checks.found
    assert lives[0].runs == {"nightly": DAYS, "weekly": 6, "monthly": 2}
    assert lives[0].made["expire_opportunities"] > 0


def test_a_history_is_the_same_for_the_same_seed() -> None:
    first, second, other = (make_history(DAYS, seed=seed) for seed in (1, 1, 2))
    assert first == second
    assert first.days != other.days


def test_a_history_ties_and_uses_nothing_that_is_not_there_yet() -> None:
    for days in (DAYS, 365):
        known = set[str]()
        for steps in make_history(days).days:
            for step in steps:
                if isinstance(step, Write):
                    assert {tie.to for tie in step.ties} <= known, step
                if not isinstance(step, Ask):
                    known.add(step.key)


async def test_the_clock_puts_what_was_written_to_the_time_that_is_played(
    client: httpx.AsyncClient, worker: WorkerContext, database_urls: DatabaseUrls, tenant_factory: TenantFactory
) -> None:
    del worker
    played, other = tenant_factory(), tenant_factory()
    clock = Clock(database_urls.owner_url, played.tenant_id)
    since = clock.now()
    given = {"text": "The ferry leaves at noon.", "label": "Opportunity", "valid_to": "2025-02-03T00:00:00Z"}
    for tenant in (played, other):
        answer = await client.post("/v1/memories", json=given, headers=tenant.headers("admin"))
        assert answer.is_success, answer.text
    clock.shift(since, START)
    rows = clock.rows("SELECT tenant_id, created_at, updated_at, valid_to FROM memories")
    for row in rows:
        assert (row["created_at"].year == START.year) == (row["tenant_id"] == played.tenant_id)
        assert (row["updated_at"].year == START.year) == (row["tenant_id"] == played.tenant_id)
        assert row["valid_to"].isoformat() == "2025-02-03T00:00:00+00:00"
    clock.close()
