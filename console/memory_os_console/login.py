"""Login and logout."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import structlog
from litestar import Response, get, post
from litestar.params import FromQuery, QueryParameter
from litestar.response import Redirect

from memory_os.admin.tokens import authenticate
from memory_os_console.rendering import PATH
from memory_os_console.visits import CONSOLE_ROLES, Visit

log = structlog.get_logger(__name__)

_OWN_PAGE: Final = re.compile(r"^/console(?:[/?][\x21-\x5b\x5d-\x7e]*)?$")
"""Pages of the console only: a login must not lead to another site."""

Next = Annotated[str, QueryParameter(name="next", max_length=2000)]


@get("/login", opt={"public": True}, name="console.login")
async def show_login(visit: Visit, back: Next = "", ended: FromQuery[bool] = False) -> Response[str]:
    """The login form; whoever is logged in goes on to where they wanted."""
    if await visit.console.sessions.principal(visit.services.database, visit.session) is not None:
        return visit.leave(_own_page(back))
    fault = "Your session has ended: log in again. Nothing that you sent meanwhile was done." if ended else ""
    return visit.page("login.html", back=_own_page(back), fault=fault)


@post("/login", opt={"public": True}, name="console.log_in")
async def log_in(visit: Visit) -> Response[Any]:
    """Begin a session with a token whose role is for the console."""
    client, rate = visit.request.client, visit.console.login_rate
    address = client.host if client else "unknown"
    await rate.check(address)
    form = await visit.form()
    back, token = _own_page(form.get("next", "")), form.get("token", "")
    principal = await authenticate(visit.services.database, token)
    if principal is None:
        await rate.count_failure(address)
        log.warning("console_login_failed", address=address)
        fault = "This token is not valid: it is mistyped, expired or revoked, or its tenant is suspended."
        return visit.page("login.html", status=401, back=back, fault=fault)
    if principal.role not in CONSOLE_ROLES:
        fault = (
            f"This token has the role {principal.role}, which is for the API alone. "
            f"The console needs one of: {', '.join(CONSOLE_ROLES)}."
        )
        return visit.page("login.html", status=403, back=back, fault=fault)
    visit.console.sessions.begin(visit.session, token)
    log.info("console_login", token_id=str(principal.token_id), role=principal.role, address=address)
    return visit.leave(back)


@post("/logout", opt={"public": True}, name="console.log_out")
async def log_out(visit: Visit) -> Redirect:
    """End the session."""
    visit.console.sessions.end(visit.session)
    return visit.leave(f"{PATH}/login")


def _own_page(address: str) -> str:
    elsewhere = ".." in address or address.startswith(f"{PATH}/login")
    return address if _OWN_PAGE.match(address) and not elsewhere else PATH
