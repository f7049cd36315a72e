"""`/v1/retrieve`, `/v1/context`, `/v1/retrievals`: the shapes that clients rely on, and what is refused."""

from __future__ import annotations

import asyncio
import random
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.service import TestTenant

from memory_os.api.services import Services

pytestmark = pytest.mark.anyio


async def post(
    client: httpx.AsyncClient, tenant: TestTenant, body: Any, path: str = "/v1/retrieve", **headers: str
) -> httpx.Response:
    return await client.post(path, json=body, headers=tenant.headers("reader") | headers)


async def ask(client: httpx.AsyncClient, tenant: TestTenant, query: str, **fields: Any) -> dict[str, Any]:
    answer = await post(client, tenant, {"query": query, **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture
async def gearbox(client: httpx.AsyncClient, tenant: TestTenant) -> str:
    """A memory about a gearbox."""
    body = {"text": "The gearbox needs oil.", "label": "Attribute", "title": "Gearbox", "confidence": 0.75}
    answer = await client.post("/v1/memories", json=body, headers=tenant.headers())
    return str(answer.json()["memory"]["id"])


async def test_an_answer_has_the_shape_that_clients_rely_on(
    client: httpx.AsyncClient, tenant: TestTenant, gearbox: str
) -> None:
    pack = await ask(client, tenant, "gearbox oil")
    assert set(pack) == {
        "retrieval_id", "items", "omitted", "omitted_count", "conflicts", "graph", "no_match", "timings_ms",
    }  # fmt: skip
    (item,) = pack["items"]
    assert set(item) == {
        "type", "id", "label", "title", "text", "date", "status", "valid_from", "valid_to", "confidence", "score",
        "arms", "why",
    }  # fmt: skip
    assert (item["type"], item["id"], item["label"], item["status"]) == ("memory", gearbox, "Attribute", "active")
    assert (item["text"], item["confidence"], item["valid_from"]) == ("The gearbox needs oil.", 0.75, None)
    assert item["arms"]["text"] == 1
    assert item["why"] == ["shares words and meaning with the question"]
    assert (pack["omitted"], pack["omitted_count"], pack["conflicts"], pack["no_match"]) == ([], 0, [], False)
    assert set(pack["graph"]) == {"state", "lag_events", "position"}
    assert pack["timings_ms"]["total"] > 0
    assert UUID(pack["retrieval_id"]).version == 7


async def test_a_context_is_the_same_in_markdown(client: httpx.AsyncClient, tenant: TestTenant, gearbox: str) -> None:
    pack = (await post(client, tenant, {"query": "gearbox oil"}, "/v1/context")).json()
    assert pack["items"][0]["id"] == gearbox
    assert "| The gearbox needs oil." in pack["markdown"]
    plain = (await post(client, tenant, {"query": "gearbox oil", "format": "json"}, "/v1/context")).json()
    assert "markdown" not in plain
    both = await ask(client, tenant, "gearbox oil", format="markdown")
    assert both["markdown"].startswith("<!-- memory-os:context-pack/")


@pytest.mark.parametrize(("name", "most"), [("hops", 3), ("paths", 50), ("memories", 50)])
async def test_limits_hold_at_their_ends(
    client: httpx.AsyncClient, tenant: TestTenant, gearbox: str, name: str, most: int
) -> None:
    for value in (0, 1, most):
        pack = await ask(client, tenant, "gearbox oil", limits={name: value})
        assert [item["id"] for item in pack["items"]] == ([] if (name, value) == ("memories", 0) else [gearbox])
        assert not pack["no_match"]
    for value in (-1, most + 1, 1.5, "2", None):
        answer = await post(client, tenant, {"query": "gearbox", "limits": {name: value}})
        assert answer.status_code == 422, (value, answer.text)
        assert answer.json()["errors"][0]["pointer"] == f"/limits/{name}"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("budget_tokens", (1, 2, 32_000), (0, -1, 32_001)),
        ("timeout_ms", (0, 1), (-1, 5_001)),
        ("wait_for", (0, 1, 2**63 - 1), (-1, 2**63)),
    ],
)
async def test_numbers_hold_at_their_ends(
    client: httpx.AsyncClient, tenant: TestTenant, gearbox: str, name: str, good: tuple[int, ...], bad: tuple[int, ...]
) -> None:
    del gearbox
    for value in good:
        assert (await post(client, tenant, {"query": "gearbox", name: value})).status_code == 200, value
    for value in bad:
        assert (await post(client, tenant, {"query": "gearbox", name: value})).status_code == 422, value


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": None},
        {"query": 7},
        {"query": "x" * 4_001},
        {"query": " " * 10_000},
        {"query": "nul \x00"},
        {"query": "x", "believed_at": "2026-01-01"},
        {"query": "x", "believed_at": "2026-01-01T00:00:00"},
        {"query": "x", "tenant_id": str(uuid4())},
        {"query": "x", "dataset": "other"},
        {"query": "x", "limits": {"hop": 1}},
        {"query": "x", "arms": {"graph": True, "keyword": True}},
        {"query": "x", "arms": {"vector": "yes"}},
        {"query": "x", "include": ["everything"]},
        {"query": "x", "include": ["history", "history"]},
        {"query": "x", "as_of": "2026-01-01"},
        {"query": "x", "as_of": "2026-01-01T00:00:00"},
        {"query": "x", "as_of": "0001-01-01T00:00:00+01:00"},
        {"query": "x", "format": "xml"},
        {"query": "x", "embedding": [0.1, 0.2, 0.3]},
        {"query": "x", "conversation_id": ""},
    ],
)
async def test_what_does_not_fit_is_refused_with_a_pointer(
    client: httpx.AsyncClient, tenant: TestTenant, body: dict[str, Any]
) -> None:
    answer = await post(client, tenant, body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_lone_surrogate_is_refused(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers("reader") | {"Content-Type": "application/json"}
    answer = await client.post("/v1/retrieve", content=b'{"query": "x \\ud800 y"}', headers=headers)
    assert answer.status_code in {400, 422}, answer.text


@pytest.mark.parametrize(
    "query", ["", " ", "   \n\t ", " " * 4_000, "???", "`", "...", "_", "-", "🙂", "'\"\\", "\u200b"]
)
async def test_a_question_without_words_finds_nothing(
    client: httpx.AsyncClient, tenant: TestTenant, gearbox: str, query: str
) -> None:
    del gearbox
    pack = await ask(client, tenant, query)
    assert pack["no_match"]
    assert pack["items"] == []


async def test_no_question_is_syntax(client: httpx.AsyncClient, tenant: TestTenant, gearbox: str) -> None:
    printable = [chr(code) for code in range(32, 127)]
    pairs = random.Random(7).sample(["".join(pair) for pair in product(printable, repeat=2)], 250)
    for text in (*printable, *pairs, "a _ b"):
        pack = await ask(client, tenant, f"gearbox {text}", arms={"vector": False})
        assert gearbox in {item["id"] for item in pack["items"]}, text
        await ask(client, tenant, text)


@pytest.mark.parametrize(
    "query",
    [
        "gearbox' | 'x", "gearbox & !oil", "gearbox:*", "gearbox <-> oil", "$$ gearbox $$", "%s %(x)s gearbox",
        "gearbox'); DROP TABLE memories; --", "gearbox\\", "(((gearbox", "gearbox)))", "{gearbox}", "@name:{gearbox}",
        " ".join(f"word{number}" for number in range(200)) + " gearbox oil",
        "gearbox oil " + "長" * 3_000, "gearbox oil " + "a" * 3_000, "gearbox " + "x y " * 900,
    ],
)  # fmt: skip
async def test_hostile_questions_find_what_they_name(
    client: httpx.AsyncClient, tenant: TestTenant, gearbox: str, query: str
) -> None:
    pack = await ask(client, tenant, query, arms={"vector": False})
    assert [item["id"] for item in pack["items"]] == [gearbox]


async def test_arms_can_be_switched_off_one_by_one(client: httpx.AsyncClient, tenant: TestTenant, gearbox: str) -> None:
    only = {"vector": False, "text": False, "graph": False}
    assert (await ask(client, tenant, "gearbox oil", arms=only))["no_match"]
    for arm in ("vector", "text"):
        pack = await ask(client, tenant, "the gearbox needs oil", arms={**only, arm: True})
        assert [(item["id"], list(item["arms"])) for item in pack["items"]] == [(gearbox, [arm])]


async def test_the_same_key_gets_the_first_answer(client: httpx.AsyncClient, tenant: TestTenant, gearbox: str) -> None:
    del gearbox
    key = {"Idempotency-Key": "k1"}
    first = await post(client, tenant, {"query": "gearbox"}, **key)
    again = await post(client, tenant, {"query": "gearbox"}, **key)
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    other = await post(client, tenant, {"query": "oil"}, **key)
    assert other.status_code == 409
    context = await post(client, tenant, {"query": "gearbox"}, "/v1/context", **key)
    assert context.status_code == 409
    at_once = await asyncio.gather(
        *(post(client, tenant, {"query": "gearbox"}, **{"Idempotency-Key": "k2"}) for _ in range(6))
    )
    assert len({answer.content for answer in at_once}) == 1
    listed = (await client.get("/v1/retrievals", headers=tenant.headers("reader"))).json()["items"]
    assert len(listed) == 2


async def test_a_past_answer_is_explained_right_after_it(
    client: httpx.AsyncClient, tenant: TestTenant, gearbox: str
) -> None:
    for number in range(10):
        body = {"text": f"Gearbox {number} is out of oil.", "label": "Attribute"}
        await client.post("/v1/memories", json=body, headers=tenant.headers())
    pack = await ask(
        client, tenant, "gearbox oil", limits={"memories": 3}, conversation_id="c-1", as_of="2030-01-01T00:00:00Z"
    )
    answer = await client.get(f"/v1/retrievals/{pack['retrieval_id']}", headers=tenant.headers("reader"))
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["retrieval"]["query"] == "gearbox oil"
    assert told["retrieval"]["conversation_id"] == "c-1"
    assert told["retrieval"]["as_of"] == "2030-01-01T00:00:00Z"
    assert (told["retrieval"]["items"], told["retrieval"]["omitted"]) == (3, pack["omitted_count"])
    assert 0 < told["retrieval"]["pack_tokens"] <= 2_000
    assert told["arms"]["text"] == {"wanted": True, "degraded": False, "found": 11, "kept": 11}
    assert told["bounds"]["memories"] == 3
    assert told["bounds"]["limit_hit"]
    assert [item["id"] for item in told["items"] if item["in_pack"]] == [item["id"] for item in pack["items"]]
    assert {item["reason"] for item in told["items"] if not item["in_pack"]} == {"limit"}
    first = told["items"][0]
    assert (first["id"], first["title"], first["type"], first["position"]) == (gearbox, "Gearbox", "memory", 0)
    assert first["arms"]["text"]["rank"] == 1
    assert first["score"] == pytest.approx(pack["items"][0]["score"], abs=1e-3)


async def test_retrievals_are_listed_newest_first_in_pages(
    client: httpx.AsyncClient, tenant: TestTenant, services: Services, gearbox: str
) -> None:
    del gearbox
    made = []
    for number in range(5):
        made.append((await ask(client, tenant, f"gearbox {number}"))["retrieval_id"])
        await services.retriever.log.settle(UUID(made[-1]))
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await client.get("/v1/retrievals", params={"limit": "2", **cursor}, headers=tenant.headers("reader"))
        page = answer.json()
        seen += [entry["id"] for entry in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == made[::-1]


async def test_a_log_that_can_not_be_written_harms_no_answer(
    client: httpx.AsyncClient, tenant: TestTenant, services: Services, gearbox: str
) -> None:
    with psycopg.connect(tenant.owner_url, autocommit=True) as owner:
        owner.execute("REVOKE INSERT ON retrievals FROM memory_os_app")
        try:
            pack = await ask(client, tenant, "gearbox")
            await services.retriever.log.close()
        finally:
            owner.execute("GRANT INSERT ON retrievals TO memory_os_app")
    assert [item["id"] for item in pack["items"]] == [gearbox]
    absent = await client.get(f"/v1/retrievals/{pack['retrieval_id']}", headers=tenant.headers("reader"))
    assert absent.status_code == 404


async def test_it_needs_a_token_that_may_read(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    for path in ("/v1/retrieve", "/v1/context"):
        assert (await client.post(path, json={"query": "x"})).status_code == 401
        for role in ("reader", "writer", "reviewer", "operator", "admin"):
            assert (await client.post(path, json={"query": "x"}, headers=tenant.headers(role))).status_code == 200
    for path in ("/v1/retrievals", f"/v1/retrievals/{uuid4()}"):
        assert (await client.get(path)).status_code == 401
    bound = {"Authorization": f"Bearer {tenant.add_token('reader', user='ada')}"}
    answer = await client.post("/v1/retrieve", json={"query": "x", "user_id": "ben"}, headers=bound)
    assert answer.status_code == 403


async def test_the_body_may_name_the_user_to_act_for(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    body = {"text": "The gearbox is Ada's secret.", "label": "Attribute", "visibility": "private", "user_id": "ada"}
    answer = await client.post("/v1/memories", json=body, headers=tenant.headers())
    assert answer.status_code == 201, answer.text
    assert len((await ask(client, tenant, "gearbox", user_id="ada"))["items"]) == 1
    assert (await ask(client, tenant, "gearbox", user_id="ben"))["no_match"]
    assert (await ask(client, tenant, "gearbox"))["no_match"]
