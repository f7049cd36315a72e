"""What the gate did can be taken back, and what it left open can be decided: each leaves exactly the rows it should."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.acting import canonical
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

pytestmark = pytest.mark.anyio

MEMORIES, REVIEWS = "/v1/memories", "/v1/reviews"
WEIGHT = {"label": "Attribute", "subject": "mara", "property": "weight"}


async def store(client: httpx.AsyncClient, headers: dict[str, str], text: str, **fields: Any) -> dict[str, Any]:
    answer = await client.post(MEMORIES, json={"text": text, "label": "Preference", **fields}, headers=headers)
    assert answer.status_code < 300, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def undo(client: httpx.AsyncClient, headers: dict[str, str], memory: str, act: str) -> httpx.Response:
    return await client.post(f"{MEMORIES}/{memory}/acts/{act}/undo", json={}, headers=headers)


async def queue(client: httpx.AsyncClient, headers: dict[str, str], **wanted: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await client.get(REVIEWS, params=wanted, headers=headers)).json()["items"]
    return items


async def test_an_undone_merge_is_two_memories_each_as_it_was_told(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    goal = (await store(client, headers, "Mara wants a quiet office.", label="Goal"))["memory"]["id"]
    edges = [{"type": "SUPPORTS", "to": goal, "confidence": 0.5}]
    first = (await store(client, headers, "Mara likes silence.", confidence=0.5, edges=edges))["memory"]
    before = canonical(database_urls)
    ident = "01990000-0000-7000-8000-000000000002"
    edges = [{"type": "SUPPORTS", "to": goal, "confidence": 0.7}, {"type": "MOTIVATED_BY", "to": goal}]
    told = {"label": "Behavior", "confidence": 0.5, "edges": edges, "id": ident, "tags": ["office"]}
    merged = await store(client, headers, "mara likes SILENCE", **told)
    assert merged["outcome"] == "merged"
    later = await store(client, headers, "MARA likes silence", confidence=0.1)
    assert later["outcome"] == "merged"
    for act in (later["act_id"], merged["act_id"]):
        answer = await undo(client, headers, first["id"], act)
        assert answer.status_code == 200, answer.text
    again = (await client.get(f"{MEMORIES}/{ident}", headers=headers)).json()
    assert {name: again[name] for name in ("text", "label", "confidence", "tags", "status")} == {
        "text": "mara likes SILENCE",
        "label": "Behavior",
        "confidence": 0.5,
        "tags": ["office"],
        "status": "active",
    }
    own = (await client.get("/v1/edges", params={"memory": ident}, headers=headers)).json()["items"]
    assert sorted((edge["type"], edge["confidence"]) for edge in own) == [("MOTIVATED_BY", 0.5), ("SUPPORTS", 0.7)]
    after = canonical(database_urls)
    kept = {row["id"] for row in before["memories"]}
    assert [row for row in after["memories"] if row["id"] in kept] == before["memories"]
    kept = {row["id"] for row in before["edges"]}
    assert [row for row in after["edges"] if row["id"] in kept] == before["edges"]
    assert (await undo(client, headers, first["id"], merged["act_id"])).status_code == 409


async def test_a_merge_can_be_undone_whatever_came_after_it(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    first = (await store(client, headers, "Mara likes silence."))["memory"]["id"]
    merged = await store(client, headers, "Mara likes silence")
    await client.post(f"{MEMORIES}/{first}/archive", json={}, headers=headers)
    assert (await undo(client, headers, first, merged["act_id"])).status_code == 200


@pytest.mark.parametrize("decision", ["merge", "supersede", "dispute"])
async def test_a_decision_can_be_undone_and_is_open_again(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls, decision: str
) -> None:
    headers, reviewer = tenant.headers(), tenant.headers("reviewer")
    goal = (await store(client, headers, "Mara wants to be fit.", label="Goal"))["memory"]["id"]
    edges = [{"type": "SUPPORTS", "to": goal}]
    old = (await store(client, headers, "Mara weighs 178 lbs.", edges=edges, **WEIGHT))["memory"]["id"]
    new = (await store(client, headers, "Mara weighs 182 lbs.", **WEIGHT))["memory"]["id"]
    (review,) = await queue(client, headers, status="open")
    before = canonical(database_urls)
    path = f"{REVIEWS}/{review['id']}/decide"
    assert (await client.post(path, json={"decision": decision}, headers=headers)).status_code == 403
    decided = await client.post(path, json={"decision": decision, "reason": "seen"}, headers=reviewer)
    assert decided.status_code == 200, decided.text
    statuses = {
        "merge": ("active", "archived"),
        "supersede": ("superseded", "active"),
        "dispute": ("disputed", "disputed"),
    }
    shown = [(await client.get(f"{MEMORIES}/{ident}", headers=headers)).json()["status"] for ident in (old, new)]
    assert tuple(shown) == statuses[decision]
    assert (await client.post(path, json={"decision": "keep"}, headers=reviewer)).status_code == 409
    assert await queue(client, headers, status="open") == []
    subject = {"merge": new, "supersede": old, "dispute": new}[decision]
    answer = await undo(client, headers, subject, decided.json()["act_id"])
    assert answer.status_code == 200, answer.text
    after = canonical(database_urls)
    assert [after[table] for table in ("memories", "edges")] == [before[table] for table in ("memories", "edges")]
    assert [found["id"] for found in await queue(client, headers, status="open")] == [review["id"]]


async def test_keeping_both_closes_the_review(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers("reviewer")
    for text in ("Mara weighs 178 lbs.", "Mara weighs 182 lbs."):
        await store(client, headers, text, **WEIGHT)
    (review,) = await queue(client, headers)
    answer = await client.post(f"{REVIEWS}/{review['id']}/decide", json={"decision": "keep"}, headers=headers)
    assert answer.json()["review"]["status"] == "kept"
    assert answer.json()["act_id"] is None


async def test_a_review_is_seen_by_who_sees_both(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    mara, noor = tenant.headers(user="mara"), tenant.headers(user="noor")
    for text in ("Mara weighs 178 lbs.", "Mara weighs 182 lbs."):
        await store(client, mara, text, visibility="private", **WEIGHT)
    (review,) = await queue(client, mara)
    assert await queue(client, noor) == []
    assert (await client.get(f"{REVIEWS}/{review['id']}", headers=noor)).status_code == 404
