"""After each act on memories and each undo, the drained graph is the projection of the rows, on both backends."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.acting import Actor, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain, dump, rebuild

from memory_os.graph.port import GraphDump, NodeRef
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


@pytest.fixture
def actor(client: httpx.AsyncClient, tenant: TestTenant) -> Actor:
    return Actor(client, tenant)


class Checked:
    """Acts, drains the queue, and holds the graph against a rebuild of the same rows."""

    def __init__(self, actor: Actor, worker: WorkerContext, urls: DatabaseUrls) -> None:
        self.actor, self.worker, self.urls = actor, worker, urls

    async def graph(self) -> GraphDump:
        await drain(self.worker)
        assert rows_of(self.urls, "SELECT * FROM outbox_events WHERE status <> 'done'") == []
        grown = await dump(self.worker, self.actor.tenant.tenant_id)
        headers = self.actor.tenant.headers("admin")
        answer = await self.actor.client.post("/v1/graph/rebuild", json={}, headers=headers)
        assert answer.status_code == 202, answer.text
        await rebuild(self.worker)
        assert await dump(self.worker, self.actor.tenant.tenant_id) == grown
        return grown

    async def do(self, verb: str, memory: str, body: Any = None) -> tuple[dict[str, Any], GraphDump]:
        done = await self.actor.do(verb, memory, body)
        return done, await self.graph()


@pytest.fixture
def checked(actor: Actor, worker: WorkerContext, database_urls: DatabaseUrls) -> Checked:
    return Checked(actor, worker, database_urls)


def statuses(graph: GraphDump) -> dict[str, str]:
    return {ident: node.status for ident, node in graph.memories.items()}


async def test_the_graph_follows_a_supersession_and_its_undo(checked: Checked, actor: Actor) -> None:
    old = await actor.remember("We ship with Ardal Freight.")
    new = await actor.remember("We ship with Finch Lines.")
    far = await actor.remember("Ardal Freight raised its rates.")
    entity = {"entity": await actor.declare("Harbour")}
    moved = await actor.tie("ABOUT", old["id"], entity, confidence=0.25)
    gone = await actor.tie("CAUSED_BY", old["id"], far["id"], confidence=0.75)
    kept = await actor.tie("CAUSED_BY", new["id"], far["id"], confidence=0.5)
    before = await checked.graph()
    done, graph = await checked.do("supersede", old["id"], {"by": new["id"]})
    assert statuses(graph) == {old["id"]: "superseded", new["id"]: "active", far["id"]: "active"}
    assert gone not in graph.edges
    assert graph.edges[kept].confidence == 0.75
    assert graph.edges[moved].source == NodeRef("memory", new["id"])
    assert {edge.type for edge in graph.edges.values()} == {"ABOUT", "CAUSED_BY", "SUPERSEDES"}
    assert graph.memories[old["id"]].valid_to == graph.memories[new["id"]].valid_from
    undone = await actor.undo(old["id"], done["act_id"])
    assert undone.status_code == 200, undone.text
    after = await checked.graph()
    assert (after.edges, after.mentions) == (before.edges, before.mentions)
    assert statuses(after) == statuses(before)
    assert after.memories[new["id"]].valid_from is None


async def test_the_graph_follows_a_dispute_and_steps_and_their_undo(checked: Checked, actor: Actor) -> None:
    one, other = await actor.remember("Opens at eight."), await actor.remember("Opens at nine.")
    goal = await actor.remember("Opens at ten.", label="Goal")
    before = await checked.graph()
    acts = []
    for verb, memory, body, status in (
        ("dispute", one, {"against": other["id"]}, "disputed"),
        ("complete", goal, None, "completed"),
        ("archive", one, None, "archived"),
        ("retract", one, {"reason": "It was never so."}, "retracted"),
        ("restore", one, None, "active"),
    ):
        done, graph = await checked.do(verb, memory["id"], body)
        assert statuses(graph)[memory["id"]] == status
        assert [edge.type for edge in graph.edges.values()] == ["CONTRADICTS"]
        acts.append((memory["id"], done["act_id"]))
    for memory_id, act in reversed(acts):
        assert (await actor.undo(memory_id, act)).status_code == 200
        after = await checked.graph()
    assert (statuses(after), after.edges) == (statuses(before), {})


async def test_acts_that_are_projected_together_leave_the_same(checked: Checked, actor: Actor) -> None:
    """Nothing is drained in between: an edge that went and came back has an event of each."""
    old, far = await actor.remember("We ship with Ardal Freight."), await actor.remember("Rates went up.")
    edges = [await actor.tie("CAUSED_BY", old["id"], far["id"])]
    new = await actor.remember("We ship with Finch Lines.", edges=[{"type": "CAUSED_BY", "to": far["id"]}])
    done = await actor.do("supersede", old["id"], {"by": new["id"]})
    await actor.undo(old["id"], done["act_id"])
    await actor.do("supersede", far["id"], {"text": "Rates went down."})
    graph = await checked.graph()
    assert set(edges) < graph.edges.keys()
    assert sorted(edge.type for edge in graph.edges.values()) == ["CAUSED_BY", "CAUSED_BY", "SUPERSEDES"]
