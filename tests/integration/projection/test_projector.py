"""From a stored memory to the graph and back out of it, on both backends."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.fixtures.service import TenantFactory, TestTenant
from tests.fixtures.worker import drain, dump, rebuild

from memory_os.domain.extraction import EXTRACTOR_VERSION, extract
from memory_os.graph.port import GraphUnavailableError
from memory_os.outbox.queue import ClaimedEvent, Lease
from memory_os.projection import derivation
from memory_os_workers import projector
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


async def store(client: httpx.AsyncClient, tenant: TestTenant, text: str, **fields: object) -> str:
    body = {"text": text, "label": "Attribute", **fields}
    answer = await client.post("/v1/memories", json=body, headers=tenant.headers())
    assert answer.status_code == 201, answer.text
    return str(answer.json()["memory"]["id"])


def statuses(tenant: TestTenant) -> dict[str, int]:
    with psycopg.connect(tenant.owner_url) as connection:
        rows = connection.execute("SELECT status, count(*) FROM outbox_events GROUP BY status").fetchall()
    return dict(rows)


async def request_rebuild(client: httpx.AsyncClient, tenant: TestTenant, **body: object) -> str:
    answer = await client.post("/v1/graph/rebuild", json=body, headers=tenant.headers("admin"))
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def test_weights_follow_the_counts(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    first = await store(client, tenant, "We met Ardal & Finch about the Ledger Migration, and Ardal & Finch agreed.")
    second = await store(client, tenant, "Later Ardal & Finch left the Ledger Migration.")
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    names = {node.name: node for node in graph.entities.values()}
    assert set(names) == {"Ardal & Finch", "Ledger Migration"}
    firm, project = names["Ardal & Finch"], names["Ledger Migration"]
    assert graph.mentions[first, firm.id] == pytest.approx(0.7 + 0.2)
    assert graph.mentions[second, firm.id] == pytest.approx(0.7)
    assert firm.strength == pytest.approx(0.7 + 0.2 * 2)
    pair = (min(firm.id, project.id), max(firm.id, project.id))
    assert graph.co_occurrences == {pair: (pytest.approx(0.55), 2)}
    assert statuses(tenant) == {"done": 2}


async def test_delivering_everything_again_changes_nothing(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    for text in ("We met Ann Miller and Bob Stone.", "Then Ann Miller met Carl Berg.", "So Bob Stone met Carl Berg."):
        await store(client, tenant, text)
    await drain(worker)
    before = await dump(worker, tenant.tenant_id)
    assert len(before.co_occurrences) == 3
    with psycopg.connect(tenant.owner_url) as connection:
        for _ in range(3):
            connection.execute(
                "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) "
                "SELECT tenant_id, event_type, aggregate_type, aggregate_id, version FROM outbox_events"
            )
    await drain(worker)
    assert await dump(worker, tenant.tenant_id) == before


async def test_a_deletion_takes_derived_entities_with_it_and_leaves_declared_ones(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    declared = await client.post(
        "/v1/memory/entities", json={"name": "Bob Stone", "entity_type": "person"}, headers=tenant.headers()
    )
    assert declared.status_code == 201, declared.text
    gone = await store(client, tenant, "We met Ann Miller and Bob Stone.")
    kept = await store(client, tenant, "We met Bob Stone and Carl Berg.")
    await drain(worker)
    answer = await client.delete(f"/v1/memories/{gone}", headers=tenant.headers())
    assert answer.status_code == 200
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert set(graph.memories) == {kept}
    assert {node.name for node in graph.entities.values()} == {"Bob Stone", "Carl Berg"}
    assert [count for _, count in graph.co_occurrences.values()] == [1]
    await client.delete(f"/v1/memories/{kept}", headers=tenant.headers())
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert {node.name: node.declared for node in graph.entities.values()} == {"Bob Stone": True}
    assert not graph.memories
    with psycopg.connect(tenant.owner_url) as connection:
        names = connection.execute("SELECT name, mention_records, mention_occurrences FROM entities").fetchall()
        assert names == [("Bob Stone", 0, 0)]
        assert connection.execute("SELECT count(*) FROM entity_pairs").fetchone() == (0,)


async def test_what_was_derived_but_never_written_leaves_nothing_behind(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Bob Stone.")
    await drain(worker)
    lost = await store(client, tenant, "We met Ann Miller and Bob Stone.")
    # A worker derives, and dies before it writes; then the memory is deleted.
    lease = await worker.queue.lease(tenant.tenant_id)
    assert lease is not None
    events = await worker.queue.claim(lease, 10)
    await worker.projector.derive(lease, await worker.projector.load(lease, events))
    await worker.queue.refund(lease, [event.id for event in events], None, 0.0)
    await worker.queue.release(lease)
    await client.delete(f"/v1/memories/{lost}", headers=tenant.headers())
    await drain(worker)
    grown = await dump(worker, tenant.tenant_id)
    assert {node.name for node in grown.entities.values()} == {"Bob Stone"}
    listed = await client.get("/v1/memory/entities", params={"declared": False}, headers=tenant.headers())
    assert [entity["name"] for entity in listed.json()["items"]] == ["Bob Stone"]
    await request_rebuild(client, tenant)
    await rebuild(worker)
    assert await dump(worker, tenant.tenant_id) == grown


@pytest.mark.parametrize("how", ["edge", "memory", "link", "record"])
async def test_a_derived_entity_goes_with_the_last_thing_that_held_it(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, how: str
) -> None:
    tenant = tenant_factory()
    headers = tenant.headers()
    named = await store(client, tenant, "We met Ann Miller and Bob Stone.")
    other = await store(client, tenant, "nothing here")
    await store(client, tenant, "We met Bob Stone.")
    await drain(worker)
    ann = next(
        node.id for node in (await dump(worker, tenant.tenant_id)).entities.values() if node.name == "Ann Miller"
    )
    links = f"/v1/memory/entities/{ann}/links"
    if how in {"edge", "memory"}:
        body = {"type": "ABOUT", "from": {"memory": other}, "to": {"entity": ann}}
        edge = (await client.post("/v1/edges", json=body, headers=headers)).json()["edge"]["id"]
        path = f"/v1/edges/{edge}" if how == "edge" else f"/v1/memories/{other}"
    else:
        outcome = (await client.post("/v1/memory/outcomes", json={"title": "Done"}, headers=headers)).json()["outcome"]
        body = {"layer": "outcome", "target_id": outcome["id"], "relationship": "led to"}
        answer = await client.post(links, json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        path = f"/v1/memory/outcomes/{outcome['id']}" if how == "record" else f"{links}/{answer.json()['link']['id']}"
    await drain(worker)
    if how in {"memory", "record"}:  # edge and link are hidden with the entity, so they have to go first
        await client.delete(f"/v1/memories/{named}", headers=headers)
        await drain(worker)
        assert ann in (await dump(worker, tenant.tenant_id)).entities
    assert (await client.delete(path, headers=headers)).status_code == 200
    await drain(worker)
    if how in {"edge", "link"}:
        await client.delete(f"/v1/memories/{named}", headers=headers)
        await drain(worker)
    grown = await dump(worker, tenant.tenant_id)
    assert {node.name for node in grown.entities.values()} == {"Bob Stone"}
    await request_rebuild(client, tenant)
    await rebuild(worker)
    assert await dump(worker, tenant.tenant_id) == grown


async def test_a_changed_text_moves_its_mentions(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    memory = await store(client, tenant, "We met Ann Miller and Bob Stone.")
    await drain(worker)
    changed = await client.patch(
        f"/v1/memories/{memory}", json={"text": "We met Ann Miller and Carl Berg."}, headers=tenant.headers()
    )
    assert changed.status_code == 200
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert {node.name for node in graph.entities.values()} == {"Ann Miller", "Carl Berg"}
    assert graph.memories[memory].version == 2
    assert len(graph.mentions) == 2


async def test_a_changed_title_moves_its_mentions(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    memory = await store(client, tenant, "He founded it.", title="Ann Miller")
    path = f"/v1/memories/{memory}"
    for title, names in (("Ann Miller", {"Ann Miller"}), ("Inception (film)", {"Inception"}), (None, set())):
        answer = await client.patch(path, json={"title": title}, headers=tenant.headers())
        assert answer.status_code == 200, answer.text
        await drain(worker)
        graph = await dump(worker, tenant.tenant_id)
        assert {graph.entities[entity].name for _, entity in graph.mentions} == names
        assert {node.name for node in graph.entities.values()} == names
    with psycopg.connect(tenant.owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM mentions").fetchone() == (0,)


async def test_declaring_an_entity_takes_over_what_was_derived(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    spoken = await store(client, tenant, "We met Northwind Freight today.")
    small = await store(client, tenant, "the invoice of nwf is late.")
    await drain(worker)
    entity = await client.post(
        "/v1/memory/entities",
        json={"name": "Northwind Freight", "entity_type": "vendor", "aliases": ["NWF"]},
        headers=tenant.headers(),
    )
    ident = entity.json()["entity"]["id"]
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert set(graph.entities) == {ident}
    assert set(graph.mentions) == {(spoken, ident), (small, ident)}
    answer = await client.delete(f"/v1/memory/entities/{ident}", headers=tenant.headers())
    assert answer.status_code == 200, answer.text
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert [(node.name, node.declared) for node in graph.entities.values()] == [("Northwind Freight", False)]
    assert [memory for memory, _ in graph.mentions] == [spoken]


async def test_edges_and_links_are_projected_with_their_ends(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    headers = tenant.headers()
    one, two = await store(client, tenant, "one"), await store(client, tenant, "two")
    entity = (
        await client.post("/v1/memory/entities", json={"name": "Ann", "entity_type": "person"}, headers=headers)
    ).json()["entity"]["id"]
    outcome = (await client.post("/v1/memory/outcomes", json={"title": "It worked"}, headers=headers)).json()
    outcome_id = outcome["outcome"]["id"]
    body = {"type": "SUPPORTS", "from": {"memory": one}, "to": {"memory": two}, "confidence": 0.8}
    edge = (await client.post("/v1/edges", json=body, headers=headers)).json()["edge"]["id"]
    links = [
        (
            await client.post(
                f"/v1/memory/entities/{entity}/links",
                json={"layer": layer, "target_id": target, "relationship": "works`on"},
                headers=headers,
            )
        ).json()["link"]["id"]
        for layer, target in (("memory", one), ("outcome", outcome_id))
    ]
    # The edge's and the links' own events come first: they must bring their nodes with them.
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute(
            "UPDATE outbox_events SET available_at = now() - interval '1 hour' WHERE aggregate_type LIKE '%e%l%'"
        )
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert set(graph.edges) == {edge}
    assert graph.edges[edge].confidence == pytest.approx(0.8)
    assert set(graph.links) == set(links)
    assert graph.records == frozenset({outcome_id})
    await client.delete(f"/v1/memory/outcomes/{outcome_id}", headers=headers)
    await client.delete(f"/v1/edges/{edge}", headers=headers)
    await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert not graph.edges
    assert set(graph.links) == {links[0]}
    assert graph.records == frozenset()


async def test_a_rebuild_equals_what_has_grown(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant, other = tenant_factory(), tenant_factory()
    ids = [
        await store(client, tenant, f"We saw Ann Miller{n % 3} with Bob Stone{n % 4} near Carl Berg{n % 5}.")
        for n in range(24)
    ]
    await store(client, other, "We saw Ann Miller0 elsewhere.")
    for source, target in pairwise(ids):
        body = {"type": "SUPPORTS", "from": {"memory": source}, "to": {"memory": target}}
        assert (await client.post("/v1/edges", json=body, headers=tenant.headers())).status_code == 201
    await drain(worker)
    for ident in ids[::5]:
        await client.delete(f"/v1/memories/{ident}", headers=tenant.headers())
    archived = await client.patch(f"/v1/memories/{ids[1]}", json={"status": "archived"}, headers=tenant.headers())
    assert archived.status_code == 200, archived.text
    await drain(worker)
    grown, elsewhere = await dump(worker, tenant.tenant_id), await dump(worker, other.tenant_id)
    job = await request_rebuild(client, tenant)
    await rebuild(worker)
    status = (await client.get(f"/v1/graph/rebuilds/{job}", headers=tenant.headers("admin"))).json()
    assert status["status"] == "done", status
    assert status["processed"] == status["total"] > 0
    assert await dump(worker, tenant.tenant_id) == grown
    assert await dump(worker, other.tenant_id) == elsewhere
    assert ids[1] in grown.memories


async def test_a_rebuild_takes_in_what_was_stored_while_the_graph_was_off(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    memory = await store(client, tenant, "We met Ann Miller.")
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("DELETE FROM outbox_events")
    await request_rebuild(client, tenant)
    await rebuild(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert [(ident, graph.entities[entity].name) for ident, entity in graph.mentions] == [(memory, "Ann Miller")]


async def test_a_rebuild_extracts_anew_what_an_older_extractor_has_read(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = tenant_factory()
    memory = await store(client, tenant, "He met Bob Stone.", title="Ann Miller")
    with monkeypatch.context() as patch:  # the first version, which read the text alone
        patch.setattr(derivation, "extract", lambda text, declared, _title: extract(text, declared))
        patch.setitem(derivation.EXTRACTED_BY, "extractor_version", 1)
        await drain(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert [node.name for node in graph.entities.values()] == ["Bob Stone"]
    await request_rebuild(client, tenant)
    await rebuild(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert {node.name: node.strength for node in graph.entities.values()} == {"Ann Miller": 0.7, "Bob Stone": 0.7}
    assert len(graph.co_occurrences) == 1
    with psycopg.connect(tenant.owner_url) as connection:
        rows = connection.execute(
            "SELECT memory_id::text, canonical_name, spans, extractor_version FROM mentions ORDER BY 2"
        ).fetchall()
    assert rows == [(memory, "ann miller", [], EXTRACTOR_VERSION), (memory, "bob stone", [7, 16], EXTRACTOR_VERSION)]


async def test_a_rebuild_that_would_leave_memories_out_is_refused(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    for number in range(3):
        await store(client, tenant, f"fact {number}")
    await drain(worker)
    job = await request_rebuild(client, tenant, limit=2)
    await rebuild(worker)
    status = (await client.get(f"/v1/graph/rebuilds/{job}", headers=tenant.headers("admin"))).json()
    assert status["status"] == "failed"
    assert "allow_partial" in status["error"]
    assert len((await dump(worker, tenant.tenant_id)).memories) == 3
    job = await request_rebuild(client, tenant, limit=2, allow_partial=True)
    await rebuild(worker)
    status = (await client.get(f"/v1/graph/rebuilds/{job}", headers=tenant.headers("admin"))).json()
    assert (status["status"], status["truncated"]) == ("done", True)
    assert len((await dump(worker, tenant.tenant_id)).memories) == 2


async def test_one_users_rebuild_leaves_the_others_alone(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    mine = await store(client, tenant, "We met Ann Miller.", user_id="ann")
    await store(client, tenant, "We met Bob Stone.", user_id="ben")
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("DELETE FROM outbox_events")
    await request_rebuild(client, tenant, user_id="ann")
    await rebuild(worker)
    graph = await dump(worker, tenant.tenant_id)
    assert set(graph.memories) == {mine}


async def test_a_poison_event_dies_after_five_attempts_and_hurts_nobody(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    ids = [await store(client, tenant, f"We met Ann Miller{number}.") for number in range(9)]
    with psycopg.connect(tenant.owner_url) as connection:
        # A moment that Python can't hold: a real fault of the data, which no API call could have stored.
        connection.execute("UPDATE memories SET valid_to = 'infinity' WHERE id = %s", (ids[4],))
    for attempt in range(1, 6):
        await projector.take_turn(worker, tenant.tenant_id)
        with psycopg.connect(tenant.owner_url) as connection:
            row = connection.execute(
                "SELECT status, attempts, jsonb_array_length(errors), last_error FROM outbox_events "
                "WHERE aggregate_id = %s",
                (ids[4],),
            ).fetchone()
            others = connection.execute(
                "SELECT DISTINCT status, attempts FROM outbox_events WHERE aggregate_id <> %s", (ids[4],)
            ).fetchall()
            connection.execute("UPDATE outbox_events SET available_at = now() WHERE status = 'pending'")
        assert row is not None
        assert row[:3] == ("dead" if attempt == 5 else "pending", attempt, attempt)
        assert "DataError" in row[3]
        assert others == [("done", 1)]
    graph = await dump(worker, tenant.tenant_id)
    assert set(graph.memories) == set(ids) - {ids[4]}
    # Repaired and changed: the later event's success heals the dead one.
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("UPDATE memories SET valid_to = NULL WHERE id = %s", (ids[4],))
    await client.patch(f"/v1/memories/{ids[4]}", json={"title": "mended"}, headers=tenant.headers())
    await drain(worker)
    assert statuses(tenant) == {"done": 10}
    assert set((await dump(worker, tenant.tenant_id)).memories) == set(ids)


async def test_infrastructure_failures_cost_no_attempt_and_open_the_breaker(
    client: httpx.AsyncClient,
    tenant_factory: TenantFactory,
    worker: WorkerContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller.")

    async def refuse(_: Lease, __: list[ClaimedEvent]) -> None:
        raise GraphUnavailableError("connection refused")

    with monkeypatch.context() as broken:
        broken.setattr(worker.projector, "load", refuse)
        await projector.take_turn(worker, tenant.tenant_id)
    assert worker.breaker.state == "open"
    with psycopg.connect(tenant.owner_url) as connection:
        row = connection.execute("SELECT status, attempts, errors, last_error FROM outbox_events").fetchone()
    assert row == ("pending", 0, [], "GraphUnavailableError: connection refused")
    worker.breaker.succeed()
    await drain(worker)
    assert statuses(tenant) == {"done": 1}


async def test_a_tenant_that_somebody_holds_is_left_alone(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenant = tenant_factory()
    await store(client, tenant, "We met Ann Miller.")
    lease = await worker.queue.lease(tenant.tenant_id)
    assert lease is not None
    assert await worker.queue.lease(tenant.tenant_id) is None
    assert await worker.queue.due_tenants(UUID(int=0), 10) == []
    await projector.take_turn(worker, tenant.tenant_id)
    assert statuses(tenant) == {"pending": 1}
    await worker.queue.release(lease)
    assert await worker.queue.claim(lease, 10) != []  # nobody has taken it over yet
    stranger = Lease(tenant.tenant_id, UUID(int=7))
    assert await worker.queue.claim(stranger, 10) == []
    assert await worker.queue.renew(stranger) is False
