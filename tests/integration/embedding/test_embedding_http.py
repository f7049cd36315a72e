from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.embedding_endpoint import (
    EmbeddingEndpoint,
    Reply,
    Request,
    answer_error,
    answer_vectors,
    serve_embeddings,
)

from memory_os.embedding import Embedder, EmbedderDataError, EmbedderIdentity, EmbedderUnavailableError, EmbeddingError
from memory_os.embedding.http import HttpEmbedder

pytestmark = pytest.mark.anyio

KEY = "sk-hush-0123456789"
DIMENSION = 24
Make = Callable[..., HttpEmbedder]


@pytest.fixture
async def endpoint() -> AsyncIterator[EmbeddingEndpoint]:
    async with serve_embeddings(DIMENSION) as served:
        yield served


@pytest.fixture
async def make(endpoint: EmbeddingEndpoint) -> AsyncIterator[Make]:
    made: list[HttpEmbedder] = []

    def make_one(**changes: Any) -> HttpEmbedder:
        settings: dict[str, Any] = {"url": endpoint.url, "model": "served", "api_key": KEY, "timeout": 5.0}
        made.append(HttpEmbedder(**(settings | changes)))
        return made[-1]

    yield make_one
    for embedder in made:
        await embedder.close()


def answer_truthfully(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
    """Make vectors that tell texts apart: the first number is the length of the text."""
    return answer_vectors([[float(len(text)), 1.0] + [0.0] * (endpoint.dimension - 2) for text in request.texts])


async def test_the_protocol_is_spoken(endpoint: EmbeddingEndpoint, make: Make) -> None:
    await make().embed(["hello"])
    probe, request = endpoint.requests
    assert request.path == "/v1/embeddings"
    assert request.payload == {"model": "served", "input": ["hello"]}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert probe.payload["model"] == "served"


@pytest.mark.parametrize("end", ["/", "/embeddings", "/embeddings/"])
async def test_the_url_may_end_as_people_paste_it(endpoint: EmbeddingEndpoint, make: Make, end: str) -> None:
    await make(url=endpoint.url + end).embed(["hello"])
    assert {request.path for request in endpoint.requests} == {"/v1/embeddings"}


async def test_without_a_key_no_header_is_sent(endpoint: EmbeddingEndpoint, make: Make) -> None:
    await make(api_key=None).embed(["hello"])
    assert "authorization" not in endpoint.requests[0].headers


async def test_the_dimension_is_asked_for_once(endpoint: EmbeddingEndpoint, make: Make) -> None:
    embedder = make()
    with pytest.raises(EmbedderUnavailableError, match="isn't known"):
        _ = embedder.identity
    await asyncio.gather(*(embedder.open() for _ in range(10)))
    assert embedder.identity == EmbedderIdentity("served", DIMENSION)
    assert len(endpoint.requests) == 1


async def test_a_given_dimension_needs_no_probe_and_is_asked_for(endpoint: EmbeddingEndpoint, make: Make) -> None:
    embedder = make(dimension=DIMENSION)
    await embedder.open()
    assert not endpoint.requests
    await embedder.embed(["hello"])
    assert endpoint.requests[0].payload["dimensions"] == DIMENSION


async def test_an_endpoint_that_refuses_the_dimensions_field_is_asked_without_it(
    endpoint: EmbeddingEndpoint, make: Make
) -> None:
    def answer(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
        if "dimensions" in request.payload:
            return answer_error(400, "the model does not support matryoshka representation")
        return answer_truthfully(request, endpoint)

    endpoint.always = answer
    embedder = make(dimension=DIMENSION)
    await embedder.embed(["one"])
    await embedder.embed(["two"])
    assert ["dimensions" in request.payload for request in endpoint.requests] == [True, False, False]


async def test_a_refused_text_does_not_end_asking_for_the_dimension(endpoint: EmbeddingEndpoint, make: Make) -> None:
    endpoint.script.extend([answer_error(400, "policy"), answer_error(400, "policy")])
    embedder = make(dimension=DIMENSION)
    with pytest.raises(EmbedderDataError):
        await embedder.embed(["bad"])
    await embedder.embed(["good"])
    assert endpoint.requests[-1].payload["dimensions"] == DIMENSION


@pytest.mark.parametrize(
    "fault",
    [
        answer_error(500, "oops"),
        answer_error(503, "busy"),
        answer_error(429, "slow down", retry_after="0"),
        Reply(dropped=True),
        Reply(body=b'{"data": [{"index": 0, "embedding": [0.1, 0.2', sent=None),
        Reply(body=b'{"data": [{"index": 0, "embedding": [0.1, 0.2]}]}', sent=20),
        Reply(body=b"<html>starting</html>"),
        Reply(body=b'{"error": {"message": "upstream"}}'),
    ],
    ids=["500", "503", "429", "dropped", "truncated json", "cut body", "html", "error in a 200"],
)
async def test_a_fault_that_passes_is_not_noticed(endpoint: EmbeddingEndpoint, make: Make, fault: Reply) -> None:
    embedder = make(dimension=DIMENSION)
    endpoint.script.extend([fault, fault])
    assert (await embedder.embed(["hello"])).shape == (1, DIMENSION)
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    "fault",
    [answer_error(500, "oops"), answer_error(429, "slow down"), Reply(dropped=True), Reply(body=b"{")],
    ids=["500", "429", "dropped", "truncated"],
)
async def test_a_fault_that_stays_is_unavailable(endpoint: EmbeddingEndpoint, make: Make, fault: Reply) -> None:
    endpoint.always = fault
    with pytest.raises(EmbedderUnavailableError, match="times tried"):
        await make(dimension=DIMENSION).embed(["hello"])
    assert 2 <= len(endpoint.requests) <= 5


async def test_an_endpoint_that_is_not_there_is_unavailable_and_may_come_up_later(
    endpoint: EmbeddingEndpoint, make: Make
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        embedder = make(url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1", timeout=1.0)
        with pytest.raises(EmbedderUnavailableError, match="ConnectError"):
            await embedder.open()
        with pytest.raises(EmbedderUnavailableError, match="ConnectError"):
            await embedder.embed(["hello"])
    embedder = make()
    endpoint.always = answer_error(503, "loading")
    with pytest.raises(EmbedderUnavailableError):
        await embedder.open()
    endpoint.always = None
    assert (await embedder.embed(["hello"])).shape == (1, DIMENSION)


async def test_retry_after_is_waited_for(endpoint: EmbeddingEndpoint, make: Make) -> None:
    endpoint.script.append(answer_error(429, "slow down", retry_after="1"))
    loop = asyncio.get_running_loop()
    start = loop.time()
    await make(dimension=DIMENSION).embed(["hello"])
    assert loop.time() - start >= 1
    assert len(endpoint.requests) == 2


async def test_a_retry_after_beyond_the_budget_is_not_waited_for(endpoint: EmbeddingEndpoint, make: Make) -> None:
    endpoint.always = answer_error(429, "slow down", retry_after="60")
    loop = asyncio.get_running_loop()
    start = loop.time()
    with pytest.raises(EmbedderUnavailableError, match="429"):
        await make(dimension=DIMENSION).embed(["hello"])
    assert loop.time() - start < 2
    assert len(endpoint.requests) == 1


async def test_a_slow_endpoint_is_given_up_within_the_budget(endpoint: EmbeddingEndpoint, make: Make) -> None:
    never = asyncio.Event()
    endpoint.always = Reply(after=never)
    loop = asyncio.get_running_loop()
    start = loop.time()
    with pytest.raises(EmbedderUnavailableError):
        await make(dimension=DIMENSION, timeout=0.4).embed(["hello"])
    assert 0.3 < loop.time() - start < 2


@pytest.mark.parametrize("changed", [DIMENSION - 1, DIMENSION + 1, 0])
async def test_another_dimension_than_before_is_refused(endpoint: EmbeddingEndpoint, make: Make, changed: int) -> None:
    embedder = make()
    await embedder.open()
    endpoint.always = answer_vectors([[1.0] * changed])
    with pytest.raises(EmbedderDataError, match=f"dimension {changed}, expected {DIMENSION}"):
        await embedder.embed(["hello"])
    assert len(endpoint.requests) == 2


async def test_a_dimension_other_than_the_setting_is_refused(make: Make) -> None:
    with pytest.raises(EmbedderDataError, match="check EMBEDDING_MODEL and EMBEDDING_DIMENSION"):
        await make(dimension=DIMENSION + 8).embed(["hello"])


async def test_shuffled_vectors_are_put_in_order(endpoint: EmbeddingEndpoint, make: Make) -> None:
    def answer(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
        lengths = [[float(len(text)), 1.0] + [0.0] * (endpoint.dimension - 2) for text in request.texts]
        order = sorted(range(len(lengths)), key=lambda number: number * 7 % 11)
        return answer_vectors([lengths[number] for number in order], indexes=order)

    embedder = make(dimension=DIMENSION)
    texts = ["x" * length for length in range(1, 11)]
    endpoint.always = answer_truthfully
    expected = await embedder.embed(texts)
    endpoint.always = answer
    np.testing.assert_allclose(await embedder.embed(texts), expected)
    np.testing.assert_allclose(expected[:, 0] / expected[:, 1], range(1, 11), rtol=1e-5)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), None, "0.5"])
async def test_numbers_that_are_none_are_refused_without_another_try(
    endpoint: EmbeddingEndpoint, make: Make, number: object
) -> None:
    endpoint.always = answer_vectors([[number] + [1.0] * (DIMENSION - 1)])
    with pytest.raises(EmbedderDataError):
        await make(dimension=DIMENSION).embed(["hello"])
    assert len(endpoint.requests) == 1


async def test_many_texts_travel_in_batches_on_few_connections(endpoint: EmbeddingEndpoint, make: Make) -> None:
    gate = asyncio.Event()
    endpoint.always = lambda request, endpoint: replace(answer_truthfully(request, endpoint), after=gate)
    texts = ["x" * (1 + number % 97) for number in range(500)]
    working = asyncio.create_task(make(dimension=DIMENSION, batch_size=16).embed(texts))
    async with asyncio.timeout(10):
        while endpoint.busiest < 4:  # noqa: ASYNC110 - polls with a deadline
            await asyncio.sleep(0.005)
    gate.set()
    vectors = await working
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], [len(text) for text in texts], rtol=1e-4)
    assert len(endpoint.requests) == 32
    assert max(len(request.texts) for request in endpoint.requests) == 16
    assert endpoint.busiest == 4


