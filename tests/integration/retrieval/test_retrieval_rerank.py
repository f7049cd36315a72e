"""Ranking anew: what it changes, what is kept for it and who may see that, and that no answer fails for want of it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.fixtures.acting import rows_of
from tests.fixtures.citing import Citer
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.integration.retrieval.conftest import Ask, Memory

from memory_os.api.services import Services
from memory_os.app import build_reranking
from memory_os.embedding.bundled import BundledEmbedder
from memory_os.embedding.port import EmbedderUnavailableError
from memory_os.settings import Settings

pytestmark = pytest.mark.anyio

KEPT = "SELECT record_id::text AS id, visibility, user_id, octet_length(vectors) AS size FROM token_vectors ORDER BY 1"


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """A service that ranks by the tokens of the bundled model, with time enough for it."""
    return service_settings.model_copy(update={"rerank": "maxsim", "rerank_budget_ms": 10_000})


@pytest.fixture
async def kitchen(remember: Memory) -> list[str]:
    """Memories about much the same."""
    return [
        await remember("The oven in the kitchen was repaired in March.", dedup="off"),
        await remember("The kitchen has a new table since March.", dedup="off"),
        await remember("Ada repaired her bicycle in the yard.", dedup="off"),
    ]


async def test_an_answer_tells_that_it_was_ranked_anew(kitchen: list[str], ask: Ask) -> None:
    pack = await ask("Who repaired a bicycle?")
    first = pack["items"][0]
    assert first["id"] == kitchen[2]
    assert first["arms"]["rerank"] == 1
    assert first["why"][-1].startswith("ranked anew as number 1 (0.")
    assert sorted(item["arms"]["rerank"] for item in pack["items"]) == list(range(1, len(pack["items"]) + 1))
    assert [item["score"] for item in pack["items"]] == sorted((item["score"] for item in pack["items"]), reverse=True)
    assert pack["timings_ms"]["rerank"] > 0
    assert "degraded_arms" not in pack


async def test_a_question_may_go_without(kitchen: list[str], ask: Ask, database_urls: DatabaseUrls) -> None:
    assert kitchen
    pack = await ask("Who repaired a bicycle?", rerank=False)
    assert all("rerank" not in item["arms"] for item in pack["items"])
    assert "rerank" not in pack["timings_ms"]
    assert rows_of(database_urls, KEPT) == []


async def test_token_vectors_are_made_once_and_have_the_readers_of_their_record(
    remember: Memory, ask: Ask, citer: Citer, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = await remember("Ada repaired the bicycle.", user="ada", visibility="private", dedup="off")
    common = await remember("The bicycle shop closes at six.", dedup="off")
    source = await citer.source("A bicycle needs oil.", title="Manual")
    passage = (await citer.get(f"/v1/sources/{source}/passages"))["items"][0]["id"]
    first = await ask("bicycle", user="ada")
    kept = {row["id"]: (row["visibility"], row["user_id"]) for row in rows_of(database_urls, KEPT)}
    assert kept == {own: ("private", "ada"), common: ("tenant", None), passage: ("tenant", None)}
    made: list[int] = []

    async def count(self: BundledEmbedder, texts: list[str]) -> list[Any]:
        made.append(len(texts))
        return await encode(self, texts)

    encode = BundledEmbedder.embed_tokens
    monkeypatch.setattr(BundledEmbedder, "embed_tokens", count)
    again = await ask("bicycle", user="ada")
    assert made == [1]  # the question alone
    assert [(item["id"], item["arms"]) for item in again["items"]] == [
        (item["id"], item["arms"]) for item in first["items"]
    ]
    stranger = await ask("bicycle", user="ben")
    assert own not in {item["id"] for item in stranger["items"]}
    assert sorted(item["arms"]["rerank"] for item in stranger["items"]) == [1, 2]


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    """Stores sources for nobody in particular."""
    return Citer(client, tenant)


async def test_a_changed_text_drops_its_vectors_and_readers_follow(
    remember: Memory, ask: Ask, client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    memory = await remember("The oven needs wood.", user="ada", dedup="off")
    await ask("oven")
    assert [row["id"] for row in rows_of(database_urls, KEPT)] == [memory]
    headers = tenant.headers(user="ada")
    path = f"/v1/memories/{memory}"
    answer = await client.patch(path, json={"visibility": "private"}, headers={**headers, "If-Match": '"1"'})
    assert answer.status_code == 200, answer.text
    assert [(row["visibility"], row["user_id"]) for row in rows_of(database_urls, KEPT)] == [("private", "ada")]
    answer = await client.patch(path, json={"text": "The oven needs gas."}, headers={**headers, "If-Match": '"2"'})
    assert answer.status_code == 200, answer.text
    assert rows_of(database_urls, KEPT) == []
    await ask("oven", user="ada")
    assert [row["id"] for row in rows_of(database_urls, KEPT)] == [memory]


async def test_deleting_and_erasing_leave_no_vectors(
    kitchen: list[str], ask: Ask, client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    await ask("repaired in the kitchen")
    assert len(rows_of(database_urls, KEPT)) == 3
    answer = await client.delete(f"/v1/memories/{kitchen[0]}", headers=tenant.headers("admin"))
    assert answer.is_success, answer.text
    assert kitchen[0] not in {row["id"] for row in rows_of(database_urls, KEPT)}


async def test_what_is_not_ready_in_time_keeps_its_place_and_is_there_the_next_time(
    kitchen: list[str], ask: Ask, services: Services, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = await ask("repaired in the kitchen", rerank=False)
    encode, free = BundledEmbedder.embed_tokens, asyncio.Event()

    async def slow(self: BundledEmbedder, texts: list[str]) -> list[Any]:
        if texts != ["repaired in the kitchen"]:
            await free.wait()
        return await encode(self, texts)

    monkeypatch.setattr(BundledEmbedder, "embed_tokens", slow)
    scorer = services.retriever._reranking._scorer  # type: ignore[union-attr]
    scorer._budget_s = 1.0  # type: ignore[union-attr]
    late = await ask("repaired in the kitchen")
    assert [item["id"] for item in late["items"]] == [item["id"] for item in plain["items"]]
    assert late["degraded_arms"] == ["rerank"]
    free.set()
    await asyncio.gather(*scorer._making)  # type: ignore[union-attr]
    assert len(rows_of(database_urls, KEPT)) == len(kitchen)
    scorer._budget_s = 10.0  # type: ignore[union-attr]
    assert "degraded_arms" not in await ask("repaired in the kitchen")


async def test_no_answer_fails_for_want_of_the_model(
    kitchen: list[str], ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> list[Any]:
        raise EmbedderUnavailableError("gone")

    monkeypatch.setattr(BundledEmbedder, "embed_tokens", fail)
    pack = await ask("Who repaired a bicycle?")
    assert pack["items"][0]["id"] == kitchen[2]
    assert pack["degraded_arms"] == ["rerank"]


async def test_kept_vectors_are_pruned_to_their_bound(
    kitchen: list[str], ask: Ask, services: Services, database_urls: DatabaseUrls
) -> None:
    scorer = services.retriever._reranking._scorer  # type: ignore[union-attr]
    scorer._most_bytes = 4_000  # type: ignore[union-attr]
    pack = await ask("repaired in the kitchen")
    assert len(pack["items"]) == len(kitchen)
    assert 0 < sum(row["size"] for row in rows_of(database_urls, KEPT)) <= 4_000


async def test_an_instance_without_it_says_how_to_mend_that(
    services: Services, client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    services.retriever._reranking = None
    answer = await client.post("/v1/retrieve", json={"query": "oven", "rerank": True}, headers=tenant.headers("reader"))
    assert answer.status_code == 422
    assert "RERANK=maxsim" in answer.json()["errors"][0]["detail"]
    assert build_reranking(services.settings.model_copy(update={"rerank": "off"}), services.database, None) is None  # type: ignore[arg-type]
