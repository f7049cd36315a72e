"""What every call has in hand: services, principal, unit of work, idempotency and answer."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec
from litestar import Request, Response
from litestar.di import NamedDependency
from litestar.params import HeaderParameter

from memory_os.api.authentication import acting_for
from memory_os.api.idempotency import Attempt, KeptAnswer, claim_key, find_answer, keep_answer
from memory_os.api.services import Services
from memory_os.domain.principal import Principal
from memory_os.errors import FieldError, InvalidInputError
from memory_os.storage.database import Scope, Transaction

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

_encode = msgspec.json.Encoder().encode

IDEMPOTENCY_KEY = HeaderParameter(
    name="Idempotency-Key",
    min_length=1,
    max_length=200,
    pattern=r"^[\x21-\x7e]+$",
    required=False,
    description="Repeat a request safely: the same key and request get the first answer.",
)
IF_MATCH = HeaderParameter(
    name="If-Match",
    max_length=40,
    required=False,
    description="The version that the change is meant for, as the ETag gave it.",
)
_ETAG = re.compile(r'^(?:W/)?"(\d{1,18})"$')


@dataclass(frozen=True, slots=True)
class Answer(Generic[S]):
    """What a call answers: a status, a body, headers.

    `lasting` answers may be repeated whatever becomes of the records that they name.
    """

    body: S
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    lasting: bool = False

    def response(self) -> Response[S]:
        """As Litestar sends it."""
        return raw_response(self.status, _encode(self.body), self.headers)


def raw_response(status: int, body: bytes, headers: dict[str, str] | None = None) -> Response[Any]:
    """An answer that is encoded already."""
    return Response(body, status_code=status, media_type="application/json", headers=headers)


class ActiveCall:
    """One request in the hands of its handler."""

    def __init__(self, request: Request[Principal, str, Any]) -> None:
        self._request = request
        self.services: Services = request.app.state.services
        self.principal: Principal = request.user
        self.request_id: str = request.scope["state"]["request_id"]

    def act_for(self, user_id: str | None) -> None:
        """Act for the user that the body names; see `acting_for`."""
        self.principal = acting_for(self.principal, user_id)

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run a unit of work as the caller."""
        return await self.services.database.run(Scope.of(self.principal), work)

    async def write(self, work: Callable[[Transaction], Awaitable[Answer[S]]]) -> Response[S]:
        """Run a unit of work once for an idempotency key, and answer with what it made.

        The key is claimed in the same transaction, so that either both the change and its answer are there, or none.
        """
        attempt = await self._attempt()

        async def once(tx: Transaction) -> Response[S]:
            if attempt is None:
                return (await work(tx)).response()
            if (known := await claim_key(tx, attempt)) is not None:
                return _replayed(*known)
            answer = await work(tx)
            kept = KeptAnswer(answer.headers, _encode(answer.body))
            await keep_answer(tx, attempt, answer.status, kept, lasting=answer.lasting)
            return raw_response(answer.status, kept.body, kept.headers)

        return await self.read(once)

    async def repeated(self) -> Response[Any] | None:
        """The first answer to this idempotency key, if there is one: looked up before costly work such as embedding."""
        attempt = await self._attempt()
        if attempt is None:
            return None
        known = await self.read(lambda tx: find_answer(tx, attempt))
        return None if known is None else _replayed(*known)

    async def _attempt(self) -> Attempt | None:
        key = self._request.headers.get("idempotency-key")
        if key is None or self._request.method != "POST":
            return None
        principal = f"{self.principal.token_id}:{self.principal.user_id or ''}"
        url = self._request.url
        parts = (self._request.method.encode(), url.path.encode(), url.query.encode(), await self._request.body())
        return Attempt.of(key, principal, self._request.auth, b"\0".join(parts))


def _replayed(status: int, answer: KeptAnswer) -> Response[Any]:
    return raw_response(status, answer.body, answer.headers)


def etag(version: int) -> dict[str, str]:
    """The ETag header of a version."""
    return {"ETag": f'"{version}"'}


def parse_if_match(value: str | None) -> int | None:
    """The version that an `If-Match` names; None for no header and for `*`.

    Raises:
        InvalidInputError: If it is not an ETag of ours.
    """
    if value is None or value.strip() == "*":
        return None
    match = _ETAG.match(value.strip())
    if match is None:
        raise InvalidInputError(
            "If-Match must be an ETag that this record gave", errors=[FieldError("/If-Match", 'for example "3"')]
        )
    return int(match.group(1))


Call = NamedDependency[ActiveCall]
"""How a handler asks for its call."""


async def provide_call(request: Request[Principal, str, Any]) -> ActiveCall:
    """Dependency: the call."""
    return ActiveCall(request)