async def test_fifty_tasks_share_requests(endpoint: EmbeddingEndpoint, make: Make) -> None:
    embedder = make(dimension=DIMENSION)
    await asyncio.gather(*(embedder.embed([f"text {number}"]) for number in range(50)))
    assert len(endpoint.requests) <= 6


async def test_blank_texts_are_not_sent_blank(endpoint: EmbeddingEndpoint, make: Make) -> None:
    await make(dimension=DIMENSION).embed(["", "  \n", "word"])
    assert sorted(endpoint.requests[0].texts) == [".", ".", "word"]


async def test_a_batch_with_too_many_texts_is_split(endpoint: EmbeddingEndpoint, make: Make) -> None:
    def answer(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
        if len(request.texts) > 4:
            return answer_error(422, f"batch size {len(request.texts)} > maximum allowed batch size 4")
        return answer_truthfully(request, endpoint)

    endpoint.always = answer
    texts = ["x" * length for length in range(1, 15)]
    vectors = await make(dimension=DIMENSION).embed(texts)
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], range(1, 15), rtol=1e-5)


@pytest.mark.parametrize("status", [400, 413, 500])
async def test_a_text_that_is_too_long_is_embedded_by_its_beginning(
    endpoint: EmbeddingEndpoint, make: Make, status: int
) -> None:
    def answer(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
        if any(len(text) > 2_000 for text in request.texts):
            return answer_error(status, "input (9000 tokens) is too large to process")
        return answer_truthfully(request, endpoint)

    endpoint.always = answer
    vectors = await make(dimension=DIMENSION).embed(["y" * 10_000, "short", "z" * 100_000])
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], [1_250, 5, 1_024], rtol=1e-3)


