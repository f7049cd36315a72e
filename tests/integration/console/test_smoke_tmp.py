import pytest
pytestmark = pytest.mark.anyio
async def test_smoke(browser, login, tenant, events):
    a = await browser.get("/console"); print(a.status_code, a.headers)
    a = await login(tenant.tokens["operator"]); print(a.status_code, a.headers, a.text[:300])
    for s in ("dead","pending","leased","done","discarded"):
        i = events.add(tenant, s)
        a = await browser.get(f"/console/events/{i}"); print(s, a.status_code, a.text[:200] if a.status_code!=200 else "")
    for p in ("/console", "/console/events", "/console/events/retry", "/console/graph", "/console/nope", "/console/events/x/y", "/console/graph/rebuilds/zz", "/console/static/console.css", "/console/static/none"):
        a = await browser.get(p); print(p, a.status_code, a.text[-600:] if a.status_code not in (200,404) else a.headers)
