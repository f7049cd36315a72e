"""The graph after entities were merged and split, on both backends, in whatever order the events come."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.entities import ENTITIES, declare, store_memory
from tests.fixtures.merged_world import TEXTS, MergedWorld, at_random, first_of
from tests.fixtures.merging import merge, split
from tests.fixtures.service import TenantFactory
from tests.fixtures.worker import drain, dump

from memory_os.graph.port import GraphDump, NodeRef
from memory_os_workers import projector
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

DELETE, UPSERT = "GRAPH_DELETE", "GRAPH_UPSERT"


@pytest.fixture
async def world(client: httpx.AsyncClient, tenant_factory: TenantFactory) -> MergedWorld:
    made = MergedWorld(client, tenant_factory())
    await made.fill()
    return made


async def merged(world: MergedWorld) -> None:
    answer = await merge(world.client, world.headers, world.source, world.into)
    assert answer.status_code == 200, answer.text


def names_of(graph: GraphDump) -> dict[str, str]:
    return {node.name: node.id for node in graph.entities.values()}


def assert_merged(world: MergedWorld, graph: GraphDump) -> None:
    """What the graph must say of the world after the merge, reckoned by hand."""
    ids, into = world.ids, world.into
    names = names_of(graph)
    assert names.keys() == {"Nordic Logistics", "Ann Miller", "Bob Stone"}
    bob, ann = names["Bob Stone"], ids["ann"]
    assert graph.mentions == {
        (ids["one"], into): pytest.approx(1.2),  # named twice
        (ids["one"], bob): pytest.approx(0.7),
        (ids["two"], into): pytest.approx(1.0),
        (ids["two"], bob): pytest.approx(0.7),
        (ids["two"], ann): pytest.approx(1.0),
        (ids["both"], into): pytest.approx(1.2),  # once under each name
        (ids["both"], ann): pytest.approx(1.0),
        (ids["small"], into): pytest.approx(1.0),
        (ids["shared"], into): pytest.approx(1.0),  # the alias of two stood for neither
        (ids["shared"], bob): pytest.approx(0.7),
    }
    assert graph.entities[into].strength == pytest.approx(1.0 + 0.2 * 6)
    assert {pair: count for pair, (_, count) in graph.co_occurrences.items()} == {
        tuple(sorted((into, bob))): 3,
        tuple(sorted((into, ann))): 2,
        tuple(sorted((bob, ann))): 1,
    }
    entity, one, none = NodeRef("entity", into), NodeRef("memory", ids["one"]), NodeRef("memory", ids["none"])
    edges = {key: (edge.source, edge.target, edge.co_reference_count) for key, edge in graph.edges.items()}
    assert edges == {
        ids["about"]: (one, entity, 5),
        ids["weak into"]: (entity, none, 5),
        ids["moving"]: (entity, NodeRef("memory", ids["two"]), 0),
        ids["staying"]: (NodeRef("memory", ids["two"]), entity, 0),
    }
    assert {key: (edge.entity_id, edge.target.id) for key, edge in graph.links.items()} == {
        ids["employs into"]: (into, ann),
        ids["knows"]: (ann, into),
        ids["record"]: (into, ids["outcome"]),
    }
    assert graph.records == {ids["outcome"]}


async def test_mentions_counts_edges_and_links_follow_a_merge(world: MergedWorld, worker: WorkerContext) -> None:
    await drain(worker)
    before = await dump(worker, world.tenant.tenant_id)
    assert names_of(before).keys() == {
        *("Northwind Freight", "Nordic Logistics", "Ann Miller", "Bob Stone", "Harbour Line"),
    }
    await merged(world)
    await drain(worker)
    assert_merged(world, await world.assert_true(worker))
    assert world.named()[world.into] == {"northwind freight", "nordic logistics", "nwf", "harbour line"}
    seen = (await world.client.get(f"{ENTITIES}/{world.into}", headers=world.headers)).json()
    assert seen["mention_count"] == 5
    listed = await world.client.get(ENTITIES, params={"declared": False}, headers=world.headers)
    assert [item["name"] for item in listed.json()["items"]] == ["Bob Stone"]  # the shared alias's own one is gone


@pytest.mark.parametrize("first", ["the deletion", "the deletion and its memories", "the upsert", "edges and links"])
async def test_the_order_of_the_events_makes_no_difference(
    world: MergedWorld, worker: WorkerContext, first: str
) -> None:
    await drain(worker)
    await merged(world)
    deletion, upsert = (DELETE, world.source), (UPSERT, world.into)
    memories = [(UPSERT, world.ids[key]) for key in TEXTS]
    moved = [(event["event_type"], event["aggregate_id"]) for event in world.pending()]
    choose = {
        "the deletion": first_of(deletion, upsert),
        "the deletion and its memories": first_of(deletion, *memories, upsert),
        "the upsert": first_of(upsert, *memories, deletion),
        "edges and links": first_of(*(event for event in moved if event not in (deletion, upsert)), upsert),
    }[first]
    done = await world.project_one_by_one(worker, choose)
    order = [(event["event_type"], event["aggregate_id"]) for event in done]
    assert (order.index(deletion) < order.index(upsert)) == first.startswith("the deletion")
    assert_merged(world, await world.assert_true(worker))


@pytest.mark.parametrize("seed", range(6))
async def test_any_order_even_of_what_was_never_projected_before_ends_in_the_same_graph(
    world: MergedWorld, worker: WorkerContext, seed: int
) -> None:
    if seed % 2:
        await drain(worker)
    else:  # half-way through what was stored, the two become one
        await world.project_one_by_one(worker, at_random(seed), most=9)
    await merged(world)
    await world.project_one_by_one(worker, at_random(seed))
    assert_merged(world, await world.assert_true(worker))


@pytest.mark.parametrize("dies", [False, True])
async def test_an_upsert_that_fails_and_comes_after_the_merge_does_not_bring_the_node_back(
    world: MergedWorld, worker: WorkerContext, *, dies: bool
) -> None:
    await drain(worker)
    path = f"{ENTITIES}/{world.source}"
    changed = await world.client.patch(path, json={"summary": "Freight."}, headers=world.headers)
    assert changed.status_code == 200
    # A confidence that can't be: a real fault of the row, which no call could have stored.
    world.run("UPDATE entities SET mention_confidence = 7 WHERE id = %s", world.source)
    for _ in range(5 if dies else 2):
        world.run("UPDATE outbox_events SET available_at = now() WHERE status = 'pending'")
        await projector.take_turn(worker, world.tenant.tenant_id)
    (failed,) = world.rows("SELECT id, status, attempts FROM outbox_events WHERE attempts > 1")
    assert (failed["status"], failed["attempts"]) == (("dead", 5) if dies else ("pending", 2))
    await merged(world)
    await world.project_one_by_one(worker, first_of((DELETE, world.source), (UPSERT, world.into)))
    (healed,) = world.rows("SELECT status, attempts FROM outbox_events WHERE id = %s", failed["id"])
    assert healed == {"status": "done", "attempts": 5 if dies else 3}
    assert_merged(world, await world.assert_true(worker))


async def test_a_batch_that_was_read_before_the_merge_and_written_after_it_is_put_right(
    world: MergedWorld, worker: WorkerContext
) -> None:
    await drain(worker)
    for key in ("one", "both"):
        await world.client.patch(f"/v1/memories/{world.ids[key]}", json={"title": "x"}, headers=world.headers)
    await world.client.patch(f"{ENTITIES}/{world.source}", json={"summary": "Freight."}, headers=world.headers)
    world.run(
        "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) "
        "SELECT tenant_id, 'GRAPH_UPSERT', 'edge', id, version FROM edges"
    )
    lease = await worker.queue.lease(world.tenant.tenant_id)
    assert lease is not None
    await worker.backend.take_fence(world.tenant.tenant_id, str(lease.token))
    events = await worker.queue.claim(lease, 100)
    patch = await worker.projector.derive(lease, await worker.projector.load(lease, events))
    await merged(world)
    await worker.projector.write(lease, patch)
    await worker.queue.finish(lease, [event.id for event in events])
    await worker.queue.release(lease)
    assert world.source in (await dump(worker, world.tenant.tenant_id)).entities
    await drain(worker)
    assert_merged(world, await world.assert_true(worker))


async def test_one_after_another_become_one_before_anything_is_projected(
    world: MergedWorld, worker: WorkerContext
) -> None:
    await merged(world)
    answer = await merge(world.client, world.headers, world.into, world.ids["ann"])
    assert answer.status_code == 200, answer.text
    await drain(worker)
    graph = await world.assert_true(worker)
    assert names_of(graph).keys() == {"Ann Miller", "Bob Stone"}
    ann = world.ids["ann"]
    assert {memory for memory, entity in graph.mentions if entity == ann} == {
        world.ids[key] for key in ("one", "two", "both", "small", "shared")
    }
    assert {count for _, count in graph.co_occurrences.values()} == {3}
    assert set(graph.links) == {world.ids["record"]}


@pytest.mark.parametrize("drained", [True, False])
async def test_a_split_after_the_merge_gives_the_mentions_back(
    world: MergedWorld, worker: WorkerContext, *, drained: bool
) -> None:
    await drain(worker)
    before = await dump(worker, world.tenant.tenant_id)
    await merged(world)
    if drained:
        await drain(worker)
    chosen = {"id": world.source} if drained else {}  # an id is free again once nothing mentions it any more
    answer = await split(world.client, world.headers, world.into, "Northwind Freight", "NWF", **chosen)
    assert answer.status_code == 201, answer.text
    back = answer.json()["entity"]["id"]
    await world.project_one_by_one(worker, at_random(1))
    graph = await world.assert_true(worker)
    assert world.named()[back] == {"northwind freight", "nwf"}
    # The alias that both had stays with the one that was asked to keep it; all else is mentioned as it was.
    shared, derived = world.ids["shared"], names_of(before)["Harbour Line"]
    assert {(memory, entity) for memory, entity in graph.mentions if memory != shared} == {
        (memory, back if entity == world.source else entity) for memory, entity in before.mentions if memory != shared
    }
    assert (shared, world.into) in graph.mentions
    assert derived not in graph.entities
    assert graph.entities[back].strength == before.entities[world.source].strength
    assert {edge.source.id for edge in graph.edges.values() if edge.source.kind == "entity"} == {world.into}
    answer = await split(world.client, world.headers, world.into, "Harbour Line", name="Nordic Logistics")
    assert answer.status_code == 201, answer.text
    await drain(worker)
    graph = await world.assert_true(worker)
    homonym = next(node for node in graph.entities.values() if not node.declared and node.name == "Nordic Logistics")
    assert {memory for memory, entity in graph.mentions if entity == homonym.id} == {
        world.ids["two"],
        world.ids["both"],
    }


async def test_texts_that_come_after_the_merge_name_the_one_that_is_left(
    world: MergedWorld, worker: WorkerContext
) -> None:
    await drain(worker)
    await merged(world)
    late = await store_memory(world.client, world.headers, text="Once more Northwind Freight and NL.")
    await drain(worker)
    graph = await world.assert_true(worker)
    assert [entity for memory, entity in graph.mentions if memory == late] == [world.into]


async def test_an_entity_that_nothing_mentions_goes_too(world: MergedWorld, worker: WorkerContext) -> None:
    quiet = await declare(world.client, world.headers, name="Quiet Quays")
    await drain(worker)
    assert quiet["id"] in (await dump(worker, world.tenant.tenant_id)).entities
    answer = await merge(world.client, world.headers, quiet["id"], world.ids["ann"])
    assert answer.status_code == 200, answer.text
    await drain(worker)
    assert quiet["id"] not in (await world.assert_true(worker)).entities
