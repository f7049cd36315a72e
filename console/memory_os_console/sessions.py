"""Sessions: an encrypted cookie that knows which token logged in, but not the token itself.

What the cookie keeps of the token (prefix and hash) is held against the database at every request, so that a revoked or
expired token is out at once.
"""

from __future__ import annotations

import hmac
import os
import secrets
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from litestar.connection import ASGIConnection
from litestar.middleware.session.base import SessionMiddleware
from litestar.middleware.session.client_side import ClientSideSessionBackend, CookieBackendConfig
from litestar.types import ASGIApp, Message, ScopeSession

from memory_os.admin.tokens import authenticate_hash, hash_secret, split_token
from memory_os.domain.principal import Principal
from memory_os.settings import Settings
from memory_os.storage.database import Database

COOKIE: Final = "memory_os_console"
LIFETIME_S: Final = 12 * 3600
"""A session ends half a day after its login, however busy it is: one shift."""

CSRF_FIELD: Final = "csrf_token"
_KEY_BYTES: Final = 32
_LOADED: Final = "console_session"

Session = MutableMapping[str, Any]


class _Backend(ClientSideSessionBackend):
    """The library's cookie, sent only when what it holds has changed.

    Sent with every answer, as the library does it, the answer to a live update that was under way during a logout would
    bring the old session back.
    """

    async def load_from_connection(self, connection: ASGIConnection[Any, Any, Any, Any]) -> dict[str, Any]:
        """What the cookie holds; a cookie that is not ours is no session, whatever is wrong with it."""
        try:
            loaded = await super().load_from_connection(connection)
        except Exception:  # noqa: BLE001 - the library passes on what its decoders raise at forged cookies
            loaded = {}
        connection.scope["state"][_LOADED] = dict(loaded)
        return loaded

    async def store_in_message(
        self, scope_session: ScopeSession, message: Message, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> None:
        """Send the cookie, if there is something new to send."""
        if scope_session != connection.scope["state"][_LOADED]:
            await super().store_in_message(scope_session, message, connection)


class Sessions:
    """Begins, checks and ends sessions.

    Args:
        settings: Key of the cookies, and whether they are for HTTPS only.
        clock: Seconds since 1970.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ended: dict[str, float] = {}
        secret = settings.console_secret
        given = secret.get_secret_value().encode() if secret else os.urandom(_KEY_BYTES)
        self._config = CookieBackendConfig(
            secret=HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"memory-os console session").derive(given),
            key=COOKIE,
            path="/console",
            max_age=LIFETIME_S,
            httponly=True,
            samesite="strict",
            secure=settings.console_cookie_secure,
        )

    def middleware(self) -> Callable[[ASGIApp], ASGIApp]:
        """The middleware that reads the cookie and writes it back."""
        backend = _Backend(self._config)

        def wrap(app: ASGIApp) -> ASGIApp:
            return SessionMiddleware(app, backend)

        return wrap

    def begin(self, session: Session, token: str) -> None:
        """Turn a session into that of a token which has just been found valid; nothing of the old one stays.

        Raises:
            ValueError: If it has not the form of a token.
        """
        parts = split_token(token)
        if parts is None:
            raise ValueError("no token")
        session.clear()
        session.update(
            id=secrets.token_urlsafe(16),
            prefix=parts[0],
            secret_hash=hash_secret(parts[1]).hex(),
            since=int(self._clock()),
        )
        csrf_token(session)

    def end(self, session: Session) -> None:
        """Log out. The cookie is of no use any more, even a copy of it, as long as this process lives."""
        now = self._clock()
        self._ended = {ident: until for ident, until in self._ended.items() if until > now}
        if ident := session.get("id"):
            self._ended[ident] = now + LIFETIME_S
        session.clear()

    async def principal(self, database: Database, session: Session) -> Principal | None:
        """Whose session it is; None where nobody is logged in, or not any more."""
        ident, since = session.get("id"), session.get("since", 0)
        if ident is None or ident in self._ended or since + LIFETIME_S <= self._clock():
            return None
        return await authenticate_hash(database, session["prefix"], bytes.fromhex(session["secret_hash"]))


def csrf_token(session: Session) -> str:
    """The token that every form of this session carries; made at its first use."""
    return str(session.setdefault("csrf", secrets.token_urlsafe(32)))


def is_csrf_token(session: Session, given: object) -> bool:
    """Whether a form carries this session's token."""
    known = session.get("csrf")
    return isinstance(known, str) and isinstance(given, str) and hmac.compare_digest(known.encode(), given.encode())
