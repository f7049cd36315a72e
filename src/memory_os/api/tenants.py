"""`/v1/tenants`: the instance's root makes, lists, changes and suspends tenants."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller, Response, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody

from memory_os.admin.tenants import (
    MadeTenant,
    Tenant,
    TenantDraft,
    TenantPatch,
    change_tenant,
    create_tenant,
    get_tenant,
    list_tenants,
)
from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, Answer, Call, etag, parse_if_match
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.api.tokens import NOT_STORED
from memory_os.domain.shapes import Cursor
from memory_os.storage.pages import Page

CREATED = 201


class TenantController(Controller):
    """Tenants: the isolation boundary."""

    path = "/v1/tenants"
    tags = ["admin"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/", operation_id="createTenant", opt={"permission": "instance"}, summary="Create a tenant")
    async def create(
        self, data: JSONBody[TenantDraft], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[MadeTenant]:
        """Create a tenant with its first admin token, whose secret is in this answer and nowhere else."""

        async def work(tx: Any) -> Answer[MadeTenant]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            made = await create_tenant(tx, call.principal, data, call.request_id)
            return Answer(made, CREATED, {**etag(made.tenant.version()), **NOT_STORED})

        return await call.write(work)

    @get("/", operation_id="listTenants", opt={"permission": "instance"}, summary="List tenants, newest first")
    async def list_all(
        self,
        call: Call,
        status: FromQuery[Literal["active", "suspended"] | None] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Tenant]:
        """List all tenants of the instance."""
        return await call.read(lambda tx: list_tenants(tx, status, cursor, limit))

    @get("/{tenant_id:uuid}", operation_id="getTenant", opt={"permission": "instance"}, summary="Read a tenant")
    async def get_one(self, tenant_id: FromPath[UUID], call: Call) -> Response[Tenant]:
        """Read one tenant."""
        tenant = await call.read(lambda tx: get_tenant(tx, tenant_id))
        return Answer(tenant, headers=etag(tenant.version())).response()

    @patch("/{tenant_id:uuid}", operation_id="changeTenant", opt={"permission": "instance"}, summary="Change a tenant")
    async def change(
        self,
        tenant_id: FromPath[UUID],
        data: JSONBody[TenantPatch],
        call: Call,
        if_match: Annotated[str | None, IF_MATCH] = None,
    ) -> Response[Tenant]:
        """Rename, move to another time zone, suspend (its tokens are refused at once) or activate again."""
        version = parse_if_match(if_match)
        tenant = await call.read(
            lambda tx: change_tenant(tx, call.principal, tenant_id, data, version, call.request_id)
        )
        return Answer(tenant, headers=etag(tenant.version())).response()
