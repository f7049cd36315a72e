"""The console's pages of comparisons, repairs and cancelled rebuilds."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.fixtures.console import Events, Login, csrf_of, field_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token
from tests.fixtures.worker import drain, dump, rebuild

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.graph.port import EntityNode, GraphPatch
from memory_os_console import console_router
from memory_os_workers import verifier
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

HOSTILE = "<script>stolen()</script>"
VERIFICATIONS = "/console/graph/verifications"


class Graphs:
    """A tenant's graph, with what a vandal and the service itself would do to it."""

    def __init__(self, browser: httpx.AsyncClient, worker: WorkerContext, tenant: TestTenant) -> None:
        self.browser, self.worker, self.tenant = browser, worker, tenant

    async def store(self, *texts: str, user: str | None = None, visibility: str = "tenant") -> list[str]:
        """Store and project memories; their ids."""
        items = [{"text": text, "label": "Event", "visibility": visibility} for text in texts]
        headers = self.tenant.headers(user=user)
        answer = await self.browser.post("/v1/memories/batch", json={"items": items}, headers=headers)
        assert answer.status_code == 200, answer.text
        await drain(self.worker)
        return [result["memory_id"] for result in answer.json()["results"]]

    async def corrupt(self, patch: GraphPatch) -> None:
        """Write into the graph behind everybody's back."""
        await self.worker.backend.take_fence(self.tenant.tenant_id, "vandal")
        await self.worker.backend.apply(self.tenant.tenant_id, "vandal", patch)

    async def rename(self, old: str, new: str) -> str:
        """Give an entity another name in the graph alone; its id."""
        graph = await dump(self.worker, self.tenant.tenant_id)
        (node,) = (node for node in graph.entities.values() if node.name == old)
        await self.corrupt(GraphPatch(entities=[EntityNode(node.id, new, node.type, node.strength, node.declared)]))
        return node.id

    async def press(self, address: str, page: str = "/console/graph", **fields: str) -> httpx.Response:
        """Send a form as it stands on a page."""
        csrf = csrf_of((await self.browser.get(page)).text)
        return await self.browser.post(address, data={"csrf_token": csrf, **fields})

    async def compare(self) -> tuple[str, str]:
        """Compare now, and wait until a worker has done it: the address and text of its page."""
        answer = await self.press(VERIFICATIONS)
        assert answer.status_code == 303, answer.text
        assert await verifier.take_job(self.worker)
        address = answer.headers["location"]
        return address, (await self.browser.get(address)).text

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """As the superuser."""
        with psycopg.connect(self.tenant.owner_url) as connection:
            cursor = connection.execute(statement, values)  # type: ignore[arg-type] # tests' own text
            return cursor.fetchall() if cursor.description else []

    def add_verification(self, status: str = "done", **columns: object) -> UUID:
        """A comparison, as a worker would have left it."""
        given = {"id": new_id(), "status": status, "phase": status, "requested_by": "anna", **columns}
        names, marks = ", ".join(given), ", ".join(["%s"] * len(given))
        ended = "now()" if status in ("done", "failed") else "NULL"
        ((ident,),) = self.sql(
            f"INSERT INTO graph_verifications (tenant_id, started_at, heartbeat_at, finished_at, {names}) "
            f"VALUES (%s, now(), now(), {ended}, {marks}) RETURNING id",
            *(self.tenant.tenant_id, *given.values()),
        )
        return UUID(str(ident))

    def doubt(self, reason: str) -> None:
        """Put the graph in doubt."""
        self.sql(
            "INSERT INTO graph_states (tenant_id, epoch, doubt, doubted_at) VALUES (%s, 'a', %s, now()) "
            "ON CONFLICT (tenant_id) DO UPDATE SET doubt = excluded.doubt, doubted_at = now()",
            *(self.tenant.tenant_id, reason),
        )

    def add_worker(self) -> None:
        """A worker that lives, so that the overview has nothing else to say."""
        self.sql("INSERT INTO workers (id, host, pid, version, state) VALUES (%s, 'box', 1, '0', 'idle')", new_id())


@pytest.fixture
def graphs(browser: httpx.AsyncClient, worker: WorkerContext, tenant: TestTenant) -> Graphs:
    return Graphs(browser, worker, tenant)


