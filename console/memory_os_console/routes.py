"""Composition: the console's pages, their static files, and what surrounds both."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from litestar import Request, Response, Router, get
from litestar.connection import ASGIConnection
from litestar.datastructures import CacheControlHeader
from litestar.di import Provide
from litestar.handlers.base import BaseRouteHandler
from litestar.params import FromPath
from litestar.static_files import create_static_files_router

from memory_os.api.services import Services
from memory_os.errors import NotFoundError
from memory_os_console import bulk, events, graph, login, overview, verifications
from memory_os_console.headers import security_headers
from memory_os_console.problems import exception_handlers
from memory_os_console.rendering import PATH, Pages
from memory_os_console.sessions import Sessions
from memory_os_console.visits import ActiveVisit, Console

_BODY_BYTES: Final = 64 * 1024
_YEAR_S: Final = 365 * 86_400

# A path below a page would be answered by the API's not-found, in JSON: routing never comes back from a dead end.
_NOWHERE: Final = [
    f"{page}/{{rest:path}}" for page in ("", "/login", "/live", "/events/retry", "/graph", "/graph/repair")
]


@get(_NOWHERE, opt={"public": True}, name="console.nowhere")
async def show_nowhere(rest: FromPath[str]) -> Response[str]:  # noqa: ARG001 - whatever it is
    """What is not there, in the console's look."""
    raise NotFoundError("there is no such page")


def console_router(services: Services, *, stopping: asyncio.Event | None = None) -> Router:
    """The console, mounted at `/console`, beside the API and past its token middleware.

    Args:
        services: What the pages are served with.
        stopping: Set it when the process is about to stop, and live streams end at once instead of being waited for.
    """
    console = Console(services, Pages(), Sessions(services.settings), stopping=stopping or asyncio.Event())

    # Plain functions around the methods: Litestar copies a router deeply when it is mounted, bound methods with all
    # that they hold, and a session ended in one copy would live on in another.
    async def admit(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        await console.admit(connection, handler)

    async def provide_visit(request: Request[Any, Any, Any]) -> ActiveVisit:
        return ActiveVisit(console, request)

    pages = Router(
        path="/",
        route_handlers=[
            login.show_login,
            login.log_in,
            login.log_out,
            overview.show_overview,
            overview.stream_overview,
            events.show_events,
            events.show_event,
            events.act_on_event,
            bulk.confirm_retry,
            bulk.retry_events,
            graph.show_graph,
            graph.rebuild,
            graph.show_rebuild,
            graph.cancel,
            verifications.compare,
            verifications.show_verification,
            verifications.confirm_repair,
            verifications.repair,
            show_nowhere,
        ],
        middleware=[console.sessions.middleware()],
        guards=[admit],
        dependencies={"visit": Provide(provide_visit)},
        request_max_body_size=_BODY_BYTES,
    )
    files = create_static_files_router(
        path="/static",
        directories=[Path(__file__).parent / "static"],
        name="console.static",
        cache_control=CacheControlHeader(max_age=_YEAR_S, immutable=True, public=True),
    )
    return Router(
        path=PATH,
        route_handlers=[pages, files],
        middleware=[security_headers],
        exception_handlers=exception_handlers(console.pages),
        include_in_schema=False,
    )
