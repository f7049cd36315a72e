"""What surrounds every answer of the console."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from psycopg import sql
from pydantic import SecretStr
from tests.fixtures.console import Login, csrf_of
from tests.fixtures.postgres import DatabaseUrls, run_sql
from tests.fixtures.service import TestTenant

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os_console import console_router
from memory_os_console.rendering import asset_address

pytestmark = pytest.mark.anyio

ANSWERS = {
    "/console": 200,
    "/console/login": 303,
    "/console/events": 200,
    "/console/events/999": 404,
    "/console/events?status=odd": 422,
    "/console/graph": 200,
    "/console/static/console.css": 200,
    "/console/static/nothing.css": 404,
    "/console/static/../sessions.py": 404,
}


@pytest.mark.parametrize(("address", "status"), ANSWERS.items())
async def test_every_answer_has_the_security_headers(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, address: str, status: int
) -> None:
    await login(tenant.tokens["operator"])
    answer = await browser.get(address)
    assert answer.status_code == status
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-frame-options"] == "DENY"
    cached = "immutable" in answer.headers["cache-control"]
    assert cached == (address == "/console/static/console.css")
    assert cached or answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "address",
    [
        *("/console/nope", "/console/a/b/c", "/console/login/x", "/console/events/x", "/console/events/1/retry"),
        *("/console/events/99999999999999999999999", "/console/events/-1", "/console/events/retry/x"),
        *("/console/graph/x", "/console/graph/rebuilds/x", "/console/graph/rebuilds/x/y", "/console/live/x"),
    ],
)
async def test_what_is_not_there_has_the_consoles_look(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, address: str
) -> None:
    await login(tenant.tokens["operator"])
    answer = await browser.get(address)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "<h1>Not found</h1>" in answer.text
    assert answer.headers["x-request-id"] in answer.text


async def test_a_large_body_is_refused(browser: httpx.AsyncClient, login: Login, tenant: TestTenant) -> None:
    await login(tenant.tokens["operator"])
    answer = await browser.post("/console/events/1", data={"reason": "x" * 100_000})
    assert answer.status_code == 413
    assert answer.headers["content-type"].startswith("text/html")


async def test_pages_name_their_own_assets_only_and_nothing_inline(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant
) -> None:
    await login(tenant.tokens["operator"])
    page = (await browser.get("/console")).text
    for name in ("console.css", "console.js", "htmx.min.js", "icon.svg"):
        assert asset_address(name) in page
        assert (await browser.get(asset_address(name))).status_code == 200
    assert "http://" not in page
    assert "https://" not in page
    for inline in ("<style", " style=", "onclick", "javascript:", "hx-on", "<script>"):
        assert inline not in page


async def test_the_api_beside_it_does_not_know_the_session(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant
) -> None:
    await login(tenant.tokens["admin"])
    answer = await browser.get("/v1/outbox/stats")
    assert answer.status_code == 401
    assert "content-security-policy" not in answer.headers
    assert (await browser.get("/console", headers=tenant.headers("admin"))).status_code == 200
    browser.cookies.clear()
    assert (await browser.get("/console", headers=tenant.headers("admin"))).status_code == 303


async def test_the_console_is_not_in_the_schema_of_the_api(browser: httpx.AsyncClient) -> None:
    schema = (await browser.get("/schema/openapi.json")).json()
    assert not [path for path in schema["paths"] if path.startswith("/console")]


async def test_a_database_that_is_away_is_said_in_a_page(
    services: Services,
    postgres_server: EmbeddedPostgres,
    database_urls: DatabaseUrls,
    tenant: TestTenant,
    browser: httpx.AsyncClient,
    login: Login,
) -> None:
    await login(tenant.tokens["operator"])
    await services.database.close()
    name = sql.Identifier(database_urls.name)
    run_sql(postgres_server, sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
    answer = await browser.get("/console/events")
    run_sql(postgres_server, sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
    assert answer.status_code == 503
    assert "<h1>Temporarily unavailable</h1>" in answer.text
    assert database_urls.name not in answer.text
    assert (await browser.get("/console/events")).status_code == 200


async def test_a_key_from_the_settings_outlives_the_process(services: Services, tenant: TestTenant) -> None:
    cookie = ""
    for secret, status in (("one key", 200), ("one key", 200), ("another key", 303)):
        settings = services.settings.model_copy(update={"console_secret": SecretStr(secret)})
        parts = replace(services, settings=settings)
        transport = httpx.ASGITransport(app=create_app(parts, console=[console_router(parts)]))  # type: ignore[arg-type] # Litestar's own ASGI types
        async with httpx.AsyncClient(transport=transport, base_url="http://console.test") as client:
            if not cookie:
                page = await client.get("/console/login")
                fields = {"csrf_token": csrf_of(page.text), "token": tenant.tokens["operator"]}
                cookie = (await client.post("/console/login", data=fields)).headers["set-cookie"].partition(";")[0]
                client.cookies.clear()
            assert (await client.get("/console", headers={"Cookie": cookie})).status_code == status
