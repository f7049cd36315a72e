"""A connection carries nothing from one request to the next, however the first one ends; behind PgBouncer neither."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import httpx
import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant
from tests.security.pooler import run_pgbouncer

from memory_os.api.services import Services
from memory_os.app import create_app, open_services
from memory_os.settings import Settings
from memory_os.storage.database import STEWARD, Database, Scope, Transaction

pytestmark = pytest.mark.anyio

TENANTS, REQUESTS = 8, 200

_LEFT = text(
    "SELECT current_user = session_user AS own_role, "
    "coalesce(nullif(current_setting('memory_os.tenant_id', true), ''), "
    "nullif(current_setting('memory_os.role', true), ''), nullif(current_setting('memory_os.user_id', true), ''), "
    "nullif(current_setting('memory_os.groups', true), '')) AS left_over"
)


@asynccontextmanager
async def _served(settings: Settings) -> AsyncIterator[tuple[httpx.AsyncClient, Services]]:
    async with open_services(settings) as services:
        transport = httpx.ASGITransport(app=create_app(services), raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own types
        async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client:
            yield client, services


def _with_one_connection(settings: Settings) -> Settings:
    return settings.model_copy(update={"database_pool_size": 1, "enable_graph_memory": False})


async def _refused(client: httpx.AsyncClient, tenant: TestTenant, _: pytest.MonkeyPatch) -> None:
    body = {"text": "x", "label": "Skill", "dedup": "off", "edges": [{"type": "SUPPORTS", "to": str(uuid4())}]}
    assert (await client.post("/v1/memories", json=body, headers=_headers(tenant))).status_code == 422


async def _failed(client: httpx.AsyncClient, tenant: TestTenant, patch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("after the rows were written")

    await _store(client, tenant, patch, fail, expected=500)


async def _gone(client: httpx.AsyncClient, tenant: TestTenant, patch: pytest.MonkeyPatch) -> None:
    inside = asyncio.Event()

    async def wait(*_: object, **__: object) -> None:
        inside.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(_store(client, tenant, patch, wait, expected=0))
    await inside.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _timed_out(client: httpx.AsyncClient, tenant: TestTenant, patch: pytest.MonkeyPatch) -> None:
    async def sleep(tx: Transaction, *_: object, **__: object) -> None:
        await tx.run(text("SET LOCAL statement_timeout = 10"))
        await tx.run(text("SELECT pg_sleep(5)"))

    await _store(client, tenant, patch, sleep, expected=500)


async def _killed(client: httpx.AsyncClient, tenant: TestTenant, patch: pytest.MonkeyPatch) -> None:
    async def die(tx: Transaction, *_: object, **__: object) -> None:
        pid = (await tx.rows(text("SELECT pg_backend_pid() AS pid")))[0]["pid"]
        with psycopg.connect(tenant.owner_url) as owner:
            owner.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        await tx.run(text("SELECT 1"))

    await _store(client, tenant, patch, die, expected=503)


async def _store(
    client: httpx.AsyncClient,
    tenant: TestTenant,
    patch: pytest.MonkeyPatch,
    instead: Callable[..., Awaitable[None]],
    *,
    expected: int,
) -> None:
    """Store a memory in a request whose transaction goes wrong at its end."""
    patch.setattr("memory_os.api.calls.keep_answer", instead)
    body = {"text": "unfinished", "label": "Skill", "dedup": "off"}
    headers = {**_headers(tenant), "Idempotency-Key": str(uuid4())}
    try:
        assert (await client.post("/v1/memories", json=body, headers=headers)).status_code == expected
    finally:
        patch.undo()


def _headers(tenant: TestTenant) -> dict[str, str]:
    return tenant.headers(user="ann", groups=["bakers"])


@pytest.mark.parametrize("end", [_refused, _failed, _gone, _timed_out, _killed], ids=lambda end: end.__name__)
async def test_the_next_request_finds_nothing_of_one_that_ended_badly(
    service_settings: Settings,
    tenant_factory: TenantFactory,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[httpx.AsyncClient, TestTenant, pytest.MonkeyPatch], Awaitable[None]],
) -> None:
    first, second = tenant_factory(), tenant_factory()
    async with _served(_with_one_connection(service_settings)) as (client, services):
        for tenant in (first, second):
            body = {"text": f"of {tenant.tenant_id}", "label": "Skill"}
            assert (await client.post("/v1/memories", json=body, headers=_headers(tenant))).status_code == 201
        await end(client, first, monkeypatch)
        await _assert_blank(services.database)
        for tenant in (second, first):
            listed = (await client.get("/v1/memories", headers=tenant.headers("reader"))).json()["items"]
            assert [item["text"] for item in listed] == [f"of {tenant.tenant_id}"]


async def _assert_blank(database: Database) -> None:
    """The only connection has no role, tenant, user or groups by now, and sees no row."""
    async with database.engine.connect() as connection:
        assert (await connection.execute(_LEFT)).one() == (True, None)
    async with database.transaction(Scope("memory_os_app")) as tx:
        assert await tx.rows(text("SELECT 1 FROM memories UNION ALL SELECT 1 FROM entities")) == []


class _UnexpectedError(Exception):
    """What a test raises inside a block."""


@pytest.mark.parametrize("nested", [False, True])
async def test_the_steward_leaves_when_its_block_raises_and_somebody_catches_that(
    database_urls: DatabaseUrls, tenant: TestTenant, *, nested: bool
) -> None:
    database = Database(database_urls.app_url, pool_size=1)
    scope = Scope("memory_os_app", tenant.tenant_id, "reader")
    role = text("SELECT current_setting('memory_os.role') AS role")
    async with database.transaction(scope) as tx:
        with suppress(_UnexpectedError):
            async with tx.as_steward():
                if nested:
                    async with tx.as_steward():
                        pass
                assert (await tx.rows(role))[0]["role"] in (STEWARD, "reader")
                raise _UnexpectedError
        assert (await tx.rows(role))[0]["role"] == "reader"
    async with database.transaction(scope) as tx:
        assert (await tx.rows(role))[0]["role"] == "reader"
    await database.close()


async def test_the_steward_leaves_when_a_statement_fails_and_the_savepoint_goes(
    database_urls: DatabaseUrls, tenant: TestTenant
) -> None:
    database = Database(database_urls.app_url, pool_size=1)
    role = text("SELECT current_setting('memory_os.role') AS role")
    with suppress(DBAPIError):
        async with database.transaction(Scope("memory_os_app", tenant.tenant_id, "reader")) as tx:
            await tx.run(text("SAVEPOINT before"))
            with suppress(DBAPIError):
                async with tx.as_steward():
                    await tx.run(text("SELECT 1 / 0"))
            await tx.run(text("ROLLBACK TO SAVEPOINT before"))
            assert (await tx.rows(role))[0]["role"] == "reader"
    await _assert_blank(database)
    await database.close()


async def test_tenants_stay_apart_behind_a_pooler_in_transaction_mode(
    service_settings: Settings, database_urls: DatabaseUrls, tenant_factory: TenantFactory
) -> None:
    tenants = [tenant_factory() for _ in range(TENANTS)]
    with run_pgbouncer(database_urls, connections=2) as url:
        pooled = {"database_url": SecretStr(url), "database_prepare": False, "database_pool_size": 8}
        settings = service_settings.model_copy(update={**pooled, "enable_graph_memory": False})
        async with _served(settings) as (client, services):
            seen = await asyncio.gather(
                *(_use(client, tenants[number % TENANTS], number) for number in range(REQUESTS))
            )
            assert all(seen)
            await _assert_blank(services.database)
            for tenant in tenants:
                listed = (await client.get("/v1/memories?limit=200", headers=_headers(tenant))).json()["items"]
                texts = {item["text"] for item in listed}
                assert texts == {f"of {tenant.tenant_id}"}
                assert len(listed) == len([number for number in range(REQUESTS) if number % 5]) // TENANTS


async def test_one_connection_behind_a_pooler_serves_all(
    service_settings: Settings, database_urls: DatabaseUrls, tenant_factory: TenantFactory
) -> None:
    tenants = [tenant_factory() for _ in range(TENANTS)]
    with run_pgbouncer(database_urls, connections=1) as url:
        pooled = {"database_url": SecretStr(url), "database_prepare": False}
        settings = _with_one_connection(service_settings).model_copy(update=pooled)
        async with _served(settings) as (client, services):
            seen = await asyncio.gather(*(_use(client, tenants[number % TENANTS], number) for number in range(40)))
            assert all(seen)
            await _assert_blank(services.database)


async def _use(client: httpx.AsyncClient, tenant: TestTenant, number: int) -> bool:
    """Store or be refused, then look: nothing of another tenant is there."""
    body: dict[str, object] = {"text": f"of {tenant.tenant_id}", "label": "Skill", "dedup": "off"}
    if number % 5 == 0:
        body["edges"] = [{"type": "SUPPORTS", "to": str(uuid4())}]  # refused after it was written
    stored = await client.post("/v1/memories", json=body, headers=_headers(tenant))
    assert stored.status_code == (422 if number % 5 == 0 else 201), stored.text
    listed = (await client.get("/v1/memories?limit=200", headers=_headers(tenant))).json()["items"]
    return {item["text"] for item in listed} <= {f"of {tenant.tenant_id}"}
