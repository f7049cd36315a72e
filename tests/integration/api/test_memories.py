"""`/v1/memories` on a real Postgres."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.service import TenantFactory

pytestmark = pytest.mark.anyio

MEMORY = {"text": "Makes Detroit-style pizza from scratch.", "label": "Skill"}


async def _store(client: httpx.AsyncClient, headers: dict[str, str], **fields: object) -> dict[str, object]:
    answer = await client.post("/v1/memories", json={**MEMORY, **fields}, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()["memory"]


async def test_a_stored_memory_reads_back_as_it_was_answered(
    client: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    tenant = tenant_factory()
    body = {
        **MEMORY,
        "title": "Pizza",
        "confidence": 0.75,
        "occurred_at": "2026-03-01T12:00:00+02:00",
        "valid_from": "2026-03-01T00:00:00Z",
        "subject": "Alex",
        "property": "skill",
        "tags": ["food"],
        "metadata": {"a": {"b": [1, None, {"c": 2}]}, "big": 2**63},
        "conversation_id": "c-1",
        "origin": "chat",
    }
    answer = await client.post("/v1/memories", json=body, headers=tenant.headers())
    assert answer.status_code == 201
    stored = answer.json()
    assert stored["outcome"] == "created"
    assert stored["position"] > 0
    memory = stored["memory"]
    assert UUID(memory["id"]).version == 7
    assert memory["layer"] == "identity"
    assert memory["status"] == "active"
    assert memory["metadata"] == body["metadata"]
    read = await client.get(f"/v1/memories/{memory['id']}", headers=tenant.headers("reader"))
    assert read.status_code == 200
    again = read.json()
    for moment in ("occurred_at", "valid_from", "created_at", "updated_at"):
        memory.pop(moment), again.pop(moment)
    assert again == memory
    assert read.headers["etag"] == '"1"'


async def test_the_event_lands_with_the_memory_or_not_at_all(
    client: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    tenant = tenant_factory()
    memory = await _store(client, tenant.headers())
    refused = await client.post(
        "/v1/memories",
        json={**MEMORY, "edges": [{"type": "SUPPORTS", "to": str(uuid4())}]},
        headers=tenant.headers(),
    )
    assert refused.status_code == 422
    with psycopg.connect(tenant.owner_url) as connection:
        memories = connection.execute("SELECT id::text FROM memories").fetchall()
        events = connection.execute("SELECT event_type, aggregate_id::text, request_id FROM outbox_events").fetchall()
    assert memories == [(memory["id"],)]
    assert [(kind, ident) for kind, ident, _ in events] == [("GRAPH_UPSERT", memory["id"])]
    assert events[0][2]


async def test_the_same_id_again_is_merged_and_another_text_is_a_conflict(
    client: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    tenant, other = tenant_factory(), tenant_factory()
    ident = str(uuid4())
    await _store(client, tenant.headers(), id=ident)
    same = await client.post("/v1/memories", json={**MEMORY, "id": ident}, headers=tenant.headers())
    assert (same.status_code, same.json()["outcome"], same.json()["duplicate_of"]) == (200, "merged", ident)
    changed = await client.post("/v1/memories", json={**MEMORY, "id": ident, "text": "Else"}, headers=tenant.headers())
    assert changed.status_code == 409
    elsewhere = await client.post("/v1/memories", json={**MEMORY, "id": ident}, headers=other.headers())
    assert elsewhere.status_code == 201


async def test_one_idempotency_key_makes_one_memory_even_at_once(
    client: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    tenant = tenant_factory()
    headers = {**tenant.headers(), "Idempotency-Key": "key-1"}
    answers = await asyncio.gather(*(client.post("/v1/memories", json=MEMORY, headers=headers) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["memory"]["id"] for answer in answers}) == 1
    other = await client.post("/v1/memories", json={**MEMORY, "text": "Else"}, headers=headers)
    assert other.status_code == 409
    assert other.json()["type"].endswith("idempotency-key-reused")
    with psycopg.connect(tenant.owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM outbox_events").fetchone() == (1,)
        sealed = connection.execute("SELECT body FROM idempotency_keys").fetchone()
    assert sealed is not None
    assert b"pizza" not in bytes(sealed[0])


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"text": ""}, "/text"),
        ({"text": "   "}, "/text"),
        ({"text": None}, "/text"),
        ({"text": "a\x00b"}, "/text"),
        ({"text": "x" * 40_000}, "/text"),
        ({"confidence": 1.5}, "/confidence"),
        ({"valid_from": "2024-01-01"}, "/valid_from"),
        ({"valid_from": "2024-01-01T00:00"}, "/valid_from"),
        ({"valid_from": "0001-01-01T00:00:00+14:00"}, "/valid_from"),
        ({"valid_from": "2026-02-01T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z"}, "/valid_to"),
        ({"surprise": 1}, "/surprise"),
        ({"metadata": {"a": "\x00"}}, "/metadata"),
        ({"metadata": {"a" * 70_000: 1}}, "/metadata"),
        ({"visibility": "private"}, "/visibility"),
        ({"readers": {"users": ["u"]}}, "/readers"),
        ({"id": "m1"}, "/id"),
        ({"edges": [{"type": "SUPPORTS", "to": {}}]}, "/edges/0/to"),
    ],
)
async def test_a_fault_is_named_with_its_place(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, change: dict[str, object], pointer: str
) -> None:
    tenant = tenant_factory()
    answer = await client.post("/v1/memories", json={**MEMORY, **change}, headers=tenant.headers())
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert pointer in [fault["pointer"] for fault in problem["errors"]], problem


@pytest.mark.parametrize(
    ("label", "hint"),
    [("skill", "Skill"), ("Fact", "Attribute"), ("Observation", "Behavior"), ("Emotion", None), ("Banana", None)],
)
async def test_an_unknown_label_is_answered_with_the_vocabulary(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, label: str, hint: str | None
) -> None:
    tenant = tenant_factory()
    answer = await client.post("/v1/memories", json={"text": "x", "label": label}, headers=tenant.headers())
    assert answer.status_code == 422
    problem = answer.json()
    assert len(problem["allowed"]) == 15
    assert problem.get("did_you_mean") == hint


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"text": "\\ud800", "label": "Skill"}']
)
async def test_a_malformed_body_is_a_client_error(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, body: bytes
) -> None:
    headers = {**tenant_factory().headers(), "Content-Type": "application/json"}
    answer = await client.post("/v1/memories", content=body, headers=headers)
    assert answer.status_code in {400, 422}, answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")


async def test_a_batch_has_an_outcome_for_each_item(client: httpx.AsyncClient, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    items: list[object] = [{**MEMORY, "text": f"fact {n}", "id": str(uuid4())} for n in range(12)]
    items[4] = {**MEMORY, "text": "x" * 40_000}
    items[7] = {"label": "Skill"}
    items[9] = {**MEMORY, "edges": [{"type": "SUPPORTS", "to": items[0]["id"]}]}  # type: ignore[index] # a dict
    items[10] = {**MEMORY, "edges": [{"type": "SUPPORTS", "to": str(uuid4())}]}
    answer = await client.post("/v1/memories/batch", json={"items": items}, headers=tenant.headers())
    assert answer.status_code == 200, answer.text
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [201] * 4 + [422] + [201] * 2 + [422, 201, 201, 422, 201]
    assert [result["index"] for result in results] == list(range(12))
    assert answer.json()["position"] > 0
    with psycopg.connect(tenant.owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (9,)
        assert connection.execute("SELECT count(*) FROM memory_embeddings").fetchone() == (9,)
        assert connection.execute("SELECT count(*) FROM edges").fetchone() == (1,)


async def test_a_batch_may_be_lines(client: httpx.AsyncClient, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    lines = "\n".join([json.dumps(MEMORY), "{broken", json.dumps({**MEMORY, "text": "two"})])
    headers = {**tenant.headers(), "Content-Type": "application/x-ndjson"}
    answer = await client.post("/v1/memories/batch", content=lines, headers=headers)
    assert [result["status"] for result in answer.json()["results"]] == [201, 422, 201]
    bare = await client.post("/v1/memories/batch", json=[{**MEMORY, "text": "three"}], headers=tenant.headers())
    assert [result["status"] for result in bare.json()["results"]] == [201]
    for nonsense in (b"{}", b"7", b'{"items": 7}'):
        headers["Content-Type"] = "application/json"
        refused = await client.post("/v1/memories/batch", content=nonsense, headers=headers)
        assert refused.status_code == 422


async def test_a_list_goes_on_after_its_cursor(client: httpx.AsyncClient, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    items = [{**MEMORY, "text": f"fact {n}", "tags": ["even"] if n % 2 == 0 else []} for n in range(7)]
    await client.post("/v1/memories/batch", json={"items": items}, headers=tenant.headers())
    seen: list[str] = []
    cursor = None
    while True:
        parameters = {"limit": 3, **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/v1/memories", params=parameters, headers=tenant.headers())).json()
        seen += [item["text"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(item["text"] for item in items)
    even = (await client.get("/v1/memories", params={"tag": "even"}, headers=tenant.headers())).json()
    assert len(even["items"]) == 4
    for wrong in ({"cursor": "!!"}, {"cursor": "e30"}, {"limit": 0}, {"limit": 201}, {"surprise": 1}, {"limit": "x"}):
        answer = await client.get("/v1/memories", params=wrong, headers=tenant.headers())
        assert answer.status_code == 422, wrong


async def test_a_change_needs_the_version_that_was_seen(
    client: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    tenant = tenant_factory()
    memory = await _store(client, tenant.headers())
    path = f"/v1/memories/{memory['id']}"
    changed = await client.patch(
        path, json={"text": "Bakes bread.", "tags": ["bread"]}, headers={**tenant.headers(), "If-Match": '"1"'}
    )
    assert changed.status_code == 200, changed.text
    assert changed.json()["memory"]["version"] == 2
    assert changed.headers["etag"] == '"2"'
    stale = await client.patch(path, json={"title": "t"}, headers={**tenant.headers(), "If-Match": '"1"'})
    assert stale.status_code == 412
    nonsense = await client.patch(path, json={"title": "t"}, headers={**tenant.headers(), "If-Match": "1"})
    assert nonsense.status_code == 422
    assert (await client.get(path, headers=tenant.headers())).json()["text"] == "Bakes bread."
    listed = (await client.get("/v1/memories", headers=tenant.headers())).json()["items"]
    assert [item["text"] for item in listed] == ["Bakes bread."]


async def test_a_change_obeys_the_lifecycle(client: httpx.AsyncClient, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    goal = await _store(client, tenant.headers(), label="Goal")
    path = f"/v1/memories/{goal['id']}"
    refused = await client.patch(path, json={"status": "expired"}, headers=tenant.headers())
    assert refused.status_code == 422
    assert "expired" not in refused.json()["allowed"]
    done = await client.patch(path, json={"status": "completed"}, headers=tenant.headers())
    assert done.json()["memory"]["status"] == "completed"
    event = await _store(client, tenant.headers(), label="Event", text="It rained.")
    immutable = await client.patch(f"/v1/memories/{event['id']}", json={"text": "No."}, headers=tenant.headers())
    assert immutable.status_code == 422
    assert immutable.json()["errors"][0]["pointer"] == "/text"


async def test_a_deleted_memory_is_gone_at_commit(client: httpx.AsyncClient, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    memory = await _store(client, tenant.headers())
    path = f"/v1/memories/{memory['id']}"
    deleted = await client.delete(path, headers=tenant.headers())
    assert deleted.status_code == 200
    assert deleted.json()["deleted"] == 1
    assert deleted.json()["position"] > 0
    for call in (client.get(path, headers=tenant.headers()), client.delete(path, headers=tenant.headers())):
        assert (await call).status_code == 404
    with psycopg.connect(tenant.owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM memory_embeddings").fetchone() == (0,)
        kinds = connection.execute("SELECT event_type FROM outbox_events ORDER BY id").fetchall()
    assert kinds == [("GRAPH_UPSERT",), ("GRAPH_DELETE",)]


async def test_private_and_restricted_memories_keep_to_their_readers(
    client: httpx.AsyncClient, tenant_factory: TenantFactory
) -> None:
    tenant = tenant_factory()
    ann, ben = tenant.headers(user="ann"), tenant.headers(user="ben", groups=["cooks"])
    private = await _store(client, ann, visibility="private")
    restricted = await _store(client, ann, visibility="restricted", readers={"groups": ["cooks"]}, text="For cooks.")
    other = await _store(client, ann, visibility="restricted", readers={"users": ["test_user1"]}, text="For one.")
    expected = {
        ("ann",): {private["id"], restricted["id"], other["id"]},
        ("ben", "cooks"): {restricted["id"]},
        ("test_user1",): {other["id"]},
        ("test_user",): set(),
        ("%",): set(),
        (): set(),
    }
    for who, ids in expected.items():
        headers = tenant.headers(user=who[0], groups=who[1:]) if who else tenant.headers()
        listed = (await client.get("/v1/memories", headers=headers)).json()["items"]
        assert {item["id"] for item in listed} == ids, who
        for memory in (private, restricted, other):
            status = (await client.get(f"/v1/memories/{memory['id']}", headers=headers)).status_code
            assert status == (200 if memory["id"] in ids else 404)
    widened = await client.patch(f"/v1/memories/{private['id']}", json={"visibility": "tenant"}, headers=ben)
    assert widened.status_code == 404
    taken = await client.post("/v1/memories", json={**MEMORY, "id": private["id"]}, headers=ben)
    assert taken.status_code == 409


async def test_acting_for_a_user_needs_the_scope(client: httpx.AsyncClient, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    bound = tenant.add_token("writer", user="ann")
    plain = tenant.add_token("writer")
    for token in (bound, plain):
        headers = {"Authorization": f"Bearer {token}"}
        by_body = await client.post("/v1/memories", json={**MEMORY, "user_id": "ben"}, headers=headers)
        by_header = await client.post("/v1/memories", json=MEMORY, headers={**headers, "X-Memory-User": "ben"})
        assert (by_body.status_code, by_header.status_code) == (403, 403)
    own = await client.post("/v1/memories", json=MEMORY, headers={"Authorization": f"Bearer {bound}"})
    assert own.json()["memory"]["user_id"] == "ann"
