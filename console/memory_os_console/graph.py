"""The graph: what is in it, its strongest entities, whether it is right, and rebuilding it."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from litestar import Response, get, post
from litestar.params import FromPath

from memory_os.admin.reach import require_tenant, seen_tenant
from memory_os.domain.shapes import check_text
from memory_os.errors import ConflictError, InvalidInputError, NotFoundError, RebuildRunningError, UnavailableError
from memory_os.graph.port import GraphStats
from memory_os.projection.graph_states import graph_condition
from memory_os.projection.rebuilds import (
    Rebuild,
    RebuildRequest,
    cancel_rebuild,
    get_rebuild,
    list_rebuilds,
    request_rebuild,
)
from memory_os.projection.reporting import count_graph, report_graph
from memory_os.projection.verifications import list_verifications
from memory_os.storage.database import Transaction
from memory_os_console.rendering import PATH
from memory_os_console.tenants import chosen_tenant, find_uuid, tenant_names, tenant_of_form
from memory_os_console.visits import ActiveVisit, Visit

RECENT: Final = 10
STRONGEST: Final = 5.0
"""The upper bound of an entity's strength."""

_USER_CHARS: Final = 200
_LIVE: Final = ("pending", "running")


@get("/graph", name="console.graph")
async def show_graph(visit: Visit) -> Response[str]:
    """One tenant's graph; root chooses the tenant first."""
    tenant_id = chosen_tenant(visit, visit.request.query_params.get("tenant_id", ""))
    tenants = await tenant_names(visit)
    if tenant_id is None:
        return visit.page("tenant.html", tenants=tenants)
    counts, trouble = GraphStats(), ""
    try:
        counts = await count_graph(visit.services.graph, tenant_id)
    except UnavailableError as error:
        trouble = error.detail
    shown = await _state(visit, tenant_id, counts)
    return visit.page(
        "graph.html",
        tenant_id=tenant_id,
        tenants=tenants,
        trouble=trouble,
        running=next((job for job in shown["rebuilds"] if job.status in _LIVE), None),
        comparing=next((job for job in shown["comparisons"] if job.status in _LIVE), None),
        strongest=STRONGEST,
        **shown,
    )


async def _state(visit: ActiveVisit, tenant_id: UUID, counts: GraphStats) -> dict[str, Any]:
    async def read(tx: Transaction) -> dict[str, Any]:
        if visit.is_root:
            await require_tenant(tx, tenant_id)
        return {
            "report": await report_graph(tx, visit.services.graph, tenant_id, counts),
            "condition": await graph_condition(tx, tenant_id),
            "rebuilds": (await list_rebuilds(tx, tenant_id, None, RECENT)).items,
            "comparisons": (await list_verifications(tx, tenant_id, None, RECENT)).items,
        }

    return await visit.read(read)


@post("/graph", name="console.rebuild", opt={"permission": ("admin", "instance")})
async def rebuild(visit: Visit) -> Response[Any]:
    """Ask for a rebuild, and follow it."""
    form = await visit.form()
    tenant_id, user_id = tenant_of_form(visit, form, "rebuilt"), form.get("user_id") or None
    if user_id and (len(user_id) > _USER_CHARS or check_text(user_id) or any(char < " " for char in user_id)):
        raise InvalidInputError(f"a user is named by 1 to {_USER_CHARS} characters, none of them a control character")

    async def ask(tx: Transaction) -> Rebuild:
        if visit.is_root:
            await require_tenant(tx, tenant_id)
        return await request_rebuild(tx, visit.principal, tenant_id, RebuildRequest(user_id=user_id), visit.request_id)

    try:
        job = (await visit.read(ask)).id
    except RebuildRunningError as error:
        running = error.extra.get("rebuild_id")
        address = f"{PATH}/graph/rebuilds/{running}" if running else f"{PATH}/graph"
        return visit.leave(address, "Nothing was started: a rebuild of this graph is pending or running. This is it.")
    return visit.leave(f"{PATH}/graph/rebuilds/{job}")


@get("/graph/rebuilds/{rebuild_id:path}", name="console.rebuild_progress")
async def show_rebuild(visit: Visit, rebuild_id: FromPath[str]) -> Response[str]:
    """A rebuild with its progress; the page asks again every second until it has ended."""
    ident = _rebuild_id(rebuild_id)
    tenant_id = seen_tenant(visit.principal, None)
    job = await visit.read(lambda tx: get_rebuild(tx, tenant_id, ident))
    return visit.page("rebuild.html", job=job, live=job.status in _LIVE, tenants=await tenant_names(visit))


@post("/graph/rebuilds/{rebuild_id:path}", name="console.cancel_rebuild", opt={"permission": ("admin", "instance")})
async def cancel(visit: Visit, rebuild_id: FromPath[str]) -> Response[Any]:
    """Call a rebuild off, if it has not ended meanwhile."""
    ident, tenant_id = _rebuild_id(rebuild_id), seen_tenant(visit.principal, None)
    if (await visit.form()).get("action") != "cancel":
        raise InvalidInputError("a rebuild can be cancelled")
    notice = "The rebuild is cancelled."
    try:
        await visit.read(lambda tx: cancel_rebuild(tx, visit.principal, tenant_id, ident, visit.request_id))
    except ConflictError:
        notice = "Nothing was cancelled: the rebuild had ended already."
    return visit.leave(f"{PATH}/graph/rebuilds/{ident}", notice)


def _rebuild_id(text: str) -> UUID:
    ident = find_uuid(text.strip("/"))
    if ident is None:
        raise NotFoundError("there is no such rebuild")
    return ident
