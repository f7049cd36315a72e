"""The one place that turns errors into RFC 9457 problem documents."""

from __future__ import annotations

import re
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

_TITLES = {
    400: ("bad-request", "Malformed request"),
    401: ("unauthenticated", "A valid token is needed"),
    403: ("forbidden", "Not allowed for this token"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    413: ("too-large", "Too large"),
    415: ("unsupported-media-type", "Unsupported media type"),
    422: ("invalid-input", "Invalid input"),
}


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
    request_id = request.scope.get("state", {}).get("request_id")
    document: dict[str, Any] = {
        "type": TYPE_BASE + error.code,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
    }
    if request_id:
        document["instance"] = f"urn:request:{request_id}"
    if error.errors:
        document["errors"] = [{"pointer": fault.pointer, "detail": fault.detail} for fault in error.errors]
    document |= error.extra
    return Response(msgspec.json.encode(document), status_code=error.status, media_type=PROBLEM, headers=error.headers)


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
    return FieldError(pointer, sentence.replace("`", ""))


def on_memory_os_error(request: Request[Any, Any, Any], error: MemoryOSError) -> Response[bytes]:
    """Handler of our own errors."""
    return problem_response(request, error)


def on_http_exception(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """Handler of what Litestar refuses: unknown routes, wrong methods, bodies and parameters that don't fit."""
    if isinstance(error, ValidationException) or error.status_code == 422:  # noqa: PLR2004 - the status itself
        faults = [_parameter_fault(item) for item in (error.extra or []) if isinstance(item, dict)]
        return problem_response(request, InvalidInputError("the request does not fit the call", errors=faults))
    code, title = _TITLES.get(error.status_code, ("http-error", "Request refused"))
    answer = MemoryOSError(error.detail or title, headers=dict(error.headers or {}))
    document = {"type": TYPE_BASE + code, "title": title, "status": error.status_code, "detail": answer.detail}
    return Response(
        msgspec.json.encode(document), status_code=error.status_code, media_type=PROBLEM, headers=answer.headers
    )


def on_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Handler of the rest. What the database says never reaches a client: it carries values of rows."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, pg.DataError):
        return problem_response(request, InvalidInputError("a value can't be stored as it is"))
    if isinstance(cause, pg.ForeignKeyViolation):
        return problem_response(request, ConflictError("a record that this one points at has just been deleted"))
    if isinstance(cause, pg.IntegrityError):
        return problem_response(request, ConflictError("the change contradicts what is stored"))
    if isinstance(error, PoolTimeoutError) or is_connection_loss(error):
        log.warning("database_unavailable", error_class=type(cause).__name__)
        return problem_response(
            request, UnavailableError("the database does not answer; nothing was stored", headers={"Retry-After": "2"})
        )
    log.error("unhandled_error", error_class=type(error).__name__, exc_info=error)
    return problem_response(request, MemoryOSError("something went wrong on our side; the log has the request id"))


def _parameter_fault(item: dict[str, Any]) -> FieldError:
    message = str(item.get("message", ""))
    key = str(item.get("key", ""))
    fault = field_error(message)
    if fault.pointer:
        return FieldError(fault.pointer.removeprefix("/data"), fault.detail)
    return FieldError("/" + key.replace(".", "/").removeprefix("data/").removeprefix("data"), fault.detail)
