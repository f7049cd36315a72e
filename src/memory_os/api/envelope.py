"""What surrounds every request: its id, its log line, its metrics, its rate, and no parameter unread."""

from __future__ import annotations

import re
import time
from typing import Any

import structlog
from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.handlers.base import BaseRouteHandler
from litestar.params import QueryParameter
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from memory_os.domain.ids import new_id
from memory_os.errors import FieldError, InvalidInputError, RateLimitedError
from memory_os.metrics import REQUEST_SECONDS

log = structlog.get_logger("memory_os.access")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


def request_envelope(app: ASGIApp) -> ASGIApp:
    """Surround the whole application: give each request an id (the client's, if it is a tame one), log and measure it.

    Middleware of Litestar would see neither unknown routes nor the answers that errors become.
    """

    async def middleware(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _REQUEST_ID.fullmatch(given) else str(new_id())
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        started = time.perf_counter()
        status = 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await app(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            route = _route(scope)
            REQUEST_SECONDS.labels(scope["method"], route, str(status)).observe(seconds)
            log.info("request", method=scope["method"], route=route, status=status, ms=round(seconds * 1000, 1))

    return middleware


def _route(scope: Scope) -> str:
    """The route's template, never the path itself: ids do not belong into metrics or logs."""
    return str(scope.get("path_template") or "unmatched")


async def refuse_unknown_parameters(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Guard: a query parameter that the call does not know, or gets twice, is a mistake and not to be passed over.

    Raises:
        InvalidInputError: Naming each of them.
    """
    given = connection.query_params
    if not given or handler.opt.get("free_query"):
        return
    known = {
        field.kwarg_definition.name or name: field
        for name, field in handler.parsed_fn_signature.parameters.items()
        if isinstance(field.kwarg_definition, QueryParameter)
    }
    faults = [FieldError(f"/{name}", "this call has no such parameter") for name in given.keys() - known.keys()]
    faults += [
        FieldError(f"/{name}", "is given more than once")
        for name in given.keys() & known.keys()
        if len(given.getall(name)) > 1 and not known[name].is_non_string_sequence
    ]
    if faults:
        raise InvalidInputError("unknown or repeated query parameters", errors=sorted(faults, key=_pointer))


def _pointer(fault: FieldError) -> str:
    return fault.pointer


class TenantRate:
    """A moving count of each tenant's requests over a minute, kept in this process."""

    def __init__(self, per_minute: int) -> None:
        self._item = RateLimitItemPerMinute(per_minute) if per_minute else None
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def check(self, connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        """Guard: refuse a tenant that sends more than its rate.

        Raises:
            RateLimitedError: With `Retry-After` in seconds.
        """
        user = connection.scope.get("user")
        if self._item is None or user is None:
            return
        tenant = str(user.tenant_id)
        if not await self._limiter.hit(self._item, tenant):
            stats = await self._limiter.get_window_stats(self._item, tenant)
            wait = max(1, int(stats.reset_time - time.time()) + 1)
            raise RateLimitedError(
                f"more than {self._item.amount} requests a minute", headers={"Retry-After": str(wait)}
            )
