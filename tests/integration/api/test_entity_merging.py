"""`/v1/memory/entities/merge` on a real Postgres: what moves, what becomes one, what is told, what races."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.fixtures.entities import ENTITIES, declare, store_memory
from tests.fixtures.merging import edge, link, merge, pair, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os.embedding.port import EmbedderUnavailableError

pytestmark = pytest.mark.anyio

MARCH, APRIL = "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"


async def test_the_other_gets_names_links_and_edges_and_the_one_is_gone(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    source, into = await pair(client, headers)
    acme, memory = (await declare(client, headers, name="Acme"))["id"], await store_memory(client, headers)
    out, back = await link(client, headers, source, acme), await link(client, headers, acme, source)
    said = await link(client, headers, source, memory, layer="memory")
    about = await edge(client, headers, {"memory": memory}, {"entity": source})
    moved_by = await edge(client, headers, {"entity": source}, {"memory": memory}, type="INFLUENCES")
    other = await link(client, headers, acme, memory, layer="memory")

    answer = await merge(client, headers, source, into)
    assert answer.status_code == 200, answer.text
    assert answer.headers["etag"] == '"2"'
    entity = answer.json()["entity"]
    assert (entity["id"], entity["name"], entity["version"]) == (into, "Ann Lee", 2)
    assert entity["aliases"] == ["annie", "A. Lee", "Annie Lee"]
    assert entity["summary"] == "Runs the print shop."
    assert (await client.get(f"{ENTITIES}/{into}", headers=headers)).json() == entity
    assert (await client.get(f"{ENTITIES}/{source}", headers=headers)).status_code == 404
    found = await client.get(ENTITIES, params={"name": "ANNIE LEE"}, headers=headers)
    assert [item["id"] for item in found.json()["items"]] == [into]
    links = {str(row["id"]): row for row in rows_of(database_urls, "SELECT * FROM entity_links")}
    assert {key: (str(row["entity_id"]), str(row["target_id"])) for key, row in links.items()} == {
        out: (into, acme),
        back: (acme, into),
        said: (into, memory),
        other: (acme, memory),
    }
    assert {key: row["version"] for key, row in links.items()} == {out: 2, back: 2, said: 2, other: 1}
    assert links[out]["updated_at"] > links[out]["created_at"]
    assert links[other]["updated_at"] == links[other]["created_at"]
    edges = {str(row["id"]): row for row in rows_of(database_urls, "SELECT * FROM edges")}
    assert str(edges[about]["target_entity_id"]) == str(edges[moved_by]["source_entity_id"]) == into
    assert all(row["version"] == 2 and row["updated_at"] > row["created_at"] for row in edges.values())


async def test_each_thing_that_changed_has_one_event(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    source, into = await pair(client, headers)
    memory = await store_memory(client, headers)
    moved = await link(client, headers, source, memory, layer="memory")
    looped = await link(client, headers, source, into)
    weaker = await edge(client, headers, {"memory": memory}, {"entity": source}, confidence=0.4)
    stronger = await edge(client, headers, {"memory": memory}, {"entity": into}, confidence=0.6)
    rows_of(database_urls, "UPDATE edges SET co_reference_count = 3 WHERE id = %s RETURNING id", weaker)
    before = rows_of(database_urls, "SELECT max(id) AS id FROM outbox_events")[0]["id"]
    answer = await merge(client, headers, source, into)
    events = rows_of(database_urls, "SELECT * FROM outbox_events WHERE id > %s ORDER BY id", before)
    assert {
        (event["event_type"], event["aggregate_type"], str(event["aggregate_id"]), event["version"]) for event in events
    } == {
        ("GRAPH_DELETE", "entity", source, 2),
        ("GRAPH_UPSERT", "entity", into, 2),
        ("GRAPH_UPSERT", "entity_link", moved, 2),
        ("GRAPH_DELETE", "entity_link", looped, 2),
        ("GRAPH_UPSERT", "edge", stronger, 2),
        ("GRAPH_DELETE", "edge", weaker, 2),
    }
    assert len(events) == 6
    assert answer.json()["position"] == events[-1]["id"]
    assert {event["request_id"] for event in events} == {answer.headers["x-request-id"]}


@pytest.mark.parametrize("outward", [True, False])
async def test_equal_edges_become_the_more_confident_one_with_both_counts(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls, *, outward: bool
) -> None:
    headers = tenant.headers()
    source, into = await pair(client, headers)
    memories = [await store_memory(client, headers) for _ in range(3)]

    async def claim(entity: str, memory: str, **fields: Any) -> str:
        ends: list[Any] = [{"entity": entity}, {"memory": memory}]
        return await edge(client, headers, *(ends if outward else ends[::-1]), **fields)

    mine = [
        await claim(source, memory, confidence=value) for memory, value in zip(memories, (0.9, 0.3, 0.5), strict=True)
    ]
    theirs = [await claim(into, memory, confidence=0.5) for memory in memories]
    alone = await claim(source, memories[0], type="TAGGED_WITH")
    counts = {mine[0]: 2, theirs[0]: 40, mine[1]: 3, theirs[1]: 4, theirs[2]: 7}
    for ident, count in counts.items():
        rows_of(database_urls, "UPDATE edges SET co_reference_count = %s WHERE id = %s RETURNING id", count, ident)
    assert (await merge(client, headers, source, into)).status_code == 200
    rows = rows_of(database_urls, "SELECT * FROM edges")
    assert {str(row["id"]): (row["confidence"], row["co_reference_count"], row["version"]) for row in rows} == {
        mine[0]: (0.9, 42, 2),
        theirs[1]: (0.5, 7, 2),
        theirs[2]: (0.5, 7, 1),  # as confident and first there; nothing of it changes
        alone: (0.5, 0, 2),
    }
    assert {str(row["source_entity_id"] or row["target_entity_id"]) for row in rows} == {into}


async def test_equal_links_become_the_more_confident_one_and_others_stay_apart(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    source, into = await pair(client, headers)
    acme = (await declare(client, headers, name="Acme"))["id"]
    memory = await store_memory(client, headers, id=acme)  # an id is one of a kind only among its kind
    window = {"valid_from": MARCH, "valid_to": APRIL}
    surer = await link(client, headers, source, acme, **window, confidence=0.8)
    gone = {
        await link(client, headers, source, acme, **window, confidence=0.2),
        await link(client, headers, into, acme, **window, confidence=0.7),
        await link(client, headers, acme, source, confidence=0.5),
        await link(client, headers, source, into),
        await link(client, headers, into, source, relationship="is"),
    }
    kept = {
        surer,
        await link(client, headers, acme, into, confidence=0.5),
        await link(client, headers, source, acme, valid_from=MARCH),
        await link(client, headers, source, acme, **window, relationship="works for"),
        await link(client, headers, source, memory, layer="memory", **window),
        await link(client, headers, into, acme),
    }
    assert (await merge(client, headers, source, into)).status_code == 200
    left = {str(row["id"]) for row in rows_of(database_urls, "SELECT id FROM entity_links")}
    assert left == kept
    assert not left & gone
    assert rows_of(database_urls, "SELECT 1 FROM entity_links WHERE %s IN (entity_id, target_id)", source) == []


async def test_what_the_caller_does_not_see_moves_too_and_is_not_told(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    shared, cy = tenant.headers(), tenant.headers(user="cy")
    source, into = await pair(client, shared)
    memory = await store_memory(client, cy, visibility="private")
    hidden = await link(client, cy, source, memory, layer="memory")
    claim = await edge(client, cy, {"memory": memory}, {"entity": source})
    answer = await merge(client, shared, source, into)
    assert answer.status_code == 200
    for secret in (memory, hidden, claim):
        assert secret not in answer.text
    assert (await client.get(f"{ENTITIES}/{into}/links", headers=shared)).json()["items"] == []
    seen = (await client.get(f"{ENTITIES}/{into}/context", headers=cy)).json()
    assert [item["id"] for item in seen["links"]] == [hidden]
    assert [item["id"] for item in seen["edges"]] == [claim]
    assert rows_of(database_urls, "SELECT count(*) AS n FROM edges") == [{"n": 1}]


async def test_the_audit_log_tells_who_merged_which_and_the_names_to_who_may_read_both(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = tenant.headers(user="ann")
    private = {"visibility": "private", "payload": {"a": 1}, "summary": "Prints."}
    source = (await declare(client, headers, name="Annie", **private))["id"]
    into = (await declare(client, headers, aliases=["A. Lee"], **private))["id"]
    secret = await store_memory(client, tenant.headers(user="cy"), visibility="private")
    answer = await merge(client, headers, source, into)

    async def told(user: str) -> dict[str, Any]:
        page = await client.get("/v1/audit", headers=tenant.headers("admin", user=user))
        by_action = {entry["action"]: entry for entry in page.json()["items"]}
        assert by_action.keys() == {"entity.merge", "entity.delete"}
        assert by_action["entity.merge"]["request_id"] == answer.headers["x-request-id"]
        assert (by_action["entity.delete"]["target_id"], by_action["entity.delete"]["detail"]) == (
            source,
            {"entity_type": "person", "merged_into": into},
        )
        assert secret not in page.text
        assert by_action["entity.merge"]["target_id"] == into
        return dict(by_action["entity.merge"]["detail"])

    bare = {"from": source, "act_id": answer.json()["act_id"]}
    assert await told("cy") == bare
    detail = await told("ann")
    assert detail["before"] == {"aliases": ["A. Lee"]}
    gone = detail["from"]
    assert (gone["id"], gone["name"], gone["payload"], gone["summary"]) == (source, "Annie", {"a": 1}, "Prints.")


async def test_the_vector_is_of_the_names_after_the_merge(
    client: httpx.AsyncClient, tenant: TestTenant, services: Services, database_urls: DatabaseUrls
) -> None:
    source, into = await pair(client, tenant.headers())
    assert (await merge(client, tenant.headers(), source, into)).status_code == 200
    (row,) = rows_of(database_urls, "SELECT embedding::real[] AS vector FROM entities")
    text = "Ann Lee. annie, A. Lee, Annie Lee. Runs the print shop."
    assert row["vector"] == pytest.approx((await services.embedder.embed([text]))[0].tolist(), abs=1e-5)


async def test_names_that_were_there_already_cost_no_vector(
    services: Services, client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    source, into = (await declare(client, headers))["id"], (await declare(client, headers))["id"]
    before = rows_of(database_urls, "SELECT embedding::text, aliases FROM entities WHERE id = %s", into)
    async with _without_embedder(services) as embedderless:
        answer = await merge(embedderless, headers, source, into)
    assert (answer.status_code, answer.json()["entity"]["version"]) == (200, 2)
    assert rows_of(database_urls, "SELECT embedding::text, aliases FROM entities") == before


async def test_a_merge_goes_on_without_a_vector_while_the_embedder_is_down(
    services: Services, client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    source, into = await pair(client, tenant.headers())
    async with _without_embedder(services) as embedderless:
        assert (await merge(embedderless, tenant.headers(), source, into)).status_code == 200
    rows = rows_of(database_urls, "SELECT embedding, embedding_model FROM entities")
    assert rows == [{"embedding": None, "embedding_model": None}]


class DeadEmbedder:
    """An embedder whose endpoint is down."""

    def __init__(self, services: Services) -> None:
        self.identity = services.embedder.identity

    async def embed(self, texts: Sequence[str]) -> Any:
        raise EmbedderUnavailableError(f"refused {len(texts)}")


def _without_embedder(services: Services) -> httpx.AsyncClient:
    dead: Any = DeadEmbedder(services)
    down = replace(services, embedder=dead, memories=replace(services.memories, embedder=dead))
    transport = httpx.ASGITransport(app=create_app(down))  # type: ignore[arg-type] # Litestar's own ASGI types
    return httpx.AsyncClient(transport=transport, base_url="http://memory-os")


async def test_an_idempotency_key_merges_once_and_answers_alike(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    source, into = await pair(client, tenant.headers())
    keyed = {**tenant.headers(), "Idempotency-Key": "k-1"}
    answers = await asyncio.gather(*(merge(client, keyed, source, into) for _ in range(8)))
    answers.append(await merge(client, keyed, source, into))  # long after `from` is gone
    assert {answer.status_code for answer in answers} == {200}
    assert len({(answer.content, answer.headers["etag"]) for answer in answers}) == 1
    assert len(rows_of(database_urls, "SELECT 1 FROM audit_log WHERE action = 'entity.merge'")) == 1
    assert (await merge(client, tenant.headers(), source, into)).status_code == 404
    other = await merge(client, keyed, into, source)
    assert (other.status_code, other.json()["type"]) == (409, "urn:memory-os:problem:idempotency-key-reused")


async def test_merges_at_the_same_moment_end_in_one_entity(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    ids = [(await declare(client, headers, name=f"Ann {n}"))["id"] for n in range(6)]
    acme = (await declare(client, headers, name="Acme"))["id"]
    for ident in ids:
        await link(client, headers, ident, acme, relationship=f"of {ident}")
    kept, *others = ids
    for other in others:
        both = (kept, other), (other, kept)
        answers = await asyncio.gather(*(merge(client, headers, *two, despite_digits=True) for two in both))
        assert sorted(answer.status_code for answer in answers) == [200, 404]
        kept = next(answer for answer in answers if answer.status_code == 200).json()["entity"]["id"]
    answer = (await client.get(f"{ENTITIES}/{kept}", headers=headers)).json()
    assert sorted([answer["name"], *answer["aliases"]]) == [f"Ann {n}" for n in range(6)]
    assert len(rows_of(database_urls, "SELECT 1 FROM entity_links WHERE entity_id = %s", kept)) == 6


async def test_what_is_stored_beside_a_merge_is_never_lost_in_between(
    client: httpx.AsyncClient, tenant: TestTenant, services: Services, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    for turn in range(5):
        source, into = await pair(client, headers)
        memory = await store_memory(client, headers)
        ends: list[Any] = [{"memory": memory}, {"entity": source}]
        merged, claimed, linked, changed = await asyncio.gather(
            merge(client, headers, source, into),
            client.post("/v1/edges", json={"type": "ABOUT", "from": ends[0], "to": ends[1]}, headers=headers),
            client.post(
                f"{ENTITIES}/{source}/links",
                json={"layer": "memory", "target_id": memory, "relationship": "said"},
                headers=headers,
            ),
            client.patch(f"{ENTITIES}/{into}", json={"summary": f"Turn {turn}"}, headers=headers),
        )
        assert (merged.status_code, changed.status_code) == (200, 200)
        assert claimed.status_code in (201, 409, 422), claimed.text
        assert linked.status_code in (201, 404, 409), linked.text
        edges = rows_of(
            database_urls, "SELECT target_entity_id::text AS id FROM edges WHERE source_memory_id = %s", memory
        )
        links = rows_of(database_urls, "SELECT entity_id::text AS id FROM entity_links WHERE target_id = %s", memory)
        assert edges == ([{"id": into}] if claimed.status_code == 201 else [])
        assert links == ([{"id": into}] if linked.status_code == 201 else [])
        (row,) = rows_of(database_urls, "SELECT embedding::real[] AS vector FROM entities WHERE id = %s", into)
        text = f"Ann Lee. annie, A. Lee, Annie Lee. Turn {turn}"
        assert row["vector"] == pytest.approx((await services.embedder.embed([text]))[0].tolist(), abs=1e-5)
