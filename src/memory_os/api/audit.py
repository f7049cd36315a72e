"""`/v1/audit`: who did what to which record."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from litestar import Controller, get

from memory_os.admin.audit import AuditEntry, AuditFilter, list_entries
from memory_os.admin.reach import seen_tenant
from memory_os.api.calls import Call
from memory_os.api.parameters import CURSOR, LIMIT, TENANT, KeyParameter, Limit
from memory_os.domain.shapes import Cursor
from memory_os.storage.pages import Page


class AuditController(Controller):
    """The audit log: entries are written with the act itself and never change."""

    path = "/v1/audit"
    tags = ["admin"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/", operation_id="listAudit", opt={"permission": ("admin", "instance")}, summary="Read the audit log")
    async def list_all(
        self,
        call: Call,
        action: KeyParameter = None,
        target_type: KeyParameter = None,
        target_id: KeyParameter = None,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[AuditEntry]:
        """List the tenant's audit entries, newest first; root sees all tenants', or the one it names."""
        wanted = AuditFilter(seen_tenant(call.principal, tenant_id), action, target_type, target_id)
        return await call.read(lambda tx: list_entries(tx, wanted, cursor, limit))
