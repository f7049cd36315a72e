"""Who calls, and whether they may: bearer tokens, roles, and acting for a user."""

from __future__ import annotations

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult

from memory_os.admin.tokens import authenticate
from memory_os.domain.principal import Principal
from memory_os.domain.roles import PERMISSIONS
from memory_os.errors import AuthenticationError, InvalidInputError, PermissionDeniedError

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="memory-os"'}
_USER_LENGTH = 200


class TokenMiddleware(AbstractAuthenticationMiddleware):
    """Turns `Authorization: Bearer mos_...` into a principal; every call that is not marked public needs one."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Authenticate a request.

        Raises:
            AuthenticationError: For a missing, malformed, unknown, expired or revoked token, all in the same words.
        """
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        principal = None
        if scheme.lower() == "bearer":
            principal = await authenticate(connection.app.state.services.database, token.strip())
        if principal is None:
            raise AuthenticationError("the token is missing or not valid", headers=_CHALLENGE)
        return AuthenticationResult(user=_acting(principal, connection), auth=token.strip())


def acting_for(principal: Principal, user_id: str | None, groups: tuple[str, ...] = ()) -> Principal:
    """The principal that acts for a user.

    Args:
        principal: Whose token it is.
        user_id: The user that the request names; None leaves the principal as it is.
        groups: The groups that come with the user.

    Raises:
        PermissionDeniedError: If the token is bound to another user, or lacks the `act_as` scope.
    """
    if user_id is None or user_id == principal.user_id:
        return principal
    if principal.user_id is not None:
        raise PermissionDeniedError("the token is bound to another user")
    if "act_as" not in principal.scopes:
        raise PermissionDeniedError("acting for a user needs the act_as scope")
    return Principal(
        principal.tenant_id, principal.role, principal.token_id, user_id, groups, principal.scopes - {"act_as"}
    )


async def require_permission(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Guard: the caller's role must have a permission that the route names in `opt`.

    Raises:
        PermissionDeniedError: If it has not.
    """
    if handler.opt.get("public") or connection.scope.get("method") == "OPTIONS":  # which tells nothing but the methods
        return
    named = handler.opt["permission"]
    needed = (named,) if isinstance(named, str) else named
    if PERMISSIONS[connection.user.role].isdisjoint(needed):
        raise PermissionDeniedError(
            f"the role {connection.user.role} does not have the permission {' or '.join(needed)}"
        )


def _acting(principal: Principal, connection: ASGIConnection[Any, Any, Any, Any]) -> Principal:
    user = _header_text(connection, "x-memory-user")
    given = _header_text(connection, "x-memory-groups")
    if user is None:
        if given is not None:
            raise InvalidInputError("X-Memory-Groups needs X-Memory-User")
        return principal
    groups = tuple(part.strip() for part in (given or "").split(",") if part.strip())
    for value in (user, *groups):
        if not value or len(value) > _USER_LENGTH or any(ord(char) < ord(" ") for char in value):
            raise InvalidInputError("X-Memory-User and X-Memory-Groups hold 1 to 200 characters a name")
    return acting_for(principal, user, groups)


def _header_text(connection: ASGIConnection[Any, Any, Any, Any], name: str) -> str | None:
    """A header's text in UTF-8, as bodies are, so that both name the same users."""
    value = connection.headers.get(name)
    try:
        return None if value is None else value.encode("latin-1").decode()
    except UnicodeError:
        raise InvalidInputError("X-Memory-User and X-Memory-Groups hold names in UTF-8") from None
