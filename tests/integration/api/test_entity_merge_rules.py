"""What can not be merged, on a real Postgres: what is not there or not seen, what would widen who reads, roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.fixtures.entities import declare, store_memory
from tests.fixtures.merging import MERGE, everything, make_derived, merge, pair
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant

from memory_os.entities.model import MAX_ALIASES

pytestmark = pytest.mark.anyio


async def test_what_can_not_be_merged_is_refused_and_nothing_changes(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory, database_urls: DatabaseUrls
) -> None:
    headers, cy, other = tenant.headers(), tenant.headers(user="cy"), tenant_factory().headers()
    source, into = await pair(client, headers)
    hidden = (await declare(client, cy, name="Diary", visibility="private"))["id"]
    elsewhere = (await declare(client, other, name="Acme"))["id"]
    derived = make_derived(tenant, await store_memory(client, headers))
    before = everything(database_urls)
    bodies: list[tuple[Any, int, str]] = [
        ({"from": source, "into": source}, 422, "/into"),
        ({"from": source}, 422, "/into"),
        ({"into": into}, 422, "/from"),
        ({"source": source, "into": into}, 422, "/source"),
        ({"from": "x", "into": into}, 422, "/from"),
        ({"from": source, "into": None}, 422, "/into"),
        ({"from": source, "into": into, "dry_run": "yes"}, 422, "/dry_run"),
        ({"from": source, "into": into, "despite_digits": 1}, 422, "/despite_digits"),
        *(({"from": ident, "into": into}, 404, "/from") for ident in (str(uuid4()), hidden, elsewhere)),
        *(({"from": source, "into": ident}, 404, "/into") for ident in (str(uuid4()), hidden, elsewhere)),
        ({"from": derived, "into": into}, 409, ""),
        ({"from": source, "into": derived}, 409, ""),
    ]
    for body, status, pointer in bodies:
        answer = await client.post(MERGE, json=body, headers=headers)
        assert answer.status_code == status, (body, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert [fault["pointer"] for fault in answer.json().get("errors", ())] == ([pointer] if pointer else []), body
    answers = [(await merge(client, headers, ident, into)).json() for ident in (str(uuid4()), hidden, elsewhere)]
    assert len({repr({**answer, "instance": ""}) for answer in answers}) == 1  # not there, not seen, not ours: all one
    assert everything(database_urls) == before


async def test_an_entity_can_not_get_more_aliases_than_one_may_have(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    full = await declare(client, headers, aliases=[f"Alias {n}" for n in range(MAX_ALIASES - 1)])
    one = await declare(client, headers, name="Ann One", aliases=["alias-7"])
    two = await declare(client, headers, name="Ann Two")
    assert len((await merge(client, headers, one["id"], full["id"])).json()["entity"]["aliases"]) == MAX_ALIASES
    before = everything(database_urls)
    answer = await merge(client, headers, two["id"], full["id"])
    assert answer.status_code == 409
    assert "101 aliases" in answer.json()["detail"]
    assert everything(database_urls) == before
    same = await declare(client, headers, name="alias 3")
    again = await merge(client, headers, same["id"], full["id"], despite_digits=True)
    assert again.status_code == 200


PRIVATE: dict[str, Any] = {"visibility": "private"}
WIDE: dict[str, Any] = {}


def _readers(*users: str, groups: Sequence[str] = ()) -> dict[str, Any]:
    return {"visibility": "restricted", "readers": {"users": list(users), "groups": list(groups)}}


@pytest.mark.parametrize(
    ("source", "into", "allowed"),
    [
        (WIDE, PRIVATE, True),
        (WIDE, _readers("bo"), True),
        (PRIVATE, PRIVATE, True),
        (PRIVATE, _readers(), True),
        (_readers("bo"), PRIVATE, True),
        (_readers("bo", "di", groups=["hr", "it"]), _readers("di", groups=["it"]), True),
        (PRIVATE, WIDE, False),
        (_readers("bo"), WIDE, False),
        (PRIVATE, _readers("bo"), False),
        (_readers("bo"), _readers("di"), False),
        (_readers("bo", groups=["hr"]), _readers("bo", groups=["it"]), False),
        (_readers(groups=["hr"]), _readers("bo"), False),
    ],
)
async def test_a_merge_never_widens_who_may_read(
    client: httpx.AsyncClient,
    tenant: TestTenant,
    database_urls: DatabaseUrls,
    source: dict[str, Any],
    into: dict[str, Any],
    *,
    allowed: bool,
) -> None:
    headers = tenant.headers(user="ann", groups=["hr", "it"])
    one = await declare(client, headers, name="Annie", **source)
    two = await declare(client, headers, **into)
    before = everything(database_urls)
    answer = await merge(client, headers, one["id"], two["id"])
    if allowed:
        assert answer.status_code == 200, answer.text
        entity = answer.json()["entity"]
        assert {name: entity[name] for name in ("visibility", "readers", "user_id")} == {
            name: two[name] for name in ("visibility", "readers", "user_id")
        }
    else:
        assert answer.status_code == 409, answer.text
        assert f"whose visibility is {one['visibility']}" in answer.json()["detail"]
        assert everything(database_urls) == before


async def test_another_users_entity_with_the_same_readers_is_another_matter(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    mine = await declare(client, tenant.headers(user="ann"), name="Annie", **_readers("bo"))
    theirs = await declare(client, tenant.headers(user="cy"), **_readers("bo"))
    # Cy may read the one and not the other, though both name the same readers.
    assert (await merge(client, tenant.headers(user="bo"), mine["id"], theirs["id"])).status_code == 409


async def test_roles_decide_who_may_merge(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    source, into = await pair(client, tenant.headers())
    before = everything(database_urls)
    for role in ("reader", "operator"):
        assert (await merge(client, tenant.headers(role), source, into)).status_code == 403
    assert (await client.post(MERGE, json={"from": source, "into": into})).status_code == 401
    assert everything(database_urls) == before
    assert (await merge(client, tenant.headers("reviewer"), source, into)).status_code == 200


async def test_the_body_may_name_the_user(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers(user="ann")
    one, two = await declare(client, headers, name="A", **PRIVATE), await declare(client, headers, **PRIVATE)
    assert (await merge(client, tenant.headers(), one["id"], two["id"], user_id="bo")).status_code == 404
    assert (await merge(client, tenant.headers(), one["id"], two["id"], user_id="ann")).status_code == 200


async def test_a_merge_is_meant_for_the_version_that_was_seen(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    source, into = await pair(client, headers)
    before = everything(database_urls)
    assert (await merge(client, {**headers, "If-Match": '"2"'}, source, into)).status_code == 412
    assert (await merge(client, {**headers, "If-Match": "2"}, source, into)).status_code == 422
    assert everything(database_urls) == before
    assert (await merge(client, {**headers, "If-Match": '"1"'}, source, into)).status_code == 200
