"""A writer behind HTTP: any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Final

import httpx
import msgspec
import structlog

from memory_os.domain.cycles.insights import Summary
from memory_os.endpoints import read_bounded
from memory_os.writing.port import WriterError
from memory_os.writing.prompt import SCHEMA, Prompt, make_prompt
from memory_os.writing.reply import PassingFaultError, RefusedError, read_summary

log = structlog.get_logger(__name__)

_MOST_REPLY_BYTES: Final = 1024 * 1024
"""A title and a text are a few kilobytes, and what a model may tell of its thoughts some tens; more is no summary."""

_MOST_TOKENS: Final = 2_000
"""Tokens that a model may write: those of the answer, and of some thought before it."""

_ATTEMPTS: Final = 2
_PAUSE_S: Final = (0.1, 1.0)
"""Seconds between the two, drawn anew each time."""

_PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MENDS: Final = {
    401: "check SUMMARY_API_KEY",
    403: "check SUMMARY_API_KEY",
    404: "check SUMMARY_URL and SUMMARY_MODEL",
    405: "check SUMMARY_URL",
}


class HttpWriter:
    """Writes summaries by an endpoint: `POST {url}/chat/completions`, with a JSON schema for the answer.

    Faults that may pass (connection, 408, 429, 5xx, a reply that is cut off) are tried once more after a pause, within
    the time. An endpoint that refuses the schema, or the bound of tokens, is asked without, and from then on at once.

    Args:
        url: Base URL, such as `http://127.0.0.1:8000/v1`, with or without `/chat/completions` at its end.
        model: Model name, sent with each request.
        api_key: Sent as a bearer token; appears in no message. None sends no such header.
        timeout: Seconds that one summary may take, with both attempts and the pause.
    """

    def __init__(self, *, url: str, model: str, api_key: str | None = None, timeout: float = 30.0) -> None:
        base = url.rstrip("/")
        self._url = base if base.endswith("/chat/completions") else f"{base}/chat/completions"
        self._model = model
        self._timeout = timeout
        self._plain = False
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else None, timeout=timeout
        )

    async def write(self, notes: Sequence[str]) -> Summary | None:
        """See `SummaryWriter.write`."""
        if not notes:
            return None
        try:
            async with asyncio.timeout(self._timeout):
                return await self._ask(make_prompt(notes))
        except TimeoutError:
            reason = f"the summary endpoint gave no answer in {self._timeout} s"
        except WriterError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is a summary without
            reason = f"the summary endpoint could not be asked ({type(error).__name__})"
        log.warning("summary_not_written", reason=reason)
        return None

    async def close(self) -> None:
        """See `SummaryWriter.close`."""
        await self._client.aclose()

    async def _ask(self, prompt: Prompt) -> Summary:
        plain = self._plain
        for left in reversed(range(_ATTEMPTS)):
            try:
                written = read_summary(await self._post(self._request(prompt, plain=plain)))
            except RefusedError:
                if plain or not left:
                    raise
                plain = True
            except PassingFaultError as fault:
                pause = max(random.uniform(*_PAUSE_S), fault.retry_after or 0.0)  # noqa: S311 - jitter, not a secret
                if not left or pause >= self._timeout:
                    raise
                await asyncio.sleep(pause)
            else:
                self._plain = plain
                return written
        raise AssertionError  # the last attempt returns or raises

    def _request(self, prompt: Prompt, *, plain: bool) -> dict[str, Any]:
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.notes}]
        request: dict[str, Any] = {"model": self._model, "messages": messages}
        if plain:
            return request
        schema = {"name": "summary", "strict": True, "schema": SCHEMA}
        answer = {"type": "json_schema", "json_schema": schema}
        return {**request, "temperature": 0, "max_tokens": _MOST_TOKENS, "response_format": answer}

    async def _post(self, content: dict[str, Any]) -> bytes:
        headers = {"Content-Type": "application/json"}
        body = msgspec.json.encode(content)
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                reply = await read_bounded(response, _MOST_REPLY_BYTES)
        except httpx.RequestError as error:
            # From None: the original names the request.
            raise PassingFaultError(f"the summary endpoint can't be reached ({type(error).__name__})") from None
        if reply is None:
            raise WriterError(f"the summary endpoint's reply is larger than {_MOST_REPLY_BYTES} bytes")
        if response.status_code != httpx.codes.OK:
            raise _judge(response)
        return reply


def _judge(response: httpx.Response) -> WriterError:
    """A status other than 200 as the error to raise."""
    status = response.status_code
    problem = f"the summary endpoint answered {status}"
    if status in _PASSING:
        asked = response.headers.get("retry-after", "")
        return PassingFaultError(problem, retry_after=float(asked) if asked.isdecimal() else None)
    if status in (400, 422):
        return RefusedError(problem)
    mend = _MENDS.get(status, "check SUMMARY_URL" if response.is_redirect else None)
    return WriterError(f"{problem}: {mend}" if mend else problem)
