"""A graph that was lost, replaced or restarted is noticed and made right by itself; answers say so meanwhile."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest
from tests.fixtures.service import TenantFactory, TestTenant
from tests.fixtures.worker import drain, dump, rebuild

from memory_os.graph.port import GraphPatch, MemoryNode
from memory_os_workers import rebuilder, verifier, watcher
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


async def store(client: httpx.AsyncClient, tenant: TestTenant, text: str) -> str:
    answer = await client.post("/v1/memories", json={"text": text, "label": "Attribute"}, headers=tenant.headers())
    assert answer.status_code == 201, answer.text
    return str(answer.json()["memory"]["id"])


async def graph_state(client: httpx.AsyncClient, tenant: TestTenant) -> str:
    body = {"query": "What about Ann Miller?"}
    answer = await client.post("/v1/retrieve", json=body, headers=tenant.headers("reader"))
    assert answer.status_code == 200, answer.text
    return str(answer.json()["graph"]["state"])


async def rebuilds(client: httpx.AsyncClient, tenant: TestTenant) -> list[tuple[str, str]]:
    listed = await client.get("/v1/graph/rebuilds", headers=tenant.headers("operator"))
    return [(job["status"], job["requested_by"]) for job in listed.json()["items"]]


LOST = "the service: the graph was lost or replaced"


async def test_a_lost_graph_is_noticed_by_the_next_question_and_rebuilt_by_the_watcher(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await store(client, tenant, "Later Ann Miller met Carl Berg.")
    await drain(worker)
    await watcher.look(worker, every_s=0)
    right = await dump(worker, tenant.tenant_id)
    assert await graph_state(client, tenant) == "current"
    await worker.backend.drop(tenant.tenant_id)
    assert await graph_state(client, tenant) == "degraded"
    await watcher.look(worker, every_s=0)
    assert await rebuilds(client, tenant) == [("pending", LOST)]
    await watcher.look(worker, every_s=0)
    assert len(await rebuilds(client, tenant)) == 1
    assert await graph_state(client, tenant) == "degraded"
    await rebuild(worker)
    assert await dump(worker, tenant.tenant_id) == right
    assert await graph_state(client, tenant) == "current"
    await watcher.look(worker, every_s=0)
    assert await rebuilds(client, tenant) == [("done", LOST)]


async def test_a_lost_graph_is_noticed_by_the_next_event(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    await worker.backend.drop(tenant.tenant_id)
    await store(client, tenant, "Later Ann Miller met Carl Berg.")
    await drain(worker)
    assert await rebuilds(client, tenant) == [("pending", LOST)]
    await rebuild(worker)
    assert len((await dump(worker, tenant.tenant_id)).memories) == 2
    await store(client, tenant, "Then nothing more was heard of Ann Miller.")
    await drain(worker)
    assert await rebuilds(client, tenant) == [("done", LOST)]
    assert await graph_state(client, tenant) == "current"


async def test_a_graph_that_another_put_in_its_place_is_replaced(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    await worker.backend.drop(tenant.tenant_id)
    await worker.backend.take_fence(tenant.tenant_id, "stranger")
    patch = GraphPatch(memories=[MemoryNode("of another", "Skill", "active", 1)])
    await worker.backend.apply(tenant.tenant_id, "stranger", patch)
    await watcher.look(worker, every_s=0)
    await rebuild(worker)
    assert await dump(worker, tenant.tenant_id) == right


async def test_a_worker_that_dies_between_swap_and_report_leaves_a_graph_that_is_known(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    asked = await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))
    assert asked.status_code == 202

    async def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rebuilder, "_end", die)
        with pytest.raises(KeyboardInterrupt):
            await rebuilder.take_job(worker)
    worker.epochs.clear()
    await watcher.look(worker, every_s=0)
    await store(client, tenant, "Later Ann Miller met Carl Berg.")
    await drain(worker)
    assert [status for status, _ in await rebuilds(client, tenant)] == ["running"]
    assert await graph_state(client, tenant) == "current"


async def test_a_failing_rebuild_is_not_asked_for_again_at_once(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    await worker.backend.drop(tenant.tenant_id)
    await watcher.look(worker, every_s=0)
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("UPDATE graph_rebuilds SET status = 'failed', finished_at = now()")
    await watcher.look(worker, every_s=0)
    assert await rebuilds(client, tenant) == [("failed", LOST)]
    assert await graph_state(client, tenant) == "degraded"
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("UPDATE graph_rebuilds SET finished_at = now() - interval '6 minutes'")
    await watcher.look(worker, every_s=0)
    assert sorted(await rebuilds(client, tenant)) == [("failed", LOST), ("pending", LOST)]


async def test_a_restarted_server_has_every_graph_compared_and_mended(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tenant_factory(), tenant_factory()
    for tenant in (first, second):
        await store(client, tenant, "We met Ann Miller and Bob Stone.")
        await store(client, tenant, "Later Ann Miller met Carl Berg.")
    await drain(worker)
    await watcher.look(worker, every_s=0)
    right = await dump(worker, first.tenant_id)
    # What a crash takes with it: the last second of acknowledged writes.
    await worker.backend.take_fence(first.tenant_id, "crash")
    await worker.backend.apply(first.tenant_id, "crash", GraphPatch(deleted_memories=[max(right.memories)]))

    async def another() -> str:
        return "another run"

    monkeypatch.setattr(worker.backend, "ping", another)
    monkeypatch.setattr(type(worker.backend), "keeps_writes", False)
    await watcher.look(worker, every_s=0)
    assert await graph_state(client, first) == await graph_state(client, second) == "degraded"
    while await verifier.take_job(worker):
        pass
    assert await graph_state(client, first) == await graph_state(client, second) == "current"
    assert await dump(worker, first.tenant_id) == right
    await watcher.look(worker, every_s=0)
    assert not await verifier.take_job(worker)


async def test_one_worker_looks_for_all(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller.")
    await drain(worker)
    await watcher.look(worker, every_s=60)
    await worker.backend.drop(tenant.tenant_id)
    await watcher.look(worker, every_s=60)
    assert await rebuilds(client, tenant) == []
    await watcher.look(worker, every_s=0)
    assert await rebuilds(client, tenant) == [("pending", LOST)]


async def test_it_is_time_to_compare_after_a_day(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller.")
    await drain(worker)
    await verifier.schedule(worker)
    assert not await verifier.take_job(worker)
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("UPDATE graph_states SET created_at = now() - interval '25 hours'")
    await verifier.schedule(worker)
    await verifier.schedule(worker)
    assert await verifier.take_job(worker)
    assert not await verifier.take_job(worker)
    await verifier.schedule(worker)
    assert not await verifier.take_job(worker)
    listed = await client.get("/v1/graph/verifications", headers=tenant.headers("operator"))
    assert [(found["requested_by"], found["equal"]) for found in listed.json()["items"]] == [("schedule", True)]


async def test_a_restart_during_a_comparison_is_mended_after_it(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    await watcher.look(worker, every_s=0)
    right = await dump(worker, tenant.tenant_id)
    asked = await client.get("/v1/graph/verify", params={"wait_s": 0}, headers=tenant.headers("operator"))
    assert asked.status_code == 202
    await worker.backend.take_fence(tenant.tenant_id, "crash")
    await worker.backend.apply(tenant.tenant_id, "crash", GraphPatch(deleted_memories=list(right.memories)))

    async def another() -> str:
        return "another run"

    monkeypatch.setattr(worker.backend, "ping", another)
    monkeypatch.setattr(type(worker.backend), "keeps_writes", False)
    await watcher.look(worker, every_s=0)
    assert await verifier.take_job(worker)  # it had been asked for without a repair, and so repairs nothing
    assert await graph_state(client, tenant) == "degraded"
    await watcher.look(worker, every_s=0)
    assert await verifier.take_job(worker)
    assert await dump(worker, tenant.tenant_id) == right
    assert await graph_state(client, tenant) == "current"