def notice(page: str, ident: str = "condition") -> str:
    """The text of a notice of the graph page."""
    found = re.search(rf'<p class="notice[^"]*" id="{ident}">(.*?)</p>', page, re.DOTALL)
    assert found, f"no notice {ident}"
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", found.group(1))).split())


def part(page: str, name: str) -> list[str]:
    """The row of a part: rows, missing, extra, differing."""
    found = re.search(rf'<th scope="row">{name}</th>(.*?)</tr>', page, re.DOTALL)
    assert found, name
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", found.group(1), re.DOTALL)]


def tile(page: str, name: str) -> str:
    found = re.search(rf"<dt>{name}</dt><dd>(.*?)</dd>", page)
    assert found, name
    return re.sub(r"<[^>]+>", "", found.group(1))


async def test_a_graph_is_compared_followed_and_found_equal(
    browser: httpx.AsyncClient, login: Login, graphs: Graphs
) -> None:
    await graphs.store("Anna Berg met Boris Klein.")
    await login(graphs.tenant.tokens["operator"])
    assert notice((await browser.get("/console/graph")).text).startswith("Never compared")
    answer = await graphs.press(VERIFICATIONS)
    assert answer.status_code == 303
    address = answer.headers["location"]
    waiting = (await browser.get(address)).text
    assert '<span class="badge pending">pending</span>' in waiting
    assert f'hx-get="{address}" hx-trigger="every 1s"' in waiting
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in waiting
    page = (await browser.get("/console/graph")).text
    assert "follow the comparison" in page
    assert "Compare now" not in page
    again = await browser.post(VERIFICATIONS, data={"csrf_token": csrf_of(page)})
    assert again.headers["location"] == address  # one is joined, not doubled
    assert await verifier.take_job(graphs.worker)
    done = (await browser.get(address)).text
    assert "hx-get" not in done
    assert "The graph is what the records say." in done
    assert part(done, "memories") == ["1", "0", "0", "0"]
    assert (tile(done, "Rows"), tile(done, "Missing"), tile(done, "Due to dead events")) == ("6", "0", "0")
    page = (await browser.get("/console/graph")).text
    assert notice(page).startswith("Equal Nothing differed from the records, compared 20")
    assert '<span class="badge equal">equal</span>' in page
    assert address in page


async def test_progress_shows_while_a_comparison_runs(browser: httpx.AsyncClient, login: Login, graphs: Graphs) -> None:
    running = graphs.add_verification("running", phase="co_occurrences", checked=30, total=120)
    await login(graphs.tenant.tokens["reviewer"])
    page = (await browser.get(f"{VERIFICATIONS}/{running}")).text
    assert 'value="25.0" aria-label="Comparison"' in page
    assert "<span>co-occurrences</span>" in page
    assert "30 <small>of 120</small>" in page
    assert "By part" not in page


async def test_differences_are_told_and_mended_once_confirmed(
    browser: httpx.AsyncClient, login: Login, graphs: Graphs, events: Events
) -> None:
    ids = await graphs.store("Anna Berg met Boris Klein.", "Nothing of note happened.")
    right = await dump(graphs.worker, graphs.tenant.tenant_id)
    graphs.add_worker()
    await login(graphs.tenant.tokens["admin"])
    unknown = (await browser.get("/console/graph/repair")).text
    assert "What a repair would do is known once the graph has been compared." in html.unescape(unknown)
    node = await graphs.rename("Anna Berg", "somebody else")
    await graphs.corrupt(GraphPatch(deleted_memories=[ids[1]]))
    address, page = await graphs.compare()
    assert "Differs</strong> 1 missing, 1 differing." in page
    assert (part(page, "entities"), part(page, "memories")) == (["2", "0", "0", "1"], ["2", "1", "0", "0"])
    assert f'href="/console/events?aggregate_id={node}"' in page
    assert '<span class="hint">name</span> Anna Berg' in page
    assert '<span class="hint">name</span> somebody else' in page
    page = (await browser.get("/console/graph")).text
    assert notice(page).startswith("Differs 1 missing, 1 differing, compared 20")
    overview = html.unescape((await browser.get("/console")).text)
    assert "The graph differs from the records: 1 missing, 1 differing." in overview
    assert "Healthy" not in overview

    confirm = (await browser.get("/console/graph/repair")).text
    assert "Repair 2 differences" in confirm
    assert part(confirm, "memories") == ["2", "1", "0", "0"]
    assert field_of(confirm, "seen") in address
    fields = {"csrf_token": csrf_of(confirm), "seen": field_of(confirm, "seen")}
    assert await dump(graphs.worker, graphs.tenant.tenant_id) != right  # looking mends nothing
    answer = await browser.post("/console/graph/repair", data=fields)
    assert answer.status_code == 303
    assert "follow it" in (await browser.get("/console/graph/repair")).text
    assert await verifier.take_job(graphs.worker)
    mended = (await browser.get(answer.headers["location"])).text
    assert "<h1>Repair</h1>" in mended
    assert "Equal</strong> 1 missing, 1 differing, 2 of them mended." in mended
    assert await dump(graphs.worker, graphs.tenant.tenant_id) == right
    assert notice((await browser.get("/console/graph")).text).startswith("Equal")
    assert "<strong>Healthy</strong>" in (await browser.get("/console")).text
    assert [action for action, _, _ in events.audit(graphs.tenant)] == ["graph.repair"]


