"""What a restarted graph server has lost is mended although an event of something beside it waits."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain, dump

from memory_os.graph.port import GraphPatch
from memory_os.projection import verifier as engine
from memory_os_workers.context import WorkerContext
from memory_os_workers.verifier import mender

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("lost", ["edge", "mention"])
async def test_what_was_lost_beside_a_waiting_event_is_mended(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    headers = tenant.headers()

    async def store(text: str) -> str:
        answer = await client.post("/v1/memories", json={"text": text, "label": "Attribute"}, headers=headers)
        return str(answer.json()["memory"]["id"])

    one, two = await store("We met Ann Miller."), await store("We met Bob Stone.")
    body: dict[str, object] = {"type": "SUPPORTS", "from": {"memory": one}, "to": {"memory": two}}
    edge = (await client.post("/v1/edges", json=body, headers=headers)).json()["edge"]["id"]
    body = {"name": "Ann Miller", "entity_type": "person"}
    declared = await client.post("/v1/memory/entities", json=body, headers=headers)
    entity = declared.json()["entity"]["id"]
    await drain(worker)
    before = await dump(worker, tenant.tenant_id)

    # The graph server comes back without its last writes ...
    lease = await worker.queue.lease(tenant.tenant_id)
    assert lease is not None
    await worker.backend.take_fence(tenant.tenant_id, str(lease.token))
    node = before.memories[one]
    patch = GraphPatch(deleted_edges=[edge]) if lost == "edge" else GraphPatch(memories=[node], mentions=[])
    await worker.backend.apply(tenant.tenant_id, str(lease.token), patch)
    await worker.queue.release(lease)
    # ... while something beside them has just been changed.
    if lost == "edge":
        await client.patch(f"/v1/memories/{two}", json={"title": "changed"}, headers=headers)
    else:
        await client.patch(f"/v1/memory/entities/{entity}", json={"summary": "changed"}, headers=headers)

    async def progress(*_: object) -> None: ...

    monkeypatch.setattr(engine, "PAUSES_S", (0.0,))  # nobody projects the event meanwhile
    comparing = engine.Verifier(worker.database, worker.backend)
    await comparing.verify(tenant.tenant_id, progress, mender(worker, tenant.tenant_id))
    await drain(worker)
    after = await dump(worker, tenant.tenant_id)
    assert set(after.edges) == set(before.edges)
    assert after.mentions == before.mentions
