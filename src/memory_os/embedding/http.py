"""The embedder that asks an OpenAI-compatible `/embeddings` endpoint."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_os.embedding.batching import MicroBatcher
from memory_os.embedding.http_reply import (
    InputTooLargeError,
    PassingFaultError,
    RequestRefusedError,
    judge_failure,
    read_vectors,
)
from memory_os.embedding.port import EmbedderDataError, EmbedderIdentity, EmbedderUnavailableError
from memory_os.embedding.vectors import check_texts
from memory_os.endpoints import read_bounded

_LANES = 4
_BATCH_CHARACTERS = 200_000
_TEXT_CHARACTERS = 32_768
"""Sent of one text at most: 8,192 tokens, where the longest readers among common models stop, at 4 characters each."""
_SHORTEST_CUT = 256
"""Characters under which a text that is refused as too long is given up."""
_BLANK = "."
"""Sent for a text of nothing but white space, which endpoints refuse together with the rest of its batch."""

_ATTEMPTS = 5
_BACKOFF_BASE_S = 0.1
_BACKOFF_CAP_S = 5.0
_CONNECT_TIMEOUT_S = 5.0
_MAX_REPLY_BYTES = 64 * 1024 * 1024
"""32 vectors of 16,000 numbers with 20 characters each are 10 MB; more than this is no embedding."""


class HttpEmbedder:
    """`Embedder` over any endpoint that speaks OpenAI's embeddings protocol.

    Faults that may pass (connection, 408, 429, 5xx, a reply that is cut off) are tried again with full jitter, and
    after as long as `Retry-After` asks, within the time budget. A request that is refused as too large is split, a
    single text is cut in half, until it fits.

    Args:
        url: Base URL, such as `http://127.0.0.1:11434/v1`, with or without `/embeddings` at its end.
        model: Model name, sent with each request and stored with each vector.
        api_key: Sent as a bearer token; appears in no message. None sends no such header.
        dimension: Expected dimension, also asked for as `dimensions` unless the endpoint refuses that field. None
            asks the endpoint once, in `open`.
        timeout: Time budget of one request in seconds, with its repetitions and pauses.
        batch_size: Most texts in one request; 32 is the default limit of text-embeddings-inference.
    """

    def __init__(
        self,
        *,
        url: str,
        model: str,
        api_key: str | None = None,
        dimension: int | None = None,
        timeout: float = 10.0,
        batch_size: int = 32,
    ) -> None:
        base = url.rstrip("/")
        self._url = base if base.endswith("/embeddings") else f"{base}/embeddings"
        self._model = model
        self._timeout = timeout
        self._asked_dimension = dimension
        self._sends_dimensions = dimension is not None
        self._identity = None if dimension is None else EmbedderIdentity(model=model, dimension=dimension)
        self._closed = False
        self._opening = asyncio.Lock()
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT_S)),
            limits=httpx.Limits(max_connections=_LANES + 1, max_keepalive_connections=_LANES),
        )
        self._batcher = MicroBatcher(
            self._embed_batch,
            batch_size=batch_size,
            batch_characters=_BATCH_CHARACTERS,
            text_characters=_TEXT_CHARACTERS,
            lanes=_LANES,
        )

    @property
    def identity(self) -> EmbedderIdentity:
        """Known after `open`, or at once where the dimension was given; see `Embedder.identity`."""
        if self._identity is None:
            raise EmbedderUnavailableError("the embedding endpoint's dimension isn't known before it answered once")
        return self._identity

    async def open(self) -> EmbedderIdentity:
        """Ask the endpoint for its dimension, unless it was given; see `Embedder.open`."""
        async with self._opening:
            if self._closed:
                raise EmbedderUnavailableError("the embedder is closed")
            if self._identity is None:
                probe = await self._request(["dimension"], dimension=None)
                self._identity = EmbedderIdentity(model=self._model, dimension=probe.shape[1])
            return self._identity

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        checked = check_texts(texts)
        identity = self._identity or await self.open()
        return await self._batcher.submit(checked, identity.dimension)

    async def close(self) -> None:
        """End after the requests that are running; see `Embedder.close`."""
        self._closed = True
        await self._batcher.close()
        async with self._opening:
            await self._client.aclose()

    async def _embed_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await self._embed_fitting([text[:_TEXT_CHARACTERS] if text.strip() else _BLANK for text in texts])

    async def _embed_fitting(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed the texts, in smaller requests and of shorter texts where the endpoint finds them too large."""
        try:
            return await self._request(texts, dimension=self.identity.dimension)
        except InputTooLargeError:
            half = len(texts) // 2
            if half:
                return np.concatenate(
                    [await self._embed_fitting(texts[:half]), await self._embed_fitting(texts[half:])]
                )
            beginning = texts[0][: len(texts[0]) // 2]
            if len(beginning) < _SHORTEST_CUT:
                raise
            return await self._embed_fitting([beginning if beginning.strip() else _BLANK])

    async def _request(self, texts: list[str], *, dimension: int | None) -> NDArray[np.float32]:
        """Send one request, without the `dimensions` field once the endpoint turned out to refuse it."""
        if not self._sends_dimensions:
            return await self._try_repeatedly(texts, dimension=dimension, dimensions=None)
        try:
            return await self._try_repeatedly(texts, dimension=dimension, dimensions=self._asked_dimension)
        except RequestRefusedError:
            # vLLM refuses the field for every model whose vectors can't be shortened, even with their own dimension.
            vectors = await self._try_repeatedly(texts, dimension=dimension, dimensions=None)
            self._sends_dimensions = False
            return vectors

    async def _try_repeatedly(
        self, texts: list[str], *, dimension: int | None, dimensions: int | None
    ) -> NDArray[np.float32]:
        content: dict[str, object] = {"model": self._model, "input": texts}
        if dimensions is not None:
            content["dimensions"] = dimensions
        body = msgspec.json.encode(content)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        for attempt in range(_ATTEMPTS):
            try:
                async with asyncio.timeout_at(deadline):
                    reply = await self._post(body)
                return read_vectors(reply, count=len(texts), dimension=dimension)
            except TimeoutError:
                # The connection that is dropped here is not used again.
                raise EmbedderUnavailableError(f"the embedding endpoint gave no answer in {self._timeout} s") from None
            except PassingFaultError as fault:
                pause = random.uniform(0, min(_BACKOFF_CAP_S, _BACKOFF_BASE_S * 2**attempt))  # noqa: S311 - jitter
                pause += fault.retry_after or 0.0
                if attempt + 1 == _ATTEMPTS or loop.time() + pause >= deadline:
                    raise EmbedderUnavailableError(f"{fault}, {attempt + 1} times tried") from fault
                await asyncio.sleep(pause)
        raise AssertionError  # the last attempt returns or raises

    async def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                reply = await read_bounded(response, _MAX_REPLY_BYTES)
        except httpx.RequestError as error:
            raise PassingFaultError(f"the embedding endpoint can't be reached ({type(error).__name__})") from error
        if reply is None:
            raise EmbedderDataError(f"the embedding endpoint's reply is larger than {_MAX_REPLY_BYTES} bytes")
        if response.status_code != httpx.codes.OK:
            raise judge_failure(response, reply, datetime.now(UTC))
        return reply