async def test_a_repair_is_only_of_what_was_seen(browser: httpx.AsyncClient, login: Login, graphs: Graphs) -> None:
    await graphs.store("Anna Berg met Boris Klein.")
    await graphs.rename("Anna Berg", "wrong")
    await login(graphs.tenant.tokens["admin"])
    await graphs.compare()
    seen = field_of((await browser.get("/console/graph/repair")).text, "seen")

    async def refused(seen: str) -> str:
        answer = await graphs.press("/console/graph/repair", seen=seen)
        assert answer.status_code == 409
        assert "Nothing was done: the graph was compared or rebuilt since" in answer.text
        return answer.text

    for other in (str(new_id()), "", "x"):
        await refused(other)
    await graphs.compare()
    assert field_of(await refused(seen), "seen") != seen
    running = graphs.add_verification("running")
    newest = await graphs.press("/console/graph/repair", seen=seen)
    assert newest.status_code == 409
    ((seen,),) = graphs.sql("SELECT id::text FROM graph_verifications WHERE status = 'done' ORDER BY id DESC LIMIT 1")
    joined = await graphs.press("/console/graph/repair", seen=seen)
    assert joined.headers["location"] == f"{VERIFICATIONS}/{running}"
    assert (
        "Nothing was started: the graph is being compared just now."
        in (await browser.get(joined.headers["location"])).text
    )
    graphs.sql("DELETE FROM graph_verifications WHERE id = %s", running)
    await graphs.press("/console/graph", user_id="")
    await rebuild(graphs.worker)
    page = await refused(seen)
    assert "Repair 1 difference" not in page
    assert notice(page).startswith("Rebuilt since")
    overview = html.unescape((await browser.get("/console")).text)
    assert "The graph had faults and was rebuilt since: compare it again." in overview
    assert graphs.sql("SELECT count(*) FROM graph_verifications WHERE repair") == [(0,)]


async def test_who_may_do_what(browser: httpx.AsyncClient, login: Login, graphs: Graphs) -> None:
    await graphs.store("Anna Berg met Boris Klein.")
    await graphs.rename("Anna Berg", "wrong")
    await login(graphs.tenant.tokens["operator"])
    address, page = await graphs.compare()
    seen = address.rsplit("/", 1)[1]
    assert "Repair…" not in page
    graphs.sql(
        "INSERT INTO graph_rebuilds (tenant_id, id, requested_by) VALUES (%s, %s, 'a')", graphs.tenant.tenant_id, seen
    )
    job = f"/console/graph/rebuilds/{seen}"
    acts: list[tuple[str, dict[str, str]]] = [
        (VERIFICATIONS, {}),
        ("/console/graph/repair", {"seen": seen}),
        (job, {"action": "cancel"}),
    ]
    allowed = {"reader": [], "writer": [], "reviewer": [], "operator": [303], "admin": [303, 303, 303]}
    for role, expected in allowed.items():
        browser.cookies.clear()
        entered = await login(graphs.tenant.tokens[role])
        if role in ("reader", "writer"):
            assert entered.status_code == 403
            assert (await browser.get(address)).status_code == 303  # to the login
            assert (await browser.get("/console/graph/repair")).status_code == 303
            continue
        graph = (await browser.get("/console/graph")).text
        shown = ["Compare now" in graph, "Repair…" in graph, "Cancel this rebuild" in (await browser.get(job)).text]
        assert shown == [role != "reviewer", role == "admin", role == "admin"]
        assert (await browser.get(address)).status_code == 200
        assert (await browser.get("/console/graph/repair")).status_code == (200 if role == "admin" else 403)
        csrf = csrf_of(graph)
        answers = [(await browser.post(path, data={"csrf_token": csrf, **fields})).status_code for path, fields in acts]
        assert answers == [*expected, *[403] * (3 - len(expected))], role
        if role == "operator":
            graphs.sql("DELETE FROM graph_verifications WHERE status = 'pending'")
    # The admin's comparison was pending when the repair was asked for, so nothing was mended.
    assert graphs.sql("SELECT count(*) FROM graph_verifications WHERE repair") == [(0,)]
    assert graphs.sql("SELECT status FROM graph_rebuilds") == [("cancelled",)]


