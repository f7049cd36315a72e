"""What is wrong with a request is said as a problem document with the request's id, and nothing is half written."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
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
def unchanged(database_urls: DatabaseUrls, tenant: TestTenant) -> Iterator[None]:
    """Fails a test that leaves more or fewer rows in any table than there were."""
    assert tenant
    before = _row_counts(database_urls)
    yield
    assert _row_counts(database_urls) == before


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
    assert answer.status_code in statuses, (answer.status_code, answer.text)
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


@pytest.mark.usefixtures("unchanged")
class TestAddresses:
    @pytest.mark.parametrize(
        "path",
        [
            *(
                "/",
                "/v1",
                "/v1/nothing",
                "/v1/memories/x",
                "/v1/memories/%00",
                f"/v1/memories/{uuid4()}/x",
                "/v2/memories",
            ),
            *("/v1/memories/%F0%9F%8D%95", "/v1/outbox/events/1/2", "/schema/nothing.json", "/favicon.ico"),
        ],
    )
    async def test_an_unknown_route_is_not_found(
        self, client: httpx.AsyncClient, tenant: TestTenant, path: str
    ) -> None:
        for headers in ({}, tenant.headers("admin")):
            assert _problem(await client.get(path, headers=headers), 404)["type"].endswith(":not-found")

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("PUT", "/v1/memories", {"GET", "POST", "OPTIONS"}),
            ("DELETE", "/v1/memories", {"GET", "POST", "OPTIONS"}),
            ("POST", f"/v1/memories/{uuid4()}", {"GET", "PATCH", "DELETE", "OPTIONS"}),
            ("TRACE", "/v1/retrieve", {"POST", "OPTIONS"}),
            ("BREW", "/v1/vocabulary", {"GET", "OPTIONS"}),
            ("POST", "/livez", {"GET", "OPTIONS"}),
        ],
    )
    async def test_a_wrong_method_is_told_the_right_ones(
        self, client: httpx.AsyncClient, tenant: TestTenant, method: str, path: str, allowed: set[str]
    ) -> None:
        answer = await client.request(method, path, headers=tenant.headers("admin"))
        assert _problem(answer, 405)["type"].endswith(":method-not-allowed")
        assert set(answer.headers["allow"].split(", ")) == allowed

    async def test_options_tell_no_more_than_methods(self, client: httpx.AsyncClient) -> None:
        answer = await client.options("/v1/tenants")
        assert (answer.status_code, answer.content) == (204, b"")
        assert "x-request-id" in answer.headers

    @pytest.mark.parametrize(
        "number",
        [
            "0",
            "-1",
            "1_0",
            "٣",
            "1e3",
            "0x10",
            "+1",
            "%201",
            "9223372036854775808",
            "9" * 30,
            "9" * 5000,
            "null",
            "%00",
        ],
    )
    async def test_an_event_id_is_a_plain_number(
        self, client: httpx.AsyncClient, tenant: TestTenant, number: str
    ) -> None:
        headers = tenant.headers("operator")
        _problem(await client.get(f"/v1/outbox/events/{number}", headers=headers), 404, 422)
        _problem(await client.post(f"/v1/outbox/events/{number}/retry", headers=headers), 404, 422)

    async def test_an_id_without_a_record_is_not_found_whatever_its_version(
        self, client: httpx.AsyncClient, tenant: TestTenant
    ) -> None:
        for ident in ("0" * 32, "f" * 32, "00000000-0000-0000-0000-000000000000", str(uuid4()).upper()):
            _problem(await client.get(f"/v1/memories/{ident}", headers=tenant.headers()), 404)


@pytest.mark.usefixtures("unchanged")
class TestQueries:
    async def test_every_call_refuses_a_parameter_that_it_does_not_know(
        self, app: Litestar, client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
    ) -> None:
        api = Api(app, client)
        root = bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))
        ids = {kind: "1" if kind.endswith("event") else str(uuid4()) for kind in _kinds(api)}
        try:
            for operation in api.guarded:
                role = operation.roles()[0]
                headers = root if role == "root" else tenant.headers(role)
                for name in ("surprise", "call", "request", "data", "x\u0000y", "Limit", "limit[]"):
                    problem = _problem(await api.call(operation, ids, headers, {name: "1"}), 422)
                    assert f"/{name}" in _pointers(problem), (operation.name, problem)
                if operation.query_parameters():
                    for name, _ in operation.query_parameters():
                        answer = await client.request(
                            operation.method, operation.url(ids), params=[(name, "1"), (name, "2")], headers=headers
                        )
                        assert f"/{name}" in _pointers(_problem(answer, 422)), operation.name
        finally:
            with psycopg.connect(database_urls.owner_url) as connection:
                connection.execute("DELETE FROM tenants WHERE tenant_id = %s", (INSTANCE_TENANT,))

    @pytest.mark.parametrize(
        ("query", "pointer"),
        [
            *(
                (f"limit={value}", "/limit")
                for value in ("0", "201", "-1", "x", "", "1.5", "٣", "9" * 40, "null", "true")
            ),
            *((f"tag={value}", "/tag") for value in ("", "a%00b", "x" * 201)),
            *((f"user_id={value}", "/user_id") for value in ("", "a%1Fb", "x" * 201)),
            *(
                ("label=Banana", "/label"),
                ("label=skill", "/label"),
                ("status=gone", "/status"),
                ("status=%ED%A0%80", "/status"),
            ),
            *(
                (f"created_after={value}", "/created_after")
                for value in (
                    "1767225600",
                    "0.5",
                    "2026-01-01",
                    "2026-01-01T00:00:00",
                    "2026-13-01T00:00:00Z",
                    "now",
                    "",
                )
            ),
            ("created_before=0001-01-01T00:00:00%2B14:00", "/created_before"),
        ],
    )
    async def test_a_parameter_that_can_not_be_is_named(
        self, client: httpx.AsyncClient, tenant: TestTenant, query: str, pointer: str
    ) -> None:
        problem = _problem(await client.get(f"/v1/memories?{query}", headers=tenant.headers()), 422)
        assert _pointers(problem) == [pointer], problem

    @pytest.mark.parametrize(
        "cursor",
        [
            *("", "x", "e30", "====", "%00", "%FF", "a|b", "Z" * 1024, "Z" * 1025, "🍕"),
            *(
                base64.urlsafe_b64encode(text.encode()).decode()
                for text in (
                    *("|", "2026-01-01T00:00:00+00:00|", "2026-01-01T00:00:00+00:00|x", "x|" + str(uuid4())),
                    *("9999-12-31T23:59:59-14:00|" + str(uuid4()), "0001-01-01T00:00:00+14:00|" + str(uuid4())),
                    *("2026-01-01T00:00:00+00:00|1|2", "2026-01-01T00:00:00+00:00|" + "9" * 30, "a\x00|b"),
                )
            ),
        ],
    )
    async def test_a_cursor_that_no_list_gave_out_is_refused(
        self, app: Litestar, client: httpx.AsyncClient, tenant: TestTenant, cursor: str
    ) -> None:
        api = Api(app, client)
        tried = 0
        for operation in api.guarded:
            if (
                "cursor" in dict(operation.query_parameters())
                and "admin" in operation.roles()
                and not operation.kinds()
            ):
                answer = await client.get(operation.path, params={"cursor": cursor}, headers=tenant.headers("admin"))
                assert _pointers(_problem(answer, 422)) == ["/cursor"], operation.name
                tried += 1
        assert tried >= 9


def _kinds(api: Api) -> set[str]:
    return {kind for operation in api.operations for kind in operation.kinds().values()} | {"memory", "entity"}


@pytest.mark.usefixtures("unchanged")
class TestBodies:
    @pytest.mark.parametrize(
        "body",
        [
            *(
                b"",
                b" ",
                b"{",
                b"[]",
                b"null",
                b"7",
                b'"x"',
                b"\xff\xfe",
                b"\x00",
                b"{'text': 1}",
                b"{} {}",
                b"\xef\xbb\xbf{}",
            ),
            *(b'{"text": "x", "label": "Skill",}', b'{"text": "x" "label": "Skill"}', b"text=x&label=Skill"),
            *(
                b'{"text": "x", "label": "Skill", "confidence": %s}' % number
                for number in (b"NaN", b"Infinity", b"1e999")
            ),
            *(
                b'{"text": "x", "label": "Skill", "confidence": %s}' % number
                for number in (b"-0.1", b"01", b"0x1", b"1" * 5000)
            ),
            *(
                b'{"text": "x", "label": "Skill", "%s": 1}' % name
                for name in (b"surprise", b"\\u0000", b"\\ud800", b"")
            ),
            *(
                b'{"text": %s, "label": "Skill"}' % text
                for text in (b'"\\ud800"', b'"a\\u0000b"', b"5", b"null", b'"\xed\xa0\x80"')
            ),
            b"[" * 100_000,
            b'{"a":' * 5_000,
            b'{"text": "x", "label": "Skill", "metadata": {"a": ' + b"[" * 3_000 + b"]" * 3_000 + b"}}",
            b'{"text": "x", "label": "Skill", "metadata": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}",
            b'{"text": "x", "label": "Skill", "metadata": {"\\ud800": 1}}',
            b'{"text": "x", "label": "Skill", "tags": ["\\u0000"]}',
        ],
    )
    async def test_a_body_that_is_no_memory_is_refused_alone_and_in_a_batch(
        self, client: httpx.AsyncClient, tenant: TestTenant, body: bytes
    ) -> None:
        headers = {**tenant.headers(), "Content-Type": "application/json"}
        _problem(await client.post("/v1/memories", content=body, headers=headers), 400, 422)
        answer = await client.post("/v1/memories/batch", content=b'{"items": [' + body + b"]}", headers=headers)
        if answer.status_code == 200:
            statuses = [result["status"] for result in answer.json()["results"]]
            assert set(statuses) <= {422}, answer.text
        else:
            _problem(answer, 400, 422)

    @pytest.mark.parametrize(
        ("change", "pointer"),
        [
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
            ({"edges": [{"type": "SUPPORTS", "to": str(uuid4()), "more": 1}]}, "/edges/0/more"),
            ({"readers": {"users": ["a"], "roles": []}}, "/readers/roles"),
            ({"id": 7}, "/id"),
        ],
    )
    async def test_one_memory_is_read_as_strictly_as_a_batch(
        self, client: httpx.AsyncClient, tenant: TestTenant, change: dict[str, object], pointer: str
    ) -> None:
        body = {**MEMORY, **change}
        assert _pointers(_problem(await client.post("/v1/memories", json=body, headers=tenant.headers()), 422)) == [
            pointer
        ]
        batch = await client.post("/v1/memories/batch", json=[body], headers=tenant.headers())
        error = batch.json()["results"][0]["error"]
        assert [fault["pointer"] for fault in error["errors"]] == [pointer]

    async def test_every_call_refuses_a_field_that_it_does_not_know(
        self, app: Litestar, client: httpx.AsyncClient, tenant: TestTenant
    ) -> None:
        api = Api(app, client)
        ids = {kind: "1" if kind.endswith("event") else str(uuid4()) for kind in _kinds(api)}
        for operation in api.guarded:
            body = operation.body(ids, api.schemas)
            if body is None or operation.roles() == ["root"]:
                continue
            headers = tenant.headers("admin")
            answer = await client.request(
                operation.method, operation.url(ids), json={**body, "surprise": 1}, headers=headers
            )
            problem = _problem(answer, 422)
            if operation.name != "storeMemories":
                assert _pointers(problem) == ["/surprise"], (operation.name, problem)

    @pytest.mark.parametrize(
        ("headers", "body"),
        [
            ({"Content-Type": "text/plain"}, b'{"text": "x", "label": "Skill"}'),
            ({"Content-Type": "application/x-www-form-urlencoded"}, b"text=x&label=Skill"),
            ({"Content-Type": "multipart/form-data; boundary=b"}, b"--b--"),
            ({"Content-Type": "application/xml"}, b"<memory/>"),
            ({"Content-Type": "application/msgpack"}, b"\x80"),
            ({"Content-Type": "application/jsonx"}, b"{}"),
            ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"\x1f\x8b"),
        ],
    )
    async def test_a_body_in_another_form_is_not_read(
        self, client: httpx.AsyncClient, tenant: TestTenant, headers: dict[str, str], body: bytes
    ) -> None:
        for path in ("/v1/memories", "/v1/memories/batch", "/v1/edges"):
            answer = await client.post(path, content=body, headers={**tenant.headers(), **headers})
            assert "application/json" in _problem(answer, 415)["detail"] or "Content-Encoding" in headers

    async def test_lines_are_for_batches_alone(self, client: httpx.AsyncClient, tenant: TestTenant) -> None:
        headers = {**tenant.headers(), "Content-Type": "application/x-ndjson"}
        _problem(await client.post("/v1/memories", content=b"{}", headers=headers), 415)
        answer = await client.post("/v1/memories/batch", content=b"[" * 5_000 + b"\n{}\nnull", headers=headers)
        assert [result["status"] for result in answer.json()["results"]] == [422, 422, 422]


async def test_json_may_name_its_charset_or_nothing(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    for headers in ({}, {"Content-Type": "application/json; charset=utf-8"}, {"Content-Type": "Application/JSON"}):
        answer = await client.post(
            "/v1/memories", content=b'{"text": "x", "label": "Skill"}', headers={**tenant.headers(), **headers}
        )
        assert answer.status_code == 201, answer.text


@pytest.mark.usefixtures("unchanged")
class TestHeaders:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("Idempotency-Key", value) for value in (b"", b" ", b"a b", b"\xc3\xa9", b"x" * 201)),
            *(("X-Memory-User", value) for value in (b"", b"\xff", b"x" * 201, b"a\x1fb")),
            *(("X-Memory-Groups", value) for value in (b"cooks", b"")),
        ],
    )
    async def test_a_header_that_can_not_be_is_refused(
        self, client: httpx.AsyncClient, tenant: TestTenant, name: str, value: bytes
    ) -> None:
        headers = [*((key.encode(), text.encode()) for key, text in tenant.headers().items()), (name.encode(), value)]
        _problem(await client.post("/v1/memories", json=MEMORY, headers=headers), 422)

    @pytest.mark.parametrize(
        "value", ["3", '"x"', '"-1"', '"1.0"', '""', '"٣"', "W/", '"1', '"' + "9" * 19 + '"', '"1" , "2"']
    )
    async def test_a_version_that_no_record_gave_is_refused(
        self, client: httpx.AsyncClient, tenant: TestTenant, value: str
    ) -> None:
        headers = [*((key.encode(), text.encode()) for key, text in tenant.headers().items())]
        headers.append((b"If-Match", value.encode()))
        answer = await client.patch(f"/v1/memories/{uuid4()}", json={"title": "x"}, headers=headers)
        _problem(answer, 422)

    async def test_a_request_id_is_kept_if_it_is_tame(self, client: httpx.AsyncClient, tenant: TestTenant) -> None:
        for given, kept in (
            ("request-0001", True),
            ("a" * 65, False),
            ("short", False),
            ("a b c d e f", False),
            ("<script>", False),
        ):
            for path in ("/livez", "/v1/memories", "/v1/nothing"):
                answer = await client.get(path, headers={**tenant.headers(), "X-Request-Id": given})
                assert (answer.headers["x-request-id"] == given) == kept
                assert answer.headers.get_list("x-request-id") == [answer.headers["x-request-id"]]


async def test_a_user_is_the_same_in_a_header_and_in_a_body(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    users = []
    for body, user in (({**MEMORY, "user_id": "Zoë"}, None), (MEMORY, "Zoë")):
        headers = [*((key.encode(), text.encode()) for key, text in tenant.headers().items())]
        if user is not None:
            headers.append((b"X-Memory-User", user.encode()))
        answer = await client.post("/v1/memories", json=body, headers=headers)
        users.append(answer.json()["memory"]["user_id"])
    assert users == ["Zoë", "Zoë"]


class TestLimits:
    @pytest.fixture
    def service_settings(self, service_settings: Settings) -> Settings:
        return service_settings.model_copy(update={"max_body_bytes": LARGEST, "rate_limit_per_minute": RATE})

    @pytest.mark.usefixtures("unchanged")
    @pytest.mark.parametrize("path", ["/v1/memories", "/v1/memories/batch", "/v1/edges", "/v1/retrieve"])
    async def test_a_body_over_the_limit_is_refused_however_it_comes(
        self, client: httpx.AsyncClient, tenant: TestTenant, path: str
    ) -> None:
        body = b'{"text": "' + b"x" * LARGEST + b'", "label": "Skill"}'

        async def pieces() -> AsyncIterator[bytes]:
            yield body[:100]
            yield body[100:]

        headers = {**tenant.headers(), "Content-Type": "application/json"}
        for content in (body, pieces()):
            problem = _problem(await client.post(path, content=content, headers=headers), 413)
            assert problem["type"].endswith(":too-large")

    async def test_a_body_at_the_limit_is_taken(self, client: httpx.AsyncClient, tenant: TestTenant) -> None:
        body = b'{"text": "x", "label": "Skill"}'
        headers = {**tenant.headers(), "Content-Type": "application/json"}
        answer = await client.post("/v1/memories", content=body.ljust(LARGEST), headers=headers)
        assert answer.status_code == 201, answer.text

    async def test_a_tenant_over_its_rate_waits_and_others_do_not(
        self, client: httpx.AsyncClient, tenant_factory: TenantFactory
    ) -> None:
        fast, slow = tenant_factory(), tenant_factory()
        for _ in range(RATE):
            assert (await client.get("/v1/vocabulary", headers=fast.headers("reader"))).status_code == 200
        for role in ("reader", "admin"):  # the rate is the tenant's, whichever of its tokens is used
            answer = await client.post(
                "/v1/memories", json=MEMORY, headers=fast.headers("writer" if role == "admin" else role)
            )
            if answer.status_code != 403:
                assert _problem(answer, 429)["type"].endswith(":rate-limited")
                assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert (await client.get("/v1/vocabulary", headers=slow.headers("reader"))).status_code == 200
        assert (await client.get("/livez")).status_code == 200
        with psycopg.connect(fast.owner_url) as connection:
            assert connection.execute("SELECT count(*) FROM memories").fetchone() == (0,)
