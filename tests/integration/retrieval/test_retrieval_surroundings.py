"""Turns of a conversation are found by what stands around them; and every candidate is weighed by both arms."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.citing import Citer
from tests.fixtures.service import TestTenant
from tests.integration.retrieval.conftest import Ask, Memory

pytestmark = pytest.mark.anyio

WORDS = {"vector": False, "text": True, "graph": False}

TALK = (
    "Ada: Good morning to you all.",
    "Ben: The garden needs rain.",
    "Ada: Did the gearbox of the old press get its oil?",
    "Ben: Yes, two litres, on Friday.",
    "Ada: Splendid.",
    "Ben: The cat is asleep.",
    "Ada: The post was late again.",
    "Ben: So were the trains.",
)


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    """Stores sources and memories for nobody in particular."""
    return Citer(client, tenant)


def by_text(pack: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["text"]: item for item in pack["items"]}


async def test_the_answer_stands_beside_the_turn_that_has_the_words(
    citer: Citer, ask: Ask, client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    await citer.source(*TALK, kind="conversation", title="Monday")
    pack = await ask("gearbox oil press", arms=WORDS)
    found = by_text(pack)
    assert set(found) == {TALK[place] for place in range(5)}, "the hit, and two turns to each side"
    assert found[TALK[2]]["arms"] == {"text": 1}
    beside = found[TALK[3]]
    assert beside["arms"] == {}
    assert beside["why"] == ["stands beside a turn that was found"]
    assert [item["text"] for item in pack["items"]].index(TALK[3]) <= 1, "what follows a question answers it"
    answer = await client.get(f"/v1/retrievals/{pack['retrieval_id']}", headers=tenant.headers("admin"))
    assert {item["id"] for item in answer.json()["items"]} == {item["id"] for item in pack["items"]}


async def test_pages_of_a_document_have_no_such_surroundings(citer: Citer, ask: Ask) -> None:
    await citer.source(*TALK, kind="document", title="Monday")
    assert set(by_text(await ask("gearbox oil press", arms=WORDS))) == {TALK[2]}


async def test_surroundings_end_with_the_conversation(citer: Citer, ask: Ask) -> None:
    await citer.source("Ada: First things first.", TALK[2], kind="conversation", title="One")
    await citer.source("Ben: Elsewhere.", "Ada: Nothing to see.", kind="conversation", title="Two")
    assert set(by_text(await ask("gearbox oil press", arms=WORDS))) == {"Ada: First things first.", TALK[2]}


async def test_nobody_sees_what_stands_beside_in_a_private_conversation(
    ask: Ask, client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    body = {
        "kind": "conversation",
        "title": "Hers",
        "visibility": "private",
        "passages": [{"text": one} for one in TALK],
    }
    answer = await client.post("/v1/sources", json=body, headers=tenant.headers(user="ada"))
    assert answer.status_code == 201, answer.text
    assert (await ask("gearbox oil press"))["no_match"]
    assert by_text(await ask("gearbox oil press", user="ada", arms=WORDS))


async def test_a_turn_is_not_there_before_its_conversation(citer: Citer, ask: Ask) -> None:
    await citer.source(*TALK, kind="conversation", title="Monday", source_date="2025-03-01T00:00:00Z")
    assert by_text(await ask("gearbox oil press", arms=WORDS, as_of="2025-03-02T00:00:00Z"))
    assert (await ask("gearbox oil press", arms=WORDS, as_of="2025-02-01T00:00:00Z"))["no_match"]


@pytest.mark.parametrize("fusion", ["relevance", "min_max", "ranks"])
async def test_every_fusion_finds_and_explains(citer: Citer, remember: Memory, ask: Ask, fusion: str) -> None:
    memory = await remember("The gearbox of the press was oiled on Friday.")
    await citer.source(*TALK, kind="conversation", title="Monday")
    pack = await ask("Was the gearbox oiled?", fusion=fusion)
    assert memory in {item["id"] for item in pack["items"]}
    scores = [item["score"] for item in pack["items"]]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0


async def test_an_unknown_fusion_is_refused(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    answer = await client.post("/v1/retrieve", json={"query": "x", "fusion": "magic"}, headers=tenant.headers("reader"))
    assert answer.status_code == 422
