"""The overview: figures, findings, and the stream that keeps them up to date."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psycopg
import pytest
from tests.fixtures.console import Events, Login, csrf_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os.domain.ids import new_id
from memory_os_console import console_router, overview

pytestmark = pytest.mark.anyio


def tile(page: str, name: str) -> str:
    """The figure of a tile."""
    found = re.search(rf"<dt>{name}</dt><dd>(.*?)</dd>", page)
    assert found, name
    return re.sub(r"<[^>]+>", "", found.group(1))


def add_worker(urls: DatabaseUrls, *, seen: str = "0 s", breaker: str = "closed", reason: str | None = None) -> None:
    with psycopg.connect(urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO workers (id, host, pid, version, state, breaker, breaker_reason, last_seen, done) "
            "VALUES (%s, 'box-<7>', 4711, '0.1.0', 'idle', %s, %s, now() - %s::interval, 1234)",
            (new_id(), breaker, reason, seen),
        )


async def test_figures_are_of_the_own_tenant(
    browser: httpx.AsyncClient, login: Login, tenant_factory: TenantFactory, events: Events, database_urls: DatabaseUrls
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    for status in ("pending", "leased", "dead", "dead", "discarded", "done"):
        events.add(mine, status)
        events.add(other, status)
    events.add(mine, event_type="GRAPH_DELETE")
    add_worker(database_urls)
    await login(mine.tokens["operator"])
    page = (await browser.get("/console")).text
    shown = {name: tile(page, name) for name in ("Waiting", "In hand", "Dead", "Dead deletions", "Discarded")}
    assert shown == {"Waiting": "1", "In hand": "1", "Dead": "3", "Dead deletions": "1", "Discarded": "1"}
    assert (tile(page, "Projected a second"), tile(page, "Projected, last hour")) == ("0.1", "1")
    assert "2 other events are dead and wait for your decision." in page
    assert "1 deletion is dead: the graph still holds what was deleted." in page
    assert "box-&lt;7&gt; · 4711" in page
    assert "1,234" in page
    assert "No worker is alive" not in page


async def test_dead_deletions_stand_out_even_alone(
    browser: httpx.AsyncClient, login: Login, tenant_factory: TenantFactory, events: Events, database_urls: DatabaseUrls
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    add_worker(database_urls)
    events.add(other, event_type="GRAPH_DELETE")
    await login(mine.tokens["operator"])
    assert 'id="alarm"' not in (await browser.get("/console")).text
    events.add(mine, event_type="GRAPH_DELETE")
    page = (await browser.get("/console")).text
    banner = page[page.index('<p class="alarm"') : page.index("<h2>Queue</h2>")]
    assert "1 deletion is dead: the graph still holds what was deleted." in banner
    assert 'href="/console/events?status=dead&amp;event_type=GRAPH_DELETE"' in banner
    assert "findings" not in banner  # nothing else is wrong, and nothing is called healthy
    listed = (await browser.get("/console/events?status=dead&event_type=GRAPH_DELETE")).text
    assert "GRAPH_DELETE" in listed


async def test_a_quiet_service_with_a_worker_is_healthy(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    add_worker(database_urls)
    await login(tenant.tokens["operator"])
    page = (await browser.get("/console")).text
    assert "<strong>Healthy</strong>" in page
    assert "Act now" not in page


async def test_workers_that_are_lost_or_paused_are_said(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    await login(tenant.tokens["operator"])
    assert "No worker is alive" in (await browser.get("/console")).text
    add_worker(database_urls, seen="2 minutes")
    page = (await browser.get("/console")).text
    assert "No worker is alive" in page
    assert '<span class="badge lost">lost</span>' in page
    add_worker(database_urls, breaker="open", reason="GraphUnavailableError: <refused>")
    page = (await browser.get("/console")).text
    assert "GraphUnavailableError: &lt;refused&gt;" in page
    assert '<span class="badge open">open</span>' in page


@asynccontextmanager
async def streamed(services: Services, token: str, stopping: asyncio.Event) -> AsyncIterator[Callable[[], Any]]:
    """The events of the stream, one a call; httpx's transport would hold them back until the stream ends."""
    app = create_app(services, console=[console_router(services, stopping=stopping)])
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type] # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://console.test") as client:
        page = await client.get("/console/login")
        await client.post("/console/login", data={"csrf_token": csrf_of(page.text), "token": token})
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/console/live",
        "raw_path": b"/console/live",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"console.test"), (b"cookie", cookie.encode())],
        "client": ("127.0.0.1", 1),
        "server": ("console.test", 80),
    }
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        await sent.put(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            gone.set()  # as servers do it

    task = asyncio.create_task(app(scope, receive, send))  # type: ignore[arg-type] # as above
    try:
        async with asyncio.timeout(20):
            yield sent.get
            await task
    finally:
        gone.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_stream_brings_figures_and_ends_with_the_session(
    services: Services, tenant: TestTenant, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "EVERY_S", 0.05)
    async with streamed(services, tenant.tokens["operator"], asyncio.Event()) as receive:
        start = await receive()
        headers = dict(start["headers"])
        assert (start["status"], headers[b"content-type"]) == (200, b"text/event-stream; charset=utf-8")
        assert headers[b"cache-control"] == b"no-store"
        text = ""
        while "event: figures" not in text:
            text += (await receive())["body"].decode()
        events.add(tenant)
        while "1 event is dead" not in text:
            text += (await receive())["body"].decode()
        with psycopg.connect(events.owner_url) as connection:
            connection.execute("UPDATE tokens SET revoked_at = now()")
        while "event: ended" not in text:
            text += (await receive())["body"].decode()


async def test_the_stream_ends_when_the_process_is_about_to_stop(services: Services, tenant: TestTenant) -> None:
    stopping = asyncio.Event()
    async with streamed(services, tenant.tokens["operator"], stopping) as receive:
        assert (await receive())["status"] == 200
        stopping.set()
        message = await receive()
        while message.get("more_body"):
            message = await receive()
