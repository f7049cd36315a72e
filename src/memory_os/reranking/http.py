"""A reranker behind HTTP, in the shape that Cohere's endpoint made common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import httpx
import msgspec

from memory_os.endpoints import read_bounded
from memory_os.reranking.http_reply import RefusedError, read_scores
from memory_os.reranking.port import RerankError

_MOST_REPLY_BYTES: Final = 4 * 1024 * 1024
"""50 results with their documents echoed are 0.4 MB at most; more than this is no ranking."""

_DOCUMENT_CHARS: Final = 8_000
"""Beginning of a document that is sent: cross-encoders read 512 tokens, some 8,192."""

_FAILURES: Final = 3
"""Failures in a row after which the endpoint is left alone for a while."""

_PAUSE_S: Final = 15.0
"""How long it is left alone."""

_CONNECTIONS: Final = 16

_MENDS: Final = {
    401: "check RERANK_API_KEY",
    403: "check RERANK_API_KEY",
    404: "check RERANK_URL and RERANK_MODEL",
    405: "check RERANK_URL",
}


class HttpReranker:
    """Scores documents by an endpoint: `POST {url}/rerank` with `model`, `query`, `documents`, `top_n`.

    Nothing is tried twice: a question waits, and the order that was found is an answer too. An endpoint that refuses
    `documents` is asked with `texts`, as text-embeddings-inference wants it, and from then on at once.

    Args:
        url: Base URL, such as `http://127.0.0.1:8000/v1`, with or without `/rerank` at its end.
        model: Model name, sent with each request.
        api_key: Sent as a bearer token; appears in no message. None sends no such header.
        timeout: Seconds that one request may take.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        *,
        url: str,
        model: str,
        api_key: str | None = None,
        timeout: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        base = url.rstrip("/")
        self._url = base if base.endswith("/rerank") else f"{base}/rerank"
        self._model = model
        self._timeout = timeout
        self._clock = clock
        self._wants_texts = False
        self._failures = 0
        self._closed_until = 0.0
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
            timeout=timeout,
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
        )

    async def score(self, question: str, documents: Sequence[str]) -> list[float | None]:
        """Scores in the order of the documents, on the model's own scale; None for what the endpoint left out.

        Raises:
            RerankError: It can't be reached, gave no answer in time or one that can't be used, or is left alone after
                several failures.
        """
        if not documents:
            return []
        if self._clock() < self._closed_until:
            raise RerankError("the rerank endpoint failed several times and is left alone for a while")
        try:
            async with asyncio.timeout(self._timeout):
                scores = await self._ask(question, [document[:_DOCUMENT_CHARS] for document in documents])
        except (RerankError, TimeoutError) as error:
            self._failures += 1
            if self._failures >= _FAILURES:
                self._closed_until = self._clock() + _PAUSE_S
            if isinstance(error, TimeoutError):
                raise RerankError(f"the rerank endpoint gave no answer in {self._timeout} s") from None
            raise
        self._failures = 0
        return scores

    async def close(self) -> None:
        """Drop the connections."""
        await self._client.aclose()

    async def _ask(self, question: str, documents: list[str]) -> list[float | None]:
        if not self._wants_texts:
            content = {"model": self._model, "query": question, "documents": documents, "top_n": len(documents)}
            try:
                return read_scores(await self._post(content), count=len(documents))
            except RefusedError as refused:
                first = refused
        content = {"model": self._model, "query": question, "texts": documents, "truncate": True}
        try:
            scores = read_scores(await self._post(content), count=len(documents))
        except RefusedError:
            if self._wants_texts:
                raise
            raise first from None
        self._wants_texts = True
        return scores

    async def _post(self, content: dict[str, object]) -> bytes:
        headers = {"Content-Type": "application/json"}
        body = msgspec.json.encode(content)
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                reply = await read_bounded(response, _MOST_REPLY_BYTES)
        except httpx.RequestError as error:
            # From None: the original names the request.
            raise RerankError(f"the rerank endpoint can't be reached ({type(error).__name__})") from None
        if reply is None:
            raise RerankError(f"the rerank endpoint's reply is larger than {_MOST_REPLY_BYTES} bytes")
        if response.status_code != httpx.codes.OK:
            problem = f"the rerank endpoint answered {response.status_code}"
            if response.status_code in (400, 422):
                raise RefusedError(problem)
            mend = _MENDS.get(response.status_code, "check RERANK_URL" if response.is_redirect else None)
            raise RerankError(f"{problem}: {mend}" if mend else problem)
        return reply
