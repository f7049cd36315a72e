"""`/v1/memory/entities` on a real Postgres: declaring, names, lists, changing, deleting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import httpx
import numpy as np
import psycopg
import pytest
from psycopg.rows import dict_row
from tests.fixtures.entities import ANN, ENTITIES, declare, store_memory
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os.embedding.port import EmbedderIdentity, EmbedderUnavailableError
from memory_os.memories.service import MemoryService

pytestmark = pytest.mark.anyio


def rows_of(urls: DatabaseUrls, query: str, *values: object) -> list[dict[str, Any]]:
    with psycopg.connect(urls.owner_url, row_factory=dict_row) as connection:
        return connection.execute(query, values).fetchall()


async def test_a_declared_entity_reads_back_as_it_was_answered(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    body = {
        **ANN,
        "aliases": ["Annie", "A. Lee"],
        "summary": "Runs the print shop.",
        "payload": {"since": 2019, "doc_path": "/not/a/path"},
        "confidence": 0.75,
    }
    answer = await client.post(ENTITIES, json=body, headers=tenant.headers())
    assert answer.status_code == 201
    entity = answer.json()["entity"]
    assert answer.json()["position"] > 0
    assert answer.headers["etag"] == '"1"'
    assert {name: entity[name] for name in body} == body
    assert entity["canonical_name"] == "ann lee"
    assert (entity["status"], entity["visibility"], entity["declared"]) == ("active", "tenant", True)
    assert (entity["mention_count"], entity["first_seen"], entity["last_seen"]) == (0, None, None)
    assert UUID(entity["id"]).version == 7
    read = await client.get(f"{ENTITIES}/{entity['id']}", headers=tenant.headers("reader"))
    again = read.json()
    for moment in ("created_at", "updated_at"):
        entity.pop(moment), again.pop(moment)
    assert again == entity
    assert read.headers["etag"] == '"1"'
    (event,) = rows_of(database_urls, "SELECT * FROM outbox_events")
    assert (event["event_type"], event["aggregate_type"], str(event["aggregate_id"]), event["version"]) == (
        "GRAPH_UPSERT",
        "entity",
        entity["id"],
        1,
    )
    assert event["request_id"] == answer.headers["x-request-id"]


async def test_the_vector_is_of_name_aliases_and_summary_and_follows_them(
    client: httpx.AsyncClient, tenant: TestTenant, services: Services, database_urls: DatabaseUrls
) -> None:
    async def stored() -> list[float]:
        (row,) = rows_of(database_urls, "SELECT embedding::real[] AS vector, embedding_model FROM entities")
        assert row["embedding_model"] == services.embedder.identity.model
        return row["vector"]

    async def expected(text: str) -> list[float]:
        return (await services.embedder.embed([text]))[0].tolist()

    entity = await declare(client, tenant.headers(), aliases=["Annie", "A. Lee"], summary="Runs the print shop.")
    assert await stored() == pytest.approx(await expected("Ann Lee. Annie, A. Lee. Runs the print shop."), abs=1e-5)
    await client.patch(f"{ENTITIES}/{entity['id']}", json={"summary": None}, headers=tenant.headers())
    assert await stored() == pytest.approx(await expected("Ann Lee. Annie, A. Lee"), abs=1e-5)
    await client.patch(f"{ENTITIES}/{entity['id']}", json={"aliases": [], "name": "Bo"}, headers=tenant.headers())
    assert await stored() == pytest.approx(await expected("Bo"), abs=1e-5)


class DeadEmbedder:
    """An embedder whose endpoint is down."""

    def __init__(self, identity: EmbedderIdentity) -> None:
        self.identity = identity

    async def open(self) -> EmbedderIdentity:
        return self.identity

    async def embed(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        raise EmbedderUnavailableError(f"refused {len(texts)}")

    async def close(self) -> None:
        pass


async def test_an_entity_is_stored_without_a_vector_while_the_embedder_is_down(
    services: Services, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    dead = DeadEmbedder(services.embedder.identity)
    down = replace(services, embedder=dead, memories=replace(services.memories, embedder=dead))
    assert isinstance(down.memories, MemoryService)
    transport = httpx.ASGITransport(app=create_app(down))  # type: ignore[arg-type] # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client:
        entity = await declare(client, tenant.headers())
        path = f"{ENTITIES}/{entity['id']}"
        assert (await client.patch(path, json={"name": "Bo"}, headers=tenant.headers())).status_code == 200
    (row,) = rows_of(database_urls, "SELECT embedding, embedding_model FROM entities")
    assert row == {"embedding": None, "embedding_model": None}


async def test_the_same_id_again_finds_the_entity_and_other_content_is_a_conflict(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    ident = str(uuid4())
    await declare(client, tenant.headers(), id=ident)
    again = await client.post(ENTITIES, json={**ANN, "id": ident, "summary": "x"}, headers=tenant.headers())
    assert again.status_code == 200
    assert again.json()["entity"]["id"] == ident
    assert again.json()["entity"]["summary"] is None
    assert again.json()["position"] == 0
    for other in ({"name": "Bo Lee"}, {"entity_type": "vendor"}):
        answer = await client.post(ENTITIES, json={**ANN, **other, "id": ident}, headers=tenant.headers())
        assert answer.status_code == 409
    assert len(rows_of(database_urls, "SELECT id FROM outbox_events")) == 1


async def test_two_entities_may_share_a_name(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    first = await declare(client, tenant.headers())
    second = await declare(client, tenant.headers())
    found = await client.get(ENTITIES, params={"name": "ann-lee"}, headers=tenant.headers())
    assert [item["id"] for item in found.json()["items"]] == [second["id"], first["id"]]


async def test_an_idempotency_key_makes_one_entity(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = {**tenant.headers(), "Idempotency-Key": "k-1"}
    answers = await asyncio.gather(*(client.post(ENTITIES, json=ANN, headers=headers) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    other = await client.post(ENTITIES, json={**ANN, "name": "Bo"}, headers=headers)
    assert other.status_code == 409
    assert other.json()["type"].endswith("idempotency-key-reused")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "\u200b"}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "x" * 201}, "/name"),
        ({"name": "a\x00b"}, "/name"),
        ({"name": "".join(chr(0xFDFA) + chr(0xFDFB) for _ in range(100))}, "/name"),
        ({"entity_type": " "}, "/entity_type"),
        ({"aliases": ["ok", "\u200b"]}, "/aliases/1"),
        ({"aliases": ["x"] * 101}, "/aliases"),
        ({"confidence": 1.5}, "/confidence"),
        ({"summary": "a\x00"}, "/summary"),
        ({"payload": {"a": {"b": "c\x00"}}}, "/payload"),
        ({"payload": {"a": "x" * 70_000}}, "/payload"),
        ({"payload": []}, "/payload"),
        ({"visibility": "secret"}, "/visibility"),
        ({"visibility": "private"}, "/visibility"),
        ({"visibility": "restricted"}, "/readers"),
        ({"visibility": "restricted", "readers": {"users": ["ann"]}}, "/readers"),
        ({"readers": {"users": ["ann"]}}, "/readers"),
        ({"status": "active"}, "/status"),
        ({"declared": False}, "/declared"),
        ({"id": "not-an-id"}, "/id"),
    ],
)
async def test_what_cannot_be_stored_is_refused_with_a_pointer(
    client: httpx.AsyncClient, tenant: TestTenant, body: dict[str, Any], pointer: str, database_urls: DatabaseUrls
) -> None:
    answer = await client.post(ENTITIES, json={**ANN, **body}, headers=tenant.headers())
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert pointer in [fault["pointer"] for fault in answer.json()["errors"]]
    assert rows_of(database_urls, "SELECT id FROM entities") == []
    assert rows_of(database_urls, "SELECT id FROM outbox_events") == []


async def test_every_fault_is_named_at_once(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    body = {"name": "\u200b", "entity_type": " ", "aliases": ["\u200b"], "payload": {"a": "\x00"}}
    answer = await client.post(ENTITIES, json=body, headers=tenant.headers())
    pointers = {fault["pointer"] for fault in answer.json()["errors"]}
    assert pointers == {"/name", "/entity_type", "/aliases/0", "/payload"}


async def test_aliases_of_one_spelling_count_once(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    entity = await declare(
        client, tenant.headers(), aliases=["ANN LEE", "Annie", "annie", "Ann-Lee", "A. Lee", "a lee"]
    )
    assert entity["aliases"] == ["Annie", "A. Lee"]


@pytest.mark.parametrize(
    "spelling", ["acme corp", "ACME  Corp.", "Acme\u200b Corp", "the crane people", "\uff21cme Corp"]
)
async def test_a_list_is_narrowed_by_any_spelling_of_a_name_or_alias(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory, spelling: str
) -> None:
    acme = await declare(client, tenant.headers(), name="Acme Corp", aliases=["The Crane People"], entity_type="vendor")
    await declare(client, tenant.headers(), name="Acme Corp 2", entity_type="vendor")
    await declare(client, tenant_factory().headers(), name="Acme Corp")
    answer = await client.get(ENTITIES, params={"name": spelling}, headers=tenant.headers())
    assert [item["id"] for item in answer.json()["items"]] == [acme["id"]]


async def test_lists_are_filtered_and_paged_newest_first(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    made = [
        (await declare(client, tenant.headers(), name=f"N {n}", entity_type="system" if n % 2 else "person"))["id"]
        for n in range(5)
    ]
    await client.patch(f"{ENTITIES}/{made[0]}", json={"status": "retired"}, headers=tenant.headers())
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = (await client.get(ENTITIES, params=params, headers=tenant.headers())).json()
        seen += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert seen == made[::-1]

    async def listed(**wanted: Any) -> list[str]:
        answer = await client.get(ENTITIES, params=wanted, headers=tenant.headers())
        return [item["id"] for item in answer.json()["items"]]

    assert await listed(entity_type="system") == [made[3], made[1]]
    assert await listed(status="retired") == [made[0]]
    assert await listed(declared="false") == []


@pytest.mark.parametrize(
    "params",
    [{"colour": "red"}, {"status": "activ"}, {"limit": 0}, {"limit": 201}, {"cursor": "?"}, {"declared": "maybe"}],
)
async def test_a_list_refuses_what_it_does_not_know(
    client: httpx.AsyncClient, tenant: TestTenant, params: dict[str, Any]
) -> None:
    answer = await client.get(ENTITIES, params=params, headers=tenant.headers())
    assert answer.status_code == 422
    if "status" in params:
        assert answer.json()["allowed"] == ["active", "retired", "archived"]
        assert answer.json()["did_you_mean"] == "active"


async def test_a_change_moves_the_version_the_names_and_leaves_an_audit_entry(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    entity = await declare(client, tenant.headers(), aliases=["Annie"])
    path = f"{ENTITIES}/{entity['id']}"
    patch = {"name": "Ann Li", "status": "retired", "payload": {"a": 1}, "aliases": ["Annie", "ann li"]}
    changed = await client.patch(path, json=patch, headers={**tenant.headers(), "If-Match": '"1"'})
    assert changed.status_code == 200
    assert changed.headers["etag"] == '"2"'
    after = changed.json()["entity"]
    assert (after["name"], after["canonical_name"], after["status"]) == ("Ann Li", "ann li", "retired")
    assert after["aliases"] == ["Annie"]
    assert changed.json()["position"] > 0
    names = rows_of(database_urls, "SELECT canonical_name FROM entity_names ORDER BY 1")
    assert [row["canonical_name"] for row in names] == ["ann li", "annie"]
    (entry,) = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
    assert (entry["action"], entry["detail"]["fields"]) == ("entity.change", ["name", "payload", "status"])
    assert entry["detail"]["before"] == {"name": "Ann Lee", "status": "active", "payload": {}}
    late = await client.patch(path, json=patch, headers={**tenant.headers(), "If-Match": '"1"'})
    assert late.status_code == 412
    same = await client.patch(path, json=patch, headers={**tenant.headers(), "If-Match": '"2"'})
    assert (same.status_code, same.json()["position"], same.json()["entity"]["version"]) == (200, 0, 2)


@pytest.mark.parametrize(
    ("patch", "pointer"),
    [
        ({"name": "\u200b"}, "/name"),
        ({"status": "gone"}, "/status"),
        ({"aliases": ["\u200b"]}, "/aliases/0"),
        ({"payload": {"a": "\x00"}}, "/payload"),
        ({"visibility": "private"}, "/visibility"),
        ({"visibility": "restricted"}, "/readers"),
        ({"visibility": "restricted", "readers": {"groups": ["hr"]}}, "/readers"),
        ({"readers": {}}, "/readers"),
        ({"id": "x"}, "/id"),
        ({"name": None}, "/name"),
    ],
)
async def test_a_change_that_breaks_a_rule_changes_nothing(
    client: httpx.AsyncClient, tenant: TestTenant, patch: dict[str, Any], pointer: str
) -> None:
    entity = await declare(client, tenant.headers())
    path = f"{ENTITIES}/{entity['id']}"
    answer = await client.patch(path, json={"confidence": 0.1, **patch}, headers=tenant.headers())
    assert answer.status_code == 422, answer.text
    assert pointer in [fault["pointer"] for fault in answer.json()["errors"]]
    assert (await client.get(path, headers=tenant.headers())).json() == entity


async def test_changes_at_the_same_moment_all_land(
    client: httpx.AsyncClient, tenant: TestTenant, services: Services, database_urls: DatabaseUrls
) -> None:
    entity = await declare(client, tenant.headers())
    path = f"{ENTITIES}/{entity['id']}"
    fields = [{"name": "Bo Li"}, {"summary": "Runs the shop."}, {"aliases": ["B."]}, {"confidence": 0.5}]
    answers = await asyncio.gather(*(client.patch(path, json=body, headers=tenant.headers()) for body in fields))
    assert [answer.status_code for answer in answers] == [200] * 4
    after = (await client.get(path, headers=tenant.headers())).json()
    assert after["version"] == 5
    assert {name: after[name] for body in fields for name in body} == {k: v for body in fields for k, v in body.items()}
    (row,) = rows_of(database_urls, "SELECT embedding::real[] AS vector FROM entities")
    expected = (await services.embedder.embed(["Bo Li. B.. Runs the shop."]))[0].tolist()
    assert row["vector"] == pytest.approx(expected, abs=1e-5)
    versions = rows_of(database_urls, "SELECT version FROM outbox_events ORDER BY id")
    assert [row["version"] for row in versions] == [1, 2, 3, 4, 5]


async def test_a_deleted_entity_takes_its_names_links_and_edges_along(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    ann, acme = await declare(client, headers), await declare(client, headers, name="Acme", entity_type="vendor")
    memory = await store_memory(client, headers)
    for source, target in ((ann, acme), (acme, ann)):
        body = {"layer": "entity", "target_id": target["id"], "relationship": "knows"}
        assert (await client.post(f"{ENTITIES}/{source['id']}/links", json=body, headers=headers)).status_code == 201
    body = {"type": "ABOUT", "from": {"memory": memory}, "to": {"entity": ann["id"]}}
    assert (await client.post("/v1/edges", json=body, headers=headers)).status_code == 201
    path = f"{ENTITIES}/{ann['id']}"
    assert (await client.delete(path, headers={**headers, "If-Match": '"7"'})).status_code == 412
    answer = await client.delete(path, headers={**headers, "If-Match": '"1"'})
    assert answer.status_code == 200
    assert answer.json()["deleted"] == 1
    for table in ("entity_links", "edges"):
        assert rows_of(database_urls, f"SELECT id FROM {table}") == []
    assert len(rows_of(database_urls, "SELECT 1 FROM entity_names")) == 1
    events = rows_of(database_urls, "SELECT * FROM outbox_events WHERE event_type = 'GRAPH_DELETE' ORDER BY id DESC")
    told = [(event["aggregate_type"], event["version"]) for event in events]
    assert sorted(told) == [("edge", 2), ("entity", 2), ("entity_link", 2), ("entity_link", 2)]
    assert events[0]["id"] == answer.json()["position"]
    assert rows_of(database_urls, "SELECT action FROM audit_log") == [{"action": "entity.delete"}]
    assert (await client.get(path, headers=headers)).status_code == 404
    assert (await client.delete(path, headers=headers)).status_code == 404
