"""A browser's worth of the console: a client with cookies, logins by role, and events in every state."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from tests.fixtures.console import Events, Login, csrf_of
from tests.fixtures.postgres import DatabaseUrls

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os_console import console_router


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


@pytest.fixture
def events(database_urls: DatabaseUrls) -> Events:
    """Events in the test's database."""
    return Events(database_urls.owner_url)
