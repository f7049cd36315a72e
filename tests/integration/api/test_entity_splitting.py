"""`/v1/memory/entities/split` on a real Postgres: which names go, who reads both, what is refused, what is told."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from tests.fixtures.entities import ENTITIES, declare, store_memory
from tests.fixtures.merging import SPLIT, edge, everything, link, make_derived, merge, rows_of, split
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, bearer

from memory_os.api.services import Services

pytestmark = pytest.mark.anyio

ALIASES = ["Annie", "A. Lee", "Ann of Accounts"]


async def test_the_aliases_go_to_an_entity_of_their_own(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    old = await declare(client, headers, aliases=ALIASES, summary="Two people.", payload={"a": 1})
    memory = await store_memory(client, headers)
    kept = [
        await link(client, headers, old["id"], memory, layer="memory"),
        await edge(client, headers, {"memory": memory}, {"entity": old["id"]}),
    ]
    before = rows_of(database_urls, "SELECT max(id) AS id FROM outbox_events")[0]["id"]
    answer = await split(client, headers, old["id"], "ann-of-accounts", "annie", "ANNIE")
    assert answer.status_code == 201, answer.text
    assert answer.headers["etag"] == '"1"'
    new, remaining = answer.json()["entity"], answer.json()["remaining"]
    assert (new["name"], new["aliases"], new["entity_type"], new["version"]) == (
        *("Ann of Accounts", ["Annie"], "person", 1),
    )
    assert (new["summary"], new["payload"], new["declared"], new["status"]) == (None, {}, True, "active")
    assert UUID(new["id"]).version == 7
    assert (remaining["id"], remaining["name"], remaining["aliases"]) == (old["id"], "Ann Lee", ["A. Lee"])
    assert (remaining["version"], remaining["summary"], remaining["payload"]) == (2, "Two people.", {"a": 1})
    for entity in (new, remaining):
        assert (await client.get(f"{ENTITIES}/{entity['id']}", headers=headers)).json() == entity
    found = await client.get(ENTITIES, params={"name": "annie"}, headers=headers)
    assert [item["id"] for item in found.json()["items"]] == [new["id"]]
    links = rows_of(database_urls, "SELECT id::text, entity_id::text AS entity, version FROM entity_links")
    edges = rows_of(database_urls, "SELECT id::text, target_entity_id::text AS entity, version FROM edges")
    assert [*links, *edges] == [{"id": ident, "entity": old["id"], "version": 1} for ident in kept]
    events = rows_of(database_urls, "SELECT * FROM outbox_events WHERE id > %s ORDER BY id", before)
    assert [(event["event_type"], str(event["aggregate_id"]), event["version"]) for event in events] == [
        ("GRAPH_UPSERT", new["id"], 1),
        ("GRAPH_UPSERT", old["id"], 2),
    ]
    assert answer.json()["position"] == events[-1]["id"]
    (entry,) = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
    assert (entry["action"], entry["target_id"]) == ("entity.split", old["id"])
    assert entry["detail"] == {
        "before": {"aliases": ALIASES},
        "taken": ["Ann of Accounts", "Annie"],
        "new": new["id"],
        "act_id": answer.json()["act_id"],
        "name": "Ann of Accounts",
    }


async def test_both_vectors_are_of_the_names_after_the_split(
    client: httpx.AsyncClient, tenant: TestTenant, services: Services, database_urls: DatabaseUrls
) -> None:
    old = await declare(client, tenant.headers(), aliases=ALIASES, summary="Two people.")
    answer = await split(client, tenant.headers(), old["id"], "Annie", "A. Lee", name="Annie Lee")
    texts = {
        old["id"]: "Ann Lee. Ann of Accounts. Two people.",
        answer.json()["entity"]["id"]: "Annie Lee. Annie, A. Lee",
    }
    rows = rows_of(database_urls, "SELECT id::text, embedding::real[] AS vector FROM entities")
    assert len(rows) == 2
    for row in rows:
        expected = (await services.embedder.embed([texts[row["id"]]]))[0].tolist()
        assert row["vector"] == pytest.approx(expected, abs=1e-5)


async def test_name_type_and_id_may_be_given(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers, ident = tenant.headers(), str(uuid4())
    old = await declare(client, headers, aliases=ALIASES)
    body = {"name": "a lee", "entity_type": "vendor", "id": ident}
    first = (await split(client, headers, old["id"], "Annie", "A. Lee", **body)).json()["entity"]
    assert (first["id"], first["name"], first["aliases"], first["entity_type"]) == (
        *(ident, "a lee", ["Annie"], "vendor"),
    )
    # Two people may have one name; it stands for neither of them then.
    second = (await split(client, headers, old["id"], "Ann of Accounts", name="Ann Lee")).json()
    assert (second["entity"]["name"], second["entity"]["aliases"]) == ("Ann Lee", ["Ann of Accounts"])
    assert (second["remaining"]["name"], second["remaining"]["aliases"]) == ("Ann Lee", [])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"visibility": "private"},
        {"visibility": "restricted", "readers": {"users": ["bo"], "groups": ["hr"]}},
    ],
)
async def test_the_same_people_read_both(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls, fields: dict[str, Any]
) -> None:
    ann, bo = tenant.headers(user="ann"), tenant.headers(user="bo")
    old = await declare(client, ann, aliases=ALIASES, **fields)
    before = everything(database_urls)
    strangers = tenant.headers(user="di") if fields else {}
    if strangers:
        assert (await split(client, strangers, old["id"], "Annie")).status_code == 404
        assert everything(database_urls) == before
    answer = await split(client, ann if fields.get("visibility") == "private" else bo, old["id"], "Annie")
    assert answer.status_code == 201, answer.text
    new = answer.json()["entity"]
    assert {name: new[name] for name in ("visibility", "user_id", "readers")} == {
        name: old[name] for name in ("visibility", "user_id", "readers")
    }
    assert new["user_id"] == "ann"
    if strangers:
        assert (await client.get(f"{ENTITIES}/{new['id']}", headers=strangers)).status_code == 404


async def test_what_can_not_be_split_is_refused_and_nothing_changes(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    old = (await declare(client, headers, aliases=ALIASES))["id"]
    elsewhere = (await declare(client, tenant_factory().headers(), aliases=ALIASES))["id"]
    hidden = (await declare(client, tenant.headers(user="cy"), aliases=ALIASES, visibility="private"))["id"]
    other = (await declare(client, headers, name="Bo"))["id"]
    before = everything(database_urls)
    bodies: list[tuple[Any, int, list[str]]] = [
        ({"aliases": ["Annie", "Bob", "Ann Lee", "x"]}, 422, ["/aliases/1", "/aliases/2", "/aliases/3"]),
        ({"aliases": []}, 422, ["/aliases"]),
        ({"aliases": ["Annie"] * 101}, 422, ["/aliases"]),
        ({"aliases": "Annie"}, 422, ["/aliases"]),
        ({"aliases": ["\u200b"]}, 422, ["/aliases/0"]),
        ({"aliases": ["Annie\x00"]}, 422, ["/aliases/0"]),
        ({"aliases": ["Annie"], "name": "\u200b"}, 422, ["/name"]),
        ({"aliases": ["Annie"], "name": ""}, 422, ["/name"]),
        ({"aliases": ["Annie"], "entity_type": " "}, 422, ["/entity_type"]),
        ({"aliases": ["Annie"], "links": []}, 422, ["/links"]),
        ({"aliases": ["Annie"], "id": "x"}, 422, ["/id"]),
        ({}, 422, ["/aliases"]),
        ({"aliases": ["Annie"], "id": other}, 409, []),
        ({"aliases": ["Annie"], "id": old}, 409, []),
        ({"aliases": ["Annie"], "id": hidden}, 409, []),
        *(({"entity": ident, "aliases": ["Annie"]}, 404, []) for ident in (str(uuid4()), hidden, elsewhere)),
    ]
    for body, status, pointers in bodies:
        answer = await client.post(SPLIT, json={"entity": old, **body}, headers=headers)
        assert answer.status_code == status, (body, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert [fault["pointer"] for fault in answer.json().get("errors", ())] == pointers, body
    own = (await split(client, headers, old, "ann-lee")).json()
    assert "own name" in own["errors"][0]["detail"]
    assert everything(database_urls) == before


async def test_a_derived_entity_has_nothing_to_split_off(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    derived = make_derived(tenant, await store_memory(client, tenant.headers()))
    answer = await split(client, tenant.headers(), derived, "x")
    assert answer.status_code == 409
    assert "declare one of that name" in answer.json()["detail"]


async def test_roles_and_acting_decide_who_may_split(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    old = await declare(client, tenant.headers(user="ann"), aliases=ALIASES, visibility="private")
    for role in ("reader", "operator"):
        assert (await split(client, tenant.headers(role, user="ann"), old["id"], "Annie")).status_code == 403
    assert (await split(client, {}, old["id"], "Annie")).status_code == 401
    bound = bearer(tenant.add_token("writer", user="bo"))
    assert (await split(client, bound, old["id"], "Annie", user_id="ann")).status_code == 403
    assert (await split(client, tenant.headers(), old["id"], "Annie", user_id="ann")).status_code == 201


async def test_a_split_is_meant_for_the_version_that_was_seen(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    old = await declare(client, headers, aliases=ALIASES)
    assert (await split(client, {**headers, "If-Match": '"2"'}, old["id"], "Annie")).status_code == 412
    assert (await split(client, {**headers, "If-Match": '"1"'}, old["id"], "Annie")).status_code == 201
    assert (await split(client, {**headers, "If-Match": '"1"'}, old["id"], "A. Lee")).status_code == 412


async def test_a_repeated_split_makes_one_entity(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    old = await declare(client, tenant.headers(), aliases=ALIASES)
    keyed = {**tenant.headers(), "Idempotency-Key": "k-1"}
    answers = await asyncio.gather(*(split(client, keyed, old["id"], "Annie") for _ in range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({(answer.content, answer.headers["etag"]) for answer in answers}) == 1
    other = await split(client, keyed, old["id"], "A. Lee")
    assert (other.status_code, other.json()["type"]) == (409, "urn:memory-os:problem:idempotency-key-reused")
    assert (await split(client, tenant.headers(), old["id"], "Annie")).status_code == 422

    ident = str(uuid4())
    body = {"id": ident, "name": "Ann of A."}
    first = await split(client, tenant.headers(), old["id"], "Ann of Accounts", **body)
    again = await split(client, tenant.headers(), old["id"], "Ann of Accounts", **body)
    assert (first.status_code, again.status_code, again.json()["position"]) == (201, 200, 0)
    assert {part: again.json()[part] for part in ("entity", "remaining")} == {
        part: first.json()[part] for part in ("entity", "remaining")
    }
    for more in ({"name": "Else"}, {"entity_type": "vendor"}):
        answer = await split(client, tenant.headers(), old["id"], "Ann of Accounts", **{**body, **more})
        assert answer.status_code == 409
    assert len(rows_of(database_urls, "SELECT 1 FROM audit_log WHERE action = 'entity.split'")) == 2


async def test_splits_and_changes_at_the_same_moment_all_land(
    client: httpx.AsyncClient, tenant: TestTenant, services: Services, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    old = await declare(client, headers, aliases=ALIASES)
    answers = await asyncio.gather(
        *(split(client, headers, old["id"], alias) for alias in ALIASES[:2]),
        client.patch(f"{ENTITIES}/{old['id']}", json={"summary": "One."}, headers=headers),
    )
    assert [answer.status_code for answer in answers] == [201, 201, 200]
    rows = rows_of(database_urls, "SELECT name, aliases, version, embedding::real[] AS vector FROM entities")
    left = next(row for row in rows if row["name"] == "Ann Lee")
    assert (left["aliases"], left["version"], len(rows)) == (["Ann of Accounts"], 4, 3)
    expected = (await services.embedder.embed(["Ann Lee. Ann of Accounts. One."]))[0].tolist()
    assert left["vector"] == pytest.approx(expected, abs=1e-5)


async def test_a_merge_can_be_taken_back_by_a_split_under_the_old_id(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    annie = (await declare(client, headers, name="Annie", aliases=["A. Lee"]))["id"]
    ann = (await declare(client, headers))["id"]
    assert (await merge(client, headers, annie, ann)).status_code == 200
    answer = await split(client, headers, ann, "Annie", "A. Lee", id=annie)
    assert answer.status_code == 201, answer.text
    assert (answer.json()["entity"]["id"], answer.json()["remaining"]["aliases"]) == (annie, [])
    names = rows_of(database_urls, "SELECT canonical_name AS name, entity_id::text AS id FROM entity_names ORDER BY 1")
    assert names == [{"name": "a lee", "id": annie}, {"name": "ann lee", "id": ann}, {"name": "annie", "id": annie}]
