"""When a token was last used: about right, rarely written, and never in the way of a request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.admin import token_use
from memory_os.admin.tokens import authenticate
from memory_os.storage.database import Database

pytestmark = pytest.mark.anyio


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(token_use, "time", clock)
    return clock


@pytest.fixture
async def database(database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    opened = Database(database_urls.app_url, pool_size=2)
    yield opened
    await opened.close()


def _last_used(urls: DatabaseUrls) -> list[datetime]:
    with psycopg.connect(urls.owner_url) as connection:
        rows = connection.execute("SELECT last_used_at FROM tokens WHERE last_used_at IS NOT NULL").fetchall()
    return [row[0] for row in rows]


def _make_old(urls: DatabaseUrls) -> None:
    with psycopg.connect(urls.owner_url) as connection:
        connection.execute("UPDATE tokens SET last_used_at = '2020-01-01Z' WHERE last_used_at IS NOT NULL")


async def test_the_first_use_is_noted_and_only_that_tokens(
    database: Database, database_urls: DatabaseUrls, tenant: TestTenant
) -> None:
    assert await authenticate(database, tenant.tokens["reader"])
    (used,) = _last_used(database_urls)
    assert datetime.now(UTC) - used < timedelta(seconds=30)


async def test_further_uses_within_a_minute_write_nothing(
    database: Database, database_urls: DatabaseUrls, tenant: TestTenant, clock: Clock
) -> None:
    await authenticate(database, tenant.tokens["reader"])
    _make_old(database_urls)
    clock.now += 59
    await authenticate(database, tenant.tokens["reader"])
    assert _last_used(database_urls)[0].year == 2020
    clock.now += 2
    await authenticate(database, tenant.tokens["reader"])
    assert _last_used(database_urls)[0].year > 2020


async def test_what_another_process_has_just_written_is_not_written_again(
    database: Database, database_urls: DatabaseUrls, tenant: TestTenant, clock: Clock
) -> None:
    await authenticate(database, tenant.tokens["reader"])
    first = _last_used(database_urls)
    clock.now += 61
    await authenticate(database, tenant.tokens["reader"])
    assert _last_used(database_urls) == first


async def test_a_refused_token_is_not_used(database: Database, database_urls: DatabaseUrls, tenant: TestTenant) -> None:
    assert await authenticate(database, tenant.tokens["reader"] + "x") is None
    assert _last_used(database_urls) == []


async def test_a_row_that_somebody_holds_is_passed_over(
    database: Database, database_urls: DatabaseUrls, tenant: TestTenant
) -> None:
    with psycopg.connect(database_urls.owner_url) as holder:
        holder.execute("SELECT 1 FROM tokens FOR UPDATE")
        assert await authenticate(database, tenant.tokens["reader"])
    assert _last_used(database_urls) == []


async def test_a_failure_to_note_it_does_not_fail_the_request(
    database: Database, database_urls: DatabaseUrls, tenant: TestTenant
) -> None:
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("REVOKE UPDATE ON tokens FROM memory_os_app")
    assert await authenticate(database, tenant.tokens["reader"])


async def test_a_table_that_is_locked_holds_a_request_up_for_a_second_at_most(
    database: Database, database_urls: DatabaseUrls, tenant: TestTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_use, "_TIMEOUT_S", 0.1)
    with psycopg.connect(database_urls.owner_url) as holder:
        holder.execute("LOCK TABLE tokens IN SHARE MODE")
        assert await authenticate(database, tenant.tokens["reader"])
    assert await authenticate(database, tenant.tokens["reader"])


async def test_the_memory_of_uses_is_bounded(
    database: Database, tenant: TestTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_use, "_MOST_REMEMBERED", 2)
    for role in ("reader", "writer", "admin", "operator", "reviewer"):
        await authenticate(database, tenant.tokens[role])
    assert len(token_use._written) <= 2
