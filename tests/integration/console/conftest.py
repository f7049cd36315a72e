"""A browser's worth of the console: a client with cookies, logins by role, and events in every state."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os.domain.ids import new_id
from memory_os_console import console_router

Login = Callable[[str], Awaitable[httpx.Response]]


@pytest.fixture
async def browser(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    """Keeps cookies and follows no redirects."""
    app = create_app(services, console=[console_router(services)])
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://console.test") as opened:
        yield opened


@pytest.fixture
def login(browser: httpx.AsyncClient) -> Login:
    """Log in with a token."""

    async def log_in(token: str) -> httpx.Response:
        page = await browser.get("/console/login")
        fields = {"csrf_token": csrf_of(page.text), "token": token}
        return await browser.post("/console/login", data=fields)

    return log_in


def csrf_of(page: str) -> str:
    """The token of the forms of a page."""
    found = re.search(r'name="csrf_token" value="([^"]+)"', page)
    assert found, page
    return found.group(1)


def field_of(page: str, name: str) -> str:
    """The value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, f"no field {name}"
    return html.unescape(found.group(1))


class Events:
    """Puts events straight into the table, as workers would have left them."""

    def __init__(self, owner_url: str) -> None:
        self.owner_url = owner_url

    def add(
        self,
        tenant: TestTenant | UUID,
        status: str = "dead",
        *,
        event_type: str = "GRAPH_UPSERT",
        aggregate_type: str = "memory",
        aggregate_id: UUID | None = None,
        error: str = "DataError: timestamp too large",
        fingerprint: str = "aaaaaaaaaaaa",
    ) -> int:
        """One event; returns its id."""
        tenant_id = tenant.tenant_id if isinstance(tenant, TestTenant) else tenant
        name, _, message = error.partition(": ")
        entry = {
            "at": "2026-01-31T12:00:00+00:00",
            "class": name,
            "message": message,
            "fingerprint": fingerprint,
            "worker": str(new_id()),
            "traceback": f"Traceback (most recent call last):\n{error}",
        }
        failed = status in ("dead", "discarded")
        ended = status in ("done", "dead", "discarded")
        with psycopg.connect(self.owner_url) as connection:
            row = connection.execute(
                "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
                "attempts, last_error, errors, finished_at, discard_reason, discarded_by, lease_token, lease_until) "
                "VALUES (%s, %s, %s, %s, 1, %s, %s, %s, %s, CASE WHEN %s THEN clock_timestamp() END, %s, %s, %s, "
                "CASE WHEN %s THEN now() + interval '30 s' END) RETURNING id",
                (
                    *(tenant_id, event_type, aggregate_type, aggregate_id or new_id(), status),
                    *(5 if failed else 0, error if failed else None, json.dumps([entry] * 5 if failed else [])),
                    *(ended, "known" if status == "discarded" else None, "me" if status == "discarded" else None),
                    *(new_id() if status == "leased" else None, status == "leased"),
                ),
            ).fetchone()
        assert row
        return int(row[0])

    def status(self, event_id: int) -> str:
        """An event's status."""
        with psycopg.connect(self.owner_url) as connection:
            row = connection.execute("SELECT status FROM outbox_events WHERE id = %s", (event_id,)).fetchone()
        assert row
        return str(row[0])

    def audit(self, tenant: TestTenant) -> list[tuple[str, str, dict[str, object]]]:
        """Action, target and detail of a tenant's audit log, oldest first."""
        with psycopg.connect(self.owner_url) as connection:
            return connection.execute(
                "SELECT action, target_id, detail FROM audit_log WHERE tenant_id = %s ORDER BY at, id",
                (tenant.tenant_id,),
            ).fetchall()


@pytest.fixture
def events(database_urls: DatabaseUrls) -> Events:
    """Events in the test's database."""
    return Events(database_urls.owner_url)
