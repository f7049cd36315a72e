"""Error pages: what went wrong, in the words of the API's problem documents, and the way on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.response import Redirect

from memory_os.api import problems
from memory_os.errors import MemoryOSError
from memory_os_console.rendering import PATH, Pages

_ADVICE: Final = {
    403: "If you need it, log in with a token whose role allows it.",
    404: "It may have been pruned, or it belongs to a tenant that you do not see.",
    429: "Nothing is broken; try again a little later.",
    503: "The page works again as soon as the database answers. Nothing was changed.",
}


class LoginNeededError(Exception):
    """Nobody is logged in, or not any more.

    Args:
        back: Where to go after the login: the page that was asked for, or None for what must not be repeated.
        ended: Whether there was a session that has ended.
    """

    def __init__(self, back: str | None, *, ended: bool) -> None:
        super().__init__("login needed")
        self.back = back
        self.ended = ended


class CrossSiteArrivalError(Exception):
    """A link on another site led here, so the browser kept the strict cookie back: going on from here brings it."""


def exception_handlers(pages: Pages) -> dict[type[Exception] | int, Callable[[Any, Any], Response[Any]]]:
    """The handlers of every error, in the console's look."""

    def show(request: Request[Any, Any, Any], answer: Response[bytes]) -> Response[Any]:
        problem = msgspec.json.decode(answer.content)
        return pages.respond(
            "error.html",
            status=problem["status"],
            headers=dict(answer.headers),
            problem=problem,
            advice=_ADVICE.get(problem["status"], ""),
            request_id=request.scope.get("state", {}).get("request_id"),
        )

    def on_login_needed(request: Request[Any, Any, Any], error: LoginNeededError) -> Response[Any]:
        query = {"next": error.back} if error.back else {}
        if error.ended:
            query["ended"] = "1"
        target = f"{PATH}/login"
        if "hx-request" in request.headers or "text/event-stream" in request.headers.get("accept", ""):
            return Response(b"", status_code=401, headers={"HX-Redirect": target})
        return Redirect(target, status_code=303, query_params=query)

    def on_cross_site_arrival(request: Request[Any, Any, Any], _: CrossSiteArrivalError) -> Response[Any]:
        return pages.respond("continue.html", address=local_address(request))

    def on_memory_os_error(request: Request[Any, Any, Any], error: MemoryOSError) -> Response[Any]:
        return show(request, problems.on_memory_os_error(request, error))

    def on_http_exception(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
        return show(request, problems.on_http_exception(request, error))

    def on_exception(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
        return show(request, problems.on_exception(request, error))

    return {
        LoginNeededError: on_login_needed,
        CrossSiteArrivalError: on_cross_site_arrival,
        MemoryOSError: on_memory_os_error,
        HTTPException: on_http_exception,
        Exception: on_exception,
    }


def local_address(request: Request[Any, Any, Any]) -> str:
    """Path and query of a request, for going back to it."""
    query = request.scope["query_string"].decode("latin-1")
    return request.url.path + (f"?{query}" if query else "")
