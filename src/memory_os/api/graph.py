"""`/v1/graph`: what is in the graph, and rebuilding it."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.params import FromPath, JSONBody

from memory_os.admin.reach import named_by_root, require_tenant, seen_tenant
from memory_os.api.calls import IDEMPOTENCY_KEY, Answer, Call
from memory_os.api.parameters import CURSOR, LIMIT, TENANT, Limit
from memory_os.domain.shapes import Cursor
from memory_os.errors import FeatureOffError
from memory_os.projection.rebuilds import (
    Rebuild,
    RebuildRequest,
    cancel_rebuild,
    get_rebuild,
    list_rebuilds,
    request_rebuild,
)
from memory_os.projection.reporting import GraphReport, count_graph, report_graph
from memory_os.storage.pages import Page

OK = 200
ACCEPTED = 202
_ADMIN: Final = {"permission": ("admin", "instance")}
_WATCH: Final = {"permission": "operate"}


class GraphController(Controller):
    """The graph of the own tenant. Root names the tenant."""

    path = "/v1/graph"
    tags = ["graph"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/stats", operation_id="graphStats", opt={"permission": ("read", "instance")}, summary="What is in the graph")
    async def stats(self, call: Call, tenant_id: Annotated[UUID | None, TENANT] = None) -> GraphReport:
        """Counts, the strongest entities that the caller may see, and how far the graph is behind."""
        tenant = named_by_root(call.principal, tenant_id, "/tenant_id")
        graph = call.services.graph
        counts = await count_graph(graph, tenant)
        return await call.read(lambda tx: report_graph(tx, graph, tenant, counts))

    @post("/rebuild", operation_id="rebuildGraph", opt=_ADMIN, status_code=ACCEPTED, summary="Rebuild the graph")
    async def rebuild(
        self, data: JSONBody[RebuildRequest], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[Rebuild]:
        """Rebuild from the canonical rows while readers keep the old graph; the answer is the job to follow."""
        if call.services.graph is None:
            raise FeatureOffError("graph memory is off: set ENABLE_GRAPH_MEMORY=true to rebuild the graph")
        tenant = named_by_root(call.principal, data.tenant, "/tenant")

        async def work(tx: Any) -> Answer[Rebuild]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            if tenant != call.principal.tenant_id:
                await require_tenant(tx, tenant)
            return Answer(await request_rebuild(tx, call.principal, tenant, data, call.request_id), ACCEPTED)

        return await call.write(work)

    @get("/rebuilds", operation_id="listRebuilds", opt=_WATCH, summary="List rebuilds, newest first")
    async def list_all(
        self,
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Rebuild]:
        """List the tenant's rebuilds; root sees all tenants', or the one that it names."""
        tenant = seen_tenant(call.principal, tenant_id)
        return await call.read(lambda tx: list_rebuilds(tx, tenant, cursor, limit))

    @get("/rebuilds/{rebuild_id:uuid}", operation_id="getRebuild", opt=_WATCH, summary="Follow a rebuild")
    async def get_one(
        self, rebuild_id: FromPath[UUID], call: Call, tenant_id: Annotated[UUID | None, TENANT] = None
    ) -> Rebuild:
        """Read one rebuild: phase, counts, rate, what remains."""
        tenant = seen_tenant(call.principal, tenant_id)
        return await call.read(lambda tx: get_rebuild(tx, tenant, rebuild_id))

    @post(
        "/rebuilds/{rebuild_id:uuid}/cancel",
        operation_id="cancelRebuild",
        opt=_ADMIN,
        status_code=OK,
        summary="Call a rebuild off",
    )
    async def cancel(
        self,
        rebuild_id: FromPath[UUID],
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[Rebuild]:
        """Call a pending or running rebuild off. The graph stays as it is; a rebuild of one user ends where it is."""
        tenant = seen_tenant(call.principal, tenant_id)

        async def work(tx: Any) -> Answer[Rebuild]:  # noqa: ANN401 - as above
            return Answer(await cancel_rebuild(tx, call.principal, tenant, rebuild_id, call.request_id), OK)

        return await call.write(work)