async def test_an_endpoint_to_which_everything_is_too_large_is_a_data_error(
    endpoint: EmbeddingEndpoint, make: Make
) -> None:
    endpoint.always = answer_error(413, "no")
    with pytest.raises(EmbedderDataError, match="413"):
        await make(dimension=DIMENSION).embed(["y" * 40_000])
    assert len(endpoint.requests) < 10


async def test_a_refused_text_of_one_caller_leaves_the_others_alone(endpoint: EmbeddingEndpoint, make: Make) -> None:
    def answer(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
        if "forbidden" in request.texts:
            return answer_error(400, "content policy", code="content_filter")
        return answer_truthfully(request, endpoint)

    endpoint.always = answer
    embedder = make()
    await embedder.open()
    good, bad, other = await asyncio.gather(
        embedder.embed(["good"]), embedder.embed(["forbidden"]), embedder.embed(["other"]), return_exceptions=True
    )
    assert isinstance(bad, EmbedderDataError)
    assert "content_filter" in str(bad)
    assert isinstance(good, np.ndarray)
    assert isinstance(other, np.ndarray)


async def test_a_caller_who_gives_up_does_not_end_the_shared_request(endpoint: EmbeddingEndpoint, make: Make) -> None:
    embedder = make(dimension=DIMENSION)
    gate = asyncio.Event()

    def answer(request: Request, endpoint: EmbeddingEndpoint) -> Reply:
        reply = answer_truthfully(request, endpoint)
        return Reply(body=reply.body, after=gate)

    endpoint.always = answer
    given_up, other = (asyncio.create_task(embedder.embed([text])) for text in ("given up", "other"))
    await endpoint.arrived.wait()
    given_up.cancel()
    await asyncio.wait([given_up])
    gate.set()
    assert (await other).shape == (1, DIMENSION)
    assert len(endpoint.requests) == 1


async def test_a_huge_reply_is_not_read_to_its_end(
    endpoint: EmbeddingEndpoint, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_os.embedding.http._MAX_REPLY_BYTES", 100_000)
    endpoint.always = Reply(body=b" " * 1_000_000)
    with pytest.raises(EmbedderDataError, match="larger than"):
        await make(dimension=DIMENSION).embed(["hello"])


async def collect_error(embedder: Embedder) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as caught:
        await embedder.embed(["the text is private too"])
    return caught.value


@pytest.mark.parametrize("status", [200, 301, 400, 401, 413, 422, 429, 500])
async def test_neither_key_nor_text_is_in_any_message_or_log(
    endpoint: EmbeddingEndpoint, make: Make, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(request: Request, _: EmbeddingEndpoint) -> Reply:
        echo = f"{request.headers['authorization']} sent {request.texts}"
        return answer_error(status, echo, code=KEY, location=f"http://127.0.0.1:1/{KEY}")

    endpoint.always = answer
    with caplog.at_level(logging.DEBUG):
        embedder = make(dimension=DIMENSION, timeout=1.0)
        error: BaseException | None = await collect_error(embedder)
    said = [caplog.text, repr(embedder), repr(vars(embedder)), repr(embedder._client.headers)]
    while error is not None:
        said += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    # httpcore writes the reply's headers at DEBUG, and only this endpoint puts the key there.
    said[0] = "\n".join(line for line in said[0].splitlines() if "receive_response_headers" not in line)
    assert KEY not in "\n".join(said)
    assert "private" not in "\n".join(said)
