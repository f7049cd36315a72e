"""Who gets into the console, who stays in, and what each role may do there."""

from __future__ import annotations

import httpx
import psycopg
import pytest
from tests.fixtures.console import Events, Login, csrf_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant, add_token

from memory_os.domain.principal import INSTANCE_TENANT
from memory_os_console.login_rate import FAILURES_A_MINUTE
from memory_os_console.sessions import COOKIE

pytestmark = pytest.mark.anyio

PAGES = ("/console", "/console/live", "/console/events", "/console/events/1", "/console/events/retry", "/console/graph")


@pytest.mark.parametrize("page", PAGES)
async def test_every_page_needs_a_login_and_comes_back_after_it(browser: httpx.AsyncClient, page: str) -> None:
    answer = await browser.get(page, params={"status": "dead"} if page.endswith("events") else {})
    assert answer.status_code == 303
    login = httpx.URL(answer.headers["location"])
    assert login.path == "/console/login"
    back = {"/console/live": None, "/console/events": "/console/events?status=dead"}.get(page, page)
    assert login.params.get("next") == back


@pytest.mark.parametrize("role", ["operator", "reviewer", "admin"])
async def test_console_roles_log_in(browser: httpx.AsyncClient, login: Login, tenant: TestTenant, role: str) -> None:
    answer = await login(tenant.tokens[role])
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")
    overview = await browser.get("/console")
    assert overview.status_code == 200
    assert f"<span>{role}</span>" in overview.text


@pytest.mark.parametrize("role", ["reader", "writer"])
async def test_roles_of_the_api_are_refused_in_a_sentence(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, role: str
) -> None:
    answer = await login(tenant.tokens[role])
    assert answer.status_code == 403
    assert f"This token has the role {role}, which is for the API alone." in answer.text
    assert (await browser.get("/console")).status_code == 303


@pytest.mark.parametrize(
    "token", ["", "nonsense", "mos_aaaaaaaaaaaa_wrong", "mos_" + "x" * 300, "<script>alert(1)</script>"]
)
async def test_what_is_no_token_is_refused(browser: httpx.AsyncClient, login: Login, token: str) -> None:
    answer = await login(token)
    assert answer.status_code == 401
    assert "This token is not valid" in answer.text
    assert "<script>alert" not in answer.text
    assert (await browser.get("/console")).status_code == 303


async def test_the_cookie_is_strict_hidden_from_scripts_and_holds_no_token(login: Login, tenant: TestTenant) -> None:
    answer = await login(tenant.tokens["operator"])
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/console"} <= attributes
    assert "secure" not in attributes  # console_cookie_secure is off in this test
    _, prefix, secret = tenant.tokens["operator"].split("_", 2)
    assert secret not in cookie
    assert prefix not in cookie


async def test_the_cookie_is_sent_only_when_it_has_changed(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant
) -> None:
    await login(tenant.tokens["operator"])
    assert "set-cookie" not in (await browser.get("/console")).headers


async def test_a_login_begins_a_new_session(browser: httpx.AsyncClient, tenant: TestTenant) -> None:
    before = csrf_of((await browser.get("/console/login")).text)
    await browser.post("/console/login", data={"csrf_token": before, "token": tenant.tokens["operator"]})
    assert csrf_of((await browser.get("/console")).text) != before


