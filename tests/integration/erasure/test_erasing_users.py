"""A user is erased, whatever the name looks like, and nobody else with a name that is like it."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.fixtures.acting import Actor, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.worker import drain
from tests.integration.erasure.crowds import crowd
from tests.integration.erasure.searching import in_graph, places_with

from memory_os.api.services import Services
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

NAMES = {
    "short": "a",
    "longer": "ab",
    "underscore": "a_b",
    "percent": "a%",
    "pattern": "%",
    "quotes": "o'\"b\\rien",
    "colon": "team:ann:1",
    "slash": "team/ann",
    "slashes": "/team//ann/",
    "query": "a?b#c&d=e",
    "encoded": "a%2Fb",
    "emoji": "🦊🦊",
    "long": "x" * 200,
    "word": "tenant",
    "json": '{"user_id": "ann"}',
    "braces": "{ann,bob}",
}


async def erase(actor: Actor, user: str, **headers: str) -> httpx.Response:
    url = f"/v1/users/{quote(user, safe='')}"
    return await actor.client.delete(url, headers={**actor.tenant.headers("admin"), **headers})


def count(urls: DatabaseUrls, user: str) -> int:
    return len(rows_of(urls, "SELECT id FROM memories WHERE user_id = %s", user))


def put_memory(actor: Actor, user: str) -> None:
    """Past the API, since not every name can travel in a header."""
    with psycopg.connect(actor.tenant.owner_url) as connection:
        connection.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, text, user_id, search) "
            "VALUES (%s, %s, 'Attribute', 'identity', 'One.', %s, '')",
            (actor.tenant.tenant_id, uuid4(), user),
        )


@pytest.mark.parametrize("user", NAMES.values(), ids=NAMES)
async def test_a_name_is_compared_literally(actor: Actor, database_urls: DatabaseUrls, user: str) -> None:
    others = {"axb", "a%b", "A_B", "A", "aa", "x" * 199, "ann", "o''b", "bob", "team", "b"} - {user}
    for one in (user, *others):
        put_memory(actor, one)
    answer = await erase(actor, user)
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    assert len(receipt["record_ids"]) == 1
    assert count(database_urls, user) == 0
    assert {row["user_id"] for row in rows_of(database_urls, "SELECT user_id FROM memories")} == others
    tenant = actor.tenant.tenant_id
    told = hashlib.sha256(f"{tenant}\0{receipt['id']}\0{user}".encode()).hexdigest()
    assert (receipt["subject_type"], receipt["subject"]) == ("user", told)
    again = await erase(actor, user)
    assert (again.status_code, again.json()["record_ids"]) == (200, [])
    assert {place["rows"] for place in again.json()["places"] if place["place"] != "erasures"} == {0}


@pytest.mark.parametrize("address", ["x" * 201, "a%00b", "%0A", "%FF", "%ED%A0%80"])
async def test_what_can_be_no_user_is_refused(actor: Actor, address: str) -> None:
    answer = await actor.client.delete(f"/v1/users/{address}", headers=actor.tenant.headers("admin"))
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == "/user"
    assert (await actor.client.delete("/v1/users/a/b", headers=actor.tenant.headers("admin"))).status_code == 404
    assert (await actor.client.delete("/v1/users/a", headers=actor.tenant.headers("operator"))).status_code == 403


async def send(actor: Actor, method: str, url: str, body: Any, role: str = "writer", user: str | None = None) -> Any:
    headers = {**actor.tenant.headers(role, user=user), "Idempotency-Key": uuid4().hex}
    answer = await actor.client.request(method, url, json=body, headers=headers)
    assert answer.is_success, (url, answer.text)
    return answer.json()


async def fill(actor: Actor, user: str) -> dict[str, str]:
    """Records of a user, records of others that name the user, and all that both leave behind; ids by name."""
    mine, readers = actor.acting(user), {"users": [user, "carl"], "groups": []}
    ids = {"own": (await mine.remember("Zyxquvort Halde met Ann Miller.", visibility="private"))["id"]}
    ids["shared"] = (await actor.acting("bob").remember("For few.", visibility="restricted", readers=readers))["id"]
    ids["derived"] = (await actor.remember("In short: Zyxquvort."))["id"]
    open_one = (await mine.remember("Zyxquvort bakes."))["id"]
    await actor.tie("EXTRACTED_FROM", ids["derived"], open_one)
    few = {"visibility": "restricted", "readers": readers}
    for url, body in (
        ("/v1/memory/entities", {"name": "Bakery", "entity_type": "place"}),
        ("/v1/memory/observations", {"title": "Seen"}),
        ("/v1/sources", {"kind": "document", "title": "Letter", "passages": [{"text": "Dear Zyxquvort."}]}),
    ):
        await send(actor, "POST", url, body, user=user)
        others: dict[str, Any] = {**body, **few}
        others |= {"title": "Others"} if "title" in body else {}
        others |= {"passages": [{"text": "Dear all."}]} if "passages" in body else {}
        await send(actor, "POST", url, others, user="bob")
    token = {"role": "reader", "name": "phone", "user_id": user}
    await send(actor, "POST", "/v1/tokens", token, role="admin")
    await send(
        actor, "PATCH", f"/v1/memories/{ids['shared']}", {"readers": {"users": [user], "groups": []}}, user="bob"
    )
    proposed = {"target": ids["shared"], "kind": "retract", "reason": "old"}
    await send(actor, "POST", "/v1/corrections", proposed, user=user)
    rule = {"reason": "no"}
    await send(actor, "POST", f"/v1/memories/{ids['shared']}/dispute", rule, user=user)
    for who in (user, "bob"):
        found = await send(actor, "POST", "/v1/retrieve", {"query": "Who met Zyxquvort?"}, user=who)
        shown = [item["id"] for item in found["items"]]
        await send(actor, "POST", f"/v1/retrievals/{found['retrieval_id']}/feedback", {"used": shown[:1]}, user=who)
    return ids


@pytest.mark.parametrize("user", ["dora-q7", "o'\"q7 {;}", "q7_%"], ids=["plain", "hostile", "pattern"])
async def test_nothing_names_the_user_any_more_and_others_keep_what_is_theirs(
    actor: Actor, worker: WorkerContext, services: Services, database_urls: DatabaseUrls, user: str
) -> None:
    ids = await fill(actor, user)
    await drain(worker)
    await services.retriever.log.close()
    with psycopg.connect(database_urls.owner_url) as connection:
        given = (actor.tenant.tenant_id, uuid4(), user, user)
        connection.execute(
            "INSERT INTO graph_rebuilds (tenant_id, id, user_id, requested_by, status) VALUES (%s, %s, %s, %s, 'done')",
            given,
        )
        connection.execute(
            "INSERT INTO graph_verifications (tenant_id, id, requested_by, status, sample) "
            "VALUES (%s, %s, %s, 'done', %s)",
            (*given[:1], uuid4(), user, Jsonb([{"expected": {"user_id": user, "id": "x"}}])),
        )
        connection.execute(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
            "finished_at, discard_reason, discarded_by) "
            "VALUES (%s, 'GRAPH_UPSERT', 'memory', %s, 1, 'discarded', now(), 'x', %s)",
            given[:3],
        )
        connection.execute(
            "INSERT INTO memory_reviews (tenant_id, id, memory_id, other_id, kind, tier, rule, status, decided_at, "
            "decided_by) SELECT %s, %s, min(id::text)::uuid, max(id::text)::uuid, 'duplicate', 'older', 'x', 'kept', "
            "now(), %s FROM memories WHERE user_id IS DISTINCT FROM %s",
            given,
        )
    word = user.replace("\\", "\\\\").replace('"', '\\"')
    assert len(places_with(database_urls, word)) > 15
    answer = await erase(actor, user, **{"X-Request-Id": "later"})
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    assert places_with(database_urls, word) == {}
    assert places_with(database_urls, "Zyxquvort") == {}
    assert {ids["own"], ids["derived"]} <= set(receipt["record_ids"])
    rows = {place["place"]: place["rows"] for place in receipt["places"]}
    for place in ("tokens", "graph_rebuilds", "sources", "passages", "observations", "retrievals", "idempotency_keys"):
        assert rows[place] > 0, place
    await drain(worker)
    assert not await in_graph(worker.backend, actor.tenant.tenant_id, word)
    [shared] = rows_of(database_urls, "SELECT text, reader_users FROM memories WHERE id = %s", ids["shared"])
    assert shared == {"text": "For few.", "reader_users": []}
    assert [row["reader_users"] for row in rows_of(database_urls, "SELECT reader_users FROM sources")] == [["carl"]]
    assert len(rows_of(database_urls, "SELECT id FROM entities WHERE declared")) == 1


async def test_an_admin_can_be_erased_by_itself_and_is_not_named_by_that(
    actor: Actor, database_urls: DatabaseUrls
) -> None:
    await actor.acting("zora-q7").remember("Mine.")
    answer = await erase(actor, "zora-q7", **{"X-Memory-User": "zora-q7"})
    assert answer.status_code == 200
    assert answer.json()["by"] == {"role": "admin", "user_id": None}
    assert places_with(database_urls, "zora-q7") == {}


async def test_very_many_memories_of_a_user_go_at_once(actor: Actor, database_urls: DatabaseUrls) -> None:
    many, tenant = 1_000, actor.tenant.tenant_id
    for user, memories in (("ann", many), ("bob", 50)):
        crowd(database_urls.owner_url, tenant, user, memories)
    answer = await erase(actor, "ann")
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    assert len(receipt["record_ids"]) == many
    rows = {place["place"]: place["rows"] for place in receipt["places"]}
    assert (rows["memory_embeddings"], rows["mentions"], rows["edges"]) == (many, 2 * many, many - 1)
    [left] = rows_of(
        database_urls,
        "SELECT (SELECT count(*) FROM memories) AS memories, (SELECT count(*) FROM memory_embeddings) AS vectors, "
        "(SELECT count(*) FROM mentions) AS mentions, (SELECT count(*) FROM edges) AS edges, "
        "(SELECT count(*) FROM outbox_events WHERE aggregate_type = 'memory' AND status = 'pending') AS events",
    )
    assert left == {"memories": 50, "vectors": 50, "mentions": 100, "edges": 49, "events": many}
    counted = rows_of(
        database_urls,
        "SELECT e.id FROM entities AS e WHERE e.mention_records <> "
        "(SELECT count(DISTINCT m.memory_id) FROM mentions AS m WHERE m.entity_id = e.id)",
    )
    assert counted == []
