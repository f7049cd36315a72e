"""Tenants: made, listed, renamed and suspended by the instance's root."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import available_timezones

from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import func, insert, select, update

from memory_os.admin.audit import record
from memory_os.admin.issuing import IssuedToken, insert_token
from memory_os.admin.token_rights import TokenDraft
from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT, Principal
from memory_os.domain.shapes import Name, check_text
from memory_os.domain.vocabulary import suggest
from memory_os.errors import FieldError, InvalidInputError, NotFoundError, PreconditionFailedError
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = tables.tenants
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TimeZoneName = Annotated[str, Meta(min_length=1, max_length=64, examples=["UTC", "Europe/Vienna"])]


class TenantDraft(Struct, forbid_unknown_fields=True):
    """A tenant as it is asked for; `time_zone` is an IANA name, in which the tenant's nights and weeks are reckoned."""

    name: Name
    time_zone: TimeZoneName = "UTC"


class TenantPatch(Struct, forbid_unknown_fields=True):
    """What to change of a tenant. The tokens of a suspended one are refused; its data stays as it is."""

    name: Name | UnsetType = UNSET
    time_zone: TimeZoneName | UnsetType = UNSET
    status: Literal["active", "suspended"] | UnsetType = UNSET


class Tenant(Struct):
    """A tenant as root sees it."""

    id: UUID
    name: str
    time_zone: str
    status: str
    created_at: datetime
    updated_at: datetime

    def version(self) -> int:
        """What its ETag names: the moment of the last change, in microseconds since 1970."""
        return (self.updated_at - _EPOCH) // timedelta(microseconds=1)


class MadeTenant(Struct):
    """A new tenant with its first token, which administers it and may act for its users."""

    tenant: Tenant
    token: IssuedToken


def tenant_of(row: Mapping[Any, Any]) -> Tenant:
    """A row of `tenants` as root sees it."""
    return Tenant(row["tenant_id"], *(row[name] for name in Tenant.__struct_fields__[1:]))


def check_tenant(shape: TenantDraft | TenantPatch) -> None:
    """Check name and time zone.

    Raises:
        InvalidInputError: With a pointer for each fault.
    """
    faults = []
    if isinstance(shape.name, str):
        fault = check_text(shape.name) or (None if shape.name.strip() else "must not be blank")
        if fault:
            faults.append(FieldError("/name", fault))
    if isinstance(shape.time_zone, str) and shape.time_zone not in _time_zones():
        near = suggest(shape.time_zone, _time_zones())
        hint = f"; did you mean {near}?" if near else ", such as Europe/Vienna"
        faults.append(FieldError("/time_zone", f"must be an IANA time zone{hint}"))
    if faults:
        raise InvalidInputError("the tenant can't be stored as it is", errors=faults)


@cache
def _time_zones() -> frozenset[str]:
    """Names of the system's time zone database, or of the `tzdata` package where the system has none."""
    return frozenset(available_timezones())


async def create_tenant(
    tx: Transaction, principal: Principal, draft: TenantDraft, request_id: str | None, *, first: str = "first token"
) -> MadeTenant:
    """Make a tenant and its first token, which is called `first`.

    Raises:
        InvalidInputError: As `check_tenant`.
    """
    check_tenant(draft)
    row = await tx.row(
        insert(_TABLE).values(tenant_id=new_id(), name=draft.name, time_zone=draft.time_zone).returning(_TABLE)
    )
    if row is None:
        raise AssertionError("a row that was just written can't be gone")
    tenant = tenant_of(row)
    detail = {"name": tenant.name, "time_zone": tenant.time_zone}
    await record(tx, principal, "tenant.create", "tenant", tenant.id, detail, request_id, tenant_id=tenant.id)
    token = TokenDraft(role="admin", name=first, scopes=["act_as"])
    return MadeTenant(tenant, await insert_token(tx, principal, tenant.id, token, request_id))


async def get_tenant(tx: Transaction, tenant_id: UUID, *, lock: bool = False) -> Tenant:
    """One tenant; `lock` keeps others from changing it until the end of the transaction.

    Raises:
        NotFoundError: If there is none; the reserved tenant of the instance is none.
    """
    statement = select(_TABLE).where(_TABLE.c.tenant_id == tenant_id, _TABLE.c.tenant_id != INSTANCE_TENANT)
    row = await tx.row(statement.with_for_update() if lock else statement)
    if row is None:
        raise NotFoundError("there is no such tenant")
    return tenant_of(row)


async def list_tenants(tx: Transaction, status: str | None, cursor: str | None, limit: int) -> Page[Tenant]:
    """Tenants, newest first, one page at a time."""
    statement = select(_TABLE).where(_TABLE.c.tenant_id != INSTANCE_TENANT)
    if status is not None:
        statement = statement.where(_TABLE.c.status == status)
    rows = await tx.rows(newest_first(statement, _TABLE.c.created_at, _TABLE.c.tenant_id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["tenant_id"]))
    return Page([tenant_of(row) for row in page], next_cursor)


async def change_tenant(
    tx: Transaction,
    principal: Principal,
    tenant_id: UUID,
    patch: TenantPatch,
    if_match: int | None,
    request_id: str | None,
) -> Tenant:
    """Apply a patch, with an audit entry of what was there before.

    Raises:
        NotFoundError: If there is no such tenant.
        PreconditionFailedError: If `if_match` is not its version.
        InvalidInputError: As `check_tenant`.
    """
    check_tenant(patch)
    current = await get_tenant(tx, tenant_id, lock=True)
    if if_match is not None and if_match != current.version():
        raise PreconditionFailedError("the tenant has changed meanwhile: read it again")
    given = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    values = {name: value for name, value in given.items() if getattr(current, name) != value}
    if not values:
        return current
    row = await tx.row(
        update(_TABLE).where(_TABLE.c.tenant_id == tenant_id).values(**values, updated_at=func.now()).returning(_TABLE)
    )
    if row is None:
        raise AssertionError("a locked row can't be gone")
    detail = {"before": {name: getattr(current, name) for name in values}, "after": values}
    await record(tx, principal, "tenant.change", "tenant", tenant_id, detail, request_id, tenant_id=tenant_id)
    return tenant_of(row)
