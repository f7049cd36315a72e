"""Erasing while others are at it: workers that project, that fail, and whoever writes down what was read before."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.fixtures.acting import Actor, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.waiting import wait_for
from tests.fixtures.worker import drain
from tests.integration.erasure.searching import in_graph, places_with

from memory_os.api.services import Services
from memory_os.domain.principal import Principal
from memory_os.outbox.queue import Lease
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.log import ItemEntry, RetrievalEntry
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext
from memory_os_workers.holding import enter_graph

pytestmark = pytest.mark.anyio

WORD = "Zyxquvort"


async def erase(actor: Actor, memory: str) -> Any:
    answer = await actor.client.post(f"/v1/memories/{memory}/erase", headers=actor.tenant.headers("admin"))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def assert_gone(actor: Actor, worker: WorkerContext, urls: DatabaseUrls) -> None:
    await drain(worker)
    assert rows_of(urls, "SELECT id FROM outbox_events WHERE status <> 'done'") == []
    assert places_with(urls, WORD) == {}
    assert not await in_graph(worker.backend, actor.tenant.tenant_id, WORD)
    missing = rows_of(
        urls, "SELECT name FROM mentions AS m WHERE NOT EXISTS (SELECT 1 FROM entities AS e WHERE e.id = m.entity_id)"
    )
    assert missing == []


async def take(worker: WorkerContext, tenant_id: UUID) -> Lease:
    lease = await worker.queue.lease(tenant_id)
    assert lease is not None
    await enter_graph(worker, lease)
    return lease


@pytest.mark.parametrize("step", ["claimed", "loaded", "derived", "written"])
async def test_what_a_worker_has_in_hand_does_not_come_back(
    actor: Actor, worker: WorkerContext, database_urls: DatabaseUrls, step: str
) -> None:
    memory = await actor.remember(f"{WORD} Halde met Ann Miller.")
    lease = await take(worker, actor.tenant.tenant_id)
    events = await worker.queue.claim(lease, 10)
    loaded = await worker.projector.load(lease, events) if step != "claimed" else None
    patch = await worker.projector.derive(lease, loaded) if loaded and step != "loaded" else None
    if patch and step == "written":
        await worker.projector.write(lease, patch)
    await erase(actor, memory["id"])
    assert places_with(database_urls, WORD) == {}
    loaded = loaded or await worker.projector.load(lease, events)
    patch = patch or await worker.projector.derive(lease, loaded)
    await worker.projector.write(lease, patch)
    assert await worker.queue.finish(lease, [event.id for event in events]) == len(events)
    await worker.queue.release(lease)
    await assert_gone(actor, worker, database_urls)


async def test_a_memory_that_was_never_projected_is_erased(
    actor: Actor, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    memory = await actor.remember(f"{WORD} Halde met Ann Miller.")
    await erase(actor, memory["id"])
    await assert_gone(actor, worker, database_urls)


async def test_a_name_of_an_older_text_leaves_the_graph_too(
    actor: Actor, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    memory = await actor.remember(f"{WORD} Halde met Ann Miller.")
    await drain(worker)
    url = f"/v1/memories/{memory['id']}"
    await actor.client.patch(url, json={"text": "Nobody met Ann Miller."}, headers=actor.headers)
    await erase(actor, memory["id"])
    await assert_gone(actor, worker, database_urls)


async def test_a_failure_that_comes_later_leaves_no_words(
    actor: Actor, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    memory, other = await actor.remember(f"{WORD} Halde."), await actor.remember("Another one.")
    lease = await take(worker, actor.tenant.tenant_id)
    events = {str(event.aggregate_id): event for event in await worker.queue.claim(lease, 10)}
    await erase(actor, memory["id"])
    for ident, told in ((memory["id"], f"no room for {WORD}"), (other["id"], "no room")):
        assert await worker.queue.fail(lease, events[ident], ValueError(told)) == "pending"
    assert places_with(database_urls, WORD) == {}
    rows = rows_of(database_urls, "SELECT aggregate_id, last_error, errors FROM outbox_events WHERE last_error <> ''")
    kept = {str(row["aggregate_id"]): (row["last_error"], row["errors"][0]["class"]) for row in rows}
    assert kept == {
        memory["id"]: ("ValueError: the record is gone", "ValueError"),
        other["id"]: ("ValueError: no room", "ValueError"),
    }


async def test_an_answer_that_is_logged_later_tells_nothing_of_it(
    actor: Actor, services: Services, database_urls: DatabaseUrls
) -> None:
    memory, other = await actor.remember(f"{WORD} Halde."), await actor.remember("Another one.")
    principal = Principal(actor.tenant.tenant_id, "reader")
    values = {
        "query": f"What of {WORD}?",
        "arms": {},
        "bounds": {},
        "timings_ms": {},
        "graph_state": "current",
        "no_match": False,
        "items": 2,
        "omitted": 0,
        "pack_tokens": 1,
    }
    items = [ItemEntry(Ref("memory", UUID(one["id"])), True, None, 1.0, {}, ()) for one in (memory, other)]
    await erase(actor, memory["id"])
    services.retriever.log.keep(RetrievalEntry(uuid4(), principal, values, items))
    await services.retriever.log.close()
    assert [row["query"] for row in rows_of(database_urls, "SELECT query FROM retrievals")] == [""]
    logged = rows_of(database_urls, "SELECT record_id FROM retrieval_items")
    assert [str(row["record_id"]) for row in logged] == [other["id"]]


async def test_an_erasure_waits_for_answers_that_are_being_kept(
    actor: Actor, services: Services, database_urls: DatabaseUrls
) -> None:
    memory = await actor.remember(f"{WORD} Halde.")
    scope = Scope("memory_os_app", actor.tenant.tenant_id, role="writer")
    async with services.database.transaction(scope) as tx:
        await tx.hot("beside_erasures", {"tenant_id": actor.tenant.tenant_id})
        erasing = asyncio.create_task(erase(actor, memory["id"]))
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        await asyncio.to_thread(wait_for, lambda: rows_of(database_urls, waiting))
        assert not erasing.done()
    assert (await erasing)["record_ids"] == [memory["id"]]


async def test_erasing_the_same_twice_at_once_gives_one_receipt(actor: Actor, database_urls: DatabaseUrls) -> None:
    memory = await actor.remember(f"{WORD} Halde.")
    url, headers = f"/v1/memories/{memory['id']}/erase", actor.tenant.headers("admin")
    answers = await asyncio.gather(*(actor.client.post(url, headers=headers) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404]
    assert len(rows_of(database_urls, "SELECT id FROM erasures")) == 1
