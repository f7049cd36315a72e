"""`/v1/memory/observations`, `/procedures`, `/outcomes` on a real Postgres."""

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

pytestmark = pytest.mark.anyio

LAYERS = ("observation", "procedure", "outcome")
BODY = {"title": "Deploys fail on Fridays"}


def path_of(layer: str) -> str:
    return f"/v1/memory/{layer}s"


def rows_of(urls: DatabaseUrls, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(urls.owner_url, row_factory=dict_row) as connection:
        return connection.execute(query).fetchall()


async def store(client: httpx.AsyncClient, layer: str, headers: dict[str, str], **fields: Any) -> dict[str, Any]:
    answer = await client.post(path_of(layer), json={**BODY, **fields}, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()[layer]


@pytest.mark.parametrize("layer", LAYERS)
async def test_a_record_reads_back_as_it_was_answered(
    client: httpx.AsyncClient, tenant: TestTenant, layer: str, database_urls: DatabaseUrls
) -> None:
    body = {
        "title": "Deploys fail on Fridays",
        "summary": "Seen in 3 of 4 weeks; 多摩川 too.",
        "payload": {"weeks": [9, 11, 12]},
        "confidence": 0.5,
        "status": "archived",
    }
    answer = await client.post(path_of(layer), json=body, headers=tenant.headers())
    assert answer.status_code == 201
    assert answer.headers["etag"] == '"1"'
    assert set(answer.json()) == {layer, "position"}
    assert answer.json()["position"] == 0
    record = answer.json()[layer]
    assert {name: record[name] for name in body} == body
    assert UUID(record["id"]).version == 7
    read = await client.get(f"{path_of(layer)}/{record['id']}", headers=tenant.headers("reader"))
    again = read.json()
    for moment in ("created_at", "updated_at"):
        record.pop(moment), again.pop(moment)
    assert again == record
    for other in LAYERS:
        if other != layer:
            elsewhere = await client.get(f"{path_of(other)}/{record['id']}", headers=tenant.headers())
            assert elsewhere.status_code == 404
    assert rows_of(database_urls, "SELECT id FROM outbox_events") == []


@pytest.mark.parametrize("layer", LAYERS)
async def test_a_record_is_indexed_for_text_search_and_the_index_follows_a_change(
    client: httpx.AsyncClient, tenant: TestTenant, layer: str, database_urls: DatabaseUrls
) -> None:
    record = await store(client, layer, tenant.headers(), summary="Rollbacks of src/deploy.py")

    def found(word: str, configuration: str = "english") -> int:
        query = f"SELECT count(*) AS n FROM {layer}s WHERE search @@ to_tsquery('{configuration}', '{word}')"
        return rows_of(database_urls, query)[0]["n"]

    assert (found("deploying"), found("rollback"), found("fridays", "simple"), found("canary")) == (1, 1, 1, 0)
    await client.patch(f"{path_of(layer)}/{record['id']}", json={"summary": "Canary first"}, headers=tenant.headers())
    assert (found("deploying"), found("rollback"), found("canary")) == (1, 0, 1)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"title": ""}, "/title"),
        ({"title": "  "}, "/title"),
        ({"title": "x" * 501}, "/title"),
        ({"title": "a\x00"}, "/title"),
        ({"summary": "a\x00"}, "/summary"),
        ({"summary": None}, "/summary"),
        ({"payload": {"a": "\x00"}}, "/payload"),
        ({"confidence": -0.1}, "/confidence"),
        ({"status": "activ"}, "/status"),
        ({"visibility": "private"}, "/visibility"),
        ({"visibility": "restricted", "readers": {"users": ["ann"]}}, "/readers"),
        ({"layer": "outcome"}, "/layer"),
    ],
)
async def test_what_cannot_be_stored_is_refused_with_a_pointer(
    client: httpx.AsyncClient, tenant: TestTenant, body: dict[str, Any], pointer: str, database_urls: DatabaseUrls
) -> None:
    answer = await client.post(path_of("procedure"), json={**BODY, **body}, headers=tenant.headers())
    assert answer.status_code == 422, answer.text
    assert pointer in [fault["pointer"] for fault in answer.json()["errors"]]
    if "status" in body:
        assert answer.json()["allowed"] == ["active", "archived"]
        assert answer.json()["did_you_mean"] == "active"
    assert rows_of(database_urls, "SELECT id FROM procedures") == []


