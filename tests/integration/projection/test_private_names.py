"""A private entity has the name among its own readers: for all others, memories say what they said before."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.entities import ENTITIES, declare, store_memory
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain, dump, rebuild

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

TEXT = "The team met Zephyr Works in March."
QUIET = "The lantern contract was signed."


async def _seen(client: httpx.AsyncClient, headers: dict[str, str]) -> list[dict[str, Any]]:
    """What a reader is told of all entities."""
    lists = [await client.get(ENTITIES, params={"declared": kind}, headers=headers) for kind in (True, False)]
    items = [item for answer in lists for item in answer.json()["items"]]
    contexts = [(await client.get(f"{ENTITIES}/{item['id']}/context", headers=headers)).json() for item in items]
    return [{**one, "as_of": None} for one in contexts]


async def _named(worker: WorkerContext, tenant: TestTenant) -> set[tuple[str, str]]:
    return set((await dump(worker, tenant.tenant_id)).mentions)


async def _as_rebuilt(client: httpx.AsyncClient, worker: WorkerContext, tenant: TestTenant) -> None:
    """Make sure that a graph made anew from the rows is the one that is there."""
    before = await dump(worker, tenant.tenant_id)
    answer = await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))
    assert answer.status_code == 202, answer.text
    await rebuild(worker)
    assert (await dump(worker, tenant.tenant_id)).mentions == before.mentions


async def test_a_private_entity_takes_no_name_away_from_others(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    ann, ben = tenant.headers("writer", user="ann"), tenant.headers("writer", user="ben")
    public = await store_memory(client, ben, text=TEXT)
    quiet = await store_memory(client, ben, text=QUIET)
    await drain(worker)
    before = await _seen(client, ben)
    assert [one["entity"]["name"] for one in before] == ["Zephyr Works"]
    (derived,) = [one["entity"]["id"] for one in before]

    private = await declare(client, ann, name="Zephyr Works", aliases=["lantern"], visibility="private")
    own = await store_memory(client, ann, text="Zephyr Works owes money.", visibility="private")
    await drain(worker)
    assert await _seen(client, ben) == before
    named = await _named(worker, tenant)
    assert {(public, derived), (own, private["id"])} <= named
    assert not {pair for pair in named if pair[0] == quiet}  # a private alias makes no name out of a common word
    await _as_rebuilt(client, worker, tenant)


async def test_mentions_follow_the_readers_of_both(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    ann = tenant.headers("writer", user="ann")
    public = await store_memory(client, ann, text=TEXT)
    own = await store_memory(client, ann, text="Zephyr Works owes money.", visibility="private")
    private = (await declare(client, ann, name="Zephyr Works", visibility="private"))["id"]
    await drain(worker)
    assert await _bearer(worker, tenant, own) == private
    derived = await _bearer(worker, tenant, public)
    assert derived != private

    for changed, bearers in (("tenant", (private, private)), ("private", (derived, private))):
        answer = await client.patch(f"{ENTITIES}/{private}", json={"visibility": changed}, headers=ann)
        assert answer.status_code == 200, answer.text
        await drain(worker)
        found = [await _bearer(worker, tenant, memory) for memory in (public, own)]
        assert tuple(found) == bearers, changed
        await _as_rebuilt(client, worker, tenant)

    for changed, bearer in (("tenant", derived), ("private", private)):
        answer = await client.patch(f"/v1/memories/{own}", json={"visibility": changed}, headers=ann)
        assert answer.status_code == 200, answer.text
        await drain(worker)
        assert await _bearer(worker, tenant, own) == bearer, changed
    await _as_rebuilt(client, worker, tenant)


async def _bearer(worker: WorkerContext, tenant: TestTenant, memory: str) -> str:
    """The one entity that a memory names."""
    (bearer,) = [entity for named_by, entity in await _named(worker, tenant) if named_by == memory]
    return bearer
