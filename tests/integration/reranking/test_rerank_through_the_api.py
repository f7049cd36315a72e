"""A service that ranks by an endpoint: its order counts, and its faults cost nothing but the better order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from tests.fixtures.embedding_endpoint import EmbeddingEndpoint, Reply, Request, answer_error, serve_embeddings
from tests.fixtures.service import TestTenant

from memory_os.app import build_reranking
from memory_os.errors import StartupError
from memory_os.settings import Settings

pytestmark = pytest.mark.anyio

TEXTS = ["The oven needs wood.", "The oven and the wood shed are new.", "The oven is a gift from Ada to the kitchen."]


@pytest.fixture
async def endpoint() -> AsyncIterator[EmbeddingEndpoint]:
    """An endpoint that finds the longest text the best."""
    async with serve_embeddings() as served:
        served.always = answer_lengths
        yield served


@pytest.fixture
def service_settings(service_settings: Settings, endpoint: EmbeddingEndpoint) -> Settings:
    """A service that asks it."""
    changes = {"rerank": "endpoint", "rerank_url": endpoint.url, "rerank_model": "ranker", "rerank_timeout_s": 20.0}
    return service_settings.model_copy(update=changes)


def answer_lengths(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
    del endpoint
    scores = [len(document) for document in request.payload["documents"]]
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return Reply(body=json.dumps({"results": results}).encode())


async def test_the_endpoint_orders_and_its_faults_cost_only_the_order(
    client: httpx.AsyncClient, tenant: TestTenant, endpoint: EmbeddingEndpoint
) -> None:
    for text in TEXTS:
        body = {"text": text, "label": "Attribute", "title": "Kitchen", "dedup": "off"}
        answer = await client.post("/v1/memories", json=body, headers=tenant.headers())
        assert answer.status_code == 201, answer.text

    async def ask(**fields: object) -> dict[str, list[dict[str, object]]]:
        body = {"query": "oven wood", **fields}
        answer = await client.post("/v1/retrieve", json=body, headers=tenant.headers("reader"))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    plain = await ask(rerank=False)
    assert endpoint.requests == []
    ranked = await ask()
    places = {item["text"]: item["arms"]["rerank"] for item in ranked["items"]}  # type: ignore[index]
    assert places == {TEXTS[2]: 1, TEXTS[1]: 2, TEXTS[0]: 3}
    assert sorted(endpoint.requests[0].payload["documents"]) == sorted(f"Kitchen\n{text}" for text in TEXTS)
    endpoint.always = answer_error(500, "no")
    failed = await ask()
    assert failed["degraded_arms"] == ["rerank"]
    assert [item["id"] for item in failed["items"]] == [item["id"] for item in plain["items"]]


async def test_settings_that_cannot_work_stop_the_start(service_settings: Settings) -> None:
    for changes, mend in (
        ({"rerank_url": "ftp://host"}, "RERANK_URL: isn't a URL"),
        ({"rerank_model": None}, "RERANK_MODEL: is needed"),
    ):
        with pytest.raises(StartupError, match=mend):
            build_reranking(service_settings.model_copy(update=changes), None, None)  # type: ignore[arg-type]


def test_an_endpoint_without_an_address_is_refused_with_the_settings() -> None:
    with pytest.raises(ValueError, match="RERANK=endpoint needs RERANK_URL and RERANK_MODEL"):
        Settings(rerank="endpoint", rerank_url="http://127.0.0.1:1")
