"""Comparing, repairing, cancelling and waiting over the API."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token, bearer
from tests.fixtures.worker import drain, dump

from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.graph.port import FenceLostError, GraphPatch
from memory_os.projection import rebuilder as rebuild_engine
from memory_os_workers import heartbeat, rebuilder, verifier
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

NOBODY = "00000000-0000-4000-8000-000000000000"


async def store(client: httpx.AsyncClient, tenant: TestTenant, text: str) -> int:
    answer = await client.post("/v1/memories", json={"text": text, "label": "Attribute"}, headers=tenant.headers())
    assert answer.status_code == 201, answer.text
    return int(answer.json()["position"])


async def test_a_comparison_answers_when_a_worker_has_done_it(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    await heartbeat.beat(worker, "idle")
    asking = asyncio.create_task(client.get("/v1/graph/verify", headers=tenant.headers("operator")))
    while not await verifier.take_job(worker):  # noqa: ASYNC110 - the job comes by way of Postgres
        await asyncio.sleep(0.01)
    answer = await asking
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["status"], found["equal"], found["differences"]) == ("done", True, [])
    assert found["parts"]["memories"] == {"rows": 1, "missing": 0, "extra": 0, "differing": 0}


async def test_a_comparison_that_is_not_done_in_time_is_followed(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers("operator")
    first = await client.get("/v1/graph/verify", params={"wait_s": 0}, headers=headers)
    again = await client.get("/v1/graph/verify", params={"wait_s": 0.1}, headers=headers)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert (first.json()["status"], first.json()["equal"]) == ("pending", None)
    followed = await client.get(f"/v1/graph/verifications/{first.json()['id']}", headers=headers)
    assert followed.json() == first.json()


async def test_a_repair_is_no_rider_on_a_comparison(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    running = await client.get("/v1/graph/verify", params={"wait_s": 0}, headers=tenant.headers("operator"))
    repair = await client.post("/v1/graph/repair", json={"dry_run": False}, headers=tenant.headers("admin"))
    assert repair.status_code == 409
    assert repair.json()["type"].endswith("verification-running")
    assert repair.json()["verification_id"] == running.json()["id"]
    dry = await client.post("/v1/graph/repair", json={}, headers=tenant.headers("admin"))
    assert (dry.status_code, dry.json()["id"]) == (202, running.json()["id"])


async def test_a_repair_is_in_the_audit_log_and_done_once_for_a_key(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = {**tenant.headers("admin"), "Idempotency-Key": str(uuid4())}
    first = await client.post("/v1/graph/repair", json={"dry_run": False}, headers=headers)
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("UPDATE graph_verifications SET status = 'done', finished_at = now()")
    again = await client.post("/v1/graph/repair", json={"dry_run": False}, headers=headers)
    assert (first.status_code, again.json()["id"]) == (202, first.json()["id"])
    audit = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
    assert [entry["action"] for entry in audit] == ["graph.repair"]


@pytest.mark.parametrize(
    ("method", "path", "role", "expected"),
    [
        ("GET", "/v1/graph/verify?wait_s=0", "reader", 403),
        ("GET", "/v1/graph/verify?wait_s=0", "writer", 403),
        ("GET", "/v1/graph/verify?wait_s=301", "operator", 422),
        ("GET", "/v1/graph/verify?wait_s=x", "operator", 422),
        ("POST", "/v1/graph/repair", "operator", 403),
        ("POST", f"/v1/graph/rebuilds/{NOBODY}/cancel", "operator", 403),
        ("POST", f"/v1/graph/rebuilds/{NOBODY}/cancel", "admin", 404),
        ("GET", f"/v1/graph/verifications/{NOBODY}", "operator", 404),
        ("GET", "/v1/graph/stats?wait_for=-1", "reader", 422),
        ("GET", "/v1/graph/stats?wait_for=1&timeout_ms=5001", "reader", 422),
    ],
)
async def test_who_may_ask_what(
    client: httpx.AsyncClient, tenant: TestTenant, method: str, path: str, role: str, expected: int
) -> None:
    body: dict[str, Any] | None = {} if path.endswith("repair") else None
    answer = await client.request(method, path, json=body, headers=tenant.headers(role))
    assert answer.status_code == expected, answer.text


async def test_root_names_the_tenant_and_others_see_their_own(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, database_urls: DatabaseUrls
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    root = bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))
    assert (await client.get("/v1/graph/verify", params={"wait_s": 0}, headers=root)).status_code == 422
    named = {"tenant_id": str(other.tenant_id), "wait_s": "0"}
    theirs = await client.get("/v1/graph/verify", params=named, headers=root)
    assert theirs.status_code == 202
    hidden = await client.get(f"/v1/graph/verifications/{theirs.json()['id']}", headers=mine.headers("admin"))
    assert hidden.status_code == 404
    assert (await client.get("/v1/graph/verifications", headers=mine.headers("admin"))).json()["items"] == []
    assert len((await client.get("/v1/graph/verifications", headers=root)).json()["items"]) == 1


async def test_a_rebuild_is_called_off_before_and_while_it_runs(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = tenant.headers("admin")
    await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    waiting = (await client.post("/v1/graph/rebuild", json={}, headers=admin)).json()["id"]
    off = await client.post(f"/v1/graph/rebuilds/{waiting}/cancel", headers=admin)
    assert (off.status_code, off.json()["status"]) == (200, "cancelled")
    assert not await rebuilder.take_job(worker)
    assert (await client.post(f"/v1/graph/rebuilds/{waiting}/cancel", headers=admin)).status_code == 409

    running = (await client.post("/v1/graph/rebuild", json={}, headers=admin)).json()["id"]
    load, tokens = worker.backend.load, set[str]()

    async def cancelled_meanwhile(*arguments: Any) -> None:
        tokens.add(arguments[1])
        await load(*arguments)
        await client.post(f"/v1/graph/rebuilds/{running}/cancel", headers=admin)

    with monkeypatch.context() as patched:
        patched.setattr(worker.backend, "load", cancelled_meanwhile)
        patched.setattr(rebuild_engine, "PAGE", 1)
        assert await rebuilder.take_job(worker)
    assert await dump(worker, tenant.tenant_id) == right
    with pytest.raises(FenceLostError):
        await load(tenant.tenant_id, *tokens, GraphPatch())  # what was built is gone, too
    job = (await client.get(f"/v1/graph/rebuilds/{running}", headers=admin)).json()
    assert (job["status"], job["finished_at"] is not None) == ("cancelled", True)
    audit = (await client.get("/v1/audit", headers=admin)).json()["items"]
    assert [entry["action"] for entry in audit].count("graph.cancel") == 2
    # The tenant is free again: a further rebuild and the projection go on.
    assert (await client.post("/v1/graph/rebuild", json={}, headers=admin)).status_code == 202
    assert await rebuilder.take_job(worker)
    await store(client, tenant, "Later Ann Miller met Carl Berg.")
    await drain(worker)
    assert len((await dump(worker, tenant.tenant_id)).memories) == 2


async def test_statistics_wait_for_a_write(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    position = await store(client, tenant, "We met Ann Miller and Bob Stone.")
    wanted = {"wait_for": position, "timeout_ms": 5000}
    asking = asyncio.create_task(client.get("/v1/graph/stats", params=wanted, headers=tenant.headers("reader")))
    await asyncio.sleep(0.1)
    assert not asking.done()
    await drain(worker)
    stats = (await asking).json()
    assert stats["position"] >= position
    assert stats["memory_nodes"] == 1
    late = await store(client, tenant, "Later Ann Miller met Carl Berg.")
    brief = {"wait_for": late, "timeout_ms": 50}
    stats = (await client.get("/v1/graph/stats", params=brief, headers=tenant.headers("reader"))).json()
    assert stats["position"] < late
    assert stats["lag"]["events"] == 1


async def test_a_dead_deletion_and_differences_are_in_the_metrics(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    await store(client, tenant, "We met Ann Miller.")
    await drain(worker)
    await worker.backend.drop(tenant.tenant_id)
    asked = await client.get("/v1/graph/verify", params={"wait_s": 0}, headers=tenant.headers("operator"))
    assert asked.status_code == 202
    assert await verifier.take_job(worker)
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
            "attempts, finished_at) VALUES (%s, 'GRAPH_DELETE', 'memory', %s, 2, 'dead', 5, now())",
            (tenant.tenant_id, uuid4()),
        )
    lines = (await client.get("/metrics")).text.splitlines()
    assert "memory_os_outbox_dead_deletes 1.0" in lines
    assert "memory_os_graph_differences 3.0" in lines  # the memory, its entity, its mention
    assert "memory_os_graphs_differing 1.0" in lines
    assert (await client.get("/readyz")).json()["outbox"]["dead_deletes"] == 1
