"""The overview keeps itself up to date, says when it can't, and ends with the session."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import OpenContext, Stack, log_in
from tests.fixtures.service import TestTenant

PATIENCE_MS = 20_000


@pytest.mark.parametrize("stream", ["open", "cut"])
def test_figures_change_without_a_reload(stack: Stack, tenant: TestTenant, page: Page, stream: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(stack.url)))
    if stream == "cut":
        page.route("**/console/live", lambda route: route.fulfill(status=502))
    log_in(page, tenant.tokens["operator"])
    loaded = page.evaluate("performance.timeOrigin")
    stack.add_dead(tenant, error="DataError: just now")
    expect(page.locator("#dead")).to_have_text("1", timeout=PATIENCE_MS)
    page.locator("#dead").focus()
    stack.add_dead(tenant, error="DataError: and again")
    expect(page.locator("#dead")).to_have_text("2", timeout=PATIENCE_MS)
    assert page.evaluate("document.activeElement.id") == "dead"  # a reader of the page is not thrown out of it
    assert page.evaluate("performance.timeOrigin") == loaded
    assert (asked.count("/console") > 1) == (stream == "cut")
    expect(page.locator("[data-live-state]")).to_have_text("Live")


def test_updates_can_be_paused(stack: Stack, tenant: TestTenant, page: Page) -> None:
    log_in(page, tenant.tokens["operator"])
    page.get_by_role("button", name="Pause updates").click()
    expect(page.locator("[data-live-state]")).to_contain_text("Paused at")
    stack.add_dead(tenant, error="DataError: unseen")
    page.get_by_role("button", name="Go on updating").click()
    expect(page.locator("#dead")).to_have_text("1", timeout=PATIENCE_MS)


def test_old_figures_say_that_they_are_old(tenant: TestTenant, page: Page) -> None:
    page.clock.install()
    log_in(page, tenant.tokens["operator"])
    page.route("**/console*", lambda route: route.abort())
    page.route("**/console/live", lambda route: route.abort())
    page.get_by_role("button", name="Pause updates").click()
    page.get_by_role("button", name="Go on updating").click()  # opens a new stream, which is cut
    page.clock.run_for(25_000)
    expect(page.locator("[data-live-state]")).to_contain_text("No answer since")


def test_a_session_that_ends_leads_to_the_login(stack: Stack, tenant: TestTenant, page: Page) -> None:
    log_in(page, tenant.tokens["operator"])
    stack.sql("UPDATE tokens SET revoked_at = now() WHERE tenant_id = %s", tenant.tenant_id)
    expect(page).to_have_url(re.compile("/console/login"), timeout=PATIENCE_MS)
    expect(page.get_by_role("alert")).to_contain_text("Your session has ended")


def test_times_are_in_the_viewers_zone_and_in_utc_beneath(
    stack: Stack, tenant: TestTenant, open_context: OpenContext
) -> None:
    event = stack.add_dead(tenant, error="DataError: when")
    stack.sql("UPDATE outbox_events SET created_at = '2026-01-31T23:30:00Z' WHERE id = %s", event)
    page = open_context(timezone_id="Asia/Kolkata").new_page()
    log_in(page, tenant.tokens["operator"])
    page.goto(f"/console/events/{event}")
    created = page.locator("dt:text-is('Created') + dd time")
    expect(created).to_contain_text("2026-02-01 05:00:00 (")
    expect(created).to_have_attribute("title", "2026-01-31 23:30:00 UTC")
    expect(page.locator("[data-zone]")).to_contain_text(re.compile("Asia/(Kolkata|Calcutta)"))
