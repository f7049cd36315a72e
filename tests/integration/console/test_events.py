"""The events pages: the list, one event, retry, discard, bulk retry, and whose events one sees."""

from __future__ import annotations

import html
import re
from urllib.parse import quote

import httpx
import psycopg
import pytest
from tests.fixtures.console import Events, Login, csrf_of, field_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token

from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT

pytestmark = pytest.mark.anyio


def listed(page: str) -> list[int]:
    """Ids of the events of a list, in its order."""
    return [int(number) for number in re.findall(r'<th scope="row"><a href="/console/events/(\d+)">', page)]


async def test_dead_events_come_first(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    done = events.add(tenant, "done")
    dead = [events.add(tenant), events.add(tenant)]
    pending = events.add(tenant, "pending")
    await login(tenant.tokens["operator"])
    page = (await browser.get("/console/events")).text
    assert listed(page) == [dead[1], dead[0], pending, done]
    assert "DataError: timestamp too large" in page
    assert listed((await browser.get("/console/events?status=pending")).text) == [pending]


async def test_filters_narrow_the_list_and_empty_ones_do_nothing(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    record = new_id()
    upsert = events.add(tenant, aggregate_id=record, fingerprint="bbbbbbbbbbbb")
    delete = events.add(tenant, event_type="GRAPH_DELETE", error="GraphDataError: 50% of it")
    entity = events.add(tenant, aggregate_type="entity", error="GraphDataError: 50x of it")
    await login(tenant.tokens["operator"])

    async def found(**query: str) -> set[int]:
        answer = await browser.get("/console/events", params=query)
        assert answer.status_code == 200
        return set(listed(answer.text))

    assert await found(status="", event_type="", aggregate_type="", aggregate_id="", error="", tenant_id="") == {
        *(upsert, delete, entity),
    }
    assert await found(event_type="GRAPH_DELETE") == {delete}
    assert await found(aggregate_type="entity") == {entity}
    assert await found(aggregate_id=f" {record} ") == {upsert}
    assert await found(error="bbbbbbbbbbbb") == {upsert}
    assert await found(error="50%") == {delete}
    assert await found(error="graphdata", event_type="GRAPH_UPSERT") == {entity}
    empty = await browser.get("/console/events", params={"status": "dead", "error": "<b>none</b>"})
    assert "No event is dead for this filter." in empty.text
    assert "<b>none</b>" not in empty.text


@pytest.mark.parametrize(
    "query", ["status=odd", "event_typ=GRAPH_DELETE", "aggregate_id=x", "cursor=x", "error=a%00b", "tenant_id=1"]
)
async def test_a_filter_that_can_not_be_meant_is_refused(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, query: str
) -> None:
    await login(tenant.tokens["operator"])
    for page in ("/console/events", "/console/events/retry"):
        if page.endswith("retry") and query.startswith("cursor"):
            continue
        answer = await browser.get(f"{page}?{query}")
        assert answer.status_code == 422
        assert "Invalid input" in answer.text


async def test_the_list_goes_on_page_by_page(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    numbers = [events.add(tenant) for _ in range(55)]
    await login(tenant.tokens["operator"])
    first = (await browser.get("/console/events?status=dead")).text
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older
    second = (await browser.get(html.unescape(older.group(1)))).text
    assert listed(first) + listed(second) == numbers[::-1]
    assert 'rel="next"' not in second
    assert "What the dead ones died of" not in second


async def test_dead_events_are_grouped_by_what_they_died_of(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    for number in range(3):
        events.add(tenant, error=f"DataError: value {number}", fingerprint="cccccccccccc")
    events.add(tenant, event_type="GRAPH_DELETE", error="GraphDataError: other", fingerprint="dddddddddddd")
    await login(tenant.tokens["operator"])
    page = (await browser.get("/console/events")).text
    groups = page[page.index("What the dead ones died of") : page.index('class="filter"')]
    assert groups.index("DataError: value 2") < groups.index("GraphDataError: other")
    assert "DataError: value 0" not in groups
    assert "Show the 3 events of this kind" in groups
    assert "1 deletion" in groups
    assert "/console/events/retry?error=cccccccccccc" in groups


async def test_one_event_shows_payload_attempts_and_the_record(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    stored = await browser.post(
        "/v1/memories", json={"text": "The kettle is <b>on</b>.", "label": "Event"}, headers=tenant.headers()
    )
    memory = stored.json()["memory"]["id"]
    number = events.add(tenant, aggregate_id=memory)
    await login(tenant.tokens["operator"])
    page = (await browser.get(f"/console/events/{number}")).text
    assert "The kettle is &lt;b&gt;on&lt;/b&gt;." in page
    assert memory in page
    assert page.count("<strong>DataError</strong> timestamp too large") == 5
    assert "Traceback (most recent call last)" in page
    assert '<time datetime="2026-01-31T12:00:00+00:00" title="2026-01-31 12:00:00 UTC"' in page
    assert "The graph does not hold this memory." in page
    with psycopg.connect(events.owner_url) as connection:
        connection.execute('UPDATE outbox_events SET payload = \'{"deep": {"a": "</pre>"}}\' WHERE id = %s', (number,))
    page = (await browser.get(f"/console/events/{number}")).text
    assert "&lt;/pre&gt;" in page


async def test_a_record_that_can_not_be_loaded_still_shows(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    stored = await browser.post(
        "/v1/memories", json={"text": "Until when?", "label": "Event"}, headers=tenant.headers()
    )
    memory = stored.json()["memory"]["id"]
    with psycopg.connect(events.owner_url) as connection:
        connection.execute("UPDATE memories SET valid_to = 'infinity'")
    number = events.add(tenant, aggregate_id=memory)
    await login(tenant.tokens["operator"])
    page = (await browser.get(f"/console/events/{number}")).text
    assert re.search(r"<dt>Valid to</dt>\s*<dd>infinity</dd>", page)


async def test_a_record_that_is_not_for_this_operator_does_not_show(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    stored = await browser.post(
        "/v1/memories",
        json={"text": "A private matter.", "label": "Event", "visibility": "private"},
        headers=tenant.headers(user="anna"),
    )
    memory = stored.json()["memory"]["id"]
    shown = events.add(tenant, aggregate_id=memory)
    gone = events.add(tenant)
    await login(tenant.tokens["operator"])
    for number in (shown, gone):
        page = (await browser.get(f"/console/events/{number}")).text
        assert "There is no such record: it has been deleted, or it is not visible to you." in page
        assert "A private matter" not in page


async def test_links_and_edges_show_to_who_sees_both_ends(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    seen, hidden, entity, edge, link = (new_id() for _ in range(5))
    with psycopg.connect(events.owner_url) as connection:
        for ident, visibility in ((seen, "tenant"), (hidden, "private")):
            connection.execute(
                "INSERT INTO memories (tenant_id, id, label, layer, text, visibility, user_id, search) "
                "VALUES (%s, %s, 'Event', 'intelligence', 'text', %s, 'anna', '')",
                (tenant.tenant_id, ident, visibility),
            )
        connection.execute(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type) VALUES (%s, %s, true, 'Acme', 'vendor')",
            (tenant.tenant_id, entity),
        )
        connection.execute(
            "INSERT INTO edges (tenant_id, id, type, source_memory_id, target_memory_id) "
            "VALUES (%s, %s, 'BLOCKS', %s, %s)",
            (tenant.tenant_id, edge, seen, hidden),
        )
        connection.execute(
            "INSERT INTO entity_links (tenant_id, id, entity_id, layer, target_id, relationship) "
            "VALUES (%s, %s, %s, 'memory', %s, 'bought from')",
            (tenant.tenant_id, link, entity, hidden),
        )
    numbers = [
        events.add(tenant, aggregate_type="edge", aggregate_id=edge),
        events.add(tenant, aggregate_type="entity_link", aggregate_id=link),
    ]
    named = events.add(tenant, aggregate_type="entity", aggregate_id=entity)
    await login(tenant.tokens["operator"])
    for number in numbers:
        assert "There is no such record" in (await browser.get(f"/console/events/{number}")).text
    assert "Acme" in (await browser.get(f"/console/events/{named}")).text
    with psycopg.connect(events.owner_url) as connection:
        connection.execute("UPDATE memories SET visibility = 'tenant'")
    assert "BLOCKS" in (await browser.get(f"/console/events/{numbers[0]}")).text
    assert "bought from" in (await browser.get(f"/console/events/{numbers[1]}")).text


async def act(browser: httpx.AsyncClient, number: int, action: str, **more: str) -> httpx.Response:
    """Open an event, and press a button there."""
    page = (await browser.get(f"/console/events/{number}")).text
    fields = {"csrf_token": csrf_of(page), "action": action}
    if "revision" in page:
        fields |= {"revision": field_of(page, "revision"), "status": field_of(page, "status")}
    return await browser.post(f"/console/events/{number}", data={**fields, **more})


async def test_a_retry_makes_it_pending_and_is_written_down(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    number = events.add(tenant)
    await login(tenant.tokens["operator"])
    answer = await act(browser, number, "retry")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/console/events/{number}")
    assert events.status(number) == "pending"
    page = (await browser.get(answer.headers["location"])).text
    assert f"Event {number} is pending again" in page
    assert "is pending again" not in (await browser.get(answer.headers["location"])).text
    assert [(action, target) for action, target, _ in events.audit(tenant)] == [("outbox.retry", str(number))]


async def test_a_discard_needs_a_reason_and_can_be_undone(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    number = events.add(tenant)
    await login(tenant.tokens["operator"])
    for reason in ("", "   ", "x" * 2001):
        answer = await act(browser, number, "discard", reason=reason)
        assert answer.status_code == 422
        assert "reason" in answer.text
        assert events.status(number) == "dead"
    answer = await act(browser, number, "discard", reason=" known <b>fault</b> ")
    assert answer.status_code == 303
    assert events.status(number) == "discarded"
    page = (await browser.get(f"/console/events/{number}")).text
    assert "known &lt;b&gt;fault&lt;/b&gt;" in page
    assert "Retry after all" in page
    await act(browser, number, "retry")
    assert events.status(number) == "pending"
    assert [action for action, _, _ in events.audit(tenant)] == ["outbox.discard", "outbox.retry"]


@pytest.mark.parametrize("action", ["retry", "discard"])
async def test_an_event_that_has_changed_since_is_left_alone(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events, action: str
) -> None:
    number = events.add(tenant)
    await login(tenant.tokens["operator"])
    page = (await browser.get(f"/console/events/{number}")).text
    with psycopg.connect(events.owner_url) as connection:
        connection.execute(
            "UPDATE outbox_events SET finished_at = finished_at + interval '1 s' WHERE id = %s", (number,)
        )
    fields = {"csrf_token": csrf_of(page), "revision": field_of(page, "revision"), "status": "dead", "reason": "why"}
    answer = await browser.post(f"/console/events/{number}", data={**fields, "action": action})
    assert answer.status_code == 409
    assert "Nothing was done: the event has changed since you opened it, when it was dead." in answer.text
    assert events.status(number) == "dead"
    assert field_of(answer.text, "revision") != fields["revision"]
    fields["revision"] = field_of(answer.text, "revision")
    assert (await browser.post(f"/console/events/{number}", data={**fields, "action": action})).status_code == 303


@pytest.mark.parametrize("status", ["pending", "leased", "done"])
async def test_there_is_nothing_to_do_about_others(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events, status: str
) -> None:
    number = events.add(tenant, status)
    await login(tenant.tokens["operator"])
    page = (await browser.get(f"/console/events/{number}")).text
    assert "Nothing." in page
    assert 'name="action"' not in page
    answer = await act(browser, number, "retry", revision="1")
    assert answer.status_code == 409
    assert events.status(number) == status


async def test_an_unknown_action_is_refused(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    number = events.add(tenant)
    await login(tenant.tokens["operator"])
    assert (await act(browser, number, "erase")).status_code == 422
    assert events.status(number) == "dead"


async def test_a_bulk_retry_is_counted_confirmed_and_written_down(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    wanted = [events.add(tenant, error="DataError: 100% <i>", fingerprint="eeeeeeeeeeee") for _ in range(12)]
    other = events.add(tenant)
    await login(tenant.tokens["operator"])
    page = (await browser.get(f"/console/events/retry?error={quote('100% <i>')}")).text
    assert "12 dead events match." in page
    assert "Retry 12 events" in page
    assert listed(page) == wanted[:1:-1]
    assert events.status(wanted[0]) == "dead"
    fields = {name: field_of(page, name) for name in ("csrf_token", "confirmed", "status", "error")}
    late = events.add(tenant, error="DataError: 100% <i>")
    answer = await browser.post("/console/events/retry", data=fields)
    assert answer.status_code == 303
    assert {events.status(number) for number in wanted} == {"pending"}
    assert events.status(other) == events.status(late) == "dead"
    assert "12 events are pending again" in (await browser.get(answer.headers["location"])).text
    ((action, target, detail),) = events.audit(tenant)
    assert (action, target) == ("outbox.retry_many", "12 events")
    assert (detail["events"], detail["error"]) == (wanted, "100% <i>")


async def test_what_changed_before_the_confirmation_is_said(
    browser: httpx.AsyncClient, login: Login, tenant: TestTenant, events: Events
) -> None:
    numbers = [events.add(tenant) for _ in range(3)]
    await login(tenant.tokens["operator"])
    page = (await browser.get("/console/events/retry")).text
    fields = {"csrf_token": csrf_of(page), "confirmed": field_of(page, "confirmed")}
    await act(browser, numbers[0], "discard", reason="known")
    answer = await browser.post("/console/events/retry", data=fields)
    after = (await browser.get(answer.headers["location"])).text
    assert "2 events are pending again; the others of the 3 had changed meanwhile" in after
    nothing = await browser.get("/console/events/retry")
    assert "No dead event matches any more" in nothing.text
    for confirmed in ("0", "1001", "-1", "many", ""):
        refused = await browser.post("/console/events/retry", data={**fields, "confirmed": confirmed})
        assert refused.status_code == 422


async def test_another_tenants_events_are_not_there(
    browser: httpx.AsyncClient, login: Login, tenant_factory: TenantFactory, events: Events
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    own, foreign = events.add(mine), events.add(other, error="DataError: a secret of theirs")
    await login(mine.tokens["operator"])
    page = (await browser.get("/console/events")).text
    assert listed(page) == [own]
    assert "a secret of theirs" not in page
    assert (await browser.get(f"/console/events/{foreign}")).status_code == 404
    assert (await browser.get(f"/console/events?tenant_id={other.tenant_id}")).status_code == 403
    assert "1 dead event matches." in (await browser.get("/console/events/retry")).text
    fields = {"csrf_token": csrf_of(page), "action": "retry", "revision": "1", "confirmed": "10"}
    assert (await browser.post(f"/console/events/{foreign}", data=fields)).status_code == 404
    del fields["action"], fields["revision"]
    answer = await browser.post("/console/events/retry", data={**fields, "tenant_id": str(other.tenant_id)})
    assert answer.status_code == 403
    await browser.post("/console/events/retry", data=fields)
    assert (events.status(own), events.status(foreign)) == ("pending", "dead")
    overview = (await browser.get("/console")).text
    assert "By tenant" not in overview


async def test_root_sees_all_tenants_but_not_what_is_written_in_their_records(
    browser: httpx.AsyncClient,
    login: Login,
    tenant_factory: TenantFactory,
    events: Events,
    database_urls: DatabaseUrls,
) -> None:
    first, second = tenant_factory(), tenant_factory()
    stored = await browser.post(
        "/v1/memories", json={"text": "Their words.", "label": "Event"}, headers=first.headers()
    )
    one = events.add(first, aggregate_id=stored.json()["memory"]["id"])
    two = events.add(second)
    with psycopg.connect(events.owner_url) as connection:
        connection.execute("UPDATE tenants SET name = 'Alpha <1>' WHERE tenant_id = %s", (first.tenant_id,))
    await login(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))
    page = (await browser.get("/console/events?status=dead")).text
    assert listed(page) == [two, one]
    assert "Alpha &lt;1&gt;" in page
    assert listed((await browser.get(f"/console/events?tenant_id={second.tenant_id}&status=dead")).text) == [two]
    event = (await browser.get(f"/console/events/{one}")).text
    assert "Their words." not in event
    assert "shows to the tenant's own operators" in html.unescape(event)
    assert re.search(r"<dt>Label</dt>\s*<dd>Event</dd>", event)
    overview = (await browser.get("/console")).text
    assert "By tenant" in overview
    assert "Alpha &lt;1&gt;" in overview
    assert (await act(browser, one, "retry")).status_code == 303
    assert [action for action, _, _ in events.audit(first)] == ["outbox.retry"]
    assert events.audit(second) == []
