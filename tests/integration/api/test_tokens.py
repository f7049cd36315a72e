"""`/v1/tokens` on a real Postgres: shown once, dead at once, never more than their maker's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token, bearer

from memory_os.domain.principal import INSTANCE_TENANT

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(database_urls: DatabaseUrls) -> dict[str, str]:
    return bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))


async def _make(client: httpx.AsyncClient, headers: dict[str, str], **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/tokens", json={"role": "reader", **body}, headers=headers)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _alive(client: httpx.AsyncClient, token: str) -> bool:
    status = (await client.get("/v1/memories", headers=bearer(token))).status_code
    assert status in (200, 401)
    return status == 200


async def test_a_new_token_works_and_its_secret_is_shown_once(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers("admin")
    answer = await client.post(
        "/v1/tokens",
        json={"role": "writer", "name": "agent", "user_id": "ann", "groups": ["b", "a"]},
        headers=headers,
    )
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    assert (made["name"], made["role"], made["user_id"], made["groups"]) == ("agent", "writer", "ann", ["a", "b"])
    assert await _alive(client, made["token"])
    listed = (await client.get("/v1/tokens", headers=headers)).json()["items"]
    assert made["id"] in {token["id"] for token in listed}
    assert len(listed) == 6
    secret = made["token"].split("_", 2)[2]
    for token in listed:
        assert set(token) == set(made) - {"token"}
        assert secret not in str(token)


async def test_secrets_are_nowhere_in_the_database(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = {**tenant.headers("admin"), "Idempotency-Key": "one"}
    made = await _make(client, headers)
    secret = made["token"].split("_", 2)[2]
    with psycopg.connect(database_urls.owner_url) as connection:
        for table in ("tokens", "audit_log", "idempotency_keys"):
            rows = connection.execute(f"SELECT t::text FROM {table} t").fetchall()
            assert rows, table
            assert not any(secret in row[0] or secret.encode().hex() in row[0] for row in rows)


async def test_a_rotated_token_has_a_new_secret_and_the_old_one_is_dead_at_once(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = tenant.headers("admin")
    made = await _make(client, headers, name="agent", user_id="ann")
    rotated = (await client.post(f"/v1/tokens/{made['id']}/rotate", headers=headers)).json()
    assert rotated["token"] != made["token"]
    assert {**rotated, "token": 0, "prefix": 0} == {**made, "token": 0, "prefix": 0}
    assert not await _alive(client, made["token"])
    assert await _alive(client, rotated["token"])


async def test_a_revoked_token_is_dead_at_once_and_stays_so(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers("admin")
    made = await _make(client, headers)
    assert await _alive(client, made["token"])
    revoked = await client.delete(f"/v1/tokens/{made['id']}", headers=headers)
    assert revoked.status_code == 200
    assert revoked.json()["revoked_at"] is not None
    assert not await _alive(client, made["token"])
    again = await client.delete(f"/v1/tokens/{made['id']}", headers=headers)
    assert again.json()["revoked_at"] == revoked.json()["revoked_at"]
    assert (await client.post(f"/v1/tokens/{made['id']}/rotate", headers=headers)).status_code == 409


async def test_an_expired_token_is_refused_and_rotating_does_not_bring_it_back(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers("admin")
    soon = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    made = await _make(client, headers, expires_at=soon)
    assert await _alive(client, made["token"])
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE tokens SET expires_at = now() - interval '1 second' WHERE id = %s", (made["id"],))
    assert not await _alive(client, made["token"])
    assert (await client.post(f"/v1/tokens/{made['id']}/rotate", headers=headers)).status_code == 409


@pytest.mark.parametrize("role", ["reader", "writer", "reviewer", "operator"])
async def test_only_admins_see_and_make_tokens(client: httpx.AsyncClient, tenant: TestTenant, role: str) -> None:
    headers = tenant.headers(role)
    answers = [
        await client.get("/v1/tokens", headers=headers),
        await client.post("/v1/tokens", json={"role": "reader"}, headers=headers),
        await client.post(f"/v1/tokens/{uuid4()}/rotate", headers=headers),
        await client.delete(f"/v1/tokens/{uuid4()}", headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4


@pytest.mark.parametrize(
    ("maker", "body", "status"),
    [
        ({}, {"role": "admin"}, 201),
        ({}, {"role": "root"}, 403),
        ({}, {"role": "reader", "scopes": ["act_as"]}, 403),
        ({}, {"role": "reader", "user_id": "ann"}, 403),
        ({"user": "ann", "groups": ["a"]}, {"role": "admin", "user_id": "ann", "groups": ["a"]}, 201),
        ({"user": "ann", "groups": ["a"]}, {"role": "admin", "user_id": "ann", "groups": ["a", "b"]}, 403),
        ({"user": "ann"}, {"role": "reader", "user_id": "bob"}, 403),
        ({"user": "ann"}, {"role": "reader"}, 201),
        ({"scopes": ["act_as"]}, {"role": "reader", "user_id": "bob", "groups": ["b"]}, 201),
        ({"scopes": ["act_as"]}, {"role": "admin", "scopes": ["act_as"]}, 201),
        ({"scopes": ["act_as"]}, {"role": "root"}, 403),
    ],
)
async def test_nobody_makes_a_token_with_more_rights_than_their_own(
    client: httpx.AsyncClient, tenant: TestTenant, maker: dict[str, Any], body: dict[str, Any], status: int
) -> None:
    headers = bearer(tenant.add_token("admin", **maker))
    answer = await client.post("/v1/tokens", json=body, headers=headers)
    assert answer.status_code == status, answer.text


async def test_rotating_does_not_hand_out_rights_that_the_rotator_lacks(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    strong = tenant.headers("admin")
    weak = bearer(tenant.add_token("admin"))
    for body in ({"scopes": ["act_as"]}, {"user_id": "ann"}):
        made = await _make(client, strong, **body)
        assert (await client.post(f"/v1/tokens/{made['id']}/rotate", headers=weak)).status_code == 403
        assert await _alive(client, made["token"])
    acting = {**strong, "X-Memory-User": "bob"}
    made = await _make(client, strong, user_id="ann")
    assert (await client.post(f"/v1/tokens/{made['id']}/rotate", headers=acting)).status_code == 403


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"role": "king"}, "/role"),
        ({"role": "reader", "scopes": ["fly"]}, "/scopes/0"),
        ({"role": "reader", "groups": ["a"]}, "/groups"),
        ({"role": "reader", "user_id": "ann", "scopes": ["act_as"]}, "/scopes"),
        ({"role": "reader", "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"role": "reader", "expires_at": "2999-01-01T00:00:00"}, "/expires_at"),
        ({"role": "reader", "user_id": "a\u001fb"}, "/user_id"),
        ({"role": "reader", "name": "a\u0000b"}, "/name"),
        ({"role": "reader", "token": "mine"}, "/token"),
    ],
)
async def test_a_token_that_can_not_be_is_refused(
    client: httpx.AsyncClient, tenant: TestTenant, body: dict[str, Any], pointer: str
) -> None:
    answer = await client.post("/v1/tokens", json=body, headers=tenant.headers("admin"))
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_an_unknown_role_is_answered_with_the_vocabulary(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    answer = await client.post("/v1/tokens", json={"role": "Admins"}, headers=tenant.headers("admin"))
    problem = answer.json()
    assert problem["type"].endswith("unknown-term")
    assert problem["did_you_mean"] == "admin"
    assert "reviewer" in problem["allowed"]


async def test_another_tenants_tokens_are_out_of_reach(
    client: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    theirs = await _make(client, other.headers("admin"))
    headers = mine.headers("admin")
    for method, url in (("POST", f"/v1/tokens/{theirs['id']}/rotate"), ("DELETE", f"/v1/tokens/{theirs['id']}")):
        absent = url.replace(theirs["id"], str(uuid4()))
        answers = [await client.request(method, path, headers=headers) for path in (url, absent)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].json()["detail"] == answers[1].json()["detail"]
        named = await client.request(method, url, params={"tenant_id": str(other.tenant_id)}, headers=headers)
        assert named.status_code == 403
    for tenant_id in (other.tenant_id, uuid4()):
        body = {"role": "reader", "tenant_id": str(tenant_id)}
        assert (await client.post("/v1/tokens", json=body, headers=headers)).status_code == 403
        listed = await client.get("/v1/tokens", params={"tenant_id": str(tenant_id)}, headers=headers)
        assert listed.status_code == 403
    assert await _alive(client, theirs["token"])


async def test_root_administers_the_tokens_of_a_tenant_that_it_names(
    client: httpx.AsyncClient, root: dict[str, str], tenant: TestTenant
) -> None:
    named = {"tenant_id": str(tenant.tenant_id)}
    made = await _make(client, root, role="admin", scopes=["act_as"], **named)
    assert made["tenant_id"] == str(tenant.tenant_id)
    rotated = await client.post(f"/v1/tokens/{made['id']}/rotate", params=named, headers=root)
    assert await _alive(client, rotated.json()["token"])
    assert (await client.delete(f"/v1/tokens/{made['id']}", params=named, headers=root)).status_code == 200
    assert not await _alive(client, rotated.json()["token"])
    listed = (await client.get("/v1/tokens", params=named, headers=root)).json()["items"]
    assert {token["tenant_id"] for token in listed} == {str(tenant.tenant_id)}
    # What root did there, the tenant's admin finds in its own log.
    audit = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
    assert [(entry["action"], entry["role"]) for entry in audit] == [
        ("token.revoke", "root"),
        ("token.rotate", "root"),
        ("token.create", "root"),
    ]


async def test_root_makes_root_tokens_and_must_name_a_tenant_that_is_there_for_others(
    client: httpx.AsyncClient, root: dict[str, str]
) -> None:
    made = await _make(client, root, role="root", name="spare")
    assert (await client.get("/v1/tenants", headers=bearer(made["token"]))).status_code == 200
    own = (await client.get("/v1/tokens", headers=root)).json()["items"]
    assert {token["role"] for token in own} == {"root"}
    for body, status in (
        ({"role": "reader"}, 422),
        ({"role": "reader", "tenant_id": str(INSTANCE_TENANT)}, 422),
        ({"role": "reader", "tenant_id": str(uuid4())}, 404),
        ({"role": "root", "tenant_id": str(uuid4())}, 422),
        ({"role": "root", "user_id": "ann"}, 422),
    ):
        answer = await client.post("/v1/tokens", json=body, headers=root)
        assert answer.status_code == status, (body, answer.text)


async def test_repeating_a_request_shows_the_same_token_and_only_to_its_maker(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = {**tenant.headers("admin"), "Idempotency-Key": "k1"}
    first = await _make(client, headers, name="agent")
    assert await _make(client, headers, name="agent") == first
    other = await client.post("/v1/tokens", json={"role": "writer"}, headers=headers)
    assert other.status_code == 409
    another = bearer(tenant.add_token("admin"))
    assert (await _make(client, {**another, "Idempotency-Key": "k1"}, name="agent"))["token"] != first["token"]


async def test_tokens_are_listed_newest_first_in_pages(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers("admin")
    made = [(await _make(client, headers, name=str(number)))["id"] for number in range(5)]
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(4):
        params = {"limit": "3", **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/v1/tokens", params=params, headers=headers)).json()
        seen += [token["id"] for token in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen[:5] == made[::-1]
    assert len(seen) == len(set(seen)) == 10