async def test_a_revoked_token_is_out_at_once(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    await login(tenant.tokens["operator"])
    assert (await browser.get("/console")).status_code == 200
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE tokens SET revoked_at = now() WHERE role = 'operator'")
    answer = await browser.get("/console/events")
    assert answer.status_code == 303
    assert httpx.URL(answer.headers["location"]).params["ended"] == "1"
    page = await browser.get(answer.headers["location"])
    assert "Your session has ended" in page.text
    polled = await browser.get("/console/events", headers={"HX-Request": "true"})
    assert (polled.status_code, polled.headers["hx-redirect"]) == (401, "/console/login")
    streamed = await browser.get("/console/live", headers={"Accept": "text/event-stream"})
    assert (streamed.status_code, streamed.content) == (401, b"")


async def test_a_suspended_tenant_is_out_at_once(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    await login(tenant.tokens["admin"])
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE tenants SET status = 'suspended'")
    assert (await browser.get("/console")).status_code == 303


async def test_logout_ends_the_session_and_every_copy_of_its_cookie(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant
) -> None:
    await login(tenant.tokens["operator"])
    page = await browser.get("/console")
    copied = browser.cookies.get(COOKIE)
    answer = await browser.post("/console/logout", data={"csrf_token": csrf_of(page.text)})
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/login")
    assert (await browser.get("/console")).status_code == 303
    browser.cookies.clear()
    browser.cookies.set(COOKIE, copied or "", domain="console.test", path="/console")
    assert (await browser.get("/console")).status_code == 303


async def test_failed_logins_are_limited_by_address(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant
) -> None:
    for _ in range(2):
        assert (await login(tenant.tokens["operator"])).status_code == 303
        browser.cookies.clear()
    statuses = [(await login("mos_aaaaaaaaaaaa_wrong")).status_code for _ in range(FAILURES_A_MINUTE)]
    assert set(statuses) == {401}
    answer = await login(tenant.tokens["operator"])
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 61
    assert "logins from your address have failed" in answer.text


@pytest.mark.parametrize(
    "address", ["/console/login", "/console/logout", "/console/events/1", "/console/events/retry", "/console/graph"]
)
async def test_a_form_of_another_session_does_nothing(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events, address: str
) -> None:
    number = events.add(tenant)
    await login(tenant.tokens["admin"])
    target = address.replace("/1", f"/{number}")
    for token in (None, "", "forged", "ä"):
        fields = {"action": "retry", "token": tenant.tokens["admin"], "confirmed": "1"}
        answer = await browser.post(target, data=fields if token is None else {**fields, "csrf_token": token})
        assert answer.status_code == 403
        assert "the form does not belong to your session" in answer.text.lower()
    assert events.status(number) == "dead"
    assert (await browser.get("/console")).status_code == 200


async def test_a_form_sent_after_the_session_ended_is_not_repeated(browser: httpx.AsyncClient) -> None:
    answer = await browser.post("/console/events/1", data={"action": "retry"})
    assert answer.status_code == 303
    assert "next" not in httpx.URL(answer.headers["location"]).params


@pytest.mark.parametrize(
    "forged",
    [
        "x",
        "AAAA",
        "null",
        "YWRkaXRpb25hbF9hdXRoZW50aWNhdGVkX2RhdGE9e30=",
        "YWRkaXRpb25hbF9hdXRoZW50aWNhdGVkX2RhdGE9eA==",
        "A" * 4000,
    ],
)
async def test_a_forged_cookie_is_no_session(browser: httpx.AsyncClient, forged: str) -> None:
    browser.cookies.set(COOKIE, forged, domain="console.test", path="/console")
    assert (await browser.get("/console")).status_code == 303
    assert (await browser.get("/console/login")).status_code == 200


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.test/",
        "//evil.test/",
        "/v1/memories",
        "/console/../v1",
        "/console\\@evil.test",
        "javascript:alert(1)",
        "/consoles",
        "/console/\nhttps://evil.test",
    ],
)
async def test_a_login_leads_to_the_console_only(
    browser: httpx.AsyncClient, tenant: TestTenant, elsewhere: str
) -> None:
    page = await browser.get("/console/login", params={"next": elsewhere})
    fields = {"csrf_token": csrf_of(page.text), "token": tenant.tokens["operator"], "next": elsewhere}
    answer = await browser.post("/console/login", data=fields)
    assert answer.status_code == 303
    where = httpx.URL("http://console.test").join(answer.headers["location"])
    assert (where.host, where.path.split("/")[1]) == ("console.test", "console")


async def test_a_link_from_another_site_does_not_log_out(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant
) -> None:
    await login(tenant.tokens["operator"])
    kept = browser.cookies.get(COOKIE)
    browser.cookies.clear()  # as a browser does with a strict cookie when a link elsewhere is followed
    answer = await browser.get("/console/events?status=dead", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert 'content="0; url=/console/events?status=dead"' in answer.text
    assert "set-cookie" not in answer.headers
    browser.cookies.set(COOKIE, kept or "", domain="console.test", path="/console")
    again = await browser.get("/console/events?status=dead", headers={"Sec-Fetch-Site": "same-origin"})
    assert "Dead events" in again.text


async def test_a_reviewer_looks_on(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    number = events.add(tenant)
    await login(tenant.tokens["reviewer"])
    page = await browser.get(f"/console/events/{number}")
    assert "Your role looks on." in page.text
    assert "Retry</button>" not in page.text
    fields = {"csrf_token": csrf_of(page.text), "action": "retry", "revision": "1"}
    for target in (f"/console/events/{number}", "/console/events/retry", "/console/graph"):
        assert (await browser.post(target, data=fields)).status_code == 403
    assert (await browser.get("/console/events/retry")).status_code == 403
    assert events.status(number) == "dead"


async def test_an_operator_does_not_rebuild(browser: httpx.AsyncClient, login: Login, tenant: TestTenant) -> None:
    await login(tenant.tokens["operator"])
    page = await browser.get("/console/graph")
    assert "An admin can rebuild the graph." in page.text
    answer = await browser.post("/console/graph", data={"csrf_token": csrf_of(page.text)})
    assert answer.status_code == 403


async def test_root_logs_in(browser: httpx.AsyncClient, login: Login, database_urls: DatabaseUrls) -> None:
    answer = await login(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))
    assert answer.status_code == 303
    assert "<span>root</span>" in (await browser.get("/console")).text
