"""Who can use it: by keyboard alone, without scripts, on a narrow screen, in light and dark, with a screen reader."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import AXE, OpenContext, Stack, log_in
from tests.fixtures.service import TestTenant

NARROW = {"width": 360, "height": 780}
SERIOUS = ("serious", "critical")


def test_login_and_retry_by_keyboard_alone(stack: Stack, tenant: TestTenant, page: Page) -> None:
    event = stack.add_dead(tenant, error="DataError: by keyboard")
    page.goto("/console/events")
    page.keyboard.type(tenant.tokens["operator"])  # the field has the focus
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/console/events$"))  # where they wanted to go
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to the page")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    press_tab_until(page, str(event))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Event {event}")).to_be_visible()
    press_tab_until(page, "Retry")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"  # where the focus is can be seen
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text(f"Event {event} is pending again")
    press_tab_until(page, "Log out")
    page.keyboard.press("Space")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def press_tab_until(page: Page, text: str) -> None:
    """Go on by Tab until what is focused has this text."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            return
    pytest.fail(f"Tab does not lead to {text!r}")


def test_everything_works_without_scripts(stack: Stack, tenant: TestTenant, open_context: OpenContext) -> None:
    event = stack.add_dead(tenant, error="DataError: no scripts")
    others = [stack.add_dead(tenant, error="GraphDataError: no scripts either") for _ in range(2)]
    page = open_context(java_script_enabled=False).new_page()
    page.goto("/console")
    page.get_by_label("Token").fill(tenant.tokens["admin"])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("3 events are dead and wait for your decision.")).to_be_visible()
    expect(page.get_by_role("button", name="Pause updates")).to_be_hidden()
    page.get_by_role("link", name="Events", exact=True).click()
    page.get_by_label("Status").select_option("dead")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name=str(event), exact=True).click()
    expect(page.locator("dt:text-is('Created') + dd time")).to_have_text(re.compile(r"^\d{4}-.* UTC$"))
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("is pending again")
    page.goto("/console/events/retry")
    page.get_by_role("button", name="Retry 2 events").click()
    expect(page.get_by_role("status")).to_contain_text("2 events are pending again")
    assert stack.sql("SELECT 1 FROM outbox_events WHERE id = ANY (%s) AND status = 'dead'", others) == []
    page.goto("/console/graph")
    page.get_by_role("button", name="Rebuild").click()
    expect(page.locator("#job .badge")).to_have_text("done")  # the page asks again by itself
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_second_click_sends_nothing_twice(stack: Stack, tenant: TestTenant, page: Page) -> None:
    event = stack.add_dead(tenant, error="DataError: impatience")
    log_in(page, tenant.tokens["operator"])
    page.goto(f"/console/events/{event}")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.get_by_role("button", name="Retry", exact=True).dblclick()
    expect(page.get_by_role("status")).to_contain_text("is pending again")
    assert len(sent) == 1


@pytest.fixture
def addresses(stack: Stack, tenant: TestTenant) -> dict[str, str]:
    """Every kind of page, with something on it."""
    memory = stack.store(tenant, "Anna Berg met Boris Klein at Acme Corp.")[0]
    dead = stack.add_dead(tenant, error="DataError: a rather long message " + "that goes on and on " * 20)
    stack.sql(
        'UPDATE outbox_events SET aggregate_id = %s, payload = \'{"nested": {"a": [1, 2]}}\' WHERE id = %s',
        memory,
        dead,
    )
    delete = stack.add_dead(tenant, error="GraphDataError: " + "x" * 400, event_type="GRAPH_DELETE")
    stack.sql(
        "UPDATE outbox_events SET status = 'discarded', discard_reason = 'known', discarded_by = 'anna' WHERE id = %s",
        stack.add_dead(tenant, error="DataError: set aside"),
    )
    ((rebuild,),) = stack.sql(
        "INSERT INTO graph_rebuilds (tenant_id, id, status, phase, total, processed, requested_by, error, started_at, "
        "finished_at) VALUES (%s, gen_random_uuid(), 'failed', 'failed', 10, 4, 'anna', %s, now(), now()) RETURNING id",
        *(tenant.tenant_id, "DataError: " + "y" * 300),
    )
    ((done,),) = stack.sql(
        "SELECT id FROM outbox_events WHERE tenant_id = %s AND status = 'done' LIMIT 1", tenant.tenant_id
    )
    return {
        "overview": "/console",
        "events": "/console/events",
        "discarded": "/console/events?status=discarded",
        "nothing": "/console/events?status=pending&error=none",
        "dead event": f"/console/events/{dead}",
        "dead deletion": f"/console/events/{delete}",
        "done event": f"/console/events/{done}",
        "bulk retry": "/console/events/retry",
        "graph": "/console/graph",
        "rebuild": f"/console/graph/rebuilds/{rebuild}",
        "not found": "/console/nope",
        "refused": "/console/events?status=odd",
    }


def violations(page: Page) -> list[Any]:
    """The serious and critical findings of axe on this page."""
    page.evaluate(AXE.read_text())  # evaluated by the debugger, which the page's policy does not bind
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (finding["id"], finding["help"], [node["html"] for node in finding["nodes"]])
        for finding in found["violations"]
        if finding["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    tenant: TestTenant, stack: Stack, open_context: OpenContext, addresses: dict[str, str], scheme: str
) -> None:
    page = open_context(color_scheme=scheme).new_page()
    page.goto("/console/login")
    assert violations(page) == []
    page.get_by_label("Token").fill("mos_aaaaaaaaaaaa_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert violations(page) == []
    log_in(page, tenant.tokens["admin"])
    found = {}
    for name, address in addresses.items():
        page.goto(address)
        for summary in page.locator("summary").all():
            summary.click()
        found[name] = violations(page)
    page.context.clear_cookies()
    log_in(page, stack.add_root())
    for name in ("overview", "events", "dead event", "graph"):
        page.goto(addresses[name])
        found[f"root: {name}"] = violations(page)
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_narrow_screens_scroll_in_one_direction(
    tenant: TestTenant, open_context: OpenContext, addresses: dict[str, str]
) -> None:
    page = open_context(viewport=NARROW).new_page()
    log_in(page, tenant.tokens["admin"])
    wide = {}
    for name, address in {**addresses, "login": "/console/login"}.items():
        page.goto(address)
        wide[name] = page.evaluate("document.documentElement.scrollWidth")
    assert {name: width for name, width in wide.items() if width > NARROW["width"]} == {}
