"""`GET /v1/users/{user}`: all of one user, nothing of another, and only for whoever may act for them."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from litestar import Controller, Litestar, Router, delete
from litestar.di import Provide
from litestar.params import FromPath
from litestar.testing import TestClient
from tests.fixtures.acting import Actor, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant, bearer
from tests.integration.transfer.conftest import Bakery

from memory_os.api.calls import provide_call
from memory_os.api.transfer import UserExportController

pytestmark = pytest.mark.anyio


async def fetch(client: httpx.AsyncClient, user: str, headers: dict[str, str]) -> httpx.Response:
    return await client.get(f"/v1/users/{quote(user, safe='')}", headers=headers)


def of_kind(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line["record"] for line in lines if line["type"] == kind]


async def test_it_holds_what_is_the_users_and_said_about_them(bakery: Bakery) -> None:
    client, headers = bakery.client, bakery.tenant.headers("reader", user="ann")
    pack = (await client.post("/v1/retrieve", json={"query": "What does Ann plan?"}, headers=headers)).json()
    body = {"used": [pack["items"][0]["id"]]}
    await client.post(f"/v1/retrievals/{pack['retrieval_id']}/feedback", json=body, headers=headers)
    ann = Actor(client, bakery.tenant, "ann")
    await ann.do("complete", bakery.ids["secret"])
    answer = await fetch(client, "ann", bakery.tenant.headers("admin"))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    raw = answer.content.splitlines(keepends=True)
    first, *lines, last = [json.loads(line) for line in raw]
    assert (first["user"], first["tenant"]["time_zone"]) == ("ann", "UTC")
    assert last["sha256"] == hashlib.sha256(b"".join(raw[:-1])).hexdigest()
    assert last["counts"] == first["counts"]
    found = {kind: len(of_kind(lines, kind)) for kind, count in first["counts"].items() if count}
    assert found == {kind: count for kind, count in first["counts"].items() if count}
    assert {record["id"] for record in of_kind(lines, "memory")} == {bakery.ids["secret"], bakery.ids["recipe"]}
    assert {record["id"] for record in of_kind(lines, "evidence")} == {bakery.ids["evidence"], bakery.ids["withdrawn"]}
    assert [record["id"] for record in of_kind(lines, "source")] == [bakery.ids["source"]]
    assert [record["text"] for record in of_kind(lines, "passage")] == ["The oven needs an hour."]
    assert [record["query"] for record in of_kind(lines, "retrieval")] == ["What does Ann plan?"]
    assert [record["verdict"] for record in of_kind(lines, "feedback")] == ["used"]
    assert [record["kind"] for record in of_kind(lines, "memory_act")] == ["complete"]
    assert "before" not in of_kind(lines, "memory_act")[0]
    assert "Bob asks" not in answer.text
    bob = (await fetch(client, "bob", bakery.tenant.headers("admin"))).content.splitlines()
    assert {json.loads(line)["type"] for line in bob[1:]} == {"memory", "correction", "end"}


async def test_who_may_not_act_for_the_user_gets_nothing(bakery: Bakery) -> None:
    client, tenant = bakery.client, bakery.tenant
    absent = await fetch(client, "nobody", tenant.headers("admin"))
    assert absent.status_code == 404
    another = await fetch(client, "ann", tenant.headers("admin", user="bob"))
    assert another.status_code == 404
    assert another.json()["detail"] == absent.json()["detail"]
    bound = await fetch(client, "ann", bearer(tenant.add_token("admin", user="bob")))
    assert bound.status_code == 404
    unscoped = [await fetch(client, user, bearer(tenant.add_token("admin"))) for user in ("ann", "nobody")]
    assert [(answer.status_code, answer.json()["detail"]) for answer in unscoped] == [
        (403, "the export of a user needs the act_as scope, or a token that is bound to the user")
    ] * 2
    own = await fetch(client, "ann", bearer(tenant.add_token("admin", user="ann")))
    assert own.status_code == 200
    for role in ("reader", "writer", "reviewer", "operator"):
        assert (await fetch(client, "ann", tenant.headers(role))).status_code == 403


async def test_another_tenants_user_of_that_name_is_another_one(bakery: Bakery, tenant_factory: Any) -> None:
    other = tenant_factory()
    assert (await fetch(bakery.client, "ann", other.headers("admin"))).status_code == 404
    await Actor(bakery.client, other, "ann").remember("Another Ann.")
    answer = await fetch(bakery.client, "ann", other.headers("admin"))
    assert [
        record["text"] for record in of_kind([json.loads(x) for x in answer.content.splitlines()[1:]], "memory")
    ] == ["Another Ann."]


async def test_it_is_in_the_audit_log_without_the_users_name(bakery: Bakery, database_urls: DatabaseUrls) -> None:
    await fetch(bakery.client, "ann", bakery.tenant.headers("admin"))
    (entry,) = rows_of(database_urls, "SELECT * FROM audit_log WHERE action = 'user.export'")
    assert entry["target_type"] == "user"
    name = f"{bakery.tenant.tenant_id}\0{entry['detail']['export_id']}\0ann"
    assert entry["target_id"] == hashlib.sha256(name.encode()).hexdigest()
    assert entry["detail"]["records"]["memory"] == 2
    assert entry["role"] == "admin"


@pytest.mark.parametrize("user", ["a b", "日本", "x%y", "%_", "a'b\"c", "ann?x=1", "n#1", "a/b", "//a/../b/"])
async def test_names_are_taken_literally(client: httpx.AsyncClient, tenant: TestTenant, user: str) -> None:
    headers = tenant.headers("writer") | {"X-Memory-User": user.encode().decode("latin-1")}
    body = {"text": f"Of {user}.", "label": "Belief", "dedup": "off"}
    stored = await client.post("/v1/memories", json=body, headers={k: v.encode("latin-1") for k, v in headers.items()})
    assert stored.status_code == 201, stored.text
    await Actor(client, tenant, "abc").remember("Of somebody else.")
    answer = await fetch(client, user, tenant.headers("admin"))
    lines = [json.loads(line) for line in answer.content.splitlines()]
    assert [record["text"] for record in of_kind(lines[1:], "memory")] == [f"Of {user}."]


def test_another_controller_may_delete_under_the_same_address() -> None:
    class Deleting(Controller):
        path = "/v1/users"

        @delete("/{user:str}", status_code=200)
        async def erase(self, user: FromPath[str]) -> str:
            return f"gone: {user}"

    api = Router("/", route_handlers=[UserExportController, Deleting], dependencies={"call": Provide(provide_call)})
    app = Litestar([api], openapi_config=None)
    with TestClient(app) as client:
        assert client.delete("/v1/users/ann").text == "gone: ann"
        assert client.post("/v1/users/ann").status_code == 405
