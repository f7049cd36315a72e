from pathlib import Path

from tests.browser.conftest import *

OUT = Path("/tmp/shots")
OUT.mkdir(exist_ok=True)


def test_shots(stack, tenant, open_context, watch):
    ids = stack.store(
        tenant,
        *[f"Anna Berg met Boris Klein at Acme Corp about Project {n}" for n in ("Falcon", "Eagle", "Heron", "Kite")],
        "Carla Diaz works at Acme Corp",
        "Dana Evans leads Project Heron for Acme Corp",
    )
    mid = ids[0]
    stack.sql("UPDATE memories SET valid_to='infinity' WHERE id=%s", mid)
    stack.sql(
        "INSERT INTO outbox_events (tenant_id,event_type,aggregate_type,aggregate_id,version) VALUES (%s,'GRAPH_UPSERT','memory',%s,2)",
        tenant.tenant_id,
        mid,
    )
    dead = wait_for(
        lambda: stack.sql("SELECT id FROM outbox_events WHERE tenant_id=%s AND status='dead'", tenant.tenant_id),
        seconds=60,
    )[0][0]
    for n in range(12):
        stack.add_dead(
            tenant,
            error=f"GraphDataError: property {n} of node 0199d2c4-5b1e-7c3a-9f00-3d5e8a1b2c4d can't be stored: the value is nested, and the encoder refuses maps in lists",
        )
    stack.add_dead(tenant, error="GraphDataError: gone", event_type="GRAPH_DELETE")
    for scheme in ("light", "dark"):
        for name, vp in (("wide", {"width": 1280, "height": 900}), ("narrow", {"width": 390, "height": 844})):
            c = open_context(color_scheme=scheme, viewport=vp, timezone_id="Europe/Vienna")
            p = c.new_page()
            p.goto("/console/login")
            p.screenshot(path=OUT / f"{scheme}-{name}-login.png")
            log_in(p, tenant.tokens["admin"])
            p.wait_for_timeout(2500)
            p.screenshot(path=OUT / f"{scheme}-{name}-overview.png", full_page=True)
            for label, path in (
                ("events", "/console/events"),
                ("event", f"/console/events/{dead}"),
                ("retry", "/console/events/retry?event_type=GRAPH_UPSERT"),
                ("graph", "/console/graph"),
                ("nope", "/console/nope"),
            ):
                p.goto(path)
                p.screenshot(path=OUT / f"{scheme}-{name}-{label}.png", full_page=True)
            if name == "wide" and scheme == "light":
                p.goto("/console/graph")
                p.get_by_role("button", name="Rebuild").click()
                p.screenshot(path=OUT / f"{scheme}-{name}-rebuild0.png", full_page=True)
                p.wait_for_timeout(4000)
                p.screenshot(path=OUT / f"{scheme}-{name}-rebuild1.png", full_page=True)
    c = open_context(viewport={"width": 1280, "height": 900}, timezone_id="Europe/Vienna")
    p = c.new_page()
    log_in(p, stack.add_root())
    p.screenshot(path=OUT / "root-overview.png", full_page=True)
    for label, path in (
        ("events", "/console/events"),
        ("event", f"/console/events/{dead}"),
        ("graph", "/console/graph"),
        ("graphof", f"/console/graph?tenant_id={tenant.tenant_id}"),
    ):
        p.goto(path)
        p.screenshot(path=OUT / f"root-{label}.png", full_page=True)
