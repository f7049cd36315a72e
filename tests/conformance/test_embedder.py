"""What every embedder promises, asked of each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
from tests.fixtures.embedding_endpoint import serve_embeddings

from memory_os.embedding import (
    Embedder,
    EmbedderDataError,
    EmbedderIdentity,
    EmbedderUnavailableError,
    make_embedder,
)

pytestmark = pytest.mark.anyio

AWKWARD = {
    "empty": "",
    "ten thousand spaces": " " * 10_000,
    "spaces before the text": " " * 10_000 + "the deploy failed",
    "line breaks": "\r\n\t\v\f\u2028\u2029",
    "emoji": "🎉🧑‍🚀🇩🇪",
    "one letter": "a",
    "nul": "before\x00after",
    "chinese": "记忆系统的部署失败了" * 400,
    "right to left": "فشل النشر اليوم",
    "combining marks": "e\u0301" * 500,
    "one long word": "x" * 100_000,
    "long": "The deploy of the billing service failed on Monday. " * 4_000,
    "byte order mark": "\ufeff",
    "private use": "\ue000\U0010ffff",
}


@pytest.fixture(params=["bundled", "http", "http with its dimension given", "deterministic"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    async with serve_embeddings(dimension=48) as endpoint:
        match request.param:
            case "bundled":
                made = make_embedder("bundled")
            case "deterministic":
                made = make_embedder("deterministic-for-tests", dimension=64, allow_deterministic=True)
            case "http":
                made = make_embedder("http", url=endpoint.url, model="served", api_key="key-1")
            case _:
                made = make_embedder("http", url=endpoint.url, model="served", dimension=48)
        yield made
        await made.close()


def texts_of_many_lengths(count: int) -> list[str]:
    return [f"note {number} about " + "the migration of the ledger " * (number * 7 % 23) for number in range(count)]


async def test_opening_answers_the_identity_and_may_be_repeated(embedder: Embedder) -> None:
    identity = await embedder.open()
    assert isinstance(identity, EmbedderIdentity)
    assert identity.model
    assert await embedder.open() == identity == embedder.identity
    assert (await embedder.embed(["one"])).shape == (1, identity.dimension)


async def test_opening_from_many_tasks_at_once_gives_them_all_the_same(embedder: Embedder) -> None:
    assert len({*await asyncio.gather(*(embedder.open() for _ in range(20)))}) == 1


async def test_embedding_opens_where_nobody_has(embedder: Embedder) -> None:
    assert (await embedder.embed(["one", "two"])).shape == (2, embedder.identity.dimension)


async def test_vectors_are_unit_rows_of_float32(embedder: Embedder) -> None:
    vectors = await embedder.embed(texts_of_many_lengths(5))
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


async def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert (await embedder.embed([])).shape == (0, embedder.identity.dimension)


async def test_a_vector_depends_on_its_text_alone(embedder: Embedder) -> None:
    texts = texts_of_many_lengths(75)
    together = await embedder.embed(texts)
    backwards = (await embedder.embed(texts[::-1]))[::-1]
    alone = np.concatenate([await embedder.embed([text]) for text in texts[:25]])
    np.testing.assert_allclose(together, backwards, atol=1e-5)
    np.testing.assert_allclose(together[:25], alone, atol=1e-5)


async def test_equal_texts_get_equal_vectors(embedder: Embedder) -> None:
    vectors = await embedder.embed(["the same", "another", "the same"])
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)
    assert not np.allclose(vectors[0], vectors[1], atol=1e-2)


async def test_what_shares_words_and_meaning_is_nearer(embedder: Embedder) -> None:
    query, near, far = await embedder.embed(
        ["the deploy to production failed", "the deploy to staging failed", "alice drinks green tea"]
    )
    assert query @ near > query @ far + 0.2


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD.keys())
async def test_awkward_texts_get_a_vector_too(embedder: Embedder, text: str) -> None:
    vectors = await embedder.embed(["a companion", text])
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(vectors, await embedder.embed(["a companion", text]), atol=1e-5)


@pytest.mark.parametrize("bad", ["half a pair \ud83d", b"bytes", None, 7], ids=["surrogate", "bytes", "none", "number"])
async def test_what_is_no_text_is_refused_without_naming_it(embedder: Embedder, bad: object) -> None:
    with pytest.raises(EmbedderDataError, match="text 1") as caught:
        await embedder.embed(["fine", bad])  # type: ignore[list-item] # the point of the test
    assert "half a pair" not in str(caught.value)
    assert (await embedder.embed(["fine"])).shape[0] == 1


async def test_one_bare_string_is_a_programming_error(embedder: Embedder) -> None:
    with pytest.raises(TypeError):
        await embedder.embed("letters")


async def test_fifty_tasks_each_get_their_own(embedder: Embedder) -> None:
    texts = texts_of_many_lengths(50)
    expected = await embedder.embed(texts)
    answers = await asyncio.gather(*(embedder.embed([text, f"companion {text}"]) for text in texts))
    np.testing.assert_allclose(np.stack([answer[0] for answer in answers]), expected, atol=1e-5)


async def test_a_caller_who_gives_up_takes_nothing_from_the_others(embedder: Embedder) -> None:
    texts = texts_of_many_lengths(40)
    expected = await embedder.embed(texts)
    tasks = [asyncio.create_task(embedder.embed([text])) for text in texts]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    for number, answer in enumerate(answers):
        if isinstance(answer, BaseException):
            assert isinstance(answer, asyncio.CancelledError)
            assert number % 2 == 0
        else:
            np.testing.assert_allclose(answer[0], expected[number], atol=1e-5)
    assert not any(isinstance(answer, BaseException) for answer in answers[1::2])


async def test_the_array_belongs_to_the_caller(embedder: Embedder) -> None:
    first = await embedder.embed(["mine"])
    kept = first.copy()
    first[:] = 0
    np.testing.assert_allclose(await embedder.embed(["mine"]), kept, atol=1e-6)


async def test_the_given_list_is_not_changed(embedder: Embedder) -> None:
    texts = ["a longer text comes first", "", "b"]
    await embedder.embed(texts)
    assert texts == ["a longer text comes first", "", "b"]


async def test_after_closing_every_call_says_so(embedder: Embedder) -> None:
    await embedder.open()
    await embedder.close()
    await embedder.close()
    with pytest.raises(EmbedderUnavailableError, match="closed"):
        await embedder.embed(["late"])
    with pytest.raises(EmbedderUnavailableError, match="closed"):
        await embedder.open()


async def test_closing_leaves_nobody_waiting(embedder: Embedder) -> None:
    await embedder.open()
    tasks = [asyncio.create_task(embedder.embed(texts_of_many_lengths(30))) for _ in range(5)]
    await asyncio.sleep(0)
    await embedder.close()
    async with asyncio.timeout(10):
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    for answer in answers:
        assert isinstance(answer, np.ndarray | EmbedderUnavailableError)


async def test_an_embedder_that_was_never_opened_can_be_closed(embedder: Embedder) -> None:
    await embedder.close()
    with pytest.raises(EmbedderUnavailableError, match="closed"):
        await embedder.embed(["late"])
