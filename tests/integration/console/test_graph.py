"""The graph page and rebuilds."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import httpx
import psycopg
import pytest
from tests.fixtures.console import Events, Login, csrf_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token
from tests.fixtures.worker import drain, rebuild

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os_console import console_router
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


async def store(browser: httpx.AsyncClient, tenant: TestTenant, *texts: str) -> None:
    items = [{"text": text, "label": "Event"} for text in texts]
    answer = await browser.post("/v1/memories/batch", json={"items": items}, headers=tenant.headers())
    assert answer.status_code == 200


async def test_stats_and_the_strongest_entities(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, worker: WorkerContext
) -> None:
    await store(browser, tenant, "Anna Berg met Boris Klein.", "Anna Berg leads Project Falcon.")
    await drain(worker)
    await login(tenant.tokens["operator"])
    page = (await browser.get("/console/graph")).text
    assert "<dt>Memories</dt><dd>2</dd>" in page
    assert "<dt>Events behind</dt><dd>0</dd>" in page
    names = re.findall(r'<span class="name" title="[^"]+">([^<]+)</span>', page)
    assert names[0] == "Anna Berg"
    assert "MENTIONS" in page


async def test_a_rebuild_is_asked_for_followed_and_listed(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, worker: WorkerContext, events: Events
) -> None:
    await store(browser, tenant, "Anna Berg met Boris Klein.")
    await login(tenant.tokens["admin"])
    page = (await browser.get("/console/graph")).text
    answer = await browser.post("/console/graph", data={"csrf_token": csrf_of(page), "user_id": ""})
    assert answer.status_code == 303
    job = answer.headers["location"]
    waiting = (await browser.get(job)).text
    assert '<span class="badge pending">pending</span>' in waiting
    assert f'hx-get="{job}" hx-trigger="every 1s"' in waiting
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in waiting
    again = await browser.post("/console/graph", data={"csrf_token": csrf_of(page)})
    assert (again.status_code, again.headers["location"]) == (303, job)
    assert "Nothing was started: a rebuild of this graph is pending or running." in (await browser.get(job)).text
    assert "follow it" in (await browser.get("/console/graph")).text
    await rebuild(worker)
    done = (await browser.get(job)).text
    assert '<span class="badge done">done</span>' in done
    assert 'value="100.0"' in done
    assert "hx-get" not in done
    assert job in (await browser.get("/console/graph")).text
    assert [action for action, _, _ in events.audit(tenant)] == ["graph.rebuild"]


async def test_a_rebuild_of_one_user(browser: httpx.AsyncClient, login: Login, tenant: TestTenant) -> None:
    await login(tenant.tokens["admin"])
    page = (await browser.get("/console/graph")).text
    for wrong in ("x" * 201, "a\x01b"):
        answer = await browser.post("/console/graph", data={"csrf_token": csrf_of(page), "user_id": wrong})
        assert answer.status_code == 422
    answer = await browser.post("/console/graph", data={"csrf_token": csrf_of(page), "user_id": "<anna>"})
    assert "memories of user &lt;anna&gt;" in (await browser.get(answer.headers["location"])).text


async def test_a_failed_rebuild_says_why(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    ident = new_id()
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO graph_rebuilds (tenant_id, id, status, phase, total, processed, requested_by, error, "
            "started_at, finished_at) "
            "VALUES (%s, %s, 'failed', 'failed', 100, 40, 'anna', 'DataError: <b>', now(), now())",
            (tenant.tenant_id, ident),
        )
    await login(tenant.tokens["operator"])
    page = (await browser.get(f"/console/graph/rebuilds/{ident}")).text
    assert "DataError: &lt;b&gt;" in page
    assert "The graph is as it was before." in page
    assert "hx-get" not in page


async def test_another_tenants_graph_and_rebuilds_are_not_there(
    browser: httpx.AsyncClient, login: Login, tenant_factory: TenantFactory
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    await login(other.tokens["admin"])
    page = (await browser.get("/console/graph")).text
    job = (await browser.post("/console/graph", data={"csrf_token": csrf_of(page)})).headers["location"]
    browser.cookies.clear()
    await login(mine.tokens["admin"])
    assert (await browser.get(job)).status_code == 404
    assert (await browser.get(f"/console/graph?tenant_id={other.tenant_id}")).status_code == 403
    page = (await browser.get("/console/graph")).text
    fields = {"csrf_token": csrf_of(page), "tenant_id": str(other.tenant_id)}
    assert (await browser.post("/console/graph", data=fields)).status_code == 403


async def test_root_chooses_a_tenant_and_rebuilds_without_reading_names(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    await store(browser, tenant, "Anna Berg met Boris Klein.")
    await drain(worker)
    await login(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))
    choice = (await browser.get("/console/graph")).text
    assert f'href="/console/graph?tenant_id={tenant.tenant_id}"' in choice
    page = (await browser.get(f"/console/graph?tenant_id={tenant.tenant_id}")).text
    assert "<dt>Memories</dt><dd>1</dd>" in page
    assert "Anna Berg" not in page
    assert "Names of entities show to the tenant's own operators." in html.unescape(page)
    for wrong in (str(new_id()), "x", str(INSTANCE_TENANT)):
        assert (await browser.get(f"/console/graph?tenant_id={wrong}")).status_code in (404, 200)
        answer = await browser.post("/console/graph", data={"csrf_token": csrf_of(page), "tenant_id": wrong})
        assert answer.status_code in (404, 422)
    fields = {"csrf_token": csrf_of(page), "tenant_id": str(tenant.tenant_id)}
    answer = await browser.post("/console/graph", data=fields)
    assert answer.status_code == 303
    assert (await browser.get(answer.headers["location"])).status_code == 200


async def test_without_graph_memory_the_page_names_the_setting(services: Services, tenant: TestTenant) -> None:
    parts = replace(services, graph=None)
    transport = httpx.ASGITransport(app=create_app(parts, console=[console_router(parts)]))  # type: ignore[arg-type] # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://console.test") as client:
        page = await client.get("/console/login")
        await client.post("/console/login", data={"csrf_token": csrf_of(page.text), "token": tenant.tokens["admin"]})
        page = await client.get("/console/graph")
        assert "ENABLE_GRAPH_MEMORY" in page.text
        assert "Rebuild</button>" not in page.text
        answer = await client.post("/console/graph", data={"csrf_token": csrf_of(page.text)})
        assert answer.status_code == 400
        assert "ENABLE_GRAPH_MEMORY" in answer.text
        assert "Graph memory is off" in (await client.get("/console")).text
