"""Links of entities and what is known about an entity, on a real Postgres."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant

from memory_os.entities.context import GROUP_ROWS

pytestmark = pytest.mark.anyio

ENTITIES = "/v1/memory/entities"
LAYERS = ("entity", "memory", "observation", "procedure", "outcome", "source")
MARCH, APRIL = "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"


def rows_of(urls: DatabaseUrls, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(urls.owner_url, row_factory=dict_row) as connection:
        return connection.execute(query).fetchall()


async def declare(client: httpx.AsyncClient, headers: dict[str, str], name: str = "Ann Lee", **fields: Any) -> str:
    answer = await client.post(ENTITIES, json={"name": name, "entity_type": "person", **fields}, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()["entity"]["id"]


async def store_memory(client: httpx.AsyncClient, headers: dict[str, str], **fields: Any) -> str:
    body = {"text": "Ann Lee signed the lease.", "label": "Event", "dedup": "off", **fields}
    answer = await client.post("/v1/memories", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()["memory"]["id"]


async def make_target(client: httpx.AsyncClient, layer: str, headers: dict[str, str], **fields: Any) -> str:
    if layer == "entity":
        return await declare(client, headers, "Acme", **fields)
    if layer == "memory":
        return await store_memory(client, headers, **fields)
    if layer == "source":
        body = {"kind": "document", "title": "Acme", **fields}
        answer = await client.post("/v1/sources", json=body, headers=headers)
    else:
        answer = await client.post(f"/v1/memory/{layer}s", json={"title": "Acme", **fields}, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()[layer]["id"]


async def link(
    client: httpx.AsyncClient, headers: dict[str, str], entity: str, layer: str, target: str, **fields: Any
) -> dict[str, Any]:
    body = {"layer": layer, "target_id": target, "relationship": 'works`for" 多摩', **fields}
    answer = await client.post(f"{ENTITIES}/{entity}/links", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()["link"]


async def listed(client: httpx.AsyncClient, headers: dict[str, str], entity: str, **wanted: Any) -> list[str]:
    answer = await client.get(f"{ENTITIES}/{entity}/links", params=wanted, headers=headers)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


@pytest.mark.parametrize("layer", LAYERS)
async def test_a_link_leads_to_a_record_of_each_layer(
    client: httpx.AsyncClient, tenant: TestTenant, layer: str, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    entity, target = await declare(client, headers), await make_target(client, layer, headers)
    body = {
        "layer": layer,
        "target_id": target,
        "relationship": 'works`for" 多摩',
        "confidence": 0.5,
        "valid_from": MARCH,
        "valid_to": APRIL,
    }
    answer = await client.post(f"{ENTITIES}/{entity}/links", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    stored = answer.json()["link"]
    assert {name: stored[name] for name in body} == body
    assert (stored["entity_id"], stored["version"]) == (entity, 1)
    (event,) = rows_of(database_urls, "SELECT * FROM outbox_events WHERE aggregate_type = 'entity_link'")
    assert (event["event_type"], str(event["aggregate_id"]), event["version"]) == ("GRAPH_UPSERT", stored["id"], 1)
    assert event["id"] == answer.json()["position"]
    assert await listed(client, tenant.headers("reader"), entity) == [stored["id"]]


@pytest.mark.parametrize("layer", LAYERS)
async def test_a_hidden_target_is_answered_like_none_and_hides_its_links(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory, layer: str
) -> None:
    ann, bo = tenant.headers(user="ann"), tenant.headers(user="bo")
    entity = await declare(client, ann)
    hidden = await make_target(client, layer, ann, visibility="private")
    foreign = await make_target(client, layer, tenant_factory().headers())
    details = set()
    for target in (hidden, foreign, str(uuid4())):
        body = {"layer": layer, "target_id": target, "relationship": "knows"}
        answer = await client.post(f"{ENTITIES}/{entity}/links", json=body, headers=bo)
        assert answer.status_code == 422
        assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/target_id"]
        details.add(str(answer.json()["errors"]))
    assert len(details) == 1
    stored = await link(client, ann, entity, layer, hidden)
    assert await listed(client, ann, entity) == [stored["id"]]
    assert await listed(client, bo, entity) == []
    path = f"{ENTITIES}/{entity}/links/{stored['id']}"
    assert (await client.post(f"{path}/close", headers=bo)).status_code == 404
    assert (await client.delete(path, headers=bo)).status_code == 404
    again = {"layer": layer, "target_id": hidden, "relationship": "x", "id": stored["id"]}
    assert (await client.post(f"{ENTITIES}/{entity}/links", json=again, headers=ann)).status_code == 409


async def test_a_boundary_instant_belongs_to_one_window_only(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    entity, acme = await declare(client, headers), await declare(client, headers, "Acme")
    early = (await link(client, headers, entity, "entity", acme, valid_to=APRIL))["id"]
    late = (await link(client, headers, entity, "entity", acme, valid_from=APRIL))["id"]
    always = (await link(client, headers, entity, "entity", acme))["id"]
    empty = (await link(client, headers, entity, "entity", acme, valid_from=APRIL, valid_to=APRIL))["id"]
    moments = {
        "2026-03-31T23:59:59.999999Z": {early, always},
        APRIL: {late, always},
        "2026-04-01T02:00:00+02:00": {late, always},
        "2026-04-01T01:59:59+02:00": {early, always},
        "0001-01-01T00:00:00Z": {early, always},
        "9999-12-31T23:59:59Z": {late, always},
    }
    for moment, there in moments.items():
        assert set(await listed(client, headers, entity, valid_at=moment)) == there
    assert set(await listed(client, headers, entity)) == {early, late, always, empty}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"layer": "galaxy"}, "/layer"),
        ({"layer": "memry"}, "/layer"),
        ({"relationship": " "}, "/relationship"),
        ({"relationship": "a\x00"}, "/relationship"),
        ({"relationship": "x" * 201}, "/relationship"),
        ({"confidence": 2}, "/confidence"),
        ({"valid_from": "2026-04-01T00:00:00"}, "/valid_from"),
        ({"valid_from": "0001-01-01T00:00:00+02:00"}, "/valid_from"),
        ({"valid_from": APRIL, "valid_to": MARCH}, "/valid_to"),
        ({"target_id": "x"}, "/target_id"),
        ({"colour": "red"}, "/colour"),
    ],
)
async def test_what_cannot_be_linked_is_refused_with_a_pointer(
    client: httpx.AsyncClient, tenant: TestTenant, body: dict[str, Any], pointer: str, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    entity, memory = await declare(client, headers), await store_memory(client, headers)
    whole = {"layer": "memory", "target_id": memory, "relationship": "signed", **body}
    answer = await client.post(f"{ENTITIES}/{entity}/links", json=whole, headers=headers)
    assert answer.status_code == 422, answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
    if "layer" in body:
        assert answer.json()["allowed"] == list(LAYERS)
        assert answer.json().get("did_you_mean") == {"memry": "memory"}.get(body["layer"])
    assert rows_of(database_urls, "SELECT id FROM entity_links") == []


async def test_an_entity_is_not_linked_to_itself(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    entity = await declare(client, tenant.headers())
    body = {"layer": "entity", "target_id": entity, "relationship": "knows"}
    answer = await client.post(f"{ENTITIES}/{entity}/links", json=body, headers=tenant.headers())
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/target_id"


async def test_the_same_id_again_finds_the_link(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    entity, acme = await declare(client, headers), await declare(client, headers, "Acme")
    body = {"layer": "entity", "target_id": acme, "relationship": "works for", "id": str(uuid4())}
    path = f"{ENTITIES}/{entity}/links"
    assert (await client.post(path, json=body, headers=headers)).status_code == 201
    again = await client.post(path, json=body, headers=headers)
    assert (again.status_code, again.json()["position"]) == (200, 0)
    other = await client.post(path, json={**body, "relationship": "left"}, headers=headers)
    assert other.status_code == 409
    elsewhere = await client.post(f"{ENTITIES}/{acme}/links", json={**body, "target_id": entity}, headers=headers)
    assert elsewhere.status_code == 409
    keyed = {**headers, "Idempotency-Key": "k-1"}
    del body["id"]
    answers = await asyncio.gather(*(client.post(path, json=body, headers=keyed) for _ in range(4)))
    assert len({answer.content for answer in answers}) == 1


async def test_lists_are_filtered_and_paged_newest_first(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    entity, acme = await declare(client, headers), await declare(client, headers, "Acme")
    memory = await store_memory(client, headers)
    made = [(await link(client, headers, entity, "entity", acme, relationship=f"r{n % 2}"))["id"] for n in range(4)]
    made.append((await link(client, headers, entity, "memory", memory, relationship="r0"))["id"])
    assert await listed(client, headers, entity, relationship="r1") == [made[3], made[1]]
    assert await listed(client, headers, entity, layer="memory") == [made[4]]
    first = (await client.get(f"{ENTITIES}/{entity}/links", params={"limit": 3}, headers=headers)).json()
    rest = await listed(client, headers, entity, limit=3, cursor=first["next_cursor"])
    assert [item["id"] for item in first["items"]] + rest == made[::-1]
    for unknown in ({"colour": "red"}, {"layer": "galaxy"}, {"valid_at": "2026-04-01T00:00:00"}, {"valid_at": "x"}):
        answer = await client.get(f"{ENTITIES}/{entity}/links", params=unknown, headers=headers)
        assert answer.status_code == 422, unknown


async def test_a_link_is_closed_once_and_at_any_moment_after_it_began(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    entity, acme = await declare(client, headers), await declare(client, headers, "Acme")
    stored = await link(client, headers, entity, "entity", acme, valid_from=MARCH)
    path = f"{ENTITIES}/{entity}/links/{stored['id']}/close"
    early = await client.post(path, json={"valid_to": "2026-02-01T00:00:00Z"}, headers=headers)
    assert (early.status_code, early.json()["errors"][0]["pointer"]) == (422, "/valid_to")
    for bad in ({"valid_to": "2026-04-01T00:00:00"}, {"at": APRIL}):
        assert (await client.post(path, json=bad, headers=headers)).status_code == 422
    closed = await client.post(path, json={"valid_to": APRIL}, headers=headers)
    assert closed.status_code == 200
    assert (closed.json()["link"]["valid_to"], closed.json()["link"]["version"]) == (APRIL, 2)
    assert closed.headers["etag"] == '"2"'
    event = rows_of(database_urls, "SELECT * FROM outbox_events ORDER BY id DESC LIMIT 1")[0]
    assert (event["aggregate_type"], event["event_type"], event["version"]) == ("entity_link", "GRAPH_UPSERT", 2)
    assert event["id"] == closed.json()["position"]
    (entry,) = rows_of(database_urls, "SELECT * FROM audit_log")
    assert (entry["action"], entry["detail"]) == ("entity_link.close", {"before": {"valid_to": None}})
    for repeated in ({"valid_to": APRIL}, {}):
        again = await client.post(path, json=repeated, headers=headers)
        assert (again.status_code, again.json()["position"], again.json()["link"]["version"]) == (200, 0, 2)
    late = await client.post(path, json={"valid_to": "2026-05-01T00:00:00Z"}, headers=headers)
    assert late.status_code == 409
    earlier = await client.post(path, json={"valid_to": "2026-03-15T00:00:00Z"}, headers=headers)
    assert (earlier.status_code, earlier.json()["link"]["version"]) == (200, 3)


async def test_a_link_closed_without_a_moment_or_a_body_ends_now(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    entity, acme = await declare(client, headers), await declare(client, headers, "Acme")
    stored = await link(client, headers, entity, "entity", acme)
    before = datetime.now(UTC)
    closed = await client.post(f"{ENTITIES}/{entity}/links/{stored['id']}/close", headers=headers)
    assert closed.status_code == 200, closed.text
    end = datetime.fromisoformat(closed.json()["link"]["valid_to"])
    assert before - timedelta(seconds=1) <= end <= datetime.now(UTC) + timedelta(seconds=1)
    assert await listed(client, headers, entity, valid_at=end.isoformat()) == []
    assert await listed(client, headers, entity, valid_at=(end - timedelta(microseconds=1)).isoformat()) == [
        stored["id"]
    ]
    future = await link(client, headers, entity, "entity", acme, valid_from="2999-01-01T00:00:00Z")
    refused = await client.post(f"{ENTITIES}/{entity}/links/{future['id']}/close", headers=headers)
    assert refused.status_code == 422
    missing = await client.post(f"{ENTITIES}/{acme}/links/{stored['id']}/close", headers=headers)
    assert missing.status_code == 404


async def test_a_deleted_link_leaves_by_an_event_of_its_own(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    entity, acme = await declare(client, headers), await declare(client, headers, "Acme")
    stored = await link(client, headers, entity, "entity", acme)
    path = f"{ENTITIES}/{entity}/links/{stored['id']}"
    assert (await client.delete(path, headers={**headers, "If-Match": '"2"'})).status_code == 412
    assert (await client.delete(path, headers=tenant.headers("reader"))).status_code == 403
    answer = await client.delete(path, headers=headers)
    assert (answer.status_code, answer.json()["deleted"]) == (200, 1)
    event = rows_of(database_urls, "SELECT * FROM outbox_events ORDER BY id DESC LIMIT 1")[0]
    assert (event["aggregate_type"], event["event_type"], event["version"]) == ("entity_link", "GRAPH_DELETE", 2)
    assert rows_of(database_urls, "SELECT action FROM audit_log") == [{"action": "entity_link.delete"}]
    assert (await client.delete(path, headers=headers)).status_code == 404


def mention(urls: DatabaseUrls, tenant: TestTenant, memory_id: str, entity_id: str) -> None:
    with psycopg.connect(urls.worker_url) as connection:
        connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(tenant.tenant_id),))
        connection.execute(
            "INSERT INTO mentions (tenant_id, memory_id, canonical_name, entity_id, name, occurrences, confidence, "
            "spans, seen, extractor, extractor_version) SELECT tenant_id, id, 'ann lee', %s, 'Ann', 1, 0.9, '{0,3}', "
            "coalesce(occurred_at, created_at), 'test', 1 FROM memories WHERE id = %s",
            (entity_id, memory_id),
        )


async def test_the_context_holds_what_is_known_of_an_entity(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    ann, acme = await declare(client, headers), await declare(client, headers, "Acme")
    out = await link(client, headers, ann, "entity", acme, relationship="works for")
    back = await link(client, headers, acme, "entity", ann, relationship="employs")
    procedure = await make_target(client, "procedure", headers)
    runs = await link(client, headers, ann, "procedure", procedure, relationship="runs")
    memory = await store_memory(client, headers, text="Ann Lee " + "x" * 600, occurred_at="2026-01-05T00:00:00Z")
    said = await link(client, headers, ann, "memory", memory, relationship="said")
    later = await store_memory(client, headers, text="Ann Lee moved.")
    gone = await store_memory(client, headers, text="Ann Lee left.")
    await client.patch(f"/v1/memories/{gone}", json={"status": "retracted"}, headers=headers)
    edge = {"type": "ABOUT", "from": {"memory": memory}, "to": {"entity": ann}, "confidence": 0.75}
    edge_id = (await client.post("/v1/edges", json=edge, headers=headers)).json()["edge"]["id"]
    backward = {"type": "INFLUENCES", "from": {"entity": ann}, "to": {"memory": later}, "confidence": 0.9}
    backward_id = (await client.post("/v1/edges", json=backward, headers=headers)).json()["edge"]["id"]
    for named in (memory, later, gone):
        mention(database_urls, tenant, named, ann)

    answer = await client.get(f"{ENTITIES}/{ann}/context", headers=tenant.headers("reader"))
    assert answer.status_code == 200, answer.text
    context = answer.json()
    assert context["entity"]["id"] == ann
    assert [(item["id"], item["direction"], item["other"]["title"][:8]) for item in context["links"]] == [
        (said["id"], "out", "Ann Lee "),
        (runs["id"], "out", "Acme"),
        (back["id"], "in", "Acme"),
        (out["id"], "out", "Acme"),
    ]
    assert len(context["links"][0]["other"]["title"]) == 500
    assert context["links"][1]["other"] == {"layer": "procedure", "id": procedure, "title": "Acme", "status": "active"}
    assert [(item["id"], item["direction"], item["memory"]["id"]) for item in context["edges"]] == [
        (backward_id, "out", later),
        (edge_id, "in", memory),
    ]
    assert [item["id"] for item in context["memories"]] == [later, memory]
    assert context["memories"][1]["date"] == "2026-01-05T00:00:00Z"
    assert context["more"] == {"links": False, "edges": False, "memories": False}


async def test_the_context_is_of_the_moment_asked_for(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    ann, acme = await declare(client, headers), await declare(client, headers, "Acme")
    early = await link(client, headers, ann, "entity", acme, valid_to=APRIL)
    late = await link(client, headers, ann, "entity", acme, valid_from=APRIL)
    then = await store_memory(client, headers, text="Ann Lee rents.", label="Attribute", valid_to=APRIL)
    now = await store_memory(client, headers, text="Ann Lee owns.", label="Attribute", valid_from=APRIL)
    for memory in (then, now):
        mention(database_urls, tenant, memory, ann)

    async def seen(as_of: str) -> tuple[list[str], list[str]]:
        answer = await client.get(f"{ENTITIES}/{ann}/context", params={"as_of": as_of}, headers=headers)
        context = answer.json()
        return [item["id"] for item in context["links"]], [item["id"] for item in context["memories"]]

    assert await seen("2026-03-31T23:59:59Z") == ([early["id"]], [then])
    assert await seen(APRIL) == ([late["id"]], [now])
    for bad in ({"as_of": "2026-04-01T00:00:00"}, {"at": APRIL}):
        assert (await client.get(f"{ENTITIES}/{ann}/context", params=bad, headers=headers)).status_code == 422


async def test_the_context_leaves_out_whatever_has_a_hidden_end(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    shared, cy = tenant.headers(), tenant.headers(user="cy")
    ann = await declare(client, shared)
    for layer in LAYERS:
        await link(client, cy, ann, layer, await make_target(client, layer, cy, visibility="private"))
    diary = await declare(client, cy, "Diary", visibility="private")
    await link(client, cy, diary, "entity", ann)
    memory = await store_memory(client, cy, visibility="private")
    edge = {"type": "ABOUT", "from": {"memory": memory}, "to": {"entity": ann}}
    assert (await client.post("/v1/edges", json=edge, headers=cy)).status_code == 201
    mention(database_urls, tenant, memory, ann)

    async def sizes(headers: dict[str, str]) -> tuple[int, int, int]:
        context = (await client.get(f"{ENTITIES}/{ann}/context", headers=headers)).json()
        assert context["entity"]["mention_count"] == len(context["memories"])
        return len(context["links"]), len(context["edges"]), len(context["memories"])

    assert await sizes(cy) == (7, 1, 1)
    assert await sizes(shared) == (0, 0, 0)
    assert await sizes(tenant.headers(user="bo")) == (0, 0, 0)
    assert (await client.get(f"{ENTITIES}/{diary}/context", headers=shared)).status_code == 404


async def test_each_group_of_a_context_is_bounded(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    ann, acme = await declare(client, headers), await declare(client, headers, "Acme")
    items = [
        {"text": f"Ann Lee {n}", "label": "Event", "edges": [{"type": "ABOUT", "to": {"entity": ann}}]}
        for n in range(GROUP_ROWS + 1)
    ]
    results = (await client.post("/v1/memories/batch", json={"items": items}, headers=headers)).json()["results"]
    for result in results:
        mention(database_urls, tenant, result["memory_id"], ann)
        await link(client, headers, ann, "entity", acme)
    context = (await client.get(f"{ENTITIES}/{ann}/context", headers=headers)).json()
    assert [len(context[group]) for group in ("links", "edges", "memories")] == [GROUP_ROWS] * 3
    assert context["more"] == {"links": True, "edges": True, "memories": True}