async def test_a_form_of_another_session_does_nothing(browser: httpx.AsyncClient, login: Login, graphs: Graphs) -> None:
    await graphs.store("Anna Berg met Boris Klein.")
    await graphs.rename("Anna Berg", "wrong")
    await login(graphs.tenant.tokens["admin"])
    address, _ = await graphs.compare()
    seen = address.rsplit("/", 1)[1]
    graphs.sql(
        "INSERT INTO graph_rebuilds (tenant_id, id, requested_by) VALUES (%s, %s, 'a')", graphs.tenant.tenant_id, seen
    )
    for csrf in ({}, {"csrf_token": ""}, {"csrf_token": "x" * 43}):
        for path, fields in (
            (VERIFICATIONS, {}),
            ("/console/graph/repair", {"seen": seen}),
            (f"/console/graph/rebuilds/{seen}", {"action": "cancel"}),
        ):
            answer = await browser.post(path, data={**csrf, **fields})
            assert answer.status_code == 403
            assert "the form does not belong to your session" in answer.text.lower()
    assert graphs.sql("SELECT count(*) FROM graph_verifications") == [(1,)]
    assert graphs.sql("SELECT status FROM graph_rebuilds") == [("pending",)]


async def test_hostile_text_stays_text(browser: httpx.AsyncClient, login: Login, graphs: Graphs) -> None:
    node = {"id": HOSTILE, "name": HOSTILE, "type": HOSTILE, "strength": 1.0, "declared": False}
    sample = [
        {"part": HOSTILE, "kind": HOSTILE, "key": [HOSTILE], "expected": None, "found": [node, {HOSTILE: HOSTILE}]}
    ]
    parts = {HOSTILE: {"rows": 1, "missing": 0, "extra": 1, "differing": 0}}
    graphs.doubt(HOSTILE)
    graphs.sql("UPDATE tenants SET name = %s", HOSTILE)
    jobs = [
        graphs.add_verification("failed", error=HOSTILE, requested_by=HOSTILE),
        graphs.add_verification("done", damage=HOSTILE, phase=HOSTILE),
        graphs.add_verification("done", extra=1, parts=json.dumps(parts), sample=json.dumps(sample)),
        graphs.add_verification("running", phase=HOSTILE),
    ]
    root = add_token(graphs.tenant.owner_url, INSTANCE_TENANT, "root")
    for token in (graphs.tenant.tokens["admin"], root):
        browser.cookies.clear()
        await login(token)
        named = f"?tenant_id={graphs.tenant.tenant_id}" if token == root else ""
        pages = ["/console", f"/console/graph{named}", f"/console/graph/repair{named}"]
        for address in (*pages, *(f"{VERIFICATIONS}/{job}" for job in jobs)):
            answer = await browser.get(address)
            assert answer.status_code == 200, address
            assert "<script>stolen" not in answer.text, address
            assert "&lt;script&gt;stolen" in answer.text, address


async def test_names_show_only_to_whom_they_may(
    browser: httpx.AsyncClient, login: Login, graphs: Graphs, database_urls: DatabaseUrls
) -> None:
    await graphs.store("Anna Berg met Boris Klein.")
    await graphs.store("Carla Secret met Dora Hidden.", user="ann", visibility="private")
    await graphs.rename("Anna Berg", "Anna Wrong")
    await graphs.rename("Carla Secret", "Carla Wrong")
    await login(graphs.tenant.tokens["operator"])
    address, page = await graphs.compare()
    assert ("Anna Berg" in page, "Anna Wrong" in page) == (True, True)
    assert ("Carla" in page, "not shown" in page) == (False, True)
    assert part(page, "entities")[3] == "2"
    browser.cookies.clear()
    await login(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))
    page = (await browser.get(address)).text
    assert ("Anna" in page, "Carla" in page) == (False, False)
    assert part(page, "entities")[3] == "2"


