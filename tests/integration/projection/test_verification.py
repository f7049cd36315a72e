"""Comparing graphs with their canonical rows, and mending them, on both backends."""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.service import TenantFactory, TestTenant
from tests.fixtures.worker import drain, dump, rebuild

from memory_os.graph.port import (
    CoOccurrence,
    EntityNode,
    GraphDataError,
    GraphDump,
    GraphPatch,
    LinkEdge,
    MemoryNode,
    Mention,
    NodeRef,
    TypedEdge,
)
from memory_os.projection import verifier as engine
from memory_os_workers import projector, verifier
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

PARTS_OF_A_PATCH = [part.name for part in fields(GraphPatch)]
TEXTS = (
    "We met Ann Miller and Bob Stone about the Ledger Migration.",
    "Then Ann Miller met Carl Berg.",
    "So Bob Stone met Carl Berg and Dora Lind.",
    "The Ledger Migration was left to Dora Lind.",
    "Nothing of note happened.",
)


async def fill(client: httpx.AsyncClient, tenant: TestTenant) -> list[str]:
    """Memories with an edge, a declared entity, and a link to an observation."""
    ids = []
    for text in TEXTS:
        body = {"text": text, "label": "Attribute", "dedup": "off"}
        answer = await client.post("/v1/memories", json=body, headers=tenant.headers())
        assert answer.status_code == 201, answer.text
        ids.append(str(answer.json()["memory"]["id"]))
    entity = await post(client, tenant, "/v1/memory/entities", {"name": "Ann Miller", "entity_type": "person"})
    observation = await post(client, tenant, "/v1/memory/observations", {"title": "She was seen"})
    link = {"layer": "observation", "target_id": observation["observation"]["id"], "relationship": "saw"}
    await post(client, tenant, f"/v1/memory/entities/{entity['entity']['id']}/links", link)
    ends = [{"memory": ident} for ident in ids[:2]]
    edge = {"type": "ADVANCES", "from": ends[0], "to": ends[1]}
    await post(client, tenant, "/v1/edges", edge)
    return ids


async def post(client: httpx.AsyncClient, tenant: TestTenant, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, json=body, headers=tenant.headers())
    assert answer.status_code == 201, (path, answer.text)
    return dict(answer.json())


async def verify(client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext) -> dict[str, Any]:
    """Ask for a comparison, do it, and read it."""
    asked = await client.get("/v1/graph/verify", params={"wait_s": 0}, headers=tenant.headers("operator"))
    assert asked.status_code == 202, asked.text
    return await finish(client, tenant, worker, asked.json()["id"])


async def repair(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, *, dry_run: bool
) -> dict[str, Any]:
    asked = await client.post("/v1/graph/repair", json={"dry_run": dry_run}, headers=tenant.headers("admin"))
    assert asked.status_code == 202, asked.text
    return await finish(client, tenant, worker, asked.json()["id"])


async def finish(client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, ident: str) -> dict[str, Any]:
    assert await verifier.take_job(worker)
    found = await client.get(f"/v1/graph/verifications/{ident}", headers=tenant.headers("operator"))
    assert found.status_code == 200
    assert found.json()["status"] == "done", found.text
    return dict(found.json())


async def corrupt(worker: WorkerContext, tenant: TestTenant, patch: GraphPatch) -> None:
    """Write into the graph behind everybody's back."""
    await worker.backend.take_fence(tenant.tenant_id, "vandal")
    await worker.backend.apply(tenant.tenant_id, "vandal", patch)


