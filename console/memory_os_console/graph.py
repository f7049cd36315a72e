"""The graph: what is in it, its strongest entities, and rebuilding it."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from litestar import Response, get, post
from litestar.params import FromPath

from memory_os.admin.reach import named_or_own, require_tenant, seen_tenant
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.domain.shapes import check_text
from memory_os.errors import FeatureOffError, InvalidInputError, NotFoundError, RebuildRunningError, UnavailableError
from memory_os.graph.port import GraphStats
from memory_os.projection.rebuilds import Rebuild, RebuildRequest, get_rebuild, list_rebuilds, request_rebuild
from memory_os.projection.reporting import GraphReport, count_graph, report_graph
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page
from memory_os_console.rendering import PATH
from memory_os_console.tenants import tenant_names
from memory_os_console.visits import ActiveVisit, Visit

RECENT: Final = 10
STRONGEST: Final = 5.0
"""The upper bound of an entity's strength."""

_USER_CHARS: Final = 200


@get("/graph", name="console.graph")
async def show_graph(visit: Visit) -> Response[str]:
    """One tenant's graph; root chooses the tenant first."""
    tenant_id = _chosen(visit, visit.request.query_params.get("tenant_id", ""))
    tenants = await tenant_names(visit)
    if tenant_id is None:
        return visit.page("tenant.html", tenants=tenants)
    graph, counts, trouble = visit.services.graph, GraphStats(), ""
    try:
        counts = await count_graph(graph, tenant_id)
    except UnavailableError as error:
        trouble = error.detail

    async def read(tx: Transaction) -> tuple[GraphReport, Page[Rebuild]]:
        if visit.is_root:
            await require_tenant(tx, tenant_id)
        return await report_graph(tx, graph, tenant_id, counts), await list_rebuilds(tx, tenant_id, None, RECENT)

    report, rebuilds = await visit.read(read)
    return visit.page(
        "graph.html",
        tenant_id=tenant_id,
        tenants=tenants,
        report=report,
        trouble=trouble,
        rebuilds=rebuilds.items,
        running=next((job for job in rebuilds.items if job.status in ("pending", "running")), None),
        strongest=STRONGEST,
    )


@post("/graph", name="console.rebuild", opt={"permission": ("admin", "instance")})
async def rebuild(visit: Visit) -> Response[Any]:
    """Ask for a rebuild, and follow it."""
    form = await visit.form()
    tenant_id, user_id = _chosen(visit, form.get("tenant_id", "")), form.get("user_id") or None
    if visit.services.graph is None:
        raise FeatureOffError("graph memory is off: set ENABLE_GRAPH_MEMORY=true to rebuild the graph")
    if tenant_id is None:
        raise InvalidInputError("choose the tenant whose graph is to be rebuilt")
    if user_id and (len(user_id) > _USER_CHARS or check_text(user_id) or any(char < " " for char in user_id)):
        raise InvalidInputError(f"a user is named by 1 to {_USER_CHARS} characters, none of them a control character")
    chosen = tenant_id

    async def ask(tx: Transaction) -> Rebuild:
        if visit.is_root:
            await require_tenant(tx, chosen)
        return await request_rebuild(tx, visit.principal, chosen, RebuildRequest(user_id=user_id), visit.request_id)

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
    ident = _uuid(rebuild_id.strip("/"))
    if ident is None:
        raise NotFoundError("there is no such rebuild")
    tenant_id = seen_tenant(visit.principal, None)
    job = await visit.read(lambda tx: get_rebuild(tx, tenant_id, ident))
    return visit.page(
        "rebuild.html", job=job, live=job.status in ("pending", "running"), tenants=await tenant_names(visit)
    )


def _chosen(visit: ActiveVisit, named: str) -> UUID | None:
    """The tenant that a page is about: the own one, or for root the named one."""
    ident = _uuid(named.strip()) if named.strip() else None
    if named.strip() and ident is None:
        raise NotFoundError("there is no such tenant")
    tenant_id = named_or_own(visit.principal, ident)
    return None if tenant_id == INSTANCE_TENANT else tenant_id


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
