"""Names of tenants, for root, who sees all of them."""

from __future__ import annotations

from uuid import UUID

from memory_os.admin.tenants import list_tenants
from memory_os_console.visits import ActiveVisit

_MOST = 200


async def tenant_names(visit: ActiveVisit) -> dict[UUID, str]:
    """The newest two hundred tenants by id; of others the id is shown. Empty for everybody but root."""
    if not visit.is_root:
        return {}
    page = await visit.read(lambda tx: list_tenants(tx, None, None, _MOST))
    return {tenant.id: tenant.name for tenant in sorted(page.items, key=lambda tenant: tenant.name.casefold())}