def damages(graph: GraphDump) -> dict[str, GraphPatch]:
    """One thing wrong in each part, by what it is."""
    pair, (weight, count) = next(iter(sorted(graph.co_occurrences.items())))
    entity = next(iter(graph.entities.values()))
    memory = graph.memories[min(graph.memories)]
    mentions = [Mention(*key, value) for key, value in graph.mentions.items() if key[0] == memory.id]
    (edge,), (link,) = graph.edges.values(), graph.links.values()
    other = next(node for node in graph.entities if node != link.entity_id)
    return {
        "an entity's name": GraphPatch(entities=[EntityNode(entity.id, "wrong", entity.type, 1.0, entity.declared)]),
        "an entity too much": GraphPatch(entities=[EntityNode(str(uuid4()), "ghost", "person", 1.0, declared=False)]),
        "an entity lost": GraphPatch(deleted_entities=[entity.id]),
        "a memory's version": GraphPatch(
            memories=[MemoryNode(memory.id, memory.label, memory.status, 99)], mentions=mentions
        ),
        "a memory come back": GraphPatch(memories=[MemoryNode(str(uuid4()), "Skill", "active", 1)]),
        "a memory lost": GraphPatch(deleted_memories=[memory.id]),
        "mentions lost": GraphPatch(memories=[memory]),
        "a mention's weight": GraphPatch(
            memories=[memory], mentions=[Mention(row.memory_id, row.entity_id, 4.75) for row in mentions]
        ),
        "a mention too much": GraphPatch(
            memories=[memory], mentions=[*mentions, *(Mention(memory.id, node, 0.5) for node in graph.entities)]
        ),
        "a pair counted twice": GraphPatch(co_occurrences=[CoOccurrence(*pair, weight + 0.05, count + 1)]),
        "a pair lost": GraphPatch(co_occurrences=[CoOccurrence(*pair, 0.0, 0)]),
        "an edge's confidence": GraphPatch(edges=[TypedEdge(edge.id, edge.type, edge.source, edge.target, 0.01)]),
        "an edge turned round": GraphPatch(edges=[TypedEdge(edge.id, edge.type, edge.target, edge.source, 0.5)]),
        "an edge too much": GraphPatch(edges=[TypedEdge(str(uuid4()), "ABOUT", edge.source, edge.target, 0.5)]),
        "an edge lost": GraphPatch(deleted_edges=[edge.id]),
        "a link at another entity": GraphPatch(
            links=[LinkEdge(link.id, other, link.target, link.relationship, link.confidence)]
        ),
        "a link and its record too much": GraphPatch(
            links=[LinkEdge(str(uuid4()), link.entity_id, NodeRef("record", str(uuid4())), "saw", 0.5)]
        ),
        "a link lost": GraphPatch(deleted_links=[link.id]),
    }


