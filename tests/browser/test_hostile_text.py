"""Stored text stays text wherever the console shows it, and no page reaches beyond the service."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.browser.conftest import Stack, Watch, log_in
from tests.fixtures.service import TestTenant

HOSTILE = (
    '"><script>window.stolen = 1</script><img src=x onerror="window.stolen = 1">'
    "<svg onload=window.stolen=1>'{{7*7}}<a href=javascript:window.stolen=1>https://elsewhere.test</a>"
)


def test_hostile_text_stays_text(stack: Stack, tenant: TestTenant, page: Page) -> None:
    (memory,) = stack.store(tenant, f"Anna Berg met Boris Klein. {HOSTILE}")
    stack.sql("UPDATE tenants SET name = %s WHERE tenant_id = %s", HOSTILE, tenant.tenant_id)
    ((entity,),) = stack.sql(
        "UPDATE entities SET name = %s, entity_type = %s WHERE tenant_id = %s AND name = 'Anna Berg' RETURNING id",
        *(HOSTILE, HOSTILE, tenant.tenant_id),
    )
    # A reader is shown the name as a memory of theirs writes it.
    stack.sql(
        "UPDATE mentions SET name = %s WHERE tenant_id = %s AND entity_id = %s", HOSTILE, tenant.tenant_id, entity
    )
    dead = stack.add_dead(tenant, error=f"DataError: {HOSTILE}")
    stack.sql(
        "UPDATE outbox_events SET aggregate_id = %s, payload = jsonb_build_object(%s::text, %s::text) WHERE id = %s",
        *(memory, HOSTILE, HOSTILE, dead),
    )
    named = stack.add_dead(tenant, error=f"GraphDataError: {HOSTILE}")
    stack.sql("UPDATE outbox_events SET aggregate_type = 'entity', aggregate_id = %s WHERE id = %s", entity, named)
    ((worker,),) = stack.sql(
        "INSERT INTO workers (id, host, pid, version, state, breaker, breaker_reason) "
        "VALUES (gen_random_uuid(), %s, 1, %s, 'paused', 'open', %s) RETURNING id",
        *(HOSTILE, HOSTILE, HOSTILE),
    )

    log_in(page, tenant.tokens["admin"])
    expect(page.locator(".reason").first).to_have_text(HOSTILE)
    page.goto("/console/events")
    expect(page.locator("td.error").first).to_contain_text(HOSTILE)
    page.get_by_label("Error text or fingerprint").fill(HOSTILE)
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_label("Error text or fingerprint")).to_have_value(HOSTILE)
    page.get_by_role("link", name="Retry all dead ones of this filter…").click()
    expect(page.locator("dt:text-is('Error') + dd")).to_have_text(HOSTILE)

    page.goto(f"/console/events/{dead}")
    expect(page.locator("blockquote")).to_have_text(f"Anna Berg met Boris Klein. {HOSTILE}")
    expect(page.locator(".attempts")).to_contain_text(HOSTILE)
    expect(page.locator("pre").first).to_contain_text("window.stolen")
    page.goto(f"/console/events/{named}")
    expect(page.locator("blockquote")).to_have_text(HOSTILE)
    page.get_by_text("Discard instead…").click()
    page.get_by_label("Reason, for the audit log").fill(HOSTILE)
    page.get_by_role("button", name="Discard").click()
    expect(page.locator("dd.written")).to_have_text(HOSTILE)

    page.goto("/console/graph")
    expect(page.get_by_role("rowheader", name=HOSTILE)).to_be_visible()
    page.get_by_label("Only the memories of this user").fill(HOSTILE)
    page.get_by_role("button", name="Rebuild").click()
    expect(page.get_by_text("memories of user").first).to_contain_text(HOSTILE)
    page.goto("/console/login?next=" + "%22%3E%3Cscript%3Ewindow.stolen=1%3C/script%3E")
    assert page.evaluate("window.stolen") is None

    page.context.clear_cookies()
    log_in(page, stack.add_root())
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    page.goto("/console/events?status=dead")
    expect(page.get_by_role("cell", name=HOSTILE, exact=True).first).to_be_visible()
    page.goto("/console/graph")
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    assert page.evaluate("window.stolen") is None
    stack.sql("DELETE FROM workers WHERE id = %s", worker)


def test_what_got_into_a_page_unescaped_would_neither_run_nor_call_home(
    tenant: TestTenant, page: Page, watch: Watch
) -> None:
    log_in(page, tenant.tokens["operator"])
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = 1";
            document.body.append(script);
            const markup = `<p style="color: red" onclick="window.ran = 1" id="injected">x</p>
                <img src="https://elsewhere.test/pixel"><form id="leak" action="https://elsewhere.test/"></form>`;
            document.body.insertAdjacentHTML("beforeend", markup);
        }"""
    )
    page.locator("#injected").click()
    page.evaluate("document.getElementById('leak').submit()")
    page.wait_for_function("fetch('https://elsewhere.test/').then(() => false, () => true)")
    assert page.evaluate("window.ran") is None
    assert page.url.endswith("/console")
    assert watch.elsewhere == []
    directives = ("script-src", "style-src", "img-src", "connect-src", "form-action")
    for directive in directives:
        assert any(directive in complaint for complaint in watch.complaints), directive
    watch.complaints.clear()
