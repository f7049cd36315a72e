from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory_os.embedding.batching import MicroBatcher
from memory_os.embedding.port import EmbedderDataError, EmbedderUnavailableError, EmbeddingError

pytestmark = pytest.mark.anyio

Vectors = NDArray[np.float32]


def row_of(text: str) -> list[float]:
    return [float(len(text)), float(sum(map(ord, text)))]


def rows_of(texts: Sequence[str]) -> Vectors:
    return np.array([row_of(text) for text in texts], dtype=np.float32).reshape(len(texts), 2)


class Runner:
    """Records its batches; each waits for the gate."""

    def __init__(self, *, gated: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.gate = asyncio.Event()
        self.started = asyncio.Event()
        self.running = self.busiest = 0
        self.refused: Callable[[str], EmbeddingError | Exception | None] = lambda _: None
        if not gated:
            self.gate.set()

    async def __call__(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        self.running += 1
        self.busiest = max(self.busiest, self.running)
        self.started.set()
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
            for text in texts:
                if error := self.refused(text):
                    raise error
            return rows_of(texts)
        finally:
            self.running -= 1


def make_batcher(
    run: Callable[[Sequence[str]], Awaitable[Vectors]], *, size: int = 4, characters: int = 10_000, lanes: int = 1
) -> MicroBatcher:
    return MicroBatcher(run, batch_size=size, batch_characters=characters, text_characters=100, lanes=lanes)


async def test_an_idle_batcher_starts_at_once_with_a_single_text() -> None:
    runner = Runner()
    np.testing.assert_array_equal(await make_batcher(runner).submit(["one"], 2), rows_of(["one"]))
    assert runner.batches == [["one"]]


async def test_calls_of_one_turn_of_the_loop_share_the_first_batch() -> None:
    runner = Runner()
    batcher = make_batcher(runner)
    await asyncio.gather(*(batcher.submit([text], 2) for text in "abcd"))
    assert runner.batches == [["a", "b", "c", "d"]]


async def test_what_comes_while_a_batch_runs_is_gathered() -> None:
    runner = Runner(gated=True)
    batcher = make_batcher(runner)
    first = asyncio.create_task(batcher.submit(["first"], 2))
    await runner.started.wait()
    others = [asyncio.create_task(batcher.submit([text], 2)) for text in "abc"]
    await asyncio.sleep(0)
    runner.gate.set()
    await asyncio.gather(first, *others)
    assert runner.batches == [["first"], ["a", "b", "c"]]


async def test_a_small_call_does_not_wait_behind_a_large_one() -> None:
    runner = Runner(gated=True)
    batcher = make_batcher(runner)
    large = asyncio.create_task(batcher.submit([f"import {number:03}" for number in range(100)], 2))
    await runner.started.wait()
    small = asyncio.create_task(batcher.submit(["search"], 2))
    await asyncio.sleep(0)
    runner.gate.set()
    await small
    assert "search" in runner.batches[1]
    await large
    assert sum(map(len, runner.batches)) == 101


async def test_a_batch_keeps_its_bounds() -> None:
    runner = Runner()
    batcher = make_batcher(runner, size=3, characters=10)
    texts = ["x" * length for length in (12, 4, 4, 4, 1, 1, 1, 1, 1)]
    np.testing.assert_array_equal(await batcher.submit(texts, 2), rows_of(texts))
    assert all(len(batch) <= 3 for batch in runner.batches)
    assert all(len(batch) == 1 or sum(map(len, batch)) <= 10 for batch in runner.batches)


async def test_a_text_counts_for_no_more_than_is_read_of_it() -> None:
    runner = Runner()
    await make_batcher(runner, characters=200).submit(["y" * 5_000, "z" * 5_000], 2)
    assert len(runner.batches) == 1


async def test_lanes_run_at_a_time_and_no_more() -> None:
    runner = Runner(gated=True)
    batcher = make_batcher(runner, size=1, lanes=3)
    call = asyncio.create_task(batcher.submit([str(number) for number in range(20)], 2))
    for _ in range(10):
        await asyncio.sleep(0)
    assert runner.running == 3
    runner.gate.set()
    np.testing.assert_array_equal(await call, rows_of([str(number) for number in range(20)]))
    assert runner.busiest == 3


async def test_a_refused_text_fails_its_own_call_only() -> None:
    runner = Runner()
    runner.refused = lambda text: EmbedderDataError("refused") if text == "bad" else None
    batcher = make_batcher(runner)
    good, bad, other = await asyncio.gather(
        batcher.submit(["good", "fine"], 2),
        batcher.submit(["bad"], 2),
        batcher.submit(["other"], 2),
        return_exceptions=True,
    )
    np.testing.assert_array_equal(good, rows_of(["good", "fine"]))
    np.testing.assert_array_equal(other, rows_of(["other"]))
    assert isinstance(bad, EmbedderDataError)


async def test_what_is_left_of_a_failed_call_is_dropped() -> None:
    runner = Runner()
    runner.refused = lambda text: EmbedderDataError("refused") if text == "bad" else None
    batcher = make_batcher(runner, size=1)
    with pytest.raises(EmbedderDataError):
        await batcher.submit(["bad", *("longer" for _ in range(50))], 2)
    await batcher.submit(["next"], 2)
    assert runner.batches == [["bad"], ["next"]]


async def test_unavailable_fails_the_whole_batch_and_nothing_after_it() -> None:
    runner = Runner()
    runner.refused = lambda text: EmbedderUnavailableError("down") if text == "a" else None
    batcher = make_batcher(runner)
    answers = await asyncio.gather(*(batcher.submit([text], 2) for text in "ab"), return_exceptions=True)
    assert [type(answer) for answer in answers] == [EmbedderUnavailableError] * 2
    assert answers[0] is not answers[1]
    np.testing.assert_array_equal(await batcher.submit(["c"], 2), rows_of(["c"]))


async def test_a_fault_of_the_runner_reaches_its_callers_and_the_batcher_goes_on() -> None:
    runner = Runner()
    runner.refused = lambda text: ZeroDivisionError("bug") if text == "a" else None
    batcher = make_batcher(runner)
    with pytest.raises(EmbeddingError, match="ZeroDivisionError"):
        await batcher.submit(["a"], 2)
    np.testing.assert_array_equal(await batcher.submit(["b"], 2), rows_of(["b"]))


async def test_too_few_rows_reach_the_callers_as_an_error() -> None:
    async def run(texts: Sequence[str]) -> Vectors:
        return rows_of(texts[:1])

    with pytest.raises(EmbeddingError):
        await make_batcher(run).submit(["a", "b", "c"], 2)


async def test_a_cancelled_call_is_not_embedded_if_it_still_waits() -> None:
    runner = Runner(gated=True)
    batcher = make_batcher(runner)
    first = asyncio.create_task(batcher.submit(["first"], 2))
    await runner.started.wait()
    given_up, other = (asyncio.create_task(batcher.submit([text], 2)) for text in ("given up", "other"))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    runner.gate.set()
    await asyncio.gather(first, other)
    assert runner.batches == [["first"], ["other"]]


async def test_cancelling_inside_a_running_batch_leaves_its_company_alone() -> None:
    runner = Runner(gated=True)
    batcher = make_batcher(runner)
    given_up, other = (asyncio.create_task(batcher.submit([text], 2)) for text in ("given up", "other"))
    await runner.started.wait()
    given_up.cancel()
    await asyncio.wait([given_up])
    runner.gate.set()
    np.testing.assert_array_equal(await other, rows_of(["other"]))
    assert given_up.cancelled()


async def test_a_call_at_the_very_end_of_a_lane_is_served() -> None:
    batcher = make_batcher(Runner())
    for turns in range(12):
        first = asyncio.create_task(batcher.submit(["first"], 2))
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await batcher.submit(["second"], 2)
            await first


async def test_closing_fails_what_waits_and_lets_the_running_batch_end() -> None:
    runner = Runner(gated=True)
    batcher = make_batcher(runner)
    running = asyncio.create_task(batcher.submit(["running"], 2))
    await runner.started.wait()
    waiting = asyncio.create_task(batcher.submit(["waiting"], 2))
    await asyncio.sleep(0)
    closing = asyncio.create_task(batcher.close())
    await asyncio.wait([waiting])
    runner.gate.set()
    await closing
    np.testing.assert_array_equal(await running, rows_of(["running"]))
    with pytest.raises(EmbedderUnavailableError):
        await waiting
    with pytest.raises(EmbedderUnavailableError):
        await batcher.submit(["late"], 2)


async def test_a_lane_that_is_stopped_leaves_nobody_waiting() -> None:
    runner = Runner(gated=True)
    batcher = make_batcher(runner)
    call = asyncio.create_task(batcher.submit(["one"], 2))
    await runner.started.wait()
    (lane,) = batcher._running
    lane.cancel()
    with pytest.raises(EmbedderUnavailableError, match="stopped"):
        await call
    assert not batcher._running


WORDS = st.sampled_from(["bad", "a", "bb", "ccc", "x" * 60, "y" * 300])
CALLS = st.lists(st.tuples(st.lists(WORDS, max_size=7), st.integers(0, 4), st.booleans()), max_size=12)


@settings(max_examples=60, deadline=None)
@given(calls=CALLS, size=st.integers(1, 5), characters=st.integers(1, 400), lanes=st.integers(1, 3))
def test_each_call_gets_its_own_rows_or_its_own_error(
    calls: list[tuple[list[str], int, bool]], size: int, characters: int, lanes: int
) -> None:
    async def scenario() -> None:
        runner = Runner()
        runner.refused = lambda text: EmbedderDataError("refused") if text == "bad" else None
        batcher = make_batcher(runner, size=size, characters=characters, lanes=lanes)
        tasks = []
        for texts, turns, gives_up in calls:
            task = asyncio.create_task(batcher.submit(texts, 2))
            tasks.append(task)
            for _ in range(turns):
                await asyncio.sleep(0)
            if gives_up:
                task.cancel()
        async with asyncio.timeout(10):
            answers = await asyncio.gather(*tasks, return_exceptions=True)
        for (texts, _, gives_up), answer in zip(calls, answers, strict=True):
            if isinstance(answer, asyncio.CancelledError):
                assert gives_up
            elif isinstance(answer, BaseException):
                assert isinstance(answer, EmbedderDataError)
                assert "bad" in texts
            else:
                assert "bad" not in texts
                np.testing.assert_array_equal(answer, rows_of(texts))
        assert runner.busiest <= lanes
        await batcher.close()

    asyncio.run(scenario())
