"""A deletion leaves a tombstone, and only that proves a deletion: what can't be seen is not taken for deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.fixtures.service import TenantFactory, TestTenant
from tests.fixtures.worker import drain, dump

from memory_os.storage.database import Scope
from memory_os_workers import projector, pruner
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


async def store(client: httpx.AsyncClient, tenant: TestTenant, text: str) -> str:
    answer = await client.post("/v1/memories", json={"text": text, "label": "Attribute"}, headers=tenant.headers())
    assert answer.status_code == 201, answer.text
    return str(answer.json()["memory"]["id"])


def rows(tenant: TestTenant, statement: str, **given: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(tenant.owner_url) as connection:
        cursor = connection.execute(statement, given)
        return cursor.fetchall() if cursor.description else []


def tombstones(tenant: TestTenant) -> set[tuple[str, UUID]]:
    return set(rows(tenant, "SELECT aggregate_type, aggregate_id FROM graph_tombstones"))


async def test_every_deletion_leaves_a_tombstone_also_of_what_goes_with_it(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    first, second = await store(client, tenant, "We met Ann Miller."), await store(client, tenant, "It rained.")
    body: dict[str, Any] = {"type": "ADVANCES", "from": {"memory": first}, "to": {"memory": second}}
    edge = (await client.post("/v1/edges", json=body, headers=tenant.headers())).json()["edge"]["id"]
    body = {"name": "Bob Stone", "entity_type": "person"}
    entity = (await client.post("/v1/memory/entities", json=body, headers=tenant.headers())).json()["entity"]["id"]
    body = {"layer": "memory", "target_id": second, "relationship": "saw"}
    path = f"/v1/memory/entities/{entity}/links"
    link = (await client.post(path, json=body, headers=tenant.headers())).json()["link"]["id"]
    await drain(worker)
    await client.delete(f"/v1/memories/{first}", headers=tenant.headers())
    assert tombstones(tenant) == {("memory", UUID(first)), ("edge", UUID(edge))}
    await drain(worker)
    assert len(tombstones(tenant)) == 2  # a derived entity went, too, and nobody had deleted it
    await client.delete(f"/v1/memory/entities/{entity}", headers=tenant.headers())
    assert tombstones(tenant) >= {("entity", UUID(entity)), ("entity_link", UUID(link))}
    await drain(worker)
    assert set((await dump(worker, tenant.tenant_id)).memories) == {second}


async def test_what_row_level_security_hides_from_a_worker_is_not_deleted(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker whose transactions have entered no tenant sees nothing, and must not take that for an answer."""
    tenant = tenant_factory()
    ident = await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    answer = await client.patch(f"/v1/memories/{ident}", json={"title": "met"}, headers=tenant.headers())
    assert answer.status_code == 200
    parameters = Scope.parameters

    def blind(scope: Scope) -> dict[str, str]:
        return {**parameters(scope), "tenant": ""}

    with monkeypatch.context() as patched:
        patched.setattr(Scope, "parameters", blind)
        await projector.take_turn(worker, tenant.tenant_id)
    assert await dump(worker, tenant.tenant_id) == right
    ((status, error),) = rows(tenant, "SELECT status, last_error FROM outbox_events ORDER BY id DESC LIMIT 1")
    assert status == "pending"
    assert error.startswith("UnseenRowError")
    rows(tenant, "UPDATE outbox_events SET available_at = now() WHERE status = 'pending'")
    await drain(worker)
    assert rows(tenant, "SELECT DISTINCT status FROM outbox_events") == [("done",)]


async def test_a_tombstone_stays_while_an_event_can_come(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "TOMBSTONES_S", 0.0)
    tenant = tenant_factory()
    ident = await store(client, tenant, "We met Ann Miller.")
    await client.delete(f"/v1/memories/{ident}", headers=tenant.headers())
    for status, reason in (("pending", None), ("dead", None), ("discarded", "a test")):
        finished = None if status == "pending" else datetime.now(UTC)
        statement = (
            "UPDATE outbox_events SET status = %(status)s, finished_at = %(finished)s, discard_reason = %(reason)s, "
            "discarded_by = %(reason)s WHERE event_type = 'GRAPH_UPSERT'"
        )
        rows(tenant, statement, status=status, finished=finished, reason=reason)
        await pruner.prune(worker)
        assert tombstones(tenant) == {("memory", UUID(ident))}, status
    rows(
        tenant,
        "UPDATE outbox_events SET status = 'done', finished_at = now(), discard_reason = NULL, discarded_by = NULL",
    )
    await pruner.prune(worker)
    assert tombstones(tenant) == set()


async def test_what_comes_back_under_its_old_id_has_no_tombstone(
    client: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    tenant = tenant_factory()
    body = {"text": "We met Ann Miller.", "label": "Attribute", "id": "01990000-0000-7000-8000-000000000001"}
    for _ in range(2):
        answer = await client.post("/v1/memories", json=body, headers=tenant.headers())
        assert answer.status_code == 201, answer.text
        assert tombstones(tenant) == set()
        await client.delete(f"/v1/memories/{body['id']}", headers=tenant.headers())
        assert tombstones(tenant) == {("memory", UUID(body["id"]))}
