"""What an OpenAI-compatible embeddings endpoint answers, judged: vectors, a fault that may pass, or a refusal.

No message made here repeats the reply's text: endpoints echo the key and the input.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_os.embedding.port import MAX_DIMENSION, EmbedderDataError, EmbedderUnavailableError
from memory_os.embedding.vectors import normalise_rows

_PASSING_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_TOO_LARGE_STATUS = frozenset({400, 413, 422, 500})
_TOO_LARGE = re.compile(
    r"context (?:length|window)|input length|too (?:large|long)|too many (?:tokens|inputs)|batch size"
    r"|(?:fewer|less) than \d+ tokens|exceed\w* .{0,40}(?:tokens|length)",
    re.IGNORECASE,
)
"""What OpenAI, vLLM, text-embeddings-inference (413, 422), Ollama (400) and llama.cpp (500) say of long inputs."""

_SAFE_CODE = re.compile(r"[a-z]{2,20}(?:_[a-z]{2,20}){1,5}")
"""A word with underscores and without digits: no key looks like it."""

_MENDS = {
    401: "check EMBEDDING_API_KEY",
    403: "check EMBEDDING_API_KEY",
    404: "check EMBEDDING_URL and EMBEDDING_MODEL",
    405: "check EMBEDDING_URL",
}


class PassingFaultError(EmbedderUnavailableError):
    """A fault that may be gone at the next try.

    Attributes:
        retry_after: Seconds that the endpoint asked to wait, or None.
    """

    def __init__(self, problem: str, *, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class InputTooLargeError(EmbedderDataError):
    """The request had too many texts, or a text that is longer than the model reads."""


class RequestRefusedError(EmbedderDataError):
    """The endpoint finds the request wrong (400, 422) and doesn't say that it is too large."""


class _Item(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Reply(msgspec.Struct):
    data: list[_Item] | None = None
    error: object = None


def read_vectors(body: bytes, *, count: int, dimension: int | None) -> NDArray[np.float32]:
    """Read the body of a 200.

    Args:
        body: The whole body.
        count: Number of texts that were sent.
        dimension: Expected dimension; None accepts what comes, as the probe does.

    Returns:
        Array of shape `(count, dimension)`, rows in the order of the texts, each of length 1.

    Raises:
        PassingFaultError: The body is cut off, isn't JSON, or is an error in disguise.
        EmbedderDataError: Wrong shape, count, order, dimension, or a number that isn't finite.
    """
    items = _read_items(body)
    if len(items) != count:
        raise EmbedderDataError(f"the embedding endpoint answered {len(items)} vectors for {count} texts")
    order = [item.index for item in items]
    if any(index is not None for index in order):
        # Endpoints may answer out of order. Where none numbers its vectors, they are in the order of the texts.
        if {index for index in order if index is not None} != set(range(count)):
            raise EmbedderDataError("the embedding endpoint numbered its vectors with gaps or twice the same")
        items = sorted(items, key=lambda item: item.index or 0)
    width = len(items[0].embedding) if dimension is None else dimension
    if not 1 <= width <= MAX_DIMENSION:
        raise EmbedderDataError(f"the embedding endpoint's dimension is {width}, not in 1..{MAX_DIMENSION}")
    wrong = next((len(item.embedding) for item in items if len(item.embedding) != width), None)
    if wrong is not None:
        raise EmbedderDataError(
            f"the embedding endpoint answered a vector of dimension {wrong}, expected {width}: "
            "check EMBEDDING_MODEL and EMBEDDING_DIMENSION"
        )
    return normalise_rows([item.embedding for item in items], width)


def _read_items(body: bytes) -> list[_Item]:
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except msgspec.ValidationError:
        raise EmbedderDataError("the embedding endpoint's reply doesn't have the shape of an embeddings list") from None
    except msgspec.DecodeError:
        # msgspec takes no NaN. The standard library does, which tells a bad number from a reply that was cut off.
        try:
            json.loads(body)
        except ValueError:
            raise PassingFaultError("the embedding endpoint's reply is cut off or isn't JSON") from None
        raise EmbedderDataError("a vector of the embedding endpoint holds NaN or infinity") from None
    if reply.data is None:
        if reply.error is not None:
            raise PassingFaultError("the embedding endpoint answered 200 with an error in it")
        raise EmbedderDataError("the embedding endpoint's reply doesn't have the shape of an embeddings list")
    return reply.data


def judge_failure(response: httpx.Response, body: bytes, now: datetime) -> Exception:
    """Turn a status other than 200 into the error to raise.

    Returns:
        `PassingFaultError` (worth another try), `InputTooLargeError` (send less), `RequestRefusedError` (the data),
        or `EmbedderUnavailableError` (an operator has to act).
    """
    status = response.status_code
    code = _error_code(body)
    problem = f"the embedding endpoint answered {status}" + (f" ({code})" if code else "")
    if status in _TOO_LARGE_STATUS and (status == 413 or _TOO_LARGE.search(body.decode(errors="replace"))):  # noqa: PLR2004 - Content Too Large
        return InputTooLargeError(problem)
    if status in _PASSING_STATUS:
        return PassingFaultError(problem, retry_after=_retry_after(response.headers.get("retry-after"), now))
    if status in (400, 422):
        return RequestRefusedError(problem)
    mend = _MENDS.get(status, "check EMBEDDING_URL" if response.is_redirect else None)
    return EmbedderUnavailableError(problem + (f": {mend}" if mend else ""))


def _error_code(body: bytes) -> str | None:
    """The error's `code` or `type` where it is a word such as `context_length_exceeded`."""
    try:
        error = json.loads(body)["error"]
        words = [error.get("code"), error.get("type")]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return next((word for word in words if isinstance(word, str) and _SAFE_CODE.fullmatch(word)), None)


def _retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds to wait by a `Retry-After` header, which is a number of seconds or a date (RFC 9110, 10.2.3)."""
    if header is None:
        return None
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", header.strip()):
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
