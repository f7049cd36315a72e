"""What is wrong with a request is said as a problem document with the request's id, and nothing is half written."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from litestar import Litestar
from psycopg import sql
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token, bearer
from tests.security.operations import Api
from tests.security.worlds import tenant_tables

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.settings import Settings

pytestmark = pytest.mark.anyio

MEMORY = {"text": "Dough rests for two days.", "label": "Skill"}
LARGEST = 4096
RATE = 5


@pytest.fixture
def app(services: Services) -> Litestar:
    return create_app(services)


@pytest.fixture
async def client(app: Litestar) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own types
    async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as opened:
        yield opened


@pytest.fixture
def unchanged(database_urls: DatabaseUrls, tenant: TestTenant, root: dict[str, str]) -> Iterator[None]:
    """Fails a test that leaves more or fewer rows in any table than there were."""
    assert tenant
    assert root
    before = _row_counts(database_urls)
    yield
    assert _row_counts(database_urls) == before


@pytest.fixture
def root(database_urls: DatabaseUrls) -> dict[str, str]:
    return bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))


def _row_counts(urls: DatabaseUrls) -> dict[str, int]:
    counts = {}
    with psycopg.connect(urls.owner_url) as connection:
        for table in tenant_tables(connection):
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
            assert row
            counts[table] = row[0]
    return counts


def _problem(answer: httpx.Response, *statuses: int) -> dict[str, Any]:
    """The problem document of a refusal, checked for what every one has."""
    assert answer.status_code in statuses, (answer.request.method, answer.request.url, answer.status_code, answer.text)
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["type"].startswith("urn:memory-os:problem:")
    assert problem["title"]
    assert problem["detail"]
    assert problem["instance"] == f"urn:request:{answer.headers['x-request-id']}"
    return problem


def _pointers(problem: dict[str, Any]) -> list[str]:
    return [fault["pointer"] for fault in problem.get("errors", [])]


def _ids(api: Api) -> dict[str, str]:
    """Ids of nothing, for every call."""
    kinds = {kind for operation in api.operations for kind in operation.kinds().values()} | {"memory", "entity"}
    return {kind: "1" if kind.endswith("event") else str(uuid4()) for kind in kinds}


def _raw(headers: Mapping[str, str], **more: bytes) -> list[tuple[bytes, bytes]]:
    """Headers as bytes, with more of them that no client library would send; underscores become hyphens."""
    further = [(name.replace("_", "-").encode(), value) for name, value in more.items()]
    return [*((name.encode(), value.encode()) for name, value in headers.items()), *further]


# --- addresses


@pytest.mark.usefixtures("unchanged")
async def test_an_unknown_route_is_not_found(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    paths = [
        *("/", "/v1", "/v1/nothing", "/v2/memories", "/favicon.ico", "/schema/nothing.json", "/v1/outbox/events/1/2"),
        *("/v1/memories/x", "/v1/memories/%00", "/v1/memories/%F0%9F%8D%95", f"/v1/memories/{uuid4()}/x"),
    ]
    for path in paths:
        for headers in ({}, tenant.headers("admin")):
            assert _problem(await client.get(path, headers=headers), 404)["type"].endswith(":not-found")


@pytest.mark.usefixtures("unchanged")
async def test_a_wrong_method_is_told_the_right_ones(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    for method, path, allowed in (
        ("PUT", "/v1/memories", {"GET", "POST", "OPTIONS"}),
        ("DELETE", "/v1/memories", {"GET", "POST", "OPTIONS"}),
        ("POST", f"/v1/memories/{uuid4()}", {"GET", "PATCH", "DELETE", "OPTIONS"}),
        ("TRACE", "/v1/memories/batch", {"POST", "OPTIONS"}),
        ("BREW", "/v1/vocabulary", {"GET", "OPTIONS"}),
        ("POST", "/livez", {"GET", "OPTIONS"}),
    ):
        answer = await client.request(method, path, headers=tenant.headers("admin"))
        assert _problem(answer, 405)["type"].endswith(":method-not-allowed")
        assert set(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.usefixtures("unchanged")
async def test_options_tell_no_more_than_methods(app: Litestar, client: httpx.AsyncClient) -> None:
    api = Api(app, client)
    for path in {operation.url(_ids(api)) for operation in api.operations}:
        answer = await client.options(path)
        assert (answer.status_code, answer.content) == (204, b""), path
        assert "x-request-id" in answer.headers


@pytest.mark.usefixtures("unchanged")
async def test_an_event_id_is_a_plain_number(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers("operator")
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("ALTER TABLE outbox_events ALTER COLUMN id RESTART WITH 10")
    numbers = ["0", "-1", "1_0", "٣", "1e3", "0x10", "+1", "%201", "9223372036854775808", "9" * 5000, "null", "%00"]
    for number in numbers:
        _problem(await client.get(f"/v1/outbox/events/{number}", headers=headers), 404, 422)
        _problem(await client.post(f"/v1/outbox/events/{number}/retry", headers=headers), 404, 422)
    for ident in ("0" * 32, "f" * 32, str(uuid4()).upper()):
        _problem(await client.get(f"/v1/memories/{ident}", headers=headers), 404)


# --- parameters of queries


@pytest.mark.usefixtures("unchanged")
async def test_every_call_refuses_a_parameter_that_it_does_not_know_or_gets_twice(
    app: Litestar, client: httpx.AsyncClient, tenant: TestTenant, root: dict[str, str]
) -> None:
    api = Api(app, client)
    ids = _ids(api)
    for operation in api.guarded:
        role = operation.roles()[0]
        headers = root if role == "root" else tenant.headers(role)
        for name in ("surprise", "call", "request", "data", "x\u0000y", "Limit", "limit[]"):
            problem = _problem(await api.call(operation, ids, headers, {name: "1"}), 422)
            assert f"/{name}" in _pointers(problem), (operation.name, problem)
        for name, _ in operation.query_parameters():
            twice = httpx.QueryParams([(name, "1"), (name, "2")])
            answer = await client.request(operation.method, operation.url(ids), params=twice, headers=headers)
            assert f"/{name}" in _pointers(_problem(answer, 422)), operation.name


WRONG_PARAMETERS = {
    "limit": ["0", "201", "-1", "x", "", "1.5", "٣", "9" * 40, "null", "true"],
    "tag": ["", "a%00b", "x" * 201],
    "user_id": ["", "a%1Fb", "x" * 201, "a%0A"],
    "label": ["Banana", "skill", ""],
    "status": ["gone", "%ED%A0%80"],
    "created_after": ["1767225600", "0.5", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "now", ""],
    "created_before": ["0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"],
}


@pytest.mark.usefixtures("unchanged")
async def test_a_parameter_that_can_not_be_is_named(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    for name, values in WRONG_PARAMETERS.items():
        for value in values:
            answer = await client.get(f"/v1/memories?{name}={value}", headers=tenant.headers())
            assert _pointers(_problem(answer, 422)) == [f"/{name}"]


WRONG_CURSORS = [
    *("", "x", "e30", "====", "\x00", "a|b", "Z" * 1024, "Z" * 1025, "🍕"),
    *(
        base64.urlsafe_b64encode(text.encode()).decode()
        for text in (
            *("|", "2026-01-01T00:00:00+00:00|", "2026-01-01T00:00:00+00:00|x", f"x|{uuid4()}", "a\x00|b"),
            *(f"9999-12-31T23:59:59-14:00|{uuid4()}", f"0001-01-01T00:00:00+14:00|{uuid4()}"),
            *("2026-01-01T00:00:00+00:00|1|2", "2026-01-01T00:00:00+00:00|" + "9" * 30),
        )
    ),
]


@pytest.mark.usefixtures("unchanged")
async def test_a_cursor_that_no_list_gave_out_is_refused(
    app: Litestar, client: httpx.AsyncClient, tenant: TestTenant, root: dict[str, str]
) -> None:
    tried = 0
    for operation in Api(app, client).guarded:
        if "cursor" not in dict(operation.query_parameters()) or operation.kinds():
            continue
        headers = tenant.headers("admin") if "admin" in operation.roles() else root
        for cursor in WRONG_CURSORS:
            answer = await client.get(operation.path, params={"cursor": cursor}, headers=headers)
            assert _pointers(_problem(answer, 422)) == ["/cursor"], (operation.name, cursor)
        tried += 1
    assert tried >= 10


# --- bodies

WRONG_BODIES = [
    *(b"", b" ", b"{", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b"\x00", b"{'text': 1}", b"{} {}", b"\xef\xbb\xbf{}"),
    *(b'{"text": "x", "label": "Skill",}', b'{"text": "x" "label": "Skill"}', b"text=x&label=Skill", b"{}"),
    *(
        b'{"text": "x", "label": "Skill", "confidence": %s}' % number
        for number in (b"NaN", b"Infinity", b"1e999", b"-0.1", b"01", b"0x1", b"1" * 5000)
    ),
    *(b'{"text": "x", "label": "Skill", "%s": 1}' % name for name in (b"surprise", b"\\u0000", b"\\ud800", b"")),
    *(
        b'{"text": %s, "label": "Skill"}' % text
        for text in (b'"\\ud800"', b'"a\\u0000b"', b"5", b"null", b'"\xed\xa0\x80"', b'" "')
    ),
    *(b"[" * 100_000, b'{"a":' * 5_000),
    *(
        b'{"text": "x", "label": "Skill", "metadata": {"a": ' + b"[" * depth + b"]" * depth + b"}}"
        for depth in (40, 500, 3_000)
    ),
    b'{"text": "x", "label": "Skill", "metadata": {"\\ud800": 1}}',
    b'{"text": "x", "label": "Skill", "tags": ["\\u0000"]}',
]


@pytest.mark.usefixtures("unchanged")
async def test_a_body_that_is_no_memory_is_refused_alone_and_in_a_batch(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = {**tenant.headers(), "Content-Type": "application/json"}
    for body in WRONG_BODIES:
        _problem(await client.post("/v1/memories", content=body, headers=headers), 400, 422)
        answer = await client.post("/v1/memories/batch", content=b'{"items": [' + body + b"]}", headers=headers)
        if answer.status_code == 200:
            statuses = {result["status"] for result in answer.json()["results"]}
            assert statuses <= {422}, (body[:100], answer.text)
        else:
            _problem(answer, 400, 422)


@pytest.mark.usefixtures("unchanged")
async def test_one_memory_is_read_as_strictly_as_a_batch(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    nowhere = str(uuid4())
    changes: list[tuple[dict[str, Any], str]] = [
        ({"confidence": "0.5"}, "/confidence"),
        ({"confidence": True}, "/confidence"),
        ({"valid_from": 1767225600}, "/valid_from"),
        ({"valid_from": "1767225600"}, "/valid_from"),
        ({"valid_from": "2026-01-01"}, "/valid_from"),
        ({"tags": "food"}, "/tags"),
        ({"tags": ["ok", 7]}, "/tags/1"),
        ({"tags": ["x"] * 65}, "/tags"),
        ({"metadata": []}, "/metadata"),
        ({"edges": [{"type": "SUPPORTS", "to": "x"}]}, "/edges/0/to"),
        ({"edges": [{"type": "SUPPORTS", "to": nowhere, "more": 1}]}, "/edges/0/more"),
        ({"readers": {"users": ["a"], "roles": []}}, "/readers/roles"),
        ({"id": 7}, "/id"),
        ({"user_id": "a\n"}, "/user_id"),
    ]
    for change, pointer in changes:
        body = {**MEMORY, **change}
        alone = await client.post("/v1/memories", json=body, headers=tenant.headers())
        assert _pointers(_problem(alone, 422)) == [pointer]
        batch = await client.post("/v1/memories/batch", json=[body], headers=tenant.headers())
        error = batch.json()["results"][0]["error"]
        assert [fault["pointer"] for fault in error["errors"]] == [pointer]


@pytest.mark.usefixtures("unchanged")
async def test_every_call_refuses_a_field_that_it_does_not_know(
    app: Litestar, client: httpx.AsyncClient, tenant: TestTenant, root: dict[str, str]
) -> None:
    api = Api(app, client)
    ids = _ids(api)
    for operation in api.guarded:
        body = operation.body(ids, api.schemas)
        if body is not None:
            headers = root if operation.roles() == ["root"] else tenant.headers("admin")
            url, sent = operation.url(ids), {**body, "surprise": 1}
            problem = _problem(await client.request(operation.method, url, json=sent, headers=headers), 422)
            assert _pointers(problem) == ["/surprise"], (operation.name, problem)


@pytest.mark.usefixtures("unchanged")
async def test_a_body_in_another_form_is_not_read(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    good = b'{"text": "x", "label": "Skill", "dedup": "off"}'
    forms: list[tuple[dict[str, str], bytes]] = [
        ({"Content-Type": "text/plain"}, good),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"text=x&label=Skill"),
        ({"Content-Type": "multipart/form-data; boundary=b"}, b"--b--"),
        ({"Content-Type": "application/xml"}, b"<memory/>"),
        ({"Content-Type": "application/msgpack"}, b"\x80"),
        ({"Content-Type": "application/jsonx"}, good),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"\x1f\x8b"),
    ]
    for headers, body in forms:
        for path in ("/v1/memories", "/v1/memories/batch", "/v1/edges"):
            _problem(await client.post(path, content=body, headers={**tenant.headers(), **headers}), 415)


async def test_json_may_name_its_charset_or_nothing_and_lines_are_for_batches(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    good = b'{"text": "x", "label": "Skill", "dedup": "off"}'
    for kind in (None, "application/json; charset=utf-8", "Application/JSON"):
        headers = {**tenant.headers(), **({"Content-Type": kind} if kind else {})}
        assert (await client.post("/v1/memories", content=good, headers=headers)).status_code == 201
    headers = {**tenant.headers(), "Content-Type": "application/x-ndjson"}
    _problem(await client.post("/v1/memories", content=good, headers=headers), 415)
    answer = await client.post("/v1/memories/batch", content=b"[" * 5_000 + b"\n{}\nnull\n" + good, headers=headers)
    assert [result["status"] for result in answer.json()["results"]] == [422, 422, 422, 201]


# --- headers


@pytest.mark.usefixtures("unchanged")
async def test_a_header_that_can_not_be_is_refused(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    wrong: list[dict[str, bytes]] = [
        *({"Idempotency_Key": value} for value in (b"", b" ", b"a b", b"\xc3\xa9", b"x" * 201)),
        *({"X_Memory_User": value} for value in (b"", b"\xff", b"x" * 201, b"a\x1fb", b"a\n")),
        *({"X_Memory_Groups": value} for value in (b"cooks", b"")),
    ]
    for more in wrong:
        _problem(await client.post("/v1/memories", json=MEMORY, headers=_raw(tenant.headers(), **more)), 422)


@pytest.mark.usefixtures("unchanged")
async def test_a_version_that_no_record_gave_is_refused(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    for value in ("3", '"x"', '"-1"', '"1.0"', '""', '"٣"', "W/", '"1', '"' + "9" * 19 + '"', '"1" , "2"', "x" * 41):
        headers = _raw(tenant.headers(), If_Match=value.encode())
        _problem(await client.patch(f"/v1/memories/{uuid4()}", json={"title": "x"}, headers=headers), 422)


async def test_a_request_id_is_kept_if_it_is_tame(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    for given in ("request-0001", "a" * 65, "short", "a b c d e f", "<script>alert()", "request-0001\n"):
        for path in ("/livez", "/v1/memories", "/v1/nothing"):
            answer = await client.get(path, headers={**tenant.headers(), "X-Request-Id": given})
            assert (answer.headers["x-request-id"] == given) == (given == "request-0001")
            assert len(answer.headers.get_list("x-request-id")) == 1


async def test_a_user_is_the_same_in_a_header_and_in_a_body(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    by_body = await client.post("/v1/memories", json={**MEMORY, "user_id": "Zoë"}, headers=tenant.headers())
    headers = _raw(tenant.headers(), X_Memory_User="Zoë".encode(), X_Memory_Groups="Köche, Bäcker".encode())
    restricted = {**MEMORY, "visibility": "restricted", "readers": {"groups": ["Bäcker"]}}
    by_header = await client.post("/v1/memories", json=restricted, headers=headers)
    assert by_body.json()["memory"]["user_id"] == by_header.json()["memory"]["user_id"] == "Zoë"


async def test_a_key_belongs_to_the_whole_address(
    client: httpx.AsyncClient, tenant: TestTenant, root: dict[str, str]
) -> None:
    here = {"tenant_id": str(tenant.tenant_id)}
    made = await client.post("/v1/tokens", json={"role": "reader", **here}, headers=root)
    path, headers = f"/v1/tokens/{made.json()['id']}/rotate", {**root, "Idempotency-Key": "one"}
    assert (await client.post(path, params=here, headers=headers)).status_code == 200
    elsewhere = await client.post(path, params={"tenant_id": str(uuid4())}, headers=headers)
    assert _problem(elsewhere, 409)["type"].endswith(":idempotency-key-reused")


# --- bounds of the service


@pytest.fixture
def bounded_settings(service_settings: Settings) -> Settings:
    return service_settings.model_copy(update={"max_body_bytes": LARGEST, "rate_limit_per_minute": RATE})


@pytest.fixture
async def bounded(services: Services, bounded_settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service with narrow bounds."""
    app = create_app(replace(services, settings=bounded_settings))
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own types
    async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as opened:
        yield opened


