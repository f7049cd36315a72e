"""Tenants: their names for root, who sees all of them, and which one a page or a form is about."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from memory_os.admin.reach import named_or_own
from memory_os.admin.tenants import list_tenants
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.errors import FeatureOffError, InvalidInputError, NotFoundError
from memory_os_console.visits import ActiveVisit

_MOST = 200


async def tenant_names(visit: ActiveVisit) -> dict[UUID, str]:
    """The newest two hundred tenants by id; of others the id is shown. Empty for everybody but root."""
    if not visit.is_root:
        return {}
    page = await visit.read(lambda tx: list_tenants(tx, None, None, _MOST))
    return {tenant.id: tenant.name for tenant in sorted(page.items, key=lambda tenant: tenant.name.casefold())}


def chosen_tenant(visit: ActiveVisit, named: str) -> UUID | None:
    """The tenant that a page is about: the own one, or for root the named one, None while it names none.

    Raises:
        NotFoundError: If what is named is no id.
        PermissionDeniedError: If anybody but root names another tenant.
    """
    ident = find_uuid(named.strip()) if named.strip() else None
    if named.strip() and ident is None:
        raise NotFoundError("there is no such tenant")
    tenant_id = named_or_own(visit.principal, ident)
    return None if tenant_id == INSTANCE_TENANT else tenant_id


def tenant_of_form(visit: ActiveVisit, form: Mapping[str, str], wanted: str) -> UUID:
    """The tenant whose graph a form is about; `wanted` says what is to be done with it, as in "rebuilt".

    Raises:
        FeatureOffError: If graph memory is off.
        InvalidInputError: If root names no tenant.
        NotFoundError: As `chosen_tenant`.
        PermissionDeniedError: As `chosen_tenant`.
    """
    tenant_id = chosen_tenant(visit, form.get("tenant_id", ""))
    if visit.services.graph is None:
        raise FeatureOffError(f"graph memory is off: set ENABLE_GRAPH_MEMORY=true, and the graph can be {wanted}")
    if tenant_id is None:
        raise InvalidInputError(f"choose the tenant whose graph is to be {wanted}")
    return tenant_id


def find_uuid(text: str) -> UUID | None:
    """The id that a text is; None if it is none."""
    try:
        return UUID(text)
    except ValueError:
        return None
