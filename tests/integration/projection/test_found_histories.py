"""Histories that were found to end in a wrong graph once, each as short as it could be made."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.service import TenantFactory
from tests.fixtures.worker import drain, dump

from memory_os.outbox.queue import Lease
from memory_os_workers import projector
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


async def test_names_that_changed_in_a_turn_are_read_again_for_its_later_batches(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker reads the names, an entity is renamed, and the same turn extracts again from what names it."""
    tenant = tenant_factory()
    headers = tenant.headers()
    body = {"name": "Ann Miller", "entity_type": "person"}
    entity = (await client.post("/v1/memory/entities", json=body, headers=headers)).json()["entity"]
    text = "Jon Vance told Ann Miller that Jon Vance was there."
    memory = (await client.post("/v1/memories", json={"text": text, "label": "Attribute"}, headers=headers)).json()
    claim, renamed = worker.queue.claim, False

    async def renamed_between(lease: Lease, batch: int) -> object:
        nonlocal renamed
        events = await claim(lease, batch)
        if not events and not renamed:
            renamed = True
            answer = await client.patch(
                f"/v1/memory/entities/{entity['id']}", json={"name": "Jon Vance"}, headers=headers
            )
            assert answer.status_code == 200, answer.text
            return await claim(lease, batch)
        return events

    monkeypatch.setattr(worker.queue, "claim", renamed_between)
    await projector.take_turn(worker, tenant.tenant_id)
    await drain(worker)
    assert renamed
    graph = await dump(worker, tenant.tenant_id)
    weights = {graph.entities[node].name: weight for (_, node), weight in graph.mentions.items()}
    assert weights == {"Jon Vance": pytest.approx(1.2), "Ann Miller": pytest.approx(0.7)}
    assert {graph.entities[node].name for node in graph.entities if node == entity["id"]} == {"Jon Vance"}
    assert list(graph.memories) == [memory["memory"]["id"]]


async def test_a_name_that_several_had_and_nobody_has_any_more_is_read_as_any_other(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    """Two entities share a name, so that it means neither; then both lose it before a worker comes."""
    tenant = tenant_factory()
    headers = tenant.headers()
    await client.post("/v1/memories", json={"text": "we saw Ann Miller there.", "label": "Attribute"}, headers=headers)
    entities = [
        (await client.post("/v1/memory/entities", json={**body, "entity_type": "person"}, headers=headers)).json()
        for body in ({"name": "Ida Ortiz", "aliases": ["Ann Miller"]}, {"name": "Ann Miller"})
    ]
    await drain(worker)
    first, second = (f"/v1/memory/entities/{answer['entity']['id']}" for answer in entities)
    await client.patch(second, json={"name": "Ida Ortiz"}, headers=headers)
    await client.delete(first, headers=headers)
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert list(graph.mentions.values()) == [pytest.approx(0.7)]