async def test_a_body_over_the_limit_is_refused_however_it_comes(
    bounded: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    body = b'{"text": "' + b"x" * LARGEST + b'", "label": "Skill"}'

    async def pieces() -> AsyncIterator[bytes]:
        yield body[:100]
        yield body[100:]

    for path in ("/v1/memories", "/v1/memories/batch", "/v1/edges"):
        headers = {**tenant_factory().headers(), "Content-Type": "application/json"}
        for content in (body, pieces()):
            problem = _problem(await bounded.post(path, content=content, headers=headers), 413)
            assert problem["type"].endswith(":too-large")
    tenant = tenant_factory()
    headers = {**tenant.headers(), "Content-Type": "application/json"}
    least = b'{"text": "x", "label": "Skill"}'
    assert (await bounded.post("/v1/memories", content=least.ljust(LARGEST), headers=headers)).status_code == 201
    with psycopg.connect(tenant.owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (1,)


async def test_a_tenant_over_its_rate_waits_and_others_do_not(
    bounded: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    fast, slow = tenant_factory(), tenant_factory()
    for role in ("reader", "writer", "reader", "writer", "admin"):
        assert (await bounded.get("/v1/vocabulary", headers=fast.headers(role))).status_code == 200
    another = add_token(fast.owner_url, fast.tenant_id, "writer")  # the rate is the tenant's, whichever token is used
    for headers in (fast.headers(), bearer(another)):
        answer = await bounded.post("/v1/memories", json=MEMORY, headers=headers)
        assert _problem(answer, 429)["type"].endswith(":rate-limited")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    unknown = bearer(add_token(fast.owner_url, new_id(), "reader"))
    for headers in (slow.headers("reader"), unknown):
        assert (await bounded.get("/v1/vocabulary", headers=headers)).status_code == 200
    assert (await bounded.get("/livez")).status_code == 200
    with psycopg.connect(fast.owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (0,)
