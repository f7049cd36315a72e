"""`/v1/tokens`: create, list, rotate, revoke."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from litestar import Controller, Response, delete, get, post
from litestar.params import FromPath, JSONBody

from memory_os.admin.issuing import (
    IssuedToken,
    Token,
    create_token,
    list_tokens,
    revoke_token,
    rotate_token,
)
from memory_os.admin.reach import named_or_own
from memory_os.admin.token_rights import TokenDraft
from memory_os.api.calls import IDEMPOTENCY_KEY, Answer, Call
from memory_os.api.parameters import CURSOR, LIMIT, TENANT, Limit
from memory_os.domain.shapes import Cursor
from memory_os.storage.pages import Page

CREATED = 201
NOT_STORED: Final = {"Cache-Control": "no-store"}
"""Header of answers that hold a secret."""

_ALLOWED: Final = {"permission": ("admin", "instance")}


class TokenController(Controller):
    """Tokens of the own tenant; root names any other in `tenant_id`, or means the instance's own."""

    path = "/v1/tokens"
    tags = ["admin"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/", operation_id="createToken", opt=_ALLOWED, summary="Create a token")
    async def create(
        self, data: JSONBody[TokenDraft], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[IssuedToken]:
        """Create a token with no more rights than the caller's. Its secret is in this answer and nowhere else."""

        async def work(tx: Any) -> Answer[IssuedToken]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            return Answer(await create_token(tx, call.principal, data, call.request_id), CREATED, NOT_STORED)

        return await call.write(work)

    @get("/", operation_id="listTokens", opt=_ALLOWED, summary="List tokens, newest first")
    async def list_all(
        self,
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Token]:
        """List a tenant's tokens, dead ones too, without their secrets."""
        tenant = named_or_own(call.principal, tenant_id)
        return await call.read(lambda tx: list_tokens(tx, tenant, cursor, limit))

    @post(
        "/{token_id:uuid}/rotate",
        operation_id="rotateToken",
        opt=_ALLOWED,
        status_code=200,
        summary="Give a token a new secret",
    )
    async def rotate(
        self,
        token_id: FromPath[UUID],
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[IssuedToken]:
        """Replace a token's secret; the old one is refused from the next request on. Id and rights stay."""
        tenant = named_or_own(call.principal, tenant_id)

        async def work(tx: Any) -> Answer[IssuedToken]:  # noqa: ANN401 - as above
            rotated = await rotate_token(tx, call.principal, tenant, token_id, call.request_id)
            return Answer(rotated, headers=NOT_STORED)

        return await call.write(work)

    @delete("/{token_id:uuid}", operation_id="revokeToken", opt=_ALLOWED, status_code=200, summary="Revoke a token")
    async def revoke(
        self, token_id: FromPath[UUID], call: Call, tenant_id: Annotated[UUID | None, TENANT] = None
    ) -> Token:
        """Revoke a token for good; it is refused from the next request on."""
        tenant = named_or_own(call.principal, tenant_id)
        return await call.read(lambda tx: revoke_token(tx, call.principal, tenant, token_id, call.request_id))
