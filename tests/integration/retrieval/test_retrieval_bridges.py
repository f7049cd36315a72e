"""How far a name leads is counted among what the reader sees."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain
from tests.integration.retrieval.conftest import Memory

from memory_os.api.services import Services
from memory_os.graph.port import NodeRef, Path, Step
from memory_os.retrieval.trails import ask_leads, leads_of
from memory_os.storage.database import Scope, Transaction
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


def mention(node: NodeRef, *, forward: bool) -> Step:
    return Step("MENTIONS", None, forward, 0.2, node)


async def count(tx: Transaction, paths: list[Path]) -> dict[NodeRef, int]:
    return leads_of((await tx.together(ask_leads(tx, paths)))[0])


async def test_mentions_in_hidden_memories_are_not_counted(
    client: httpx.AsyncClient, services: Services, tenant: TestTenant, remember: Memory, worker: WorkerContext
) -> None:
    texts = [f"Harald Sund repaired kiln number {number}." for number in range(3)]
    first, second, _ = [await remember(text) for text in texts]
    await remember("Harald Sund owes money.", user="ada", visibility="private")
    await drain(worker)
    listed = await client.get(
        "/v1/memory/entities", params={"declared": "false", "name": "Harald Sund"}, headers=tenant.headers("reader")
    )
    (entity,) = [NodeRef("entity", item["id"]) for item in listed.json()["items"]]
    near, far = NodeRef("memory", first), NodeRef("memory", second)
    bridge = Path(near, (mention(entity, forward=True), mention(far, forward=False)), 0.1)
    other = Path(near, (mention(entity, forward=True),), 0.1)
    for user, expected in (("ada", 4), ("ben", 3), (None, 3)):
        scope = Scope("memory_os_app", tenant.tenant_id, "reader", user)
        assert await services.database.run(scope, lambda tx: count(tx, [bridge, other])) == {entity: expected}
        assert await services.database.run(scope, lambda tx: count(tx, [other])) == {}
