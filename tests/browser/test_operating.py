"""What an operator does at night: a dead event is seen, opened, retried and gone; a rebuild runs to its end."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from tests.browser.conftest import OpenContext, Stack, log_in
from tests.fixtures.service import TestTenant
from tests.fixtures.waiting import wait_for

PATIENCE_MS = 20_000


def poison(stack: Stack, tenant: TestTenant) -> tuple[str, int]:
    """A memory that no projector can load, and its event, once that has died of it."""
    (memory,) = stack.store(tenant, "Anna Berg met Boris Klein at Acme Corp.")
    stack.sql("UPDATE memories SET valid_to = 'infinity' WHERE id = %s", memory)
    ((event,),) = stack.sql(
        "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) "
        "VALUES (%s, 'GRAPH_UPSERT', 'memory', %s, 2) RETURNING id",
        *(tenant.tenant_id, memory),
    )
    wait_for(
        lambda: stack.sql("SELECT 1 FROM outbox_events WHERE id = %s AND status = 'dead'", event),
        seconds=60,
        what="the event to die after five attempts",
    )
    return memory, event


def test_a_dead_event_is_seen_opened_retried_and_gone(stack: Stack, tenant: TestTenant, page: Page) -> None:
    memory, event = poison(stack, tenant)
    assert stack.sql("SELECT attempts, jsonb_array_length(errors) FROM outbox_events WHERE id = %s", event) == [(5, 5)]
    log_in(page, tenant.tokens["operator"])
    expect(page.get_by_text("1 event is dead and waits for your decision.")).to_be_visible()

    page.locator("#dead").click()
    expect(page.get_by_role("heading", name="Dead events")).to_be_visible()
    page.get_by_role("link", name=str(event), exact=True).click()
    expect(page.get_by_role("heading", name=f"Event {event}")).to_be_visible()
    expect(page.get_by_text("Anna Berg met Boris Klein at Acme Corp.")).to_be_visible()
    expect(page.locator("dt:text-is('Valid to') + dd")).to_have_text("infinity")
    expect(page.locator(".attempts li")).to_have_count(5)
    page.locator(".attempts summary").first.click()
    expect(page.locator(".attempts pre").first).to_contain_text("DataError")

    stack.sql("UPDATE memories SET valid_to = NULL WHERE id = %s", memory)  # the cause is mended
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text(f"Event {event} is pending again")
    wait_for(
        lambda: stack.sql("SELECT 1 FROM outbox_events WHERE id = %s AND status = 'done'", event),
        seconds=30,
        what="the retried event to be projected",
    )
    page.reload()
    expect(page.locator("main .badge").first).to_have_text("done")
    page.goto("/console/events?status=dead")
    expect(page.get_by_text("No event is dead for this filter.")).to_be_visible()
    page.goto("/console")
    expect(page.get_by_text("is dead and waits")).to_have_count(0)


def test_a_rebuild_shows_progress_to_the_end(stack: Stack, tenant: TestTenant, page: Page) -> None:
    stack.store(tenant, *(f"Anna Berg met Boris Klein about Project Number {number}." for number in range(40)))
    log_in(page, tenant.tokens["admin"])
    page.get_by_role("link", name="Graph", exact=True).click()
    expect(page.get_by_role("rowheader", name="Anna Berg")).to_be_visible()
    # While somebody else holds the tenant the rebuild waits, so that the page is seen on its way, however fast it is.
    stack.sql(
        "INSERT INTO projection_leases (tenant_id, token, worker_id, lease_until) "
        "VALUES (%s, gen_random_uuid(), gen_random_uuid(), now() + interval '1 hour') "
        "ON CONFLICT (tenant_id) DO UPDATE SET token = excluded.token, lease_until = excluded.lease_until",
        tenant.tenant_id,
    )
    page.get_by_role("button", name="Rebuild").click()
    expect(page.get_by_role("heading", name="Rebuild")).to_be_visible()
    expect(page.get_by_text("waiting for the projector")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("progressbar")).not_to_have_attribute("value", re.compile(".*"))
    loaded = page.evaluate("performance.timeOrigin")

    stack.sql("DELETE FROM projection_leases WHERE tenant_id = %s", tenant.tenant_id)
    expect(page.locator("#job .badge")).to_have_text("done", timeout=PATIENCE_MS)
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "100.0")
    expect(page.get_by_text("100 %")).to_be_visible()
    assert page.evaluate("performance.timeOrigin") == loaded, "the page was loaded anew"
    with page.expect_request_finished(lambda request: request.url.endswith("/console/graph")):
        page.get_by_role("link", name="Graph", exact=True).last.click()
    expect(page.get_by_role("heading", name="Latest rebuilds")).to_be_visible()
    expect(page.locator("main .badge")).to_have_text("done")


def test_many_dead_events_are_retried_after_their_number_is_confirmed(
    stack: Stack, tenant: TestTenant, page: Page
) -> None:
    for number in range(3):
        stack.add_dead(tenant, error=f"DataError: value {number} is odd")
    log_in(page, tenant.tokens["operator"])
    page.goto("/console/events")
    page.get_by_role("link", name="Retry the 3 events of this kind").click()
    expect(page.get_by_text("3 dead events match.")).to_be_visible()
    page.get_by_role("button", name="Retry 3 events").click()
    expect(page.get_by_role("status")).to_contain_text("3 events are pending again")
    wait_for(lambda: not stack.unsettled(tenant), seconds=30, what="the retried events to be projected")
    page.goto("/console/events?status=dead")
    expect(page.get_by_text("No event is dead for this filter.")).to_be_visible()


def test_a_discard_says_why(stack: Stack, tenant: TestTenant, page: Page) -> None:
    event = stack.add_dead(tenant, error="DataError: hopeless")
    log_in(page, tenant.tokens["operator"])
    page.goto(f"/console/events/{event}")
    page.get_by_text("Discard instead…").click()
    page.get_by_role("button", name="Discard").click()  # the browser itself asks for the reason first
    assert stack.sql("SELECT status FROM outbox_events WHERE id = %s", event) == [("dead",)]
    page.get_by_label("Reason, for the audit log").fill("the record is known to be broken")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("status")).to_contain_text(f"Event {event} is discarded.")
    expect(page.get_by_text("the record is known to be broken")).to_be_visible()
    expect(page.get_by_role("button", name="Retry after all")).to_be_visible()


def test_an_event_that_somebody_else_dealt_with_is_left_alone(
    stack: Stack, tenant: TestTenant, open_context: OpenContext
) -> None:
    event = stack.add_dead(tenant, error="DataError: twice")
    mine, yours = open_context().new_page(), open_context().new_page()
    for page in (mine, yours):
        log_in(page, tenant.tokens["operator"])
        page.goto(f"/console/events/{event}")
    yours.get_by_text("Discard instead…").click()
    yours.get_by_label("Reason, for the audit log").fill("seen first")
    yours.get_by_role("button", name="Discard").click()
    expect(yours.get_by_role("status")).to_be_visible()
    mine.get_by_role("button", name="Retry", exact=True).click()
    expect(mine.get_by_role("alert")).to_contain_text("Nothing was done: the event has changed since you opened it")
    assert stack.sql("SELECT status FROM outbox_events WHERE id = %s", event) == [("discarded",)]
