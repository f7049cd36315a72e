"""After each kind of correction and its undo the drained graph is the projection of the rows, on both backends."""

from __future__ import annotations

import pytest
from tests.fixtures.acting import rows_of
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.worker import drain, dump, rebuild
from tests.integration.corrections.conftest import Desk

from memory_os.settings import Settings
from memory_os_workers import verifier
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["networkx", "falkor"])
def service_settings(
    request: pytest.FixtureRequest, service_settings: Settings, falkor_server: FalkorProcess, falkor_prefix: str
) -> Settings:
    """Settings of a service on each of the backends in turn."""
    falkor = {"falkor_host": falkor_server.host, "falkor_port": falkor_server.port, "graph_prefix": falkor_prefix}
    return service_settings.model_copy(update={"graph_backend": request.param, **falkor})


async def check(desk: Desk, worker: WorkerContext, urls: DatabaseUrls) -> None:
    """Drain the queue; a comparison finds nothing, and a rebuild makes the same graph."""
    await drain(worker)
    assert rows_of(urls, "SELECT * FROM outbox_events WHERE status <> 'done'") == []
    asked = await desk.send("GET", "/v1/graph/verify", role="operator", wait_s=0)
    assert await verifier.take_job(worker)
    found = await desk.get(f"/v1/graph/verifications/{asked.json()['id']}", role="operator")
    assert (found["status"], found["equal"]) == ("done", True), found
    grown = await dump(worker, desk.tenant.tenant_id)
    assert (await desk.send("POST", "/v1/graph/rebuild", {}, role="admin")).status_code == 202
    await rebuild(worker)
    assert await dump(worker, desk.tenant.tenant_id) == grown


async def test_the_graph_follows_corrections_and_their_undo(
    desk: Desk, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    checking, savings = [await desk.actor.declare(name) for name in ("Chase Checking", "Chase Savings")]
    far = await desk.actor.remember("The landlord is Finch Homes.")
    ends = {"from": checking, "to": savings}
    for label, kind, proposal in (
        ("Attribute", "wrong_entity", ends),
        ("Event", "wrong_entity", ends),
        ("Goal", "replace_text", {"text": "Bob Stone moves to Harbour Street."}),
        ("Attribute", "wrong_label", {"label": "Event"}),
        ("Attribute", "wrong_date", {"valid_from": "2026-01-01T00:00:00Z"}),
        ("Attribute", "dispute", {"against": far["id"]}),
        ("Attribute", "retract", {}),
    ):
        old = await desk.actor.remember("The rent of Ann Miller is paid from Chase Checking.", label=label)
        await desk.actor.tie("ABOUT", old["id"], {"entity": checking})
        await desk.actor.tie("SUPPORTS", old["id"], far["id"])
        link = {"layer": "memory", "target_id": old["id"], "relationship": "pays"}
        await desk.send("POST", f"/v1/memory/entities/{checking}/links", link, role="writer")
        await drain(worker)
        applied = await desk.correct(old["id"], kind, proposal)
        await check(desk, worker, database_urls)
        await desk.undo(old["id"], applied["act_id"])
        await check(desk, worker, database_urls)


async def test_entities_that_nobody_declared_can_be_meant(
    desk: Desk, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    old = await desk.actor.remember("We met Ann Miller in the harbour.")
    await desk.actor.remember("Yesterday Carl Berg was ill.")
    await drain(worker)
    rows = rows_of(database_urls, "SELECT id, name FROM entities")
    derived = {row["name"]: str(row["id"]) for row in rows}
    tie = await desk.actor.tie("ABOUT", old["id"], {"entity": derived["Ann Miller"]})
    await drain(worker)
    ends = {"from": derived["Ann Miller"], "to": derived["Carl Berg"]}
    applied = await desk.correct(old["id"], "wrong_entity", ends)
    assert applied["result"]["text"] == "We met Carl Berg in the harbour."
    await check(desk, worker, database_urls)
    await desk.undo(old["id"], applied["act_id"])
    assert rows_of(database_urls, "SELECT 1 FROM edges WHERE id = %s", tie)
    await check(desk, worker, database_urls)
