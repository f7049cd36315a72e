"""Gathers the texts of concurrent callers into batches, fairly and without waiting for company.

An idle batcher starts at the next turn of the event loop. While all its lanes are busy, calls queue up, and the next
free lane takes one text of each waiting call in turn until the batch is full, so that a search doesn't wait behind an
import of ten thousand texts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from memory_os.embedding.port import EmbedderDataError, EmbedderUnavailableError, EmbeddingError

BatchRunner = Callable[[Sequence[str]], Awaitable[NDArray[np.float32]]]
"""Answers one row a text, in order; raises `EmbeddingError`."""


class _Call:
    """One caller's texts, the rows that are done, and the future that the caller waits on."""

    def __init__(self, texts: Sequence[str], dimension: int, future: asyncio.Future[NDArray[np.float32]]) -> None:
        self.texts = texts
        self.rows = np.empty((len(texts), dimension), dtype=np.float32)
        self.future = future
        # Shortest first: neighbours in a batch are then padded least.
        self.waiting = deque(sorted(range(len(texts)), key=lambda position: len(texts[position])))
        self.missing = len(texts)

    def put(self, positions: list[int], rows: NDArray[np.float32]) -> None:
        self.rows[positions] = rows
        self.missing -= len(positions)
        if not self.missing and not self.future.done():
            self.future.set_result(self.rows)

    def fail(self, error: EmbeddingError) -> None:
        if not self.future.done():
            # Callers don't share one exception object: each raise would write its traceback into it.
            own = type(error)(*error.args)
            own.__cause__ = error
            self.future.set_exception(own)


class MicroBatcher:
    """Runs batches of bounded size, a bounded number of them at a time.

    Args:
        run: Embeds one batch. It is never cancelled because a caller was.
        batch_size: Most texts in one batch.
        batch_characters: Most characters in one batch of more than one text.
        text_characters: What one text counts for at most (the model reads no further).
        lanes: Batches in flight; 1 where the work is one thread.
    """

    def __init__(
        self, run: BatchRunner, *, batch_size: int, batch_characters: int, text_characters: int, lanes: int
    ) -> None:
        self._run = run
        self._batch_size = batch_size
        self._batch_characters = batch_characters
        self._text_characters = text_characters
        self._lanes = lanes
        self._calls: deque[_Call] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    async def submit(self, texts: Sequence[str], dimension: int) -> NDArray[np.float32]:
        """Embed the texts, sharing batches with whoever else is waiting.

        Cancelling the caller drops its waiting texts; a batch that is running ends, and others in it get theirs.

        Raises:
            EmbedderUnavailableError: The batcher was closed, or the runner said so for a batch with these texts.
            EmbedderDataError: The runner refused these texts even without company.
            EmbeddingError: The runner failed in a way that it doesn't know.
        """
        if self._closed:
            raise EmbedderUnavailableError("the embedder is closed")
        if not texts:
            return np.empty((0, dimension), dtype=np.float32)
        call = _Call(texts, dimension, asyncio.get_running_loop().create_future())
        self._calls.append(call)
        self._open_lane()
        return await call.future

    async def close(self) -> None:
        """Fail what waits and let the running batches end."""
        self._closed = True
        while self._calls:
            self._calls.popleft().fail(EmbedderUnavailableError("the embedder is closed"))
        if self._running:
            await asyncio.wait(set(self._running))

    def _open_lane(self) -> None:
        if self._calls and len(self._running) < self._lanes:
            # The lane takes its texts when the task first runs: whoever calls in this turn of the loop is on board.
            self._running.add(asyncio.create_task(self._drain(), name="embed-batch"))

    async def _drain(self) -> None:
        try:
            while batch := self._next_batch():
                self._open_lane()
                await self._serve(batch)
        finally:
            # Here and not in a done-callback: between the two a new call would find no free lane and wait for ever.
            lane = asyncio.current_task()
            if lane is not None:
                self._running.discard(lane)

    def _next_batch(self) -> dict[_Call, list[int]]:
        """Take one text of each waiting call in turn, the oldest call first, until the batch is full."""
        self._calls = deque(call for call in self._calls if not call.future.done())
        batch: dict[_Call, list[int]] = {}
        size = characters = 0
        while self._calls and size < self._batch_size:
            call = self._calls[0]
            characters += min(len(call.texts[call.waiting[0]]), self._text_characters)
            if size and characters > self._batch_characters:
                break
            batch.setdefault(call, []).append(call.waiting.popleft())
            size += 1
            self._calls.popleft()
            if call.waiting:
                self._calls.append(call)
        return batch

    async def _serve(self, batch: dict[_Call, list[int]]) -> None:
        texts = [call.texts[position] for call, positions in batch.items() for position in positions]
        try:
            rows = await self._run(texts)
            if len(rows) != len(texts):
                raise EmbeddingError(f"the embedder made {len(rows)} vectors of {len(texts)} texts")  # noqa: TRY301 - below
        except EmbedderDataError as error:
            if len(batch) > 1:
                # One caller's bad text must not fail the others: each gets a run of its own.
                for call, positions in batch.items():
                    await self._serve({call: positions})
                return
            failure: EmbeddingError = error
        except EmbeddingError as error:
            failure = error
        except asyncio.CancelledError:
            # Only the end of the event loop cancels a lane; nobody may be left waiting for it.
            failure = EmbedderUnavailableError("the embedder was stopped")
            _fail_all(batch, failure)
            raise
        except Exception as error:  # noqa: BLE001 - a fault of the runner must reach its callers, not hang them
            failure = EmbeddingError(f"the embedder failed with {type(error).__name__}")
            failure.__cause__ = error
        else:
            start = 0
            for call, positions in batch.items():
                call.put(positions, rows[start : start + len(positions)])
                start += len(positions)
            return
        _fail_all(batch, failure)


def _fail_all(calls: dict[_Call, list[int]], error: EmbeddingError) -> None:
    for call in calls:
        call.fail(error)
