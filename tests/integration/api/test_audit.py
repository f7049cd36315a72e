"""`/v1/audit` on a real Postgres."""

from __future__ import annotations

import httpx
import psycopg
import pytest
from psycopg import errors
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token, bearer

from memory_os.domain.principal import INSTANCE_TENANT

pytestmark = pytest.mark.anyio


async def _make_and_revoke(client: httpx.AsyncClient, tenant: TestTenant) -> str:
    headers = tenant.headers("admin")
    made = await client.post("/v1/tokens", json={"role": "reader", "name": "agent"}, headers=headers)
    token_id: str = made.json()["id"]
    await client.delete(f"/v1/tokens/{token_id}", headers={**headers, "X-Request-Id": "request-0001"})
    return token_id


async def test_acts_are_listed_newest_first_with_who_and_what(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    token_id = await _make_and_revoke(client, tenant)
    answer = await client.get("/v1/audit", headers=tenant.headers("admin"))
    assert answer.status_code == 200
    revoke, create = answer.json()["items"]
    assert (create["action"], create["target_type"], create["target_id"]) == ("token.create", "token", token_id)
    assert create["detail"]["role"] == "reader"
    assert revoke["action"] == "token.revoke"
    assert revoke["role"] == "admin"
    assert revoke["token_id"] is not None
    assert revoke["request_id"] == "request-0001"


async def test_filters_and_pages(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    first, second = await _make_and_revoke(client, tenant), await _make_and_revoke(client, tenant)
    headers = tenant.headers("admin")

    async def listed(**params: str) -> list[tuple[str, str]]:
        page = (await client.get("/v1/audit", params=params, headers=headers)).json()
        return [(entry["action"], entry["target_id"]) for entry in page["items"]]

    assert await listed(action="token.revoke") == [("token.revoke", second), ("token.revoke", first)]
    assert await listed(target_id=first) == [("token.revoke", first), ("token.create", first)]
    assert await listed(target_type="tenant") == []
    page = (await client.get("/v1/audit", params={"limit": 3}, headers=headers)).json()
    rest = (await client.get("/v1/audit", params={"cursor": page["next_cursor"]}, headers=headers)).json()
    assert [len(page["items"]), len(rest["items"]), rest["next_cursor"]] == [3, 1, None]


@pytest.mark.parametrize("role", ["reader", "writer", "reviewer", "operator"])
async def test_only_admins_read_it(client: httpx.AsyncClient, tenant: TestTenant, role: str) -> None:
    assert (await client.get("/v1/audit", headers=tenant.headers(role))).status_code == 403


async def test_a_tenant_sees_its_own_acts_and_root_all_or_one_tenants(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, database_urls: DatabaseUrls
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    await _make_and_revoke(client, mine)
    theirs = await _make_and_revoke(client, other)
    own = (await client.get("/v1/audit", headers=mine.headers("admin"))).json()["items"]
    assert {entry["tenant_id"] for entry in own} == {str(mine.tenant_id)}
    named = {"tenant_id": str(other.tenant_id)}
    assert (await client.get("/v1/audit", params=named, headers=mine.headers("admin"))).status_code == 403
    hidden = await client.get("/v1/audit", params={"target_id": theirs}, headers=mine.headers("admin"))
    assert hidden.json()["items"] == []
    root = bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))
    everything = (await client.get("/v1/audit", headers=root)).json()["items"]
    assert {entry["tenant_id"] for entry in everything} == {str(mine.tenant_id), str(other.tenant_id)}
    one = (await client.get("/v1/audit", params=named, headers=root)).json()["items"]
    assert {entry["tenant_id"] for entry in one} == {str(other.tenant_id)}


async def test_the_service_can_not_change_what_is_in_the_log(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    await _make_and_revoke(client, tenant)
    for statement in ("UPDATE audit_log SET action = 'x'", "DELETE FROM audit_log"):
        with psycopg.connect(database_urls.app_url) as connection:
            connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(tenant.tenant_id),))
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement)


async def test_an_unknown_parameter_and_a_foreign_cursor_are_refused(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = tenant.headers("admin")
    for params in ({"verb": "x"}, {"cursor": "AAAA"}, {"limit": "0"}, {"limit": "201"}, {"tenant_id": "x"}):
        assert (await client.get("/v1/audit", params=params, headers=headers)).status_code == 422
