"""The endpoint against a server that misbehaves on demand: it answers, or it is an error of one kind, in time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.fixtures.embedding_endpoint import EmbeddingEndpoint, Reply, Request, answer_error, serve_embeddings

from memory_os.reranking.http import HttpReranker
from memory_os.reranking.port import RerankError

pytestmark = pytest.mark.anyio

KEY = "sk-hush-0123456789"
DOCUMENTS = ["short", "a longer one", "the longest of them all"]
LENGTHS = [float(len(document)) for document in DOCUMENTS]
Make = Callable[..., HttpReranker]


@pytest.fixture
async def endpoint() -> AsyncIterator[EmbeddingEndpoint]:
    async with serve_embeddings() as served:
        served.always = answer_lengths
        yield served


@pytest.fixture
async def make(endpoint: EmbeddingEndpoint) -> AsyncIterator[Make]:
    made: list[HttpReranker] = []

    def make_one(**changes: Any) -> HttpReranker:
        settings: dict[str, Any] = {"url": endpoint.url, "model": "ranker", "api_key": KEY, "timeout": 5.0}
        made.append(HttpReranker(**(settings | changes)))
        return made[-1]

    yield make_one
    for reranker in made:
        await reranker.close()


def answer_lengths(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
    """Score each document by its length, the best first."""
    del endpoint
    numbered = sorted(enumerate(request.payload["documents"]), key=lambda pair: -len(pair[1]))
    results = [{"index": index, "relevance_score": len(document)} for index, document in numbered]
    return Reply(body=json.dumps({"id": "r", "results": results}).encode())


def answer_texts(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
    """Refuse `documents`, and score `texts` as a bare list."""
    del endpoint
    if "texts" not in request.payload:
        return answer_error(422, "missing field `texts`")
    scores = [{"index": index, "score": len(text)} for index, text in enumerate(request.payload["texts"])]
    return Reply(body=json.dumps(scores).encode())


def results(*pairs: tuple[int, object]) -> Reply:
    found = [{"index": index, "relevance_score": score} for index, score in pairs]
    return Reply(body=json.dumps({"results": found}).encode())


async def test_the_protocol_is_spoken(endpoint: EmbeddingEndpoint, make: Make) -> None:
    assert await make().score("which?", DOCUMENTS) == LENGTHS
    (request,) = endpoint.requests
    assert request.path == "/v1/rerank"
    assert request.payload == {"model": "ranker", "query": "which?", "documents": DOCUMENTS, "top_n": 3}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("end", ["/", "/rerank", "/rerank/"])
async def test_the_url_may_end_as_it_is_pasted(endpoint: EmbeddingEndpoint, make: Make, end: str) -> None:
    await make(url=endpoint.url + end).score("which?", DOCUMENTS)
    assert [request.path for request in endpoint.requests] == ["/v1/rerank"]


async def test_an_endpoint_that_wants_texts_is_asked_so_from_then_on(endpoint: EmbeddingEndpoint, make: Make) -> None:
    endpoint.always = answer_texts
    reranker = make()
    assert await reranker.score("which?", DOCUMENTS) == LENGTHS
    assert await reranker.score("which?", DOCUMENTS) == LENGTHS
    assert ["texts" in request.payload for request in endpoint.requests] == [False, True, True]


async def test_documents_that_the_endpoint_left_out_have_no_score(endpoint: EmbeddingEndpoint, make: Make) -> None:
    endpoint.always = results((2, 0.9), (0, 0.1))
    assert await make().score("which?", DOCUMENTS) == [0.1, None, 0.9]


async def test_long_documents_are_sent_by_their_beginning(endpoint: EmbeddingEndpoint, make: Make) -> None:
    assert await make().score("which?", ["x" * 50_000]) == [8_000.0]
    assert len(endpoint.requests[0].payload["documents"][0]) == 8_000


@pytest.mark.parametrize(
    "reply",
    [
        answer_error(500, f"echo {KEY}"),
        answer_error(401, f"wrong key {KEY}"),
        answer_error(400, f"bad {DOCUMENTS[2]}"),
        answer_error(429, "slow down", Retry_After="60"),
        Reply(status=302, headers={"Location": "http://127.0.0.1:1/"}),
        Reply(body=b'{"results": [{"index": 0, "relevance_score": NaN}]}'),
        results((3, 1.0)),
        results((0, 1.0), (0, 2.0)),
        results((0, "high")),
        Reply(body=b'{"results": []}'),
        Reply(body=b"<html>" + b"x" * 100),
        Reply(body=b"[" + b" " * (5 * 1024 * 1024) + b"]"),
        Reply(body=b'{"results": [{"index": 0, "relevance_score": 1}]}', sent=20),
        Reply(dropped=True),
    ],
    ids=[
        *("500", "401", "400", "429", "redirect", "nan", "wrong index", "index twice", "word", "empty", "html", "huge"),
        *("closes early", "drops"),
    ],
)
async def test_misbehaviour_is_one_kind_of_error_without_secrets(
    endpoint: EmbeddingEndpoint, make: Make, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.always = reply
    caplog.set_level(logging.DEBUG)
    with pytest.raises(RerankError) as caught:
        await make().score("which?", DOCUMENTS)
    told = f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"
    assert KEY not in told
    assert DOCUMENTS[2] not in told
    endpoint.always = answer_lengths
    assert await make().score("which?", DOCUMENTS) == LENGTHS


async def test_a_slow_endpoint_is_given_up(endpoint: EmbeddingEndpoint, make: Make) -> None:
    endpoint.always = Reply(after=asyncio.Event())
    with pytest.raises(RerankError, match=r"no answer in 0\.05 s"):
        await make(timeout=0.05).score("which?", DOCUMENTS)


async def test_after_three_failures_it_is_left_alone_and_asked_again_later(
    endpoint: EmbeddingEndpoint, make: Make
) -> None:
    now = [100.0]
    reranker = make(clock=lambda: now[0])
    endpoint.always = answer_error(503, "busy")
    for _ in range(3):
        with pytest.raises(RerankError, match="503"):
            await reranker.score("which?", DOCUMENTS)
    with pytest.raises(RerankError, match="left alone"):
        await reranker.score("which?", DOCUMENTS)
    assert len(endpoint.requests) == 3
    now[0] += 16
    endpoint.always = answer_lengths
    assert await reranker.score("which?", DOCUMENTS) == LENGTHS
    endpoint.always = answer_error(503, "busy")
    with pytest.raises(RerankError, match="503"):  # one failure more leaves it open
        await reranker.score("which?", DOCUMENTS)
    assert len(endpoint.requests) == 5


async def test_nothing_is_sent_for_nothing(endpoint: EmbeddingEndpoint, make: Make) -> None:
    assert await make().score("which?", []) == []
    assert endpoint.requests == []