async def test_what_the_queue_and_dead_events_explain_leads_to_them(
    browser: httpx.AsyncClient, login: Login, graphs: Graphs
) -> None:
    (dead,) = await graphs.store("Anna Berg met Boris Klein.")
    graphs.sql("UPDATE outbox_events SET status = 'dead', attempts = 5 WHERE aggregate_id = %s", dead)
    await graphs.corrupt(GraphPatch(deleted_memories=[dead]))
    body = {"text": "Later Carl Berg came.", "label": "Event"}
    await browser.post("/v1/memories", json=body, headers=graphs.tenant.headers())
    await login(graphs.tenant.tokens["admin"])
    _, page = await graphs.compare()
    assert "Nothing differs but for dead events." in page
    assert (int(tile(page, "Due to dead events")), int(tile(page, "Waiting in the queue"))) >= (1, 1)
    assert '<a href="/console/events?status=dead">' in page
    assert '<a href="/console/events?status=pending">' in page
    assert "Repair…" not in page  # there is nothing that it would mend
    assert notice((await browser.get("/console/graph")).text).startswith("Incomplete")
    assert "There is nothing to repair." in (await browser.get("/console/graph/repair")).text


async def test_doubt_is_told_with_what_is_done_about_it(
    browser: httpx.AsyncClient, login: Login, graphs: Graphs
) -> None:
    graphs.add_worker()
    graphs.doubt("the graph was lost or replaced")
    await login(graphs.tenant.tokens["operator"])
    page = (await browser.get("/console/graph")).text
    assert notice(page, "doubt").startswith("In doubt The graph was lost or replaced. It has been so since 20")
    assert "Nothing is on its way that would mend it" in notice(page, "doubt")
    graphs.add_verification("pending", repair=True)
    assert "A repair is on its way" in notice((await browser.get("/console/graph")).text, "doubt")
    overview = html.unescape((await browser.get("/console")).text)
    assert "The graph has been in doubt for" in overview
    assert "the graph was lost or replaced. A repair is on its way." in overview
    assert '<a id="finding-1" href="/console/graph">Graph</a>' in overview
    job = new_id()
    graphs.sql(
        "INSERT INTO graph_rebuilds (tenant_id, id, requested_by) VALUES (%s, %s, 'a')", graphs.tenant.tenant_id, job
    )
    page = (await browser.get("/console/graph")).text
    assert f'<a href="/console/graph/rebuilds/{job}">follow the rebuild</a>' in page
    graphs.sql("UPDATE graph_states SET doubt = NULL, doubted_at = NULL")
    assert 'id="doubt"' not in (await browser.get("/console/graph")).text
    assert "<strong>Healthy</strong>" in (await browser.get("/console")).text


async def test_a_failed_and_a_damaged_comparison_say_why(
    browser: httpx.AsyncClient, login: Login, graphs: Graphs
) -> None:
    failed = graphs.add_verification("failed", error="DataError: odd")
    await login(graphs.tenant.tokens["operator"])
    page = (await browser.get(f"{VERIFICATIONS}/{failed}")).text
    assert "DataError: odd" in page
    assert "hx-get" not in page
    assert notice((await browser.get("/console/graph")).text).startswith("Never compared")
    damaged = graphs.add_verification(damage="the graph and its index disagree about 2 entity nodes")
    assert "The graph and its index disagree" in (await browser.get(f"{VERIFICATIONS}/{damaged}")).text
    assert notice((await browser.get("/console/graph")).text).startswith("Damaged The graph and its index disagree")