async def test_a_graph_that_grew_is_equal(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await fill(client, tenant)
    await drain(worker)
    found = await verify(client, tenant, worker)
    assert found["equal"] is True
    assert (found["missing"], found["extra"], found["differing"], found["waiting"], found["dead"]) == (0, 0, 0, 0, 0)
    graph = await dump(worker, tenant.tenant_id)
    rows = {part: counts["rows"] for part, counts in found["parts"].items()}
    assert rows == {
        "entities": len(graph.entities),
        "memories": len(TEXTS),
        "mentions": len(graph.mentions),
        "co_occurrences": len(graph.co_occurrences),
        "edges": 1,
        "links": 1,
        "records": 1,
    }


async def test_every_kind_of_difference_is_found_and_mended(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await fill(client, tenant)
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    for what, patch in damages(right).items():
        await corrupt(worker, tenant, patch)
        wrong = await dump(worker, tenant.tenant_id)
        assert wrong != right, what
        tried = await repair(client, tenant, worker, dry_run=True)
        assert tried["equal"] is False, what
        assert tried["repaired"] == 0, what
        assert await dump(worker, tenant.tenant_id) == wrong, what
        mended = await repair(client, tenant, worker, dry_run=False)
        assert mended["equal"] is True, (what, mended)
        assert mended["repaired"] == mended["missing"] + mended["extra"] + mended["differing"] > 0, what
        assert await dump(worker, tenant.tenant_id) == right, what
        assert (await verify(client, tenant, worker))["equal"] is True, what


async def test_a_repair_touches_exactly_what_differs(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = tenant_factory()
    await fill(client, tenant)
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    three = sorted(right.entities.values(), key=lambda node: node.id)[:3]
    await corrupt(
        worker,
        tenant,
        GraphPatch(entities=[EntityNode(node.id, "wrong", node.type, node.strength, node.declared) for node in three]),
    )
    written: list[GraphPatch] = []
    apply = worker.backend.apply

    async def watched(tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        written.append(patch)
        await apply(tenant_id, token, patch)

    monkeypatch.setattr(worker.backend, "apply", watched)
    mended = await repair(client, tenant, worker, dry_run=False)
    assert mended["repaired"] == mended["differing"] == 3
    (patch,) = written
    assert {node.id for node in patch.entities} == {node.id for node in three}
    assert [name for name in PARTS_OF_A_PATCH if getattr(patch, name)] == ["entities"]
    assert [found["part"] for found in mended["differences"]] == ["entities"] * 3
    assert await dump(worker, tenant.tenant_id) == right


async def test_what_the_queue_explains_is_not_told(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    ids = await fill(client, tenant)
    nothing_yet = await verify(client, tenant, worker)
    assert (nothing_yet["missing"], nothing_yet["equal"]) == (0, True)
    assert nothing_yet["waiting"] > 0
    await drain(worker)
    # A worker derives and dies before it writes; others change what is counted over several memories.
    changes = (
        ("DELETE", f"/v1/memories/{ids[0]}", None),
        ("PATCH", f"/v1/memories/{ids[1]}", {"text": "Of Eve Marsh."}),
    )
    for method, path, body in changes:
        answer = await client.request(method, path, json=body, headers=tenant.headers())
        assert answer.status_code == 200, answer.text
    lease = await worker.queue.lease(tenant.tenant_id)
    assert lease is not None
    events = await worker.queue.claim(lease, 10)
    await worker.projector.derive(lease, await worker.projector.load(lease, events))
    await worker.queue.refund(lease, [event.id for event in events], None, 0.0)
    await worker.queue.release(lease)
    between = await verify(client, tenant, worker)
    assert (between["missing"], between["extra"], between["differing"]) == (0, 0, 0), between["differences"]
    assert between["waiting"] > 0
    await drain(worker)
    after = await verify(client, tenant, worker)
    assert (after["equal"], after["waiting"]) == (True, 0)


async def test_what_a_dead_event_keeps_out_is_counted_apart(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    ids = await fill(client, tenant)
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute(
            "UPDATE outbox_events SET status = 'dead', attempts = 5, finished_at = now() WHERE aggregate_id = %s",
            (ids[4],),
        )
    await drain(worker)
    found = await verify(client, tenant, worker)
    assert (found["dead"], found["missing"], found["equal"]) == (1, 0, False)


async def test_pages_that_end_inside_a_hub_are_compared_whole(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PAGE", 3)
    monkeypatch.setattr(engine, "DOUBTED", 4)
    tenant = tenant_factory()
    await fill(client, tenant)
    await drain(worker)
    assert (await verify(client, tenant, worker))["equal"] is True
    right = await dump(worker, tenant.tenant_id)
    ghosts = [EntityNode(str(uuid4()), "ghost", "person", 1.0, declared=False) for _ in range(20)]
    await corrupt(worker, tenant, GraphPatch(entities=ghosts, deleted_memories=sorted(right.memories)[1:4]))
    found = await verify(client, tenant, worker)
    lost = {key: value for key, value in right.mentions.items() if key[0] in sorted(right.memories)[1:4]}
    parts = found["parts"]
    assert (parts["entities"]["extra"], parts["memories"]["missing"]) == (20, 3)
    assert parts["mentions"]["missing"] == len(lost)
    assert (await repair(client, tenant, worker, dry_run=False))["equal"] is True
    assert await dump(worker, tenant.tenant_id) == right


async def test_an_empty_graph_lacks_everything_and_a_full_one_is_emptied(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await fill(client, tenant)
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    await worker.backend.drop(tenant.tenant_id)
    found = await verify(client, tenant, worker)
    assert found["missing"] == sum(counts["rows"] for counts in found["parts"].values()) > 0
    assert (await repair(client, tenant, worker, dry_run=False))["equal"] is True
    assert await dump(worker, tenant.tenant_id) == right


async def test_a_damaged_graph_is_rebuilt(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = tenant_factory()
    await fill(client, tenant)
    await drain(worker)

    async def broken(_: UUID) -> dict[str, int]:
        raise engine.GraphDamagedError("Attempted to access undefined attribute")

    with monkeypatch.context() as patched:
        patched.setattr(worker.backend, "scan", broken)
        found = await verify(client, tenant, worker)
    assert found["equal"] is False
    assert "undefined attribute" in found["damage"]
    rebuilds = (await client.get("/v1/graph/rebuilds", headers=tenant.headers("operator"))).json()["items"]
    assert [(job["status"], job["requested_by"]) for job in rebuilds] == [
        ("pending", "the service: the graph is damaged")
    ]
    await rebuild(worker)
    assert (await verify(client, tenant, worker))["equal"] is True


async def test_a_row_that_the_graph_refuses_is_left_and_the_others_are_mended(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = tenant_factory()
    await fill(client, tenant)
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    await corrupt(worker, tenant, GraphPatch(deleted_memories=sorted(right.memories)))
    poison, apply = min(right.memories), worker.backend.apply

    async def refusing(tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        if any(memory.id == poison for memory in patch.memories):
            raise GraphDataError("no")
        await apply(tenant_id, token, patch)

    monkeypatch.setattr(worker.backend, "apply", refusing)
    found = await repair(client, tenant, worker, dry_run=False)
    assert found["equal"] is False
    assert set((await dump(worker, tenant.tenant_id)).memories) == set(right.memories) - {poison}


async def test_writes_during_a_comparison_are_no_differences(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two reads of the comparison a memory is changed, and projected or not."""
    monkeypatch.setattr(engine, "PAGE", 2)
    tenant = tenant_factory()
    ids = await fill(client, tenant)
    await drain(worker)
    turns = 0
    read_page = worker.backend.read_page

    async def interrupted(*arguments: Any) -> Any:
        nonlocal turns
        turns += 1
        path = f"/v1/memories/{ids[turns % 3]}"
        text = TEXTS[turns % len(TEXTS)] + f" It was the {turns}th time that Eve Marsh met Finn Roe."
        answer = await client.patch(path, json={"text": text}, headers=tenant.headers())
        assert answer.status_code == 200, answer.text
        if turns % 2:
            await projector.take_turn(worker, tenant.tenant_id)
        return await read_page(*arguments)

    monkeypatch.setattr(worker.backend, "read_page", interrupted)
    found = await verify(client, tenant, worker)
    assert turns > 10
    assert (found["missing"], found["extra"], found["differing"]) == (0, 0, 0), found["differences"]


async def test_what_is_no_id_of_ours_is_extra_and_goes(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await fill(client, tenant)
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    strange = "not an id"
    link = next(iter(right.links.values()))
    await corrupt(
        worker,
        tenant,
        GraphPatch(
            entities=[EntityNode(strange, "ghost", "person", 1.0, declared=False)],
            memories=[MemoryNode(strange, "Skill", "active", 1)],
            mentions=[Mention(strange, strange, 0.5)],
            co_occurrences=[CoOccurrence(*sorted((link.entity_id, strange)), 0.5, 1)],
            links=[LinkEdge(strange, link.entity_id, NodeRef("record", strange), "saw", 0.5)],
        ),
    )
    found = await verify(client, tenant, worker)
    assert (found["extra"], found["missing"], found["differing"]) == (6, 0, 0)
    assert (await repair(client, tenant, worker, dry_run=False))["equal"] is True
    assert await dump(worker, tenant.tenant_id) == right


async def test_differences_tell_nobody_what_is_private(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    body = {"name": "Secret Project", "entity_type": "project", "visibility": "private"}
    headers = tenant.headers(user="ann")
    assert (await client.post("/v1/memory/entities", json=body, headers=headers)).status_code == 201
    body = {"name": "Open Project", "entity_type": "project"}
    assert (await client.post("/v1/memory/entities", json=body, headers=headers)).status_code == 201
    await drain(worker)
    await worker.backend.drop(tenant.tenant_id)
    asked = await client.get("/v1/graph/verify", params={"wait_s": 0}, headers=tenant.headers("operator"))
    assert await verifier.take_job(worker)
    for path in (f"/v1/graph/verifications/{asked.json()['id']}", "/v1/graph/verifications"):
        answer = await client.get(path, headers=tenant.headers("operator"))
        assert "Open Project" in answer.text
        assert "Secret" not in answer.text
    owner = await client.get(path, headers=tenant.headers("operator", user="ann"))
    assert "Secret Project" in owner.text


async def test_a_repair_waits_for_the_queue_and_mends_what_it_left(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair is lost; a memory that names both is changed meanwhile and names neither: its event does not mend it."""
    monkeypatch.setattr(engine, "PAUSES_S", (0.0,))
    tenant = tenant_factory()
    first = (await post(client, tenant, "/v1/memories", {"text": TEXTS[0], "label": "Attribute"}))["memory"]["id"]
    await post(client, tenant, "/v1/memories", {"text": TEXTS[0], "label": "Attribute", "dedup": "off"})
    await drain(worker)
    pair, _ = next(iter((await dump(worker, tenant.tenant_id)).co_occurrences.items()))
    await client.patch(f"/v1/memories/{first}", json={"text": "It rained."}, headers=tenant.headers())
    await corrupt(worker, tenant, GraphPatch(co_occurrences=[CoOccurrence(*pair, 0.0, 0)]))
    settle = engine.Verifier._settle_deferred

    async def projected_first(*arguments: Any) -> None:
        await drain(worker)
        await corrupt(worker, tenant, GraphPatch(co_occurrences=[CoOccurrence(*pair, 0.0, 0)]))
        await settle(*arguments)

    monkeypatch.setattr(engine.Verifier, "_settle_deferred", projected_first)
    mended = await repair(client, tenant, worker, dry_run=False)
    assert (mended["repaired"], mended["waiting"], mended["equal"]) == (1, 0, True)
    assert (await verify(client, tenant, worker))["equal"] is True
