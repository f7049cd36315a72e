"""A graph is compared, seen to differ, repaired and seen to be equal; a rebuild is cancelled; alarms stand out."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import OpenContext, Stack, log_in
from tests.browser.test_access import press_tab_until, violations
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.service import TestTenant
from tests.fixtures.waiting import wait_for

PATIENCE_MS = 20_000
HOSTILE = '"><script>window.stolen = 1</script><img src=x onerror="window.stolen = 1">'


def vandalise(server: FalkorProcess, tenant: TestTenant, *queries: str) -> None:
    """Write into the tenant's graph behind the service's back."""
    with server.connect() as client:
        for query in queries:
            client.execute_command("GRAPH.QUERY", f"browser:{{{tenant.tenant_id}}}", query)


def ended(page: Page) -> Locator:
    """The badge of a job, once it is done."""
    badge = page.locator("#job .badge").first
    expect(badge).to_have_text("done", timeout=PATIENCE_MS)
    return badge


def test_differences_are_seen_repaired_and_gone(
    stack: Stack, tenant: TestTenant, page: Page, falkor_server: FalkorProcess
) -> None:
    stack.store(tenant, "Anna Berg met Boris Klein.", "Carla Vogel leads Project Falcon.")
    log_in(page, tenant.tokens["admin"])
    page.get_by_role("link", name="Graph", exact=True).click()
    expect(page.locator("#condition")).to_contain_text("Never compared")
    page.get_by_role("button", name="Compare now").click()
    expect(page.get_by_role("heading", name="Comparison", exact=True)).to_be_visible()
    ended(page)
    expect(page.locator("#job .notice")).to_contain_text("The graph is what the records say.")

    vandalise(
        falkor_server,
        tenant,
        "MATCH (e:Entity {name: 'Anna Berg'}) SET e.name = 'somebody else'",
        "MATCH (:Memory)-[m:MENTIONS]->(:Entity {name: 'Boris Klein'}) DELETE m",
    )
    page.get_by_role("link", name="Graph", exact=True).first.click()
    expect(page.locator("#condition")).to_contain_text("Equal")  # it was
    page.get_by_role("button", name="Compare now").click()
    ended(page)
    expect(page.locator("#job .notice")).to_contain_text("Differs 1 missing, 1 differing.")
    renamed = page.get_by_role("row").filter(has_text="somebody else")
    expect(renamed.get_by_role("cell")).to_contain_text(
        ["entities", "differing", re.compile("…"), "name Anna Berg", "name somebody else"]
    )
    page.goto("/console")
    finding = page.locator(".findings li", has_text="The graph differs from the records: 1 missing, 1 differing.")
    finding.get_by_role("link", name="Graph").click()

    page.get_by_role("link", name="Repair…").click()
    expect(page.get_by_role("heading", name="Repair the graph")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="somebody else")).to_be_visible()
    page.get_by_role("button", name="Repair 2 differences").click()
    expect(page.get_by_role("heading", name="Repair", exact=True)).to_be_visible()
    ended(page)
    expect(page.locator("#job .notice")).to_contain_text("Equal 1 missing, 1 differing, 2 of them mended.")

    page.get_by_role("link", name="Graph", exact=True).last.click()
    page.get_by_role("button", name="Compare now").click()
    ended(page)
    page.get_by_role("link", name="Graph", exact=True).last.click()
    expect(page.locator("#condition")).to_contain_text("Equal")
    comparisons = page.get_by_role("region", name="Latest comparisons")
    expect(comparisons.locator("tbody td:nth-of-type(3)")).to_contain_text(["equal", "equal", "differs", "equal"])
    page.goto("/console")
    expect(page.get_by_text("differs from the records")).to_have_count(0)


def test_a_comparison_shows_progress_without_a_reload(stack: Stack, tenant: TestTenant, page: Page) -> None:
    # As a worker would report it: one that is silent for no more than a minute is left alone by the others.
    ((job,),) = stack.sql(
        "INSERT INTO graph_verifications (tenant_id, id, status, phase, checked, total, attempts, requested_by, "
        "started_at, heartbeat_at) VALUES (%s, gen_random_uuid(), 'running', 'entities', 40, 100, 1, 'anna', now(), "
        "now()) RETURNING id",
        tenant.tenant_id,
    )
    log_in(page, tenant.tokens["operator"])
    page.goto("/console/graph")
    page.get_by_role("link", name="follow the comparison").click()
    bar = page.get_by_role("progressbar", name="Comparison")
    expect(bar).to_have_attribute("value", "40.0")
    loaded = page.evaluate("performance.timeOrigin")
    stack.sql("UPDATE graph_verifications SET phase = 'memories', checked = 65 WHERE id = %s", job)
    expect(bar).to_have_attribute("value", "65.0", timeout=PATIENCE_MS)
    expect(page.locator("#job .line")).to_contain_text("memories")
    stack.sql("UPDATE graph_verifications SET status = 'done', finished_at = now() WHERE id = %s", job)
    ended(page)
    assert page.evaluate("performance.timeOrigin") == loaded, "the page was loaded anew"
    expect(page.locator("#job")).not_to_have_attribute("hx-get", re.compile(".*"))


def hold(stack: Stack, tenant: TestTenant) -> None:
    """Take the tenant's lease, so that its rebuild waits for as long as the test needs."""
    stack.sql(
        "INSERT INTO projection_leases (tenant_id, token, worker_id, lease_until) "
        "VALUES (%s, gen_random_uuid(), gen_random_uuid(), now() + interval '1 hour') "
        "ON CONFLICT (tenant_id) DO UPDATE SET token = excluded.token, lease_until = excluded.lease_until",
        tenant.tenant_id,
    )


