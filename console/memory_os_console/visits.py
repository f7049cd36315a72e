"""What every page has in hand: who is there, the session, units of work, the form, and the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import UUID

from litestar import Request, Response
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers.base import BaseRouteHandler
from litestar.response import Redirect

from memory_os.api.services import Services
from memory_os.domain.principal import Principal
from memory_os.domain.roles import PERMISSIONS, Permission, may
from memory_os.errors import PermissionDeniedError
from memory_os.storage.database import Scope, Transaction
from memory_os_console.login_rate import LoginRate
from memory_os_console.problems import CrossSiteArrivalError, LoginNeededError, local_address
from memory_os_console.rendering import Pages
from memory_os_console.sessions import CSRF_FIELD, Sessions, csrf_token, is_csrf_token

T = TypeVar("T")

CONSOLE_ROLES: Final = ("operator", "reviewer", "admin", "root")
"""Who may log in. A reviewer looks on; what changes something needs `operate`, and a rebuild `admin` or `instance`."""

_SAFE_METHODS: Final = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Console:
    """The parts that every page is served with.

    Attributes:
        services: The service's own.
        pages: Templates.
        sessions: Sessions.
        login_rate: How often somebody may try to log in.
        stopping: Set when the process is about to stop, so that live streams end at once.
    """

    services: Services
    pages: Pages
    sessions: Sessions
    login_rate: LoginRate = field(default_factory=LoginRate)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def admit(self, connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        """Guard: somebody with a console role is logged in, may do this, and sent a form of their own session.

        Raises:
            CrossSiteArrivalError: If the browser kept the cookie back because a link elsewhere led here.
            LoginNeededError: If nobody is logged in.
            PermissionDeniedError: If the role is not enough, or the form is not of this session.
        """
        request: Request[Any, Any, Any] = connection  # type: ignore[assignment]  # guards of HTTP routes get the request
        changes = request.method not in _SAFE_METHODS
        if not changes and request.headers.get("sec-fetch-site") == "cross-site" and not request.session:
            raise CrossSiteArrivalError
        if not handler.opt.get("public"):
            principal = await self.sessions.principal(self.services.database, request.session)
            if principal is None or principal.role not in CONSOLE_ROLES:
                back = None if changes or handler.opt.get("fragment") else local_address(request)
                raise LoginNeededError(back, ended="id" in request.session)
            request.scope["user"] = principal
            _require(principal, handler.opt.get("permission", ()))
        if changes and not is_csrf_token(request.session, (await request.form()).get(CSRF_FIELD)):
            raise PermissionDeniedError(
                "the form does not belong to your session; nothing was done: go back, reload the page and try again"
            )


class ActiveVisit:
    """One request in the hands of its handler."""

    def __init__(self, console: Console, request: Request[Any, Any, Any]) -> None:
        self.console = console
        self.services = console.services
        self.request = request
        self.session: dict[str, Any] = request.session
        self.request_id: str = request.scope["state"]["request_id"]

    @property
    def principal(self) -> Principal:
        """Who is logged in."""
        principal: Principal = self.request.user
        return principal

    @property
    def is_root(self) -> bool:
        """Whether it is the instance's root, who sees all tenants."""
        return self.principal.role == "root"

    def may(self, *permissions: Permission) -> bool:
        """Whether the principal has one of these permissions."""
        return any(may(self.principal.role, permission) for permission in permissions)

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run a unit of work as the principal."""
        return await self.services.database.run(Scope.of(self.principal), work)

    async def read_in(self, tenant_id: UUID, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run a unit of work as the principal inside a tenant: its own, or for root the one that is looked at."""
        who = self.principal
        scope = Scope("memory_os_app", tenant_id, who.role, who.user_id, who.groups)
        return await self.services.database.run(scope, work)

    async def form(self) -> Mapping[str, str]:
        """The fields of the form, each once, without the white space around them."""
        sent = await self.request.form()
        return {name: value.strip() for name, value in sent.items() if isinstance(value, str)}

    def page(self, template: str, status: int = 200, **context: Any) -> Response[str]:  # noqa: ANN401 - what it shows
        """Answer with a page, and with the notice that an act before left behind."""
        return self.console.pages.respond(
            template, status=status, visit=self, csrf=csrf_token(self.session), notice=self._take_notice(), **context
        )

    def leave(self, address: str, notice: str = "") -> Redirect:
        """After an act: go to a page, which shows the notice once."""
        if notice:
            self.session["notice"] = notice
        return Redirect(address, status_code=303)

    def _take_notice(self) -> str:
        notice = self.session.pop("notice", "")
        return str(notice)


Visit = NamedDependency[ActiveVisit]
"""How a handler asks for its visit."""


def _require(principal: Principal, needed: tuple[Permission, ...]) -> None:
    if needed and PERMISSIONS[principal.role].isdisjoint(needed):
        raise PermissionDeniedError(f"the role {principal.role} may look on here; this needs {' or '.join(needed)}")
