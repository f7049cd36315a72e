"""What cycles did to a memory is erased with it: actions, archived edges, and names that only an action still knows."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain
from tests.integration.cycles.conftest import DAY, NOW, Cycling
from tests.integration.erasure.searching import places_with

from memory_os.api.services import Services
from memory_os.domain.ids import derived_entity_id
from memory_os.domain.names import canonical_name
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

CANARY = "Zyxquvort"
NAME = f"{CANARY} Halde"
OLD = NOW - 100 * DAY
IDS = {
    *("erasures.record_ids", "erasures.subject", "audit_log.target_id", "audit_log.detail"),
    *("graph_tombstones.aggregate_id", "outbox_events.aggregate_id"),
}
"""Where the id of what was erased may stand."""


@pytest.fixture
def cycling(
    client: httpx.AsyncClient,
    services: Services,
    database_urls: DatabaseUrls,
    tenant: TestTenant,
    worker: WorkerContext,
) -> Cycling:
    return Cycling(client, services, database_urls, tenant, worker)


def leave_entity(cycling: Cycling, name: str = NAME) -> str:
    """Let a derived entity be left that nothing names any more."""
    ident = derived_entity_id(cycling.tenant.tenant_id, canonical_name(name))
    cycling.rows(
        "INSERT INTO entities (tenant_id, id, declared, name, entity_type, created_at) "
        "VALUES (%s, %s, false, %s, 'unknown', %s) RETURNING 1",
        *(cycling.tenant.tenant_id, ident, name, OLD),
    )
    return str(ident)


async def erase(cycling: Cycling, method: str, url: str) -> dict[str, int]:
    """Erase, and give the rows of each place."""
    answer = await cycling.client.request(method, url, headers=cycling.tenant.headers("admin"))
    assert answer.status_code == 200, answer.text
    return {place["place"]: place["rows"] for place in answer.json()["places"]}


async def dropped_name(cycling: Cycling, worker: WorkerContext, **fields: Any) -> str:
    """A memory that named somebody before it was changed, and a night that dropped the name."""
    memory = await cycling.memory(f"{NAME} bakes, says {NAME}.", **fields)
    await drain(worker)
    answer = await cycling.client.patch(
        f"/v1/memories/{memory}", json={"text": "Somebody bakes."}, headers=cycling.tenant.headers("admin")
    )
    assert answer.is_success, answer.text
    await drain(worker)
    entity = leave_entity(cycling)
    for dry_run in (True, False):
        run = await cycling.run("nightly", dry_run=dry_run)
        assert [(action["rule"], str(action["target_id"])) for action in cycling.actions(run)] == [
            ("drop_entities", entity)
        ]
    await drain(worker)
    assert places_with(cycling.urls, CANARY)["cycle_actions.before"] == 2
    return memory


async def test_a_name_that_only_an_action_knows_goes_with_the_memory(cycling: Cycling, worker: WorkerContext) -> None:
    memory = await dropped_name(cycling, worker)
    rows = await erase(cycling, "POST", f"/v1/memories/{memory}/erase")
    assert rows["cycle_actions"] == 2
    assert places_with(cycling.urls, CANARY) == {}
    await drain(worker)
    assert places_with(cycling.urls, CANARY) == {}


async def test_a_name_that_only_an_action_knows_goes_with_the_user(
    cycling: Cycling, worker: WorkerContext, actor: Actor
) -> None:
    mine = await actor.acting("ann").remember(f"{NAME} bakes, says {NAME}.")
    await drain(worker)
    headers = cycling.tenant.headers("writer", user="ann")
    assert (await cycling.client.delete(f"/v1/memories/{mine['id']}", headers=headers)).is_success
    await drain(worker)
    leave_entity(cycling)
    await cycling.run("nightly")
    assert "cycle_actions.before" in places_with(cycling.urls, CANARY)
    rows = await erase(cycling, "DELETE", "/v1/users/ann")
    assert rows["cycle_actions"] == 1
    assert [place for place in places_with(cycling.urls, CANARY) if place.startswith("cycle")] == []


async def test_what_was_done_to_a_memory_and_its_edges_goes_with_it(cycling: Cycling, worker: WorkerContext) -> None:
    fair = await cycling.memory(f"{NAME} has a fair.", "Opportunity")
    paper = await cycling.memory("A paper.", "Reference")
    kettle = (await cycling.post("/v1/memory/entities", name="Kettle", entity_type="thing"))["entity"]["id"]
    weak = {"used_at": OLD, "confidence": 0.2}
    lost = await cycling.edge(fair, paper, "SUPPORTS", **weak)
    kept = await cycling.edge(paper, await cycling.memory("It rains."), "SUPPORTS", **weak)
    moved = await cycling.edge(paper, await cycling.memory("It snows."), "SUPPORTS", **weak, migrated_from=fair)
    await cycling.post("/v1/edges", type="ABOUT", **{"from": {"memory": fair}, "to": {"entity": kettle}})
    cycling.put("entities", kettle, status="retired")
    for memory in (fair, paper):
        cycling.put("memories", memory, created_at=OLD, updated_at=OLD)
    await drain(worker)
    await cycling.run("monthly")
    cycling.put("memories", fair, status="active", valid_to=NOW)
    night = await cycling.run("nightly")
    rules = {action["rule"] for action in cycling.actions(night)}
    assert rules == {"expire_opportunities", "mark_stale"}
    assert {str(row["id"]) for row in cycling.rows("SELECT id FROM archived_edges")} == {lost, kept, moved}
    assert not [place for place in places_with(cycling.urls, CANARY) if place.startswith("cycle")]

    rows = await erase(cycling, "POST", f"/v1/memories/{fair}/erase")
    assert (rows["archived_edges"], rows["cycle_actions"]) == (1, 3)  # archived, expired, and its edge pruned
    await drain(worker)
    assert places_with(cycling.urls, CANARY) == {}
    assert places_with(cycling.urls, fair).keys() <= IDS
    assert places_with(cycling.urls, lost).keys() <= IDS
    left = {str(row["target_id"]) for row in cycling.rows("SELECT target_id FROM cycle_actions")}
    assert left == {kept, moved, paper}
    assert {str(row["id"]) for row in cycling.rows("SELECT id FROM archived_edges")} == {kept, moved}


async def test_what_was_done_to_a_deleted_memory_holds_no_word_of_it(cycling: Cycling, worker: WorkerContext) -> None:
    fair = await cycling.memory(f"{NAME} has a fair.", "Opportunity")
    other = await cycling.memory("It rains.")
    edge = await cycling.edge(fair, other, "SUPPORTS", used_at=OLD, confidence=0.2)
    cycling.put("memories", fair, created_at=OLD, valid_to=NOW)
    await drain(worker)
    runs = [await cycling.run("monthly"), await cycling.run("nightly")]
    assert cycling.rows("SELECT id::text AS id FROM archived_edges") == [{"id": edge}]
    answer = await cycling.client.delete(f"/v1/memories/{fair}", headers=cycling.tenant.headers("admin"))
    assert answer.is_success, answer.text
    await drain(worker)
    assert [place for place in places_with(cycling.urls, CANARY) if place.startswith(("cycle", "archived"))] == []
    assert cycling.rows("SELECT id FROM archived_edges") == []
    for run in runs:  # what is gone can't come back, and tells so
        assert len(await cycling.undo(run)) == 1
