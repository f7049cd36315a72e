"""`.../erase` and `/v1/erasures`: erasing records and users for good, and the receipts of it."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import unquote
from uuid import UUID

from litestar import Controller, Request, Response, delete, get, post
from litestar.params import FromPath, JSONBody

from memory_os.api.calls import IDEMPOTENCY_KEY, Answer, Call
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.checking import text_faults
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import USER_PATTERN, Cursor
from memory_os.erasure.model import ErasureRequest, Receipt, ReceiptSummary
from memory_os.erasure.receipts import get_receipt, list_receipts
from memory_os.erasure.service import erase_memory, erase_source, erase_user
from memory_os.errors import FieldError, InvalidInputError, NotFoundError
from memory_os.storage.pages import Page

Key = Annotated[str | None, IDEMPOTENCY_KEY]

_USERS = "/v1/users/"
_USER_CHARS = 200


class ErasureController(Controller):
    """Erasing for good. What is only withdrawn is retracted; what is erased is nowhere any more."""

    path = "/v1"
    tags = ["erasure"]  # noqa: RUF012 - Litestar reads it from the class

    @post(
        "/memories/{memory_id:uuid}/erase",
        operation_id="eraseMemory",
        opt={"permission": "admin"},
        status_code=200,
        summary="Erase a memory",
    )
    async def memory(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        data: JSONBody[ErasureRequest | None] = None,
        idempotency_key: Key = None,
    ) -> Response[Receipt]:
        """Erase a memory, all that was made of it and all that tells of it, and what was derived from it with it."""
        _check(data)

        async def work(tx: Any) -> Answer[Receipt]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            done = await erase_memory(tx, call.services.outbox, call.principal, memory_id, call.request_id)
            return Answer(done, lasting=True)

        return await call.write(work)

    @post(
        "/sources/{source_id:uuid}/erase",
        operation_id="eraseSource",
        opt={"permission": "admin"},
        status_code=200,
        summary="Erase a source",
    )
    async def source(
        self,
        source_id: FromPath[UUID],
        call: Call,
        data: JSONBody[ErasureRequest | None] = None,
        idempotency_key: Key = None,
    ) -> Response[Receipt]:
        """Erase a source with its passages and evidence, and the memories that no other source bears out."""
        _check(data)

        async def work(tx: Any) -> Answer[Receipt]:  # noqa: ANN401 - as above
            done = await erase_source(tx, call.services.outbox, call.principal, source_id, call.request_id)
            return Answer(done, lasting=True)

        return await call.write(work)

    @get("/erasures", operation_id="listErasures", opt={"permission": "admin"}, summary="List erasures, newest first")
    async def list_all(
        self, call: Call, cursor: Annotated[Cursor | None, CURSOR] = None, limit: Annotated[Limit, LIMIT] = 50
    ) -> Page[ReceiptSummary]:
        """List the receipts of the tenant, with the number of records instead of their ids."""
        return await call.read(lambda tx: list_receipts(tx, cursor, limit))

    @get(
        "/erasures/{erasure_id:uuid}",
        operation_id="getErasure",
        opt={"permission": "admin"},
        summary="Read a receipt",
    )
    async def get_one(self, erasure_id: FromPath[UUID], call: Call) -> Receipt:
        """Read what was erased, and from where."""
        return await call.read(lambda tx: get_receipt(tx, erasure_id))

    @delete(
        "/users/{user:str}",
        operation_id="eraseUser",
        opt={"permission": "admin"},
        status_code=200,
        summary="Erase a user",
    )
    async def user(self, user: FromPath[str], call: Call, request: Request[Principal, str, Any]) -> Receipt:
        """Erase all records of a user, and take the name out of all others. Of an unknown user there is nothing."""
        name = _user_of(request)
        outbox, who = call.services.outbox, call.principal
        return await call.read(lambda tx: erase_user(tx, outbox, who, name, call.request_id))

    @delete(
        "/users/{user:str}/{rest:path}",
        opt={"permission": "admin"},
        status_code=200,
        include_in_schema=False,
    )
    async def user_with_slash(
        self, user: FromPath[str], rest: FromPath[str], call: Call, request: Request[Principal, str, Any]
    ) -> Receipt:
        """The same for a name with an encoded slash in it, which the server has decoded before routes are looked up."""
        name = _user_of(request)
        outbox, who = call.services.outbox, call.principal
        return await call.read(lambda tx: erase_user(tx, outbox, who, name, call.request_id))


def _check(data: ErasureRequest | None) -> None:
    if data is not None and (faults := text_faults(data, ("reason",), solid=("reason",))):
        raise InvalidInputError("the reason can't be read", errors=faults)


def _user_of(request: Request[Principal, str, Any]) -> str:
    """The user that the address names, decoded once; compared literally, whatever characters it has."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    _, _, encoded = raw.decode("ascii", "replace").partition("?")[0].partition(_USERS)
    if "/" in encoded:
        raise NotFoundError("there is nothing at this address")
    user = unquote(encoded, errors="replace")
    if not 0 < len(user) <= _USER_CHARS or "\ufffd" in user or not re.match(USER_PATTERN, user):
        fault = FieldError("/user", "must have 1 to 200 characters in UTF-8, and no control characters")
        raise InvalidInputError("there can be no such user", errors=[fault])
    return user
