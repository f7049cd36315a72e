"""Who sees and changes an entity, on a real Postgres: tenants, visibility, roles, and what mentions give away."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.entities import ANN, ENTITIES, declare, store_memory
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, bearer
from tests.fixtures.worker import drain

from memory_os.domain.names import canonical_name
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


def mention(urls: DatabaseUrls, tenant: TestTenant, memory_id: str, entity: str | None, name: str) -> UUID:
    """Put a mention into the database as the worker does; a derived entity is made where none is named."""
    with psycopg.connect(urls.worker_url) as connection:
        connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(tenant.tenant_id),))
        if entity is None:
            entity = str(uuid4())
            connection.execute(
                "INSERT INTO entities (tenant_id, id, declared, name, entity_type) "
                "VALUES (%s, %s, false, %s, 'unknown')",
                (tenant.tenant_id, entity, name),
            )
        connection.execute(
            "INSERT INTO mentions (tenant_id, memory_id, canonical_name, entity_id, name, occurrences, confidence, "
            "spans, seen, extractor, extractor_version) SELECT tenant_id, id, %s, %s, %s, 1, 0.9, '{0,3}', "
            "coalesce(occurred_at, created_at), 'test', 1 FROM memories WHERE id = %s",
            (canonical_name(name), entity, name, memory_id),
        )
    return UUID(entity)


async def test_another_tenants_entity_is_answered_like_none(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory
) -> None:
    entity = await declare(client, tenant.headers())
    other = tenant_factory().headers("admin")
    body = {"layer": "entity", "target_id": str(uuid4()), "relationship": "knows"}
    for ident in (entity["id"], str(uuid4())):
        path = f"{ENTITIES}/{ident}"
        answers = [
            await client.get(path, headers=other),
            await client.patch(path, json={"name": "x"}, headers=other),
            await client.delete(path, headers=other),
            await client.get(f"{path}/context", headers=other),
            await client.get(f"{path}/links", headers=other),
            await client.post(f"{path}/links", json=body, headers=other),
        ]
        assert {answer.status_code for answer in answers} == {404}
        assert {answer.json()["detail"] for answer in answers} == {"there is no such entity"}
    mine = await client.post(ENTITIES, json={**ANN, "id": entity["id"], "name": "Mine"}, headers=other)
    assert mine.status_code == 201


async def test_visibility_decides_who_reads_changes_and_lists(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    ann, bo, hr = (
        tenant.headers(user="ann"),
        tenant.headers(user="bo"),
        tenant.headers(user="cy", groups=["hr"]),
    )
    private = await declare(client, ann, name="Diary", visibility="private")
    readers = {"users": ["bo"], "groups": ["hr"]}
    restricted = await declare(client, ann, name="Payroll", visibility="restricted", readers=readers)
    assert restricted["readers"] == readers
    assert (private["user_id"], restricted["user_id"]) == ("ann", "ann")

    async def listed(headers: dict[str, str]) -> set[str]:
        return {item["name"] for item in (await client.get(ENTITIES, headers=headers)).json()["items"]}

    assert await listed(ann) == {"Diary", "Payroll"}
    assert await listed(bo) == {"Payroll"}
    assert await listed(hr) == {"Payroll"}
    assert await listed(tenant.headers()) == set()
    assert await listed(tenant.headers(user="dee", groups=["h"])) == set()
    hidden = f"{ENTITIES}/{private['id']}"
    for headers in (bo, tenant.headers("admin")):
        assert (await client.get(hidden, headers=headers)).status_code == 404
        assert (await client.patch(hidden, json={"name": "x"}, headers=headers)).status_code == 404
        assert (await client.delete(hidden, headers=headers)).status_code == 404
    found = await client.get(ENTITIES, params={"name": "diary"}, headers=bo)
    assert found.json()["items"] == []


async def test_nobody_writes_what_they_could_not_read_back(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    ann, bo = tenant.headers(user="ann"), tenant.headers(user="bo")
    entity = await declare(client, ann, visibility="restricted", readers={"users": ["bo"]})
    path = f"{ENTITIES}/{entity['id']}"
    for patch in ({"readers": {"users": ["cy"]}}, {"readers": {}}, {"visibility": "private"}):
        answer = await client.patch(path, json=patch, headers=bo)
        assert answer.status_code == 422, answer.text
    assert (await client.patch(path, json={"readers": {"users": ["bo", "cy"]}}, headers=bo)).status_code == 200
    opened = await client.patch(path, json={"visibility": "tenant"}, headers=ann)
    assert opened.json()["entity"]["readers"] == {"users": [], "groups": []}
    closed = await client.patch(path, json={"visibility": "private"}, headers=ann)
    assert closed.json()["entity"]["visibility"] == "private"
    grouped = tenant.add_token("writer", groups=["hr"])
    shared = {**ANN, "visibility": "restricted", "readers": {"groups": ["hr"]}}
    assert (await client.post(ENTITIES, json=shared, headers=bearer(grouped))).status_code == 201


async def test_the_body_may_name_the_user_only_where_the_token_may_act_for_users(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    stored = await declare(client, tenant.headers(), user_id="ann", visibility="private")
    assert stored["user_id"] == "ann"
    for token in (tenant.add_token("writer"), tenant.add_token("writer", user="bo")):
        answer = await client.post(ENTITIES, json={**ANN, "user_id": "ann"}, headers=bearer(token))
        assert answer.status_code == 403


async def test_roles_decide_who_may_write(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    entity = await declare(client, tenant.headers())
    path = f"{ENTITIES}/{entity['id']}"
    for role in ("reader", "operator"):
        headers = tenant.headers(role)
        assert (await client.get(path, headers=headers)).status_code == 200
        assert (await client.post(ENTITIES, json=ANN, headers=headers)).status_code == 403
        assert (await client.patch(path, json={"name": "x"}, headers=headers)).status_code == 403
        assert (await client.delete(path, headers=headers)).status_code == 403
    assert (await client.get(ENTITIES)).status_code == 401


async def test_counts_and_times_of_mentions_do_not_betray_hidden_memories(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    entity = await declare(client, tenant.headers(), aliases=["Annie"])
    old = await store_memory(client, tenant.headers(), occurred_at="2020-01-01T00:00:00Z")
    new = await store_memory(
        client, tenant.headers(user="ann"), visibility="private", occurred_at="2024-01-01T00:00:00Z"
    )
    for memory in (old, new):
        for name in ("Ann Lee", "Annie"):
            mention(database_urls, tenant, memory, entity["id"], name)

    async def seen(headers: dict[str, str]) -> tuple[int, str, str]:
        found = (await client.get(f"{ENTITIES}/{entity['id']}", headers=headers)).json()
        (listed,) = (await client.get(ENTITIES, headers=headers)).json()["items"]
        assert listed == found
        return found["mention_count"], found["first_seen"][:4], found["last_seen"][:4]

    assert await seen(tenant.headers(user="ann")) == (2, "2020", "2024")
    assert await seen(tenant.headers(user="bo")) == (1, "2020", "2020")


async def test_the_strongest_entities_are_as_strong_as_the_reader_may_know(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    ann = tenant.headers(user="ann")
    for name, shared, hidden in (("Ann Lee", 1, 3), ("Bob Stone", 2, 0)):
        await declare(client, ann, name=name)
        for count, fields in ((shared, {}), (hidden, {"visibility": "private"})):
            for _ in range(count):
                await store_memory(client, ann, text=f"They met {name}.", **fields)
    await drain(worker)

    async def seen(headers: dict[str, str]) -> list[tuple[str, float, int]]:
        top = (await client.get("/v1/graph/stats", headers=headers)).json()["top_entities"]
        return [(entity["name"], entity["strength"], entity["mentions"]) for entity in top]

    assert await seen(ann) == [("Ann Lee", 1.6, 4), ("Bob Stone", 1.2, 2)]
    assert await seen(tenant.headers(user="bo")) == [("Bob Stone", 1.2, 2), ("Ann Lee", 1.0, 1)]


async def test_derived_entities_are_listed_on_request_and_follow_their_memories(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    await declare(client, tenant.headers())
    shared = await store_memory(client, tenant.headers())
    secret = await store_memory(client, tenant.headers(user="ann"), visibility="private")
    lease = mention(database_urls, tenant, shared, None, "Lease")
    hidden = mention(database_urls, tenant, secret, None, "Project Nightfall")

    async def listed(headers: dict[str, str], **wanted: Any) -> list[str]:
        params = {"declared": "false", **wanted}
        return [item["name"] for item in (await client.get(ENTITIES, params=params, headers=headers)).json()["items"]]

    assert await listed(tenant.headers()) == ["Lease"]
    assert sorted(await listed(tenant.headers(user="ann"))) == [
        "Lease",
        "Project Nightfall",
    ]  # their order tells nothing
    assert await listed(tenant.headers(), name="project nightfall") == []
    assert await listed(tenant.headers(), name="LEASE") == ["Lease"]
    assert (await client.get(f"{ENTITIES}/{hidden}", headers=tenant.headers())).status_code == 404
    edge = {"type": "ABOUT", "from": {"memory": shared}, "to": {"entity": str(hidden)}}
    assert (await client.post("/v1/edges", json=edge, headers=tenant.headers())).status_code == 422
    for answer in (
        await client.patch(f"{ENTITIES}/{lease}", json={"name": "Rent"}, headers=tenant.headers()),
        await client.delete(f"{ENTITIES}/{lease}", headers=tenant.headers()),
        await client.post(
            ENTITIES, json={"name": "Lease", "entity_type": "unknown", "id": str(lease)}, headers=tenant.headers()
        ),
    ):
        assert answer.status_code == 409
    await client.delete(f"/v1/memories/{shared}", headers=tenant.headers())
    assert await listed(tenant.headers()) == []
