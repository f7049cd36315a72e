"""`/v1/edges` on a real Postgres."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant

from memory_os.domain.edge_types import EDGE_TYPES

pytestmark = pytest.mark.anyio

EDGES = "/v1/edges"


def rows_of(urls: DatabaseUrls, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(urls.owner_url, row_factory=dict_row) as connection:
        return connection.execute(query).fetchall()


async def store_memory(client: httpx.AsyncClient, headers: dict[str, str], **fields: Any) -> dict[str, str]:
    body = {"text": "Ship on Monday.", "label": "Decision", "dedup": "off", **fields}
    answer = await client.post("/v1/memories", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return {"memory": answer.json()["memory"]["id"]}


async def declare(client: httpx.AsyncClient, headers: dict[str, str], **fields: Any) -> dict[str, str]:
    body = {"name": "Apollo", "entity_type": "project", **fields}
    answer = await client.post("/v1/memory/entities", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return {"entity": answer.json()["entity"]["id"]}


async def store(client: httpx.AsyncClient, headers: dict[str, str], **body: Any) -> dict[str, Any]:
    answer = await client.post(EDGES, json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()["edge"]


async def listed(client: httpx.AsyncClient, headers: dict[str, str], **wanted: Any) -> list[str]:
    answer = await client.get(EDGES, params=wanted, headers=headers)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_an_edge_reads_back_as_it_was_answered(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    memory, entity = await store_memory(client, headers), await declare(client, headers)
    other = await store_memory(client, headers)
    for source, target, confidence in ((memory, entity, 0.75), (entity, memory, None), (memory, other, 1)):
        body = {"type": "ADVANCES", "from": source, "to": target, "confidence": confidence}
        answer = await client.post(EDGES, json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        edge = answer.json()["edge"]
        assert (edge["type"], edge["from"], edge["to"]) == ("ADVANCES", source, target)
        assert edge["confidence"] == (0.5 if confidence is None else confidence)
        assert (edge["co_reference_count"], edge["version"]) == (0, 1)
        assert UUID(edge["id"]).version == 7
        read = await client.get(f"{EDGES}/{edge['id']}", headers=tenant.headers("reader"))
        assert read.json() == edge
        assert read.headers["etag"] == '"1"'
        event = rows_of(database_urls, "SELECT * FROM outbox_events ORDER BY id DESC LIMIT 1")[0]
        assert (event["event_type"], event["aggregate_type"], str(event["aggregate_id"]), event["version"]) == (
            "GRAPH_UPSERT",
            "edge",
            edge["id"],
            1,
        )
        assert event["id"] == answer.json()["position"]


async def test_every_edge_type_is_taken(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    first, second = await store_memory(client, headers), await store_memory(client, headers)
    for name in EDGE_TYPES:
        await store(client, headers, type=name, **{"from": first}, to=second)
    assert len(await listed(client, headers)) == len(EDGE_TYPES) == 18


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("RELATES_TO", None),
        ("CO_REFERENCED_WITH", None),
        ("SUPPORT", "SUPPORTS"),
        ("supports", "SUPPORTS"),
        ("x`y", None),
    ],
)
async def test_a_nineteenth_type_is_refused_with_all_that_are_allowed(
    client: httpx.AsyncClient, tenant: TestTenant, name: str, near: str | None
) -> None:
    headers = tenant.headers()
    first, second = await store_memory(client, headers), await store_memory(client, headers)
    answer = await client.post(EDGES, json={"type": name, "from": first, "to": second}, headers=headers)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["type"].endswith("unknown-term")
    assert problem["allowed"] == list(EDGE_TYPES)
    assert problem.get("did_you_mean") == near
    assert problem["errors"][0]["pointer"] == "/type"
    listing = await client.get(EDGES, params={"type": name}, headers=headers)
    assert (listing.status_code, listing.json()["allowed"]) == (422, list(EDGE_TYPES))


async def test_what_cannot_be_stored_is_refused_with_a_pointer(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    memory, entity = await store_memory(client, headers), await declare(client, headers)
    second_entity = await declare(client, headers)
    foreign = await store_memory(client, tenant_factory().headers())
    both = {**memory, **entity}
    cases = [
        (memory, memory, {}, ["/to"]),
        (entity, second_entity, {}, ["/to"]),
        (entity, entity, {}, ["/to"]),
        ({}, memory, {}, ["/from"]),
        (both, {}, {}, ["/from", "/to"]),
        (memory, {"memory": str(uuid4())}, {}, ["/to"]),
        ({"entity": str(uuid4())}, memory, {}, ["/from"]),
        (foreign, memory, {}, ["/from"]),
        (memory, {"memory": entity["entity"]}, {}, ["/to"]),
        (memory, "x", {}, ["/to"]),
        (memory, entity, {"confidence": 1.01}, ["/confidence"]),
        (memory, entity, {"weight": 1}, ["/weight"]),
    ]
    for source, target, further, pointers in cases:
        body = {"type": "ABOUT", "from": source, "to": target, **further}
        answer = await client.post(EDGES, json=body, headers=headers)
        assert answer.status_code == 422, body
        assert [fault["pointer"] for fault in answer.json()["errors"]] == pointers, body
    missing = await client.post(EDGES, json={"type": "ABOUT", "to": memory}, headers=headers)
    assert missing.status_code == 422
    assert rows_of(database_urls, "SELECT id FROM edges") == []
    assert rows_of(database_urls, "SELECT id FROM outbox_events WHERE aggregate_type = 'edge'") == []


async def test_the_same_claim_again_finds_the_edge_and_another_confidence_is_a_conflict(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    memory, entity = await store_memory(client, headers), await declare(client, headers)
    body = {"type": "ABOUT", "from": memory, "to": entity, "confidence": 0.75}
    ident = (await store(client, headers, **body))["id"]
    for same in (body, {**body, "confidence": None}, {**body, "id": ident}):
        answer = await client.post(EDGES, json=same, headers=headers)
        assert (answer.status_code, answer.json()["edge"]["id"], answer.json()["position"]) == (200, ident, 0)
    for other in ({**body, "confidence": 0.5}, {**body, "id": str(uuid4())}):
        answer = await client.post(EDGES, json=other, headers=headers)
        assert answer.status_code == 409
        assert ident in answer.json()["detail"]
    taken = await client.post(EDGES, json={**body, "type": "PART_OF", "id": ident}, headers=headers)
    assert taken.status_code == 409
    await store(client, headers, **{**body, "from": entity, "to": memory})
    await store(client, headers, **{**body, "type": "PART_OF"})
    assert len(rows_of(database_urls, "SELECT id FROM edges")) == 3


async def test_one_claim_made_at_the_same_moment_by_many_is_one_edge(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    memory, entity = await store_memory(client, headers), await declare(client, headers)
    body = {"type": "ABOUT", "from": memory, "to": entity}
    answers = await asyncio.gather(*(client.post(EDGES, json=body, headers=headers) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["edge"]["id"] for answer in answers}) == 1
    assert len(rows_of(database_urls, "SELECT id FROM outbox_events WHERE aggregate_type = 'edge'")) == 1
    keyed = {**headers, "Idempotency-Key": "k-1"}
    body["type"] = "PART_OF"
    repeated = await asyncio.gather(*(client.post(EDGES, json=body, headers=keyed) for _ in range(4)))
    assert {answer.status_code for answer in repeated} == {201}
    assert len({answer.content for answer in repeated}) == 1


async def test_lists_are_filtered_and_paged_newest_first(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    a, b = await store_memory(client, headers), await store_memory(client, headers)
    apollo, gemini = await declare(client, headers), await declare(client, headers, name="Gemini")
    made = [
        (await store(client, headers, type=name, **{"from": source}, to=target))["id"]
        for name, source, target in (
            ("SUPPORTS", a, b),
            ("SUPPORTS", b, a),
            ("ABOUT", a, apollo),
            ("ABOUT", b, gemini),
            ("BLOCKS", gemini, a),
        )
    ]
    first = (await client.get(EDGES, params={"limit": 3}, headers=headers)).json()
    rest = await listed(client, headers, limit=3, cursor=first["next_cursor"])
    assert [item["id"] for item in first["items"]] + rest == made[::-1]
    assert await listed(client, headers, memory=a["memory"]) == [made[4], made[2], made[1], made[0]]
    assert await listed(client, headers, entity=gemini["entity"]) == [made[4], made[3]]
    assert await listed(client, headers, type="SUPPORTS") == [made[1], made[0]]
    assert await listed(client, headers, memory=b["memory"], entity=gemini["entity"]) == [made[3]]
    assert await listed(client, headers, memory=str(uuid4())) == []
    for unknown in ({"colour": "red"}, {"memory": "x"}, {"limit": 0}, {"cursor": "?"}):
        assert (await client.get(EDGES, params=unknown, headers=headers)).status_code == 422, unknown


async def test_an_edge_with_a_hidden_end_is_not_there(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory
) -> None:
    cy, bo, other = tenant.headers(user="cy"), tenant.headers(user="bo"), tenant_factory().headers("admin")
    shared = await store_memory(client, cy)
    hidden, diary = (
        await store_memory(client, cy, visibility="private"),
        await declare(client, cy, visibility="private"),
    )
    pairs = [(shared, hidden), (hidden, shared), (shared, diary), (diary, shared)]
    idents = [(await store(client, cy, type="ABOUT", **{"from": one}, to=two))["id"] for one, two in pairs]
    assert await listed(client, cy) == idents[::-1]
    for headers in (bo, tenant.headers("admin"), other):
        assert await listed(client, headers) == []
        assert await listed(client, headers, memory=shared["memory"]) == []
        for ident in (*idents, str(uuid4())):
            answers = [
                await client.get(f"{EDGES}/{ident}", headers=headers),
                await client.delete(f"{EDGES}/{ident}", headers=headers),
            ]
            assert {(answer.status_code, answer.json()["detail"]) for answer in answers} == {
                (404, "there is no such edge")
            }
    for one, two in pairs:
        answer = await client.post(EDGES, json={"type": "ABOUT", "from": one, "to": two}, headers=bo)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["detail"].startswith("there is no such")
    assert await listed(client, cy) == idents[::-1]


async def test_a_deleted_edge_leaves_the_graph_and_an_audit_entry(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    memory, entity = await store_memory(client, headers), await declare(client, headers)
    edge = await store(client, headers, type="ABOUT", **{"from": memory}, to=entity)
    path = f"{EDGES}/{edge['id']}"
    assert (await client.delete(path, headers={**headers, "If-Match": '"2"'})).status_code == 412
    assert (await client.delete(path, headers={**headers, "If-Match": "2"})).status_code == 422
    assert (await client.delete(path, headers=tenant.headers("reader"))).status_code == 403
    answer = await client.delete(path, headers={**headers, "If-Match": '"1"'})
    assert (answer.status_code, answer.json()["deleted"]) == (200, 1)
    event = rows_of(database_urls, "SELECT * FROM outbox_events ORDER BY id DESC LIMIT 1")[0]
    assert (event["event_type"], event["aggregate_type"], event["version"]) == ("GRAPH_DELETE", "edge", 2)
    assert event["id"] == answer.json()["position"]
    (entry,) = rows_of(database_urls, "SELECT * FROM audit_log")
    assert (entry["action"], entry["detail"]) == ("edge.delete", {"type": "ABOUT", "from": memory, "to": entity})
    assert (await client.delete(path, headers=headers)).status_code == 404
    reborn = await store(client, headers, type="ABOUT", **{"from": memory}, to=entity)
    assert reborn["id"] != edge["id"]
