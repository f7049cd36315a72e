"""`/v1/tenants` on a real Postgres: root's alone."""

from __future__ import annotations

from uuid import UUID

import httpx
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import ROLES, TenantFactory, add_token, bearer

from memory_os.domain.principal import INSTANCE_TENANT

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(database_urls: DatabaseUrls) -> dict[str, str]:
    return bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))


async def test_root_makes_a_tenant_whose_first_token_administers_it(
    client: httpx.AsyncClient, root: dict[str, str]
) -> None:
    answer = await client.post("/v1/tenants", json={"name": "Acme", "time_zone": "Europe/Vienna"}, headers=root)
    assert answer.status_code == 201, answer.text
    tenant, token = answer.json()["tenant"], answer.json()["token"]
    assert UUID(tenant["id"]).version == 7
    assert (tenant["name"], tenant["time_zone"], tenant["status"]) == ("Acme", "Europe/Vienna", "active")
    assert (token["role"], token["scopes"], token["tenant_id"]) == ("admin", ["act_as"], tenant["id"])
    assert token["token"].startswith(f"mos_{token['prefix']}_")
    assert answer.headers["cache-control"] == "no-store"
    stored = await client.post(
        "/v1/memories", json={"text": "Prefers tea.", "label": "Preference"}, headers=bearer(token["token"], user="u1")
    )
    assert stored.status_code == 201, stored.text


async def test_tenants_are_listed_newest_first_without_the_instances_own(
    client: httpx.AsyncClient, root: dict[str, str]
) -> None:
    made = []
    for name in ("one", "two", "three"):
        answer = await client.post("/v1/tenants", json={"name": name}, headers=root)
        made.append(answer.json()["tenant"]["id"])
    first = (await client.get("/v1/tenants", params={"limit": 2}, headers=root)).json()
    rest = (await client.get("/v1/tenants", params={"cursor": first["next_cursor"]}, headers=root)).json()
    assert [tenant["id"] for tenant in first["items"] + rest["items"]] == made[::-1]
    assert rest["next_cursor"] is None
    gone = await client.get(f"/v1/tenants/{INSTANCE_TENANT}", headers=root)
    assert gone.status_code == 404


@pytest.mark.parametrize("role", ROLES)
async def test_no_role_of_a_tenant_reaches_tenants(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, role: str
) -> None:
    tenant = tenant_factory()
    headers = tenant.headers(role)
    answers = [
        await client.get("/v1/tenants", headers=headers),
        await client.post("/v1/tenants", json={"name": "x"}, headers=headers),
        await client.get(f"/v1/tenants/{tenant.tenant_id}", headers=headers),
        await client.patch(f"/v1/tenants/{tenant.tenant_id}", json={"name": "x"}, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4


async def test_a_suspended_tenants_tokens_are_refused_until_it_is_active_again(
    client: httpx.AsyncClient, root: dict[str, str], tenant_factory: TenantFactory
) -> None:
    tenant = tenant_factory()
    url = f"/v1/tenants/{tenant.tenant_id}"
    suspended = await client.patch(url, json={"status": "suspended"}, headers=root)
    assert suspended.json()["status"] == "suspended"
    assert (await client.get("/v1/memories", headers=tenant.headers("reader"))).status_code == 401
    listed = (await client.get("/v1/tenants", params={"status": "suspended"}, headers=root)).json()["items"]
    assert [item["id"] for item in listed] == [str(tenant.tenant_id)]
    await client.patch(url, json={"status": "active"}, headers=root)
    assert (await client.get("/v1/memories", headers=tenant.headers("reader"))).status_code == 200


async def test_a_change_needs_the_version_that_was_read(client: httpx.AsyncClient, root: dict[str, str]) -> None:
    made = await client.post("/v1/tenants", json={"name": "Acme"}, headers=root)
    url = f"/v1/tenants/{made.json()['tenant']['id']}"
    read = await client.get(url, headers=root)
    assert read.headers["etag"] == made.headers["etag"]
    changed = await client.patch(url, json={"name": "B"}, headers={**root, "If-Match": read.headers["etag"]})
    assert changed.status_code == 200
    late = await client.patch(url, json={"name": "C"}, headers={**root, "If-Match": read.headers["etag"]})
    assert late.status_code == 412
    assert (await client.get(url, headers=root)).json()["name"] == "B"
    audit = (await client.get("/v1/audit", params={"action": "tenant.change"}, headers=root)).json()["items"]
    assert [entry["detail"] for entry in audit] == [{"before": {"name": "Acme"}, "after": {"name": "B"}}]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "  "}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "x" * 201}, "/name"),
        ({"name": "x", "time_zone": "Mars/Olympus"}, "/time_zone"),
        ({"name": "x", "time_zone": "../../etc/passwd"}, "/time_zone"),
        ({"name": "x", "colour": "red"}, "/colour"),
        ({}, "/name"),
    ],
)
async def test_a_tenant_that_can_not_be_is_refused(
    client: httpx.AsyncClient, root: dict[str, str], body: dict[str, str], pointer: str
) -> None:
    answer = await client.post("/v1/tenants", json=body, headers=root)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_a_mistyped_time_zone_is_answered_with_the_nearest(
    client: httpx.AsyncClient, root: dict[str, str]
) -> None:
    answer = await client.post("/v1/tenants", json={"name": "x", "time_zone": "Europe/Viena"}, headers=root)
    assert "Europe/Vienna" in answer.json()["errors"][0]["detail"]


async def test_repeating_a_request_makes_one_tenant_and_shows_the_same_token(
    client: httpx.AsyncClient, root: dict[str, str]
) -> None:
    headers = {**root, "Idempotency-Key": "make-acme"}
    first = await client.post("/v1/tenants", json={"name": "Acme"}, headers=headers)
    again = await client.post("/v1/tenants", json={"name": "Acme"}, headers=headers)
    assert again.json() == first.json()
    assert len((await client.get("/v1/tenants", headers=root)).json()["items"]) == 1


async def test_root_reads_no_tenants_records(
    client: httpx.AsyncClient, root: dict[str, str], tenant_factory: TenantFactory
) -> None:
    tenant = tenant_factory()
    await client.post("/v1/memories", json={"text": "Likes tea.", "label": "Preference"}, headers=tenant.headers())
    assert (await client.get("/v1/memories", headers=root)).status_code == 403
