"""The one place that turns errors into RFC 9457 problem documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from psycopg import errors as pg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from memory_os.errors import ConflictError, FieldError, InvalidInputError, MemoryOSError, UnavailableError
from memory_os.memories.model import ProblemSummary
from memory_os.storage.database import is_connection_loss

log = structlog.get_logger(__name__)

PROBLEM = "application/problem+json"
TYPE_BASE = "urn:memory-os:problem:"
"""Problem types are names, not addresses: the service must not point at a host that it does not own."""

TITLES = {
    400: ("bad-request", "Malformed request"),
    401: ("unauthenticated", "A valid token is needed"),
    403: ("forbidden", "Not allowed for this token"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    409: ("conflict", "Conflicts with what is stored"),
    410: ("gone", "Erased"),
    412: ("version-mismatch", "The record has changed"),
    413: ("too-large", "Too large"),
    415: ("unsupported-media-type", "Unsupported media type"),
    422: ("invalid-input", "Invalid input"),
    429: ("rate-limited", "Too many requests"),
    503: ("unavailable", "Temporarily unavailable"),
}
"""Code and title of each status that is refused with; an error of ours may have ones of its own."""


class Problem(msgspec.Struct, omit_defaults=True):
    """An RFC 9457 document, with a pointer for each fault and the allowed words of a closed vocabulary."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[dict[str, str]] = []
    allowed: list[str] = []
    did_you_mean: str | None = None


def problem_response(request: Request[Any, Any, Any], error: MemoryOSError) -> Response[bytes]:
    """One of our errors as an answer."""
    members: dict[str, Any] = {}
    if error.errors:
        members["errors"] = [{"pointer": fault.pointer, "detail": fault.detail} for fault in error.errors]
    members |= error.extra
    return _response(request, error.code, error.title, error.status, error.detail, members, error.headers)


def _response(
    request: Request[Any, Any, Any],
    code: str,
    title: str,
    status: int,
    detail: str,
    members: Mapping[str, Any] = MappingProxyType({}),
    headers: Mapping[str, str] | None = None,
) -> Response[bytes]:
    document = {"type": TYPE_BASE + code, "title": title, "status": status, "detail": detail}
    if request_id := request.scope.get("state", {}).get("request_id"):
        document["instance"] = f"urn:request:{request_id}"
    body = msgspec.json.encode({**document, **members})
    return Response(body, status_code=status, media_type=PROBLEM, headers=dict(headers or {}))


def summary_of(error: MemoryOSError) -> ProblemSummary:
    """One of our errors as the outcome of one item of a batch."""
    return ProblemSummary(
        code=error.code,
        title=error.title,
        detail=error.detail,
        errors=[{"pointer": fault.pointer, "detail": fault.detail} for fault in error.errors],
        allowed=list(error.extra.get("allowed", [])),
        did_you_mean=error.extra.get("did_you_mean"),
    )


def field_error(message: str) -> FieldError:
    """A msgspec message (`Expected `str` - at `$.items[0].text``) as a pointer and a sentence."""
    sentence, _, path = message.partition(" - at ")
    parts = re.findall(r"\.([^.\[\]`]+)|\[(\d+|\.\.\.)\]", path)
    pointer = "".join(f"/{name or index}" for name, index in parts)
    if named := re.search(r"(?:unknown|missing required) field `([^`]+)`", sentence):
        pointer += f"/{named.group(1)}"
    return FieldError(pointer, sentence.replace("`", "").strip())


def on_memory_os_error(request: Request[Any, Any, Any], error: MemoryOSError) -> Response[bytes]:
    """Handler of our own errors."""
    return problem_response(request, error)


def on_http_exception(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """Handler of what Litestar refuses: unknown routes, wrong methods, bodies and parameters that don't fit."""
    if isinstance(error, ValidationException) or error.status_code == 422:  # noqa: PLR2004 - the status itself
        faults = [_parameter_fault(item) for item in (error.extra or []) if isinstance(item, dict)]
        return problem_response(request, InvalidInputError("the request does not fit the call", errors=faults))
    code, title = TITLES.get(error.status_code, ("http-error", "Request refused"))
    return _response(request, code, title, error.status_code, error.detail or title, headers=error.headers)


def on_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Handler of the rest. What the database says never reaches a client: it carries values of rows."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, pg.DataError):
        return problem_response(request, InvalidInputError("a value can't be stored as it is"))
    if isinstance(cause, pg.ForeignKeyViolation):
        return problem_response(request, ConflictError("a record that this one points at has just been deleted"))
    if isinstance(cause, pg.IntegrityError):
        return problem_response(request, ConflictError("the change contradicts what is stored"))
    if isinstance(error, PoolTimeoutError) or isinstance(cause, pg.LockNotAvailable) or is_connection_loss(error):
        log.warning("database_unavailable", error_class=type(cause).__name__)
        return problem_response(
            request,
            UnavailableError(
                "the database did not answer and a change may not have been made: repeat it under one Idempotency-Key",
                headers={"Retry-After": "2"},
            ),
        )
    log.error("unhandled_error", error_class=type(error).__name__, exc_info=error)
    return problem_response(request, MemoryOSError("something went wrong on our side; the log has the request id"))


def _parameter_fault(item: dict[str, Any]) -> FieldError:
    """One of Litestar's faults: its key is the path into the body or the name of a parameter."""
    message, key = str(item.get("message", "")), str(item.get("key", ""))
    path = key.removeprefix("data").removeprefix(".")
    return field_error(message if " - at " in message or not path else f"{message} - at `$.{path}`")