def test_a_running_rebuild_is_cancelled(stack: Stack, tenant: TestTenant, page: Page) -> None:
    stack.store(tenant, "Anna Berg met Boris Klein.")
    hold(stack, tenant)
    log_in(page, tenant.tokens["admin"])
    page.goto("/console/graph")
    page.get_by_role("button", name="Rebuild").click()
    expect(page.get_by_text("waiting for the projector")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Cancel this rebuild").click()
    expect(page.get_by_role("status")).to_contain_text("The rebuild is cancelled.")
    expect(page.locator("#job .badge")).to_have_text("cancelled")
    expect(page.get_by_text("The graph is as it was before.")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel this rebuild")).to_have_count(0)
    stack.sql("DELETE FROM projection_leases WHERE tenant_id = %s", tenant.tenant_id)
    page.goto("/console/graph")
    expect(page.get_by_role("region", name="Latest rebuilds").locator(".badge")).to_have_text("cancelled")
    # The worker is free again: a further one runs to its end, and offers no cancelling then.
    page.get_by_role("button", name="Rebuild").click()
    expect(page.locator("#job .badge")).to_have_text("done", timeout=PATIENCE_MS)
    expect(page.get_by_role("button", name="Cancel this rebuild")).to_be_hidden()


def test_compare_and_repair_by_keyboard_and_without_scripts(
    stack: Stack, tenant: TestTenant, page: Page, open_context: OpenContext, falkor_server: FalkorProcess
) -> None:
    stack.store(tenant, "Anna Berg met Boris Klein.")
    vandalise(falkor_server, tenant, "MATCH (e:Entity {name: 'Anna Berg'}) SET e.name = 'wrong'")
    log_in(page, tenant.tokens["admin"])
    page.goto("/console/graph")
    press_tab_until(page, "Compare now")
    page.keyboard.press("Enter")
    ended(page)
    press_tab_until(page, "Repair…")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Repair the graph")).to_be_visible()

    plain = open_context(java_script_enabled=False).new_page()
    plain.goto("/console/graph/repair")
    plain.get_by_label("Token").fill(tenant.tokens["admin"])
    plain.get_by_role("button", name="Log in").click()
    plain.get_by_role("button", name="Repair 1 difference").click()
    ended(plain)  # the page asks again by itself
    expect(plain.locator("#job .notice")).to_contain_text("1 of them mended")

    press_tab_until(page, "Repair 1 difference")  # of what is no longer so
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done: the graph was compared or rebuilt since")


def test_a_dead_deletion_is_an_alarm_at_once(stack: Stack, tenant: TestTenant, page: Page) -> None:
    log_in(page, tenant.tokens["operator"])
    expect(page.locator("#alarm")).to_have_count(0)
    loaded = page.evaluate("performance.timeOrigin")
    event = stack.add_dead(tenant, error="GraphDataError: no", event_type="GRAPH_DELETE")
    text = "1 deletion is dead: the graph still holds what was deleted."
    expect(page.locator("#alarm")).to_contain_text(text, timeout=PATIENCE_MS)
    expect(page.get_by_role("alert")).to_have_text(text)  # and read out once
    assert page.evaluate("performance.timeOrigin") == loaded
    above = page.locator("#alarm").bounding_box()
    below = page.get_by_role("heading", name="Queue").bounding_box()
    assert above
    assert below
    assert above["y"] < below["y"]
    page.locator("#alarm-events").click()
    expect(page.get_by_role("link", name=str(event), exact=True)).to_be_visible()
    stack.sql("UPDATE outbox_events SET status = 'done' WHERE id = %s", event)
    page.goto("/console")
    expect(page.locator("#alarm")).to_have_count(0)


def test_a_lost_graph_is_in_doubt_until_it_is_rebuilt(
    stack: Stack, tenant: TestTenant, page: Page, falkor_server: FalkorProcess
) -> None:
    stack.store(tenant, "Anna Berg met Boris Klein.")
    hold(stack, tenant)  # so that the rebuild that the service asks for is seen to wait
    with falkor_server.connect() as client:
        client.delete(f"browser:{{{tenant.tenant_id}}}")
    wait_for(
        lambda: stack.sql("SELECT 1 FROM graph_states WHERE tenant_id = %s AND doubt IS NOT NULL", tenant.tenant_id),
        seconds=60,
        what="the watcher to notice",
    )
    log_in(page, tenant.tokens["operator"])
    finding = page.locator(".findings li", has_text="the graph was lost or replaced. A rebuild is on its way.")
    finding.get_by_role("link", name="Graph").click()
    expect(page.locator("#doubt")).to_contain_text("In doubt The graph was lost or replaced.")
    page.get_by_role("link", name="follow the rebuild").click()
    stack.sql("DELETE FROM projection_leases WHERE tenant_id = %s", tenant.tenant_id)
    expect(page.locator("#job .badge")).to_have_text("done", timeout=PATIENCE_MS)
    page.goto("/console/graph")
    expect(page.locator("#doubt")).to_have_count(0)
    page.goto("/console")
    expect(page.get_by_text("has been in doubt")).to_have_count(0)


def test_the_pages_stay_readable_and_harmless(stack: Stack, tenant: TestTenant, open_context: OpenContext) -> None:
    """Hostile and very long text in every field; axe finds nothing serious in light or dark; no page is too wide."""
    node = {"id": HOSTILE, "name": "x" * 300, "type": HOSTILE, "strength": 1.0, "declared": False}
    mention = {"memory_id": "m", "entity_id": "e", "weight": 1.0}
    differences = [
        {"part": "entities", "kind": "extra", "key": [HOSTILE], "expected": None, "found": [node, node]},
        {"part": "mentions", "kind": "missing", "key": [str(tenant.tenant_id)] * 2, "expected": mention, "found": None},
    ]
    stack.store(tenant, "Anna Berg met Boris Klein.")
    stack.sql(  # as if the rebuild that doubt leads to had just failed: otherwise the next one ends it within seconds
        "INSERT INTO graph_rebuilds (tenant_id, id, status, phase, requested_by, finished_at) "
        "VALUES (%s, gen_random_uuid(), 'failed', 'failed', 'x', now()) RETURNING id",
        tenant.tenant_id,
    )
    stack.sql("UPDATE graph_states SET doubt = %s, doubted_at = now() WHERE tenant_id = %s", HOSTILE, tenant.tenant_id)
    jobs = []
    for status, error, damage in (("failed", HOSTILE + "y" * 300, None), ("done", None, HOSTILE), ("done", None, None)):
        ((job,),) = stack.sql(
            "INSERT INTO graph_verifications (tenant_id, id, status, phase, error, damage, extra, missing, waiting, "
            "dead, parts, sample, requested_by, created_at, started_at, finished_at) VALUES (%s, gen_random_uuid(), "
            '%s, \'x\', %s, %s, 1, 1, 2, 3, \'{"entities": {"extra": 1}, "mentions": {"missing": 1}}\', %s, %s, '
            "clock_timestamp(), now(), now()) RETURNING id",
            *(tenant.tenant_id, status, error, damage, json.dumps(differences), HOSTILE),
        )
        jobs.append(job)
    ((cancelled,),) = stack.sql(
        "INSERT INTO graph_rebuilds (tenant_id, id, status, phase, requested_by, finished_at) "
        "VALUES (%s, gen_random_uuid(), 'cancelled', 'cancelled', %s, now()) RETURNING id",
        *(tenant.tenant_id, HOSTILE),
    )
    stack.add_dead(tenant, error="GraphDataError: no", event_type="GRAPH_DELETE")
    addresses = [
        *("/console", "/console/graph", "/console/graph/repair", f"/console/graph/rebuilds/{cancelled}"),
        *(f"/console/graph/verifications/{job}" for job in jobs),
    ]
    for options in ({"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 360, "height": 780}}):
        page = open_context(**options).new_page()
        log_in(page, tenant.tokens["admin"])
        for address in addresses:
            page.goto(address)
            expect(page.locator("main")).to_contain_text("window.stolen")
            assert page.evaluate("window.stolen") is None
            assert violations(page) == [], address
            assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("window.innerWidth"), address
