"""Which tenants a principal reaches: its own, and for the instance's root every one that it names."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from memory_os.domain.principal import INSTANCE_TENANT, Principal
from memory_os.errors import FieldError, InvalidInputError, NotFoundError, PermissionDeniedError
from memory_os.storage import tables
from memory_os.storage.database import Transaction

ROOT = "root"


def named_or_own(principal: Principal, named: UUID | None) -> UUID:
    """The tenant that a call is about: the named one, or the caller's own.

    Raises:
        PermissionDeniedError: If anybody but root names another tenant; whether it exists does not show.
    """
    if named is None or named == principal.tenant_id:
        return principal.tenant_id
    if principal.role != ROOT:
        raise PermissionDeniedError("only the instance's root acts in another tenant")
    return named


def named_by_root(principal: Principal, named: UUID | None, pointer: str) -> UUID:
    """Like `named_or_own`, for calls that make no sense in the instance's own tenant: root has to name one.

    Raises:
        InvalidInputError: If root names none; `pointer` is where it belongs.
        PermissionDeniedError: As `named_or_own`.
    """
    tenant_id = named_or_own(principal, named)
    if tenant_id == INSTANCE_TENANT:
        raise InvalidInputError("the instance's root must name a tenant", errors=[FieldError(pointer, "is needed")])
    return tenant_id


def seen_tenant(principal: Principal, named: UUID | None) -> UUID | None:
    """The tenant whose rows a list shows; None is all of them, for root that names none.

    Raises:
        PermissionDeniedError: As `named_or_own`.
    """
    return None if principal.role == ROOT and named is None else named_or_own(principal, named)


async def require_tenant(tx: Transaction, tenant_id: UUID) -> None:
    """Make sure that a tenant that root named is there.

    Raises:
        NotFoundError: If it is not, or is the reserved one.
    """
    column = tables.tenants.c.tenant_id
    if tenant_id == INSTANCE_TENANT or await tx.row(select(column).where(column == tenant_id)) is None:
        raise NotFoundError("there is no such tenant")
