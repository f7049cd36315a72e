"""Undoing merges and splits through the API, on a real Postgres and a graph: all is as it was before."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.fixtures.entities import ENTITIES, declare, store_memory
from tests.fixtures.merging import edge, everything, link, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, bearer
from tests.fixtures.undoing import RandomWorld
from tests.fixtures.worker import drain, dump, rebuild

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

SEEDS = range(6)


async def make(client: httpx.AsyncClient, tenant: TestTenant, seed: int = 0) -> RandomWorld:
    world = RandomWorld(client, tenant, seed)
    await world.fill()
    return world


def grew(before: dict[Any, int], now: dict[Any, int]) -> bool:
    """Whether nothing went back to a version that it had before."""
    return before.keys() == now.keys() and all(now[key] >= version for key, version in before.items())


async def assert_proved(world: RandomWorld, worker: WorkerContext) -> None:
    """The graph is what a rebuild makes of the canonical rows, and no event is left."""
    grown = await dump(worker, world.tenant.tenant_id)
    assert world.rows("SELECT id FROM outbox_events WHERE status <> 'done'") == []
    answer = await world.client.post("/v1/graph/rebuild", json={}, headers=world.tenant.headers("admin"))
    assert answer.status_code == 202, answer.text
    await rebuild(worker)
    assert await dump(worker, world.tenant.tenant_id) == grown


@pytest.mark.parametrize("drained", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_merge_that_is_undone_has_never_been(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, seed: int, *, drained: bool
) -> None:
    world = await make(client, tenant, seed)
    await drain(worker)
    before, versions, mentioned = world.declared(), world.versions(), world.mentioned()
    graph = await dump(worker, tenant.tenant_id)
    merged = await world.merge()
    assert world.declared() != before
    if drained:
        await drain(worker)
        assert world.mentioned() != mentioned
    done = await world.undo(world.into, merged["act_id"])
    assert (done["entity"]["id"], done["restored"]["id"]) == (world.into, world.source)
    assert grew(versions, world.versions())
    await drain(worker)
    assert world.declared() == before
    assert world.mentioned() == mentioned
    assert await dump(worker, tenant.tenant_id) == graph
    await assert_proved(world, worker)
    # And once more: ids that went and came back can do so again.
    again = await world.merge()
    await world.undo(world.into, again["act_id"])
    await drain(worker)
    assert world.declared() == before
    assert await dump(worker, tenant.tenant_id) == graph


@pytest.mark.parametrize("drained", [True, False])
@pytest.mark.parametrize("seed", SEEDS[:3])
async def test_a_split_that_is_undone_has_never_been(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, seed: int, *, drained: bool
) -> None:
    world = await make(client, tenant, seed)
    await drain(worker)
    before, mentioned, graph = world.declared(), world.mentioned(), await dump(worker, tenant.tenant_id)
    aliases = (await client.get(f"{ENTITIES}/{world.source}", headers=world.headers)).json()["aliases"]
    # The new one may even get a name that the old one keeps.
    name = {} if seed % 2 else {"name": next(r["name"] for r in before["entities"] if str(r["id"]) == world.source)}
    done = await world.act("split", {"entity": world.source, "aliases": aliases[:1], **name})
    if drained:
        await drain(worker)
    undone = await world.undo(done["entity"]["id"], done["act_id"])
    assert (undone["entity"]["id"], undone["restored"]) == (world.source, None)
    await drain(worker)
    assert world.declared() == before
    assert world.mentioned() == mentioned
    assert await dump(worker, tenant.tenant_id) == graph
    await assert_proved(world, worker)


async def test_one_after_another_is_undone_in_the_other_order(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    world = await make(client, tenant)
    third = (await declare(client, world.headers, name="Anna", user_id=None))["id"]
    await link(client, world.headers, third, world.into)
    await drain(worker)
    before = world.declared()
    first = await world.merge()
    second = await world.act("merge", {"from": third, "into": world.into})
    early = await world.try_undo(world.into, first["act_id"])
    assert early.status_code == 409
    assert [act["id"] for act in early.json()["later"]] == [second["act_id"]]
    assert "Undo these first" in early.json()["detail"]
    await world.undo(world.into, second["act_id"])
    await world.undo(world.into, first["act_id"])
    await drain(worker)
    assert world.declared() == before


async def test_an_act_goes_with_its_entity_into_another_and_comes_back_with_it(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    world = await make(client, tenant)
    readers = {"visibility": "restricted", "readers": {"users": ["cy"]}, "user_id": "ann"}
    third = (await declare(client, tenant.headers(), name="Anna", **readers))["id"]
    await drain(worker)
    before = world.declared()
    first = await world.merge()
    second = await world.act("merge", {"from": world.into, "into": third})
    listed = (await client.get(f"{ENTITIES}/{third}/acts", headers=world.headers)).json()["items"]
    assert [act["id"] for act in listed] == [second["act_id"], first["act_id"]]
    early = await world.try_undo(third, first["act_id"])
    assert (early.status_code, [act["id"] for act in early.json()["later"]]) == (409, [second["act_id"]])
    await world.undo(third, second["act_id"])
    await world.undo(world.into, first["act_id"])
    await drain(worker)
    assert world.declared() == before


async def test_what_came_since_stays_with_the_one_that_stayed(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    headers = tenant.headers()
    source = (await declare(client, headers, name="Annie", aliases=["A. Lee"]))["id"]
    into = (await declare(client, headers, aliases=["Annchen"]))["id"]
    memories = [await store_memory(client, headers) for _ in range(3)]
    both = [await edge(client, headers, {"memory": memories[0]}, {"entity": ident}) for ident in (source, into)]
    moved = await edge(client, headers, {"memory": memories[1]}, {"entity": source})
    lost = await edge(client, headers, {"memory": memories[2]}, {"entity": source})
    for ident, count in zip((*both, moved), (3, 4, 5), strict=True):
        rows_of(tenant, "UPDATE edges SET co_reference_count = %s WHERE id = %s RETURNING id", count, ident)
    answer = await client.post(f"{ENTITIES}/merge", json={"from": source, "into": into}, headers=headers)
    act = answer.json()["act_id"]
    # In between the edges are used, one is deleted, the entity gets a name, a summary and an edge, and loses an alias.
    rows_of(tenant, "UPDATE edges SET co_reference_count = co_reference_count + 2, confidence = 0.9 RETURNING id")
    assert (await client.delete(f"/v1/edges/{lost}", headers=headers)).status_code == 200
    patch = {"aliases": ["Annchen", "Annie", "Anouk"], "summary": "Two in one."}
    assert (await client.patch(f"{ENTITIES}/{into}", json=patch, headers=headers)).status_code == 200
    new = await edge(client, headers, {"entity": into}, {"memory": memories[2]})
    answer = await client.post(f"{ENTITIES}/{into}/acts/{act}/undo", headers=headers)
    assert answer.status_code == 200, answer.text
    entity, restored = answer.json()["entity"], answer.json()["restored"]
    assert (entity["aliases"], entity["summary"]) == (["Annchen", "Anouk"], "Two in one.")
    assert (restored["name"], restored["aliases"]) == ("Annie", ["A. Lee"])
    rows = rows_of(
        tenant, "SELECT id::text, co_reference_count AS n, confidence AS c, target_entity_id::text AS t FROM edges"
    )
    assert {row["id"]: (row["n"], row["c"], row["t"]) for row in rows} == {
        both[0]: (3, 0.5, source),
        both[1]: (6, 0.9, into),
        moved: (7, 0.9, source),
        new: (0, 0.5, None),
    }
    await drain(worker)
    await assert_proved(RandomWorld(client, tenant, 0), worker)


async def test_what_stands_in_the_way_of_an_undone_merge_is_named_and_nothing_changes(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    source, into = (await declare(client, headers, name="Annie"))["id"], (await declare(client, headers))["id"]
    acme, zeta = [(await declare(client, headers, name=name))["id"] for name in ("Acme", "Zeta")]
    memory, newer = (
        await store_memory(client, headers, label="Attribute"),
        await store_memory(client, headers, label="Attribute"),
    )
    for far in (acme, zeta):
        await link(client, headers, source, far)
    for ident in (memory, newer):
        await edge(client, headers, {"memory": ident}, {"entity": source})
    act = (await client.post(f"{ENTITIES}/merge", json={"from": source, "into": into}, headers=headers)).json()[
        "act_id"
    ]
    path = f"{ENTITIES}/{into}/acts/{act}/undo"

    async def refused(*words: str) -> dict[str, Any]:
        before = everything(database_urls)
        answer = await client.post(path, headers=headers)
        assert answer.status_code == 409, answer.text
        assert all(word in answer.json()["detail"] for word in words)
        assert everything(database_urls) == before
        return dict(answer.json())

    # Two links of the merge become one, since what they lead to becomes one.
    joined = (await client.post(f"{ENTITIES}/merge", json={"from": acme, "into": zeta}, headers=headers)).json()[
        "act_id"
    ]
    assert [later["id"] for later in (await refused("became part of others"))["later"]] == [joined]
    assert (await client.post(f"{ENTITIES}/{zeta}/acts/{joined}/undo", headers=headers)).status_code == 200
    # Two edges do, since one memory takes the place of the other.
    answer = await client.post(f"/v1/memories/{memory}/supersede", json={"by": newer}, headers=headers)
    assert answer.status_code == 201, answer.text
    assert [later["id"] for later in (await refused("became part of others"))["later"]] == [answer.json()["act_id"]]
    undo = f"/v1/memories/{memory}/acts/{answer.json()['act_id']}/undo"
    assert (await client.post(undo, headers=headers)).status_code == 200
    # Somebody else has the id.
    assert (
        await client.post(ENTITIES, json={"name": "New", "entity_type": "x", "id": source}, headers=headers)
    ).status_code == 201
    await refused(f"the id {source} is taken")
    assert (await client.delete(f"{ENTITIES}/{source}", headers=headers)).status_code == 200
    assert (await client.post(path, headers=headers)).status_code == 200
    await refused("undone already")


async def test_what_stands_in_the_way_of_an_undone_split_is_named(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    old = (await declare(client, headers, aliases=["Annie", "A. Lee"]))["id"]
    body = {"entity": old, "aliases": ["Annie"]}
    done = (await client.post(f"{ENTITIES}/split", json=body, headers=headers)).json()
    new, act = done["entity"]["id"], done["act_id"]
    path, own = f"{ENTITIES}/{old}/acts/{act}/undo", f"{ENTITIES}/{new}"

    async def refused() -> dict[str, Any]:
        before = everything(database_urls)
        answer = await client.post(path, headers=headers)
        assert answer.status_code == 409, answer.text
        assert everything(database_urls) == before
        return dict(answer.json())

    await client.patch(own, json={"summary": "Another."}, headers=headers)
    assert (await refused())["changed"] == {"entity_id": new, "fields": ["summary"]}
    await client.patch(own, json={"summary": None}, headers=headers)
    memory = await store_memory(client, headers)
    tied = await edge(client, headers, {"memory": memory}, {"entity": new})
    hidden = await store_memory(client, tenant.headers(user="cy"), visibility="private")
    secret = await link(client, tenant.headers(user="cy"), new, hidden, layer="memory")
    told = await refused()
    assert told["linked"] == {"entity_id": new, "edges": [tied], "links": []}
    assert (await client.delete(f"/v1/edges/{tied}", headers=headers)).status_code == 200
    assert (await refused())["linked"]["edges"] == []
    gone = await client.delete(f"{own}/links/{secret}", headers=tenant.headers(user="cy"))
    assert gone.status_code == 200
    later = (await client.post(f"{ENTITIES}/split", json={**body, "aliases": ["A. Lee"]}, headers=headers)).json()
    assert [one["id"] for one in (await refused())["later"]] == [later["act_id"]]
    assert (await client.post(f"{ENTITIES}/{old}/acts/{later['act_id']}/undo", headers=headers)).status_code == 200
    undone = await client.post(path, headers=headers)
    assert (undone.status_code, undone.json()["entity"]["aliases"]) == (200, ["Annie", "A. Lee"])
    assert (await client.get(own, headers=headers)).status_code == 404


async def test_readers_that_an_entity_got_since_neither_see_nor_undo_what_they_could_not_read(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    ann, bo = tenant.headers(user="ann"), tenant.headers(user="bo")
    private = {"visibility": "private"}
    source = (await declare(client, ann, name="Annie", **private))["id"]
    into = (await declare(client, ann, aliases=["Anouk"], **private))["id"]
    merged = (await client.post(f"{ENTITIES}/merge", json={"from": source, "into": into}, headers=ann)).json()
    done = (await client.post(f"{ENTITIES}/split", json={"entity": into, "aliases": ["Anouk"]}, headers=ann)).json()
    path = f"{ENTITIES}/{into}/acts"
    assert (await client.get(path, headers=bo)).status_code == 404
    assert (await client.post(f"{path}/{done['act_id']}/undo", headers=bo)).status_code == 404
    patch = {"visibility": "restricted", "readers": {"users": ["bo"]}}
    assert (await client.patch(f"{ENTITIES}/{into}", json=patch, headers=ann)).status_code == 200
    seen = await client.get(path, headers=bo)
    assert [(act["kind"], act["other_id"], act["detail"]) for act in seen.json()["items"]] == [
        *(("split", None, {}), ("merge", None, {})),
    ]
    assert not any(secret in seen.text for secret in (source, done["entity"]["id"], "Annie"))
    own = (await client.get(path, headers=ann)).json()["items"]
    assert [(act["id"], act["other_id"]) for act in own] == [
        *((done["act_id"], done["entity"]["id"]), (merged["act_id"], source)),
    ]
    assert own[0]["detail"]["taken"] == ["Anouk"]
    assert own[1]["detail"]["name"] == "Annie"
    before = everything(database_urls)
    assert (await client.post(f"{path}/{done['act_id']}/undo", headers=bo)).status_code == 409
    wider = await client.post(f"{path}/{done['act_id']}/undo", headers=ann)
    assert (wider.status_code, "has got readers" in wider.json()["detail"]) == (409, True)
    assert everything(database_urls) == before
    assert (await client.patch(f"{ENTITIES}/{into}", json=private, headers=ann)).status_code == 200
    assert (await client.post(f"{path}/{done['act_id']}/undo", headers=ann)).status_code == 200
    assert (await client.patch(f"{ENTITIES}/{into}", json=patch, headers=ann)).status_code == 200
    answer = await client.post(f"{path}/{merged['act_id']}/undo", headers=bo)
    assert (answer.status_code, "not be yours to see" in answer.json()["detail"]) == (409, True)
    restored = (await client.post(f"{path}/{merged['act_id']}/undo", headers=ann)).json()["restored"]
    assert (restored["id"], restored["visibility"]) == (source, "private")


async def test_acts_are_paged_newest_first_and_an_undo_is_one_of_them(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory
) -> None:
    headers = tenant.headers()
    into = (await declare(client, headers))["id"]
    acts = []
    for name in ("Annie", "Anna", "Anne"):
        source = (await declare(client, headers, name=name))["id"]
        body = {"from": source, "into": into}
        acts.append((await client.post(f"{ENTITIES}/merge", json=body, headers=headers)).json()["act_id"])
    path = f"{ENTITIES}/{into}/acts"
    undone = (await client.post(f"{path}/{acts[2]}/undo", headers=headers)).json()["act_id"]
    listed, cursor = [], None
    while True:
        params = {"limit": 1, **({"cursor": cursor} if cursor else {})}
        page = (await client.get(path, params=params, headers=tenant.headers("reader"))).json()
        listed += page["items"]
        if (cursor := page["next_cursor"]) is None:
            break
    assert [(act["id"], act["kind"]) for act in listed] == [
        *((undone, "undo"), (acts[2], "merge"), (acts[1], "merge"), (acts[0], "merge")),
    ]
    assert [act["undone_at"] is None for act in listed] == [True, False, True, True]
    assert listed[0]["detail"] == {"act_id": acts[2], "kind": "merge"}
    assert (await client.post(f"{path}/{undone}/undo", headers=headers)).status_code == 409
    other = (await declare(client, headers, name="Bo"))["id"]
    stranger = tenant_factory().headers()
    for entity, act, who in ((into, str(uuid4()), headers), (other, acts[1], headers), (into, acts[1], stranger)):
        answer = await client.post(f"{ENTITIES}/{entity}/acts/{act}/undo", headers=who)
        assert answer.status_code == 404, answer.text
    assert (await client.get(path, headers=stranger)).status_code == 404
    assert (await client.post(f"{path}/{acts[1]}/undo", headers=tenant.headers("reader"))).status_code == 403
    assert (await client.get(path, headers=bearer("x"))).status_code == 401


async def test_an_act_is_undone_once_whoever_asks_at_the_same_moment(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    world = await make(client, tenant, 3)
    act = (await world.merge())["act_id"]
    answers = await asyncio.gather(*(world.try_undo(world.into, act) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    again = (await world.merge())["act_id"]
    keyed = {"Idempotency-Key": "k-1"}
    answers = await asyncio.gather(*(world.try_undo(world.into, again, **keyed) for _ in range(4)))
    answers.append(await world.try_undo(world.into, again, **keyed))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert len(rows_of(database_urls, "SELECT 1 FROM audit_log WHERE action = 'entity.undo'")) == 2


async def test_an_id_that_is_mentioned_still_is_counted_right_for_who_gets_it(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    headers = tenant.headers()
    annie = (await declare(client, headers, name="Annie"))["id"]
    ann = (await declare(client, headers))["id"]
    await store_memory(client, headers, text="We met Annie and Ann Lee.")
    await drain(worker)
    for turn in range(2):
        assert (
            await client.post(f"{ENTITIES}/merge", json={"from": annie, "into": ann}, headers=headers)
        ).status_code == 200
        body = {"entity": ann, "aliases": ["Annie"], "id": annie}
        if turn:
            body = {"id": annie, "name": "Quiet", "entity_type": "x"}
        answer = await client.post(ENTITIES if turn else f"{ENTITIES}/split", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        assert answer.json()["entity"]["mention_count"] == 1
        await drain(worker)
        assert rows_of(tenant, "SELECT 1 FROM outbox_events WHERE status <> 'done'") == []
    counted = {row["id"]: row["n"] for row in rows_of(tenant, "SELECT id::text, mention_records AS n FROM entities")}
    assert counted == {annie: 0, ann: 1}
