"""Every call of the application's document, made by everybody who must not: refused, alike, and without a trace.

The calls come from the document, so a new one is tested from its first day. If the tests can't make it, they say so.
"""

from __future__ import annotations

import secrets
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from litestar import Litestar
from tests.fixtures.service import TestTenant, add_token, bearer
from tests.security.conftest import MakeWorld
from tests.security.operations import ABOUT_USERS, Api, Operation
from tests.security.worlds import CLIENT_CHOSEN, World, unmarked_columns

from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.domain.roles import PERMISSION_MEANINGS, PERMISSIONS

pytestmark = pytest.mark.anyio

MARK, OTHER = "zcanarya", "zcanaryb"
REFUSED = (401, 403, 404, 409, 422)


@pytest.fixture
async def api(app: Litestar, client: httpx.AsyncClient) -> Api:
    return Api(app, client)


@pytest.fixture
async def world(make_world: MakeWorld) -> World:
    """The tenant that everybody else tries to reach into."""
    return await make_world(MARK)


def _problem(answer: httpx.Response) -> tuple[int, dict[str, object]]:
    """Status and document of a refusal, apart from the request's id."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    document = answer.json()
    assert document.pop("instance") == f"urn:request:{answer.headers['x-request-id']}"
    assert document["status"] == answer.status_code
    return answer.status_code, document


def _absent(ids: dict[str, str]) -> dict[str, str]:
    """Ids of the same kinds that nobody has."""
    return {
        kind: str(secrets.randbelow(2**40) + 2**40) if value.isdigit() else str(uuid4()) for kind, value in ids.items()
    }


async def test_every_call_names_a_permission_or_is_public(api: Api) -> None:
    assert len(api.operations) > 50
    for operation in api.operations:
        assert operation.permissions <= PERMISSION_MEANINGS.keys(), operation.name
        assert bool(operation.document.get("security")) == bool(operation.permissions), operation.name
        if operation.permissions:
            assert operation.roles(), operation.name
    assert {operation.name for operation in api.operations if not operation.permissions} == {
        "livez",
        "readyz",
        "metrics",
    }


async def test_every_call_can_be_made_by_the_least_role_that_may(api: Api, world: World) -> None:
    root = bearer(add_token(world.tenant.owner_url, INSTANCE_TENANT, "root"))
    for operation in api.guarded:
        role = operation.roles()[0]
        headers = root if role == "root" else world.headers(role)
        answer = await api.call(operation, world.ids, headers)
        assert answer.is_success, f"{operation.name} can't be called: teach BODIES or the worlds; {answer.text}"


async def test_without_a_living_token_every_call_is_refused_in_the_same_words(
    api: Api, world: World, tenant: TestTenant
) -> None:
    tokens = await _dead_tokens(api.client, world.tenant, tenant)
    before = world.rows()
    refusals = set()
    for operation in api.guarded:
        for what, headers in tokens.items():
            answer = await api.call(operation, world.ids, headers)
            assert answer.status_code == 401, (operation.name, what, answer.text)
            assert answer.headers["www-authenticate"] == 'Bearer realm="memory-os"'
            refusals.add(repr(_problem(answer)))
    assert len(refusals) == 1
    assert world.rows() == before


async def _dead_tokens(client: httpx.AsyncClient, mine: TestTenant, suspended: TestTenant) -> dict[str, dict[str, str]]:
    """Headers that must open nothing, by what they hold."""
    made = []
    for _ in range(3):
        answer = await client.post("/v1/tokens", json={"role": "admin"}, headers=mine.headers("admin"))
        made.append(answer.json())
    revoked, expired, rotated = made
    await client.delete(f"/v1/tokens/{revoked['id']}", headers=mine.headers("admin"))
    await client.post(f"/v1/tokens/{rotated['id']}/rotate", headers=mine.headers("admin"))
    with psycopg.connect(mine.owner_url) as connection:
        connection.execute("UPDATE tokens SET expires_at = now() - interval '1 s' WHERE id = %s", (expired["id"],))
        connection.execute("UPDATE tenants SET status = 'suspended' WHERE tenant_id = %s", (suspended.tenant_id,))
    good = mine.tokens["admin"]
    _, prefix, secret = good.split("_", 2)
    return {
        "nothing": {},
        "empty": {"Authorization": ""},
        "no token": bearer(""),
        "another scheme": {"Authorization": f"Basic {good}"},
        "no scheme": {"Authorization": good},
        "rubbish": bearer("mos_"),
        "NUL and quotes": {"Authorization": "Bearer mos_' OR 1=1 --"},
        "an unknown token": bearer(f"mos_{'a' * 12}_{secrets.token_urlsafe(32)}"),
        "another secret": bearer(f"mos_{prefix}_{secrets.token_urlsafe(32)}"),
        "half the secret": bearer(f"mos_{prefix}_{secret[:20]}"),
        "another case": bearer(good.swapcase()),
        "a very long one": bearer(good + "x" * 5000),
        "revoked": bearer(revoked["token"]),
        "expired": bearer(expired["token"]),
        "rotated": bearer(rotated["token"]),
        "of a suspended tenant": bearer(suspended.tokens["admin"]),
        "in a cookie": {"Cookie": f"token={good}"},
    }


async def test_a_role_without_the_permission_is_refused_and_changes_nothing(api: Api, world: World) -> None:
    root = bearer(add_token(world.tenant.owner_url, INSTANCE_TENANT, "root"))
    before = world.rows()
    for operation in api.guarded:
        for role in PERMISSIONS.keys() - set(operation.roles()):
            headers = root if role == "root" else world.headers(role)
            answer = await api.call(operation, world.ids, headers)
            status, problem = _problem(answer)
            assert status == 403, (operation.name, role, answer.text)
            assert str(problem["detail"]).startswith(f"the role {role} does not have")
            assert MARK not in answer.text.replace(answer.headers["x-request-id"], "")
    assert world.rows() == before


async def test_every_field_of_the_first_tenant_holds_its_mark(world: World) -> None:
    assert unmarked_columns(world) == set(), "fill_world must put the mark there, or CLOSED say why not"


async def test_another_tenants_ids_are_answered_like_absent_ones(api: Api, world: World, make_world: MakeWorld) -> None:
    stranger = await make_world(OTHER)
    before = world.rows()
    absent = _absent(world.ids)
    for operation in api.guarded:
        if operation.roles() == ["root"] or not (operation.kinds() or operation.document.get("requestBody")):
            continue
        headers = {name: value for name, value in stranger.headers("admin").items() if name != "Idempotency-Key"}
        theirs = await api.call(operation, world.ids, headers)
        nobodys = await api.call(operation, absent, headers)
        _assert_silent(world, theirs)
        if operation.name in ABOUT_USERS:
            assert (theirs.status_code, len(theirs.content)) == (nobodys.status_code, len(nobodys.content))
        elif operation.kinds():
            assert _problem(theirs)[0] == 404, (operation.name, theirs.text)
        if not theirs.is_success:
            assert _problem(theirs) == _problem(nobodys), operation.name
    assert world.rows() == before


async def test_what_a_reader_may_not_see_is_answered_like_what_is_not_there(api: Api, world: World) -> None:
    before = world.rows()
    headers = world.tenant.headers("admin", user="somebody else", groups=["another group"])
    tried = set()
    for operation in api.guarded:
        if set(operation.kinds().values()) <= world.hidden.keys() and operation.kinds():
            tried.add(operation.name)
            hidden = await api.call(operation, {**world.ids, **world.hidden}, headers)
            absent = await api.call(operation, _absent(world.ids), headers)
            assert _problem(hidden) == _problem(absent), operation.name
            assert _problem(hidden)[0] == 404, operation.name
            _assert_silent(world, hidden)
    assert len(tried) >= 15
    assert world.rows() == before


async def test_no_answer_of_another_tenant_holds_anything_of_the_first(
    api: Api, world: World, make_world: MakeWorld
) -> None:
    stranger = await make_world(OTHER)
    before = world.rows()
    for operation in [*api.operations, *api.guarded]:  # twice: deletions and changes have their say in the second round
        for role in ["admin", "reader", "operator"]:
            _assert_silent(world, await api.call(operation, stranger.ids, stranger.headers(role)))
    for answer in await _ask_for_the_other(api, world, stranger):
        _assert_silent(world, answer)
    for path in ("/schema/openapi.json", "/livez", "/readyz", "/metrics", "/v1/nothing", f"/v1/memories/{uuid4()}/x"):
        _assert_silent(world, await api.client.get(path))
    assert world.rows() == before


async def _ask_for_the_other(api: Api, world: World, stranger: World) -> list[httpx.Response]:
    """Every list of the stranger, narrowed to what is the first tenant's by each of its parameters."""
    answers = []
    for operation in api.guarded:
        if operation.method != "GET":
            continue
        for name, schema in operation.query_parameters():
            if "enum" in schema:
                continue  # words of everybody's
            wanted = world.ids.get(name.removesuffix("_id"), world.ids["memory"])
            value = wanted if "uuid" in str(schema) else world.user if name == "user_id" else MARK
            answer = await api.call(operation, stranger.ids, stranger.headers("admin"), {name: value})
            assert answer.is_success or answer.status_code in REFUSED, (operation.name, name, answer.text)
            if name == "tenant_id":
                assert answer.status_code == 403, operation.name
            elif answer.is_success and name not in ("cursor", "limit"):
                assert not answer.json().get("items"), (operation.name, name, answer.text)
            answers.append(answer)
    return answers


