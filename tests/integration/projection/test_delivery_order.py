"""Events that come late, or in the wrong order, on both backends: what is true now is what the graph ends in."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain, dump, rebuild

from memory_os.graph.port import GraphDump
from memory_os.settings import Settings
from memory_os_workers import projector
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """One event at a time, so that each delivery stands for itself."""
    return service_settings.model_copy(update={"worker_batch_size": 1})


async def store(client: httpx.AsyncClient, tenant: TestTenant, text: str) -> str:
    answer = await client.post("/v1/memories", json={"text": text, "label": "Attribute"}, headers=tenant.headers())
    assert answer.status_code == 201, answer.text
    return str(answer.json()["memory"]["id"])


async def change(client: httpx.AsyncClient, tenant: TestTenant, ident: str, text: str) -> None:
    answer = await client.patch(f"/v1/memories/{ident}", json={"text": text}, headers=tenant.headers())
    assert answer.status_code == 200, answer.text


def run(tenant: TestTenant, statement: str, **given: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(tenant.owner_url) as connection:
        cursor = connection.execute(statement, given)
        return cursor.fetchall() if cursor.description else []


def events_of(tenant: TestTenant, ident: str) -> list[tuple[int, str, str, int]]:
    """Version, type, status and attempts of a memory's events, as they were written."""
    statement = (
        "SELECT version, event_type, status, attempts FROM outbox_events WHERE aggregate_id = %(id)s ORDER BY id"
    )
    return run(tenant, statement, id=UUID(ident))


def put_off(tenant: TestTenant, ident: str, version: int, minutes: int) -> None:
    """Set when the event of a version is due, from now on."""
    statement = (
        "UPDATE outbox_events SET available_at = now() + %(minutes)s * interval '1 minute' "
        "WHERE aggregate_id = %(id)s AND version = %(version)s"
    )
    run(tenant, statement, id=UUID(ident), version=version, minutes=minutes)


def named(graph: GraphDump, ident: str) -> set[str]:
    return {graph.entities[entity].name for memory, entity in graph.mentions if memory == ident}


async def check_rebuilt(client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext) -> None:
    grown = await dump(worker, tenant.tenant_id)
    asked = await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))
    assert asked.status_code == 202, asked.text
    await rebuild(worker)
    assert await dump(worker, tenant.tenant_id) == grown


@pytest.mark.parametrize("known", [False, True], ids=["a new node", "a node that is there"])
async def test_an_upsert_that_failed_twice_does_not_bring_a_deleted_node_back(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, known: bool
) -> None:
    kept = await store(client, tenant, "We met Bob Stone.")
    ident = await store(client, tenant, "We met Ann Miller and Bob Stone.")
    version = 1
    if known:
        await drain(worker)
        await change(client, tenant, ident, "We met Carl Berg and Bob Stone.")
        version = 2
    # A moment that Python can't hold: the event fails for what it carries, not for the infrastructure.
    run(tenant, "UPDATE memories SET valid_to = 'infinity' WHERE id = %(id)s", id=UUID(ident))
    for attempt in (1, 2):
        put_off(tenant, ident, version, 0)
        await projector.take_turn(worker, tenant.tenant_id)
        assert events_of(tenant, ident)[-1] == (version, "GRAPH_UPSERT", "pending", attempt)
    put_off(tenant, ident, version, 60)  # its wait outlasts what follows
    run(tenant, "UPDATE memories SET valid_to = NULL WHERE id = %(id)s", id=UUID(ident))

    assert (await client.delete(f"/v1/memories/{ident}", headers=tenant.headers())).status_code == 200
    await drain(worker)
    assert events_of(tenant, ident)[-2:] == [
        (version, "GRAPH_UPSERT", "pending", 2),
        (version + 1, "GRAPH_DELETE", "done", 1),
    ]
    deleted = await dump(worker, tenant.tenant_id)
    assert set(deleted.memories) == {kept}
    assert {node.name for node in deleted.entities.values()} == {"Bob Stone"}

    put_off(tenant, ident, version, 0)
    await drain(worker)
    assert events_of(tenant, ident)[-2] == (version, "GRAPH_UPSERT", "done", 3)
    assert await dump(worker, tenant.tenant_id) == deleted
    await check_rebuilt(client, tenant, worker)


async def test_updates_delivered_in_the_wrong_order_end_in_the_later_one(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    ident = await store(client, tenant, "We met Ann Miller.")
    await drain(worker)
    await change(client, tenant, ident, "We met Bob Stone.")
    await change(client, tenant, ident, "We met Carl Berg.")
    put_off(tenant, ident, 2, 60)
    await drain(worker)
    assert [(version, status) for version, _, status, _ in events_of(tenant, ident)] == [
        (1, "done"),
        (2, "pending"),
        (3, "done"),
    ]
    later = await dump(worker, tenant.tenant_id)
    assert (later.memories[ident].version, named(later, ident)) == (3, {"Carl Berg"})

    put_off(tenant, ident, 2, 0)
    await drain(worker)
    assert events_of(tenant, ident)[1] == (2, "GRAPH_UPSERT", "done", 1)
    assert await dump(worker, tenant.tenant_id) == later
    await check_rebuilt(client, tenant, worker)


async def test_a_change_delivered_before_the_creation_stands(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    ident = await store(client, tenant, "We met Ann Miller.")
    await change(client, tenant, ident, "We met Bob Stone.")
    put_off(tenant, ident, 1, 60)
    await drain(worker)
    changed = await dump(worker, tenant.tenant_id)
    assert (changed.memories[ident].version, named(changed, ident)) == (2, {"Bob Stone"})

    put_off(tenant, ident, 1, 0)
    await drain(worker)
    assert [(status, attempts) for _, _, status, attempts in events_of(tenant, ident)] == [("done", 1)] * 2
    assert await dump(worker, tenant.tenant_id) == changed
    await check_rebuilt(client, tenant, worker)


async def test_what_changes_between_reading_and_writing_is_not_lost_to_the_older_state(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    """An update that a worker has read is overtaken by the next one; both are written, the older one first."""
    ident = await store(client, tenant, "We met Ann Miller.")
    lease = await worker.queue.lease(tenant.tenant_id)
    assert lease is not None
    await worker.backend.take_fence(tenant.tenant_id, str(lease.token))
    events = await worker.queue.claim(lease, 1)
    read = await worker.projector.load(lease, events)
    await change(client, tenant, ident, "We met Bob Stone.")
    await worker.projector.write(lease, await worker.projector.derive(lease, read))
    assert (await dump(worker, tenant.tenant_id)).memories[ident].version == 1
    assert await worker.queue.finish(lease, [event.id for event in events]) == 1
    await worker.queue.release(lease)

    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert (graph.memories[ident].version, named(graph, ident)) == (2, {"Bob Stone"})
    assert {node.name for node in graph.entities.values()} == {"Bob Stone"}
    await check_rebuilt(client, tenant, worker)