async def test_another_tenants_comparisons_are_out_of_reach_but_for_root(
    browser: httpx.AsyncClient, login: Login, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    theirs = Graphs(browser, worker, other)
    await theirs.store("Anna Berg met Boris Klein.")
    await theirs.rename("Anna Berg", "wrong")
    await login(other.tokens["admin"])
    address, _ = await theirs.compare()
    seen, named = address.rsplit("/", 1)[1], {"tenant_id": str(other.tenant_id)}
    browser.cookies.clear()
    await login(mine.tokens["admin"])
    assert (await browser.get(address)).status_code == 404
    assert (await browser.get(f"{VERIFICATIONS}/x")).status_code == 404
    assert (await browser.get("/console/graph/repair", params=named)).status_code == 403
    assert (await theirs.press(VERIFICATIONS, **named)).status_code == 403
    assert (await theirs.press("/console/graph/repair", seen=seen, **named)).status_code == 403
    assert (await theirs.press("/console/graph/repair", seen=seen)).status_code == 409
    assert "differs from the records" not in (await browser.get("/console")).text
    browser.cookies.clear()
    await login(add_token(mine.owner_url, INSTANCE_TENANT, "root"))
    assert f'href="/console/graph?tenant_id={other.tenant_id}">Graph</a>' in (await browser.get("/console")).text
    page = f"/console/graph?tenant_id={other.tenant_id}"
    assert (await browser.get(address)).status_code == 200
    assert (await browser.get("/console/graph/repair")).headers["location"] == "/console/graph"
    assert (await browser.get(f"/console/graph/repair?tenant_id={new_id()}")).status_code == 404
    assert (await theirs.press(VERIFICATIONS, page)).status_code == 422
    assert (await theirs.press(VERIFICATIONS, page, tenant_id=str(new_id()))).status_code == 404
    confirm = (await browser.get("/console/graph/repair", params=named)).text
    fields = {name: field_of(confirm, name) for name in ("csrf_token", "tenant_id", "seen")}
    answer = await browser.post("/console/graph/repair", data=fields)
    assert answer.status_code == 303
    assert await verifier.take_job(worker)
    assert "1 of them mended" in (await browser.get(answer.headers["location"])).text


async def test_a_rebuild_is_cancelled_unless_it_has_ended(
    browser: httpx.AsyncClient, login: Login, graphs: Graphs, events: Events
) -> None:
    await graphs.store("Anna Berg met Boris Klein.")
    right = await dump(graphs.worker, graphs.tenant.tenant_id)
    await login(graphs.tenant.tokens["admin"])
    job = (await graphs.press("/console/graph", user_id="")).headers["location"]
    page = (await browser.get(job)).text
    assert "Cancel this rebuild" in page
    assert page.index("</section>") < page.index("Cancel this rebuild")  # not in what is replaced every second
    odd = await graphs.press(job, job, action="pause")
    assert odd.status_code == 422
    answer = await graphs.press(job, job, action="cancel")
    assert (answer.status_code, answer.headers["location"]) == (303, job)
    page = (await browser.get(job)).text
    assert "The rebuild is cancelled." in page
    assert '<span class="badge cancelled">cancelled</span>' in page
    assert "The graph is as it was before." in page
    assert "<progress" not in page
    assert "Cancel this rebuild" not in page
    await rebuild(graphs.worker)
    assert await dump(graphs.worker, graphs.tenant.tenant_id) == right
    listed = (await browser.get("/console/graph")).text
    assert '<span class="badge cancelled">cancelled</span>' in listed
    again = await graphs.press(job, action="cancel")
    assert again.status_code == 303
    assert "Nothing was cancelled: the rebuild had ended already." in (await browser.get(job)).text
    for gone in (new_id(), "x"):
        assert (await graphs.press(f"/console/graph/rebuilds/{gone}", action="cancel")).status_code == 404
    assert [action for action, _, _ in events.audit(graphs.tenant)] == ["graph.rebuild", "graph.cancel"]


async def test_without_graph_memory_nothing_is_compared(services: Services, tenant: TestTenant) -> None:
    parts = replace(services, graph=None)
    transport = httpx.ASGITransport(app=create_app(parts, console=[console_router(parts)]))  # type: ignore[arg-type] # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://console.test") as client:
        page = await client.get("/console/login")
        await client.post("/console/login", data={"csrf_token": csrf_of(page.text), "token": tenant.tokens["admin"]})
        page = await client.get("/console/graph")
        assert "Compare now" not in page.text
        for address in (VERIFICATIONS, "/console/graph/repair"):
            answer = await client.post(address, data={"csrf_token": csrf_of(page.text), "seen": str(new_id())})
            assert answer.status_code == 400
            assert "ENABLE_GRAPH_MEMORY" in answer.text