async def test_the_same_id_again_finds_the_record_and_other_content_is_a_conflict(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory
) -> None:
    ident = str(uuid4())
    await store(client, "outcome", tenant.headers(), id=ident)
    again = await client.post(path_of("outcome"), json={**BODY, "id": ident}, headers=tenant.headers())
    assert (again.status_code, again.json()["outcome"]["id"]) == (200, ident)
    other = await client.post(path_of("outcome"), json={"title": "Other", "id": ident}, headers=tenant.headers())
    assert other.status_code == 409
    await store(client, "outcome", tenant_factory().headers(), id=ident, title="Other")
    await store(client, "procedure", tenant.headers(), id=ident, title="Other")


async def test_an_idempotency_key_makes_one_record(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = {**tenant.headers(), "Idempotency-Key": "k-1"}
    answers = await asyncio.gather(*(client.post(path_of("observation"), json=BODY, headers=headers) for _ in range(6)))
    assert len({answer.content for answer in answers}) == 1
    listed = await client.get(path_of("observation"), headers=tenant.headers())
    assert len(listed.json()["items"]) == 1
    other = await client.post(path_of("procedure"), json=BODY, headers=headers)
    assert other.status_code == 409


@pytest.mark.parametrize("layer", LAYERS)
async def test_lists_are_filtered_and_paged_newest_first(
    client: httpx.AsyncClient, tenant: TestTenant, layer: str
) -> None:
    made = [(await store(client, layer, tenant.headers(), title=f"T {n}"))["id"] for n in range(5)]
    mine = await store(client, layer, tenant.headers(user="ann"), title="A", status="archived")
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = (await client.get(path_of(layer), params=params, headers=tenant.headers())).json()
        seen += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert seen == [mine["id"], *made[::-1]]
    for wanted in ({"status": "archived"}, {"user_id": "ann"}):
        answer = await client.get(path_of(layer), params=wanted, headers=tenant.headers())
        assert [item["id"] for item in answer.json()["items"]] == [mine["id"]]
    for unknown in ({"colour": "red"}, {"status": "gone"}):
        assert (await client.get(path_of(layer), params=unknown, headers=tenant.headers())).status_code == 422


@pytest.mark.parametrize("layer", LAYERS)
async def test_a_change_moves_the_version_and_leaves_an_audit_entry(
    client: httpx.AsyncClient, tenant: TestTenant, layer: str
) -> None:
    record = await store(client, layer, tenant.headers())
    path = f"{path_of(layer)}/{record['id']}"
    patch = {"title": "Deploys fail", "status": "archived", "payload": {"a": 1}, "confidence": 0.5}
    changed = await client.patch(path, json=patch, headers={**tenant.headers(), "If-Match": '"1"'})
    assert changed.status_code == 200
    assert changed.headers["etag"] == '"2"'
    assert {name: changed.json()[layer][name] for name in patch} == patch
    (entry,) = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
    assert entry["action"] == f"{layer}.change"
    assert entry["detail"]["before"] == {**BODY, "status": "active", "payload": {}, "confidence": 1.0}
    assert (await client.patch(path, json=patch, headers={**tenant.headers(), "If-Match": '"1"'})).status_code == 412
    same = await client.patch(path, json=patch, headers=tenant.headers())
    assert same.json()[layer]["version"] == 2
    for bad in ({"status": "gone"}, {"title": " "}, {"visibility": "private"}, {"id": str(uuid4())}):
        assert (await client.patch(path, json=bad, headers=tenant.headers())).status_code == 422


@pytest.mark.parametrize("layer", LAYERS)
async def test_a_deleted_record_takes_the_links_to_it_out_of_the_graph(
    client: httpx.AsyncClient, tenant: TestTenant, layer: str, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    record, kept = await store(client, layer, headers), await store(client, layer, headers, title="Kept")
    entity = {"name": "Ann Lee", "entity_type": "person"}
    links = []
    for owner in (headers, tenant.headers(user="ann")):
        body = {**entity, "visibility": "private"} if owner is not headers else entity
        ident = (await client.post("/v1/memory/entities", json=body, headers=owner)).json()["entity"]["id"]
        for target in (record, kept):
            link = {"layer": layer, "target_id": target["id"], "relationship": "noted"}
            answer = await client.post(f"/v1/memory/entities/{ident}/links", json=link, headers=owner)
            assert answer.status_code == 201, answer.text
            if target is record:
                links.append(answer.json()["link"]["id"])
    path = f"{path_of(layer)}/{record['id']}"
    assert (await client.delete(path, headers={**headers, "If-Match": '"9"'})).status_code == 412
    answer = await client.delete(path, headers=headers)
    assert (answer.status_code, answer.json()["deleted"]) == (200, 1)
    events = rows_of(database_urls, "SELECT * FROM outbox_events WHERE event_type = 'GRAPH_DELETE' ORDER BY id")
    assert {(event["aggregate_type"], str(event["aggregate_id"]), event["version"]) for event in events} == {
        ("entity_link", link, 2) for link in links
    }
    assert answer.json()["position"] == events[-1]["id"]
    assert len(rows_of(database_urls, "SELECT id FROM entity_links")) == 2
    assert rows_of(database_urls, "SELECT action FROM audit_log") == [{"action": f"{layer}.delete"}]
    assert (await client.get(path, headers=headers)).status_code == 404
    last = await client.delete(f"{path_of(layer)}/{record['id']}", headers=headers)
    assert last.status_code == 404


@pytest.mark.parametrize("layer", LAYERS)
async def test_visibility_and_tenants_bound_every_call(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory, layer: str
) -> None:
    ann = tenant.headers(user="ann")
    private = await store(client, layer, ann, visibility="private")
    shared = await store(client, layer, ann, visibility="restricted", readers={"groups": ["hr"]}, title="Shared")
    hr = tenant.headers(user="bo", groups=["hr"])
    assert (await client.get(f"{path_of(layer)}/{shared['id']}", headers=hr)).status_code == 200
    for headers in (hr, tenant.headers("admin"), tenant_factory().headers("admin")):
        path = f"{path_of(layer)}/{private['id']}"
        assert (await client.get(path, headers=headers)).status_code == 404
        assert (await client.patch(path, json={"title": "x"}, headers=headers)).status_code == 404
        assert (await client.delete(path, headers=headers)).status_code == 404
        listed = (await client.get(path_of(layer), headers=headers)).json()["items"]
        assert [item["title"] for item in listed] == (["Shared"] if headers is hr else [])
    assert (await client.get(f"{path_of(layer)}/{private['id']}", headers=ann)).json() == private


@pytest.mark.parametrize("layer", LAYERS)
async def test_roles_decide_who_may_write(client: httpx.AsyncClient, tenant: TestTenant, layer: str) -> None:
    record = await store(client, layer, tenant.headers())
    headers, path = tenant.headers("reader"), f"{path_of(layer)}/{record['id']}"
    assert (await client.post(path_of(layer), json=BODY, headers=headers)).status_code == 403
    assert (await client.patch(path, json={"title": "x"}, headers=headers)).status_code == 403
    assert (await client.delete(path, headers=headers)).status_code == 403


async def test_the_three_kinds_are_documented_under_names_of_their_own(client: httpx.AsyncClient) -> None:
    schema = (await client.get("/schema/openapi.json")).json()
    for layer in LAYERS:
        collection, single = schema["paths"][path_of(layer)], schema["paths"][path_of(layer) + "/{record_id}"]
        name = layer.capitalize()
        assert collection["post"]["operationId"] == f"store{name}"
        assert collection["get"]["operationId"] == f"list{name}s"
        assert [single[verb]["operationId"] for verb in ("get", "patch", "delete")] == [
            f"get{name}",
            f"change{name}",
            f"delete{name}",
        ]
        answer = collection["post"]["responses"]["201"]["content"]["application/json"]["schema"]
        assert answer == {"$ref": f"#/components/schemas/Stored{name}"}