def _assert_silent(world: World, answer: httpx.Response) -> None:
    """Nothing of the world may be in any byte of an answer, its headers included."""
    said = (answer.text + repr(answer.headers)).lower()
    assert world.mark not in said, answer.request.url
    for kind, value in world.ids.items():
        if not value.isdigit():  # short numbers are everywhere
            assert value not in said, (kind, answer.request.url)


async def test_tenants_with_the_same_names_texts_and_ids_live_side_by_side(api: Api, make_world: MakeWorld) -> None:
    chosen = {kind: str(uuid4()) for kind in CLIENT_CHOSEN}
    first, second = await make_world("twin", chosen), await make_world("twin", chosen)
    assert first.row_counts() == second.row_counts()
    untouched = first.rows()
    for operation in api.guarded:
        role = operation.roles()[0]
        if role != "root":
            answer = await api.call(operation, second.ids, second.headers(role))
            assert answer.is_success, (operation.name, answer.text)
            assert str(first.tenant.tenant_id) not in answer.text
    assert first.rows() == untouched
    assert second.rows() != untouched
    read = [operation for operation in api.guarded if operation.method == "GET" and operation.kinds()]
    for operation in read:
        if operation.roles()[0] != "root":
            answer = await api.call(operation, first.ids, first.headers(operation.roles()[0]))
            assert answer.is_success, (operation.name, answer.text)


async def test_root_manages_tenants_and_reads_none_of_their_records(api: Api, world: World) -> None:
    root = bearer(add_token(world.tenant.owner_url, INSTANCE_TENANT, "root"))
    for operation in api.guarded:
        if "root" not in operation.roles():
            answer = await api.call(operation, world.ids, root)
            assert answer.status_code == 403, operation.name
            _assert_silent(world, answer)
    assert UUID(world.ids["tenant"]) != INSTANCE_TENANT


def test_the_example_of_an_operation_needs_no_more_than_its_document() -> None:
    operation = Operation("POST", "/v1/memory/observations/{record_id}", "x", frozenset({"write"}), {})
    assert operation.url({"observation": "1"}) == "/v1/memory/observations/1"
    assert operation.roles() == ["writer", "reviewer", "admin"]
