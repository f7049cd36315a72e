"""`/v1/graph`: what is in the graph, and rebuilding it."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter

from memory_os.admin.reach import named_by_root, require_tenant, seen_tenant
from memory_os.api.calls import IDEMPOTENCY_KEY, Answer, Call
from memory_os.api.parameters import CURSOR, LIMIT, TENANT, TIMEOUT_MS, WAIT_FOR, Limit
from memory_os.domain.shapes import Cursor
from memory_os.errors import FeatureOffError
from memory_os.outbox.gauges import Lag, graph_lag, list_workers
from memory_os.outbox.waiting import wait_until
from memory_os.projection.rebuilds import (
    Rebuild,
    RebuildRequest,
    cancel_rebuild,
    get_rebuild,
    list_rebuilds,
    request_rebuild,
)
from memory_os.projection.reporting import GraphReport, count_graph, report_graph
from memory_os.projection.verifications import (
    RepairRequest,
    Verification,
    get_verification,
    list_verifications,
    request_verification,
    shown_to_reader,
)
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page

OK = 200
ACCEPTED = 202
_ADMIN: Final = {"permission": ("admin", "instance")}
_WATCH: Final = {"permission": "operate"}
_WAIT_S = QueryParameter(ge=0, le=300, description="Seconds to wait for the comparison to be done.")


class GraphController(Controller):
    """The graph of the own tenant. Root names the tenant."""

    path = "/v1/graph"
    tags = ["graph"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/stats", operation_id="graphStats", opt={"permission": ("read", "instance")}, summary="What is in the graph")
    async def stats(
        self,
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        wait_for: Annotated[int | None, WAIT_FOR] = None,
        timeout_ms: Annotated[int, TIMEOUT_MS] = 0,
    ) -> GraphReport:
        """Counts, the strongest entities that the caller may see, and how far the graph is behind.

        With `wait_for` the answer waits until the graph has reached that position, `timeout_ms` at most; `position`
        tells whether it has.
        """
        tenant = named_by_root(call.principal, tenant_id, "/tenant_id")
        graph = call.services.graph
        if graph is not None and wait_for is not None:
            wanted = wait_for

            async def look() -> Lag:
                return await call.read(lambda tx: graph_lag(tx, tenant))

            await wait_until(await look(), lambda lag: not lag.events or lag.position >= wanted, look, timeout_ms)
        counts = await count_graph(graph, tenant)
        return await call.read(lambda tx: report_graph(tx, graph, tenant, counts))

    @post("/rebuild", operation_id="rebuildGraph", opt=_ADMIN, status_code=ACCEPTED, summary="Rebuild the graph")
    async def rebuild(
        self, data: JSONBody[RebuildRequest], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[Rebuild]:
        """Rebuild from the canonical rows while readers keep the old graph; the answer is the job to follow."""
        _require_graph(call, "to rebuild the graph")
        tenant = named_by_root(call.principal, data.tenant, "/tenant")

        async def work(tx: Any) -> Answer[Rebuild]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            if tenant != call.principal.tenant_id:
                await require_tenant(tx, tenant)
            return Answer(await request_rebuild(tx, call.principal, tenant, data, call.request_id), ACCEPTED)

        return await call.write(work)

    @get(
        "/verify",
        operation_id="verifyGraph",
        opt=_WATCH,
        summary="Compare the graph with the canonical rows",
        responses={
            ACCEPTED: ResponseSpec(Verification, description="Not done yet: follow it.", generate_examples=False)
        },
    )
    async def verify(
        self,
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        wait_s: Annotated[float, _WAIT_S] = 30.0,
    ) -> Response[Verification]:
        """Compare every node, edge and weight, while writes go on, and tell what is missing, extra or differing.

        A worker does it; one that is under way is joined. 202 and the job to follow if it is not done within `wait_s`
        seconds, or at once if there is no worker. What events in the queue are going to settle is not told.
        """
        tenant = named_by_root(call.principal, tenant_id, "/tenant_id")
        _require_graph(call, "to compare it")

        async def ask(tx: Any) -> Verification:  # noqa: ANN401 - as above
            if tenant != call.principal.tenant_id:
                await require_tenant(tx, tenant)
            return await request_verification(tx, call.principal, tenant, call.request_id)

        asked = await call.read(ask)
        alive = any(worker.state != "lost" for worker in await call.read(list_workers))

        async def look() -> Verification:
            return await call.read(lambda tx: _shown(tx, tenant, asked.id))

        patience_ms = int(wait_s * 1000) if alive else 0  # nobody is there who would do it
        seen = await wait_until(asked, lambda seen: seen.finished_at is not None, look, patience_ms)
        return Response(seen, status_code=OK if seen.finished_at else ACCEPTED)

    @post("/repair", operation_id="repairGraph", opt=_ADMIN, status_code=ACCEPTED, summary="Mend what differs")
    async def repair(
        self, data: JSONBody[RepairRequest], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[Verification]:
        """Compare the graph with the canonical rows and set what differs right, touching nothing else.

        Nothing is changed unless `dry_run` is false. The answer is the job to follow.
        """
        _require_graph(call, "to repair it")
        tenant = named_by_root(call.principal, data.tenant, "/tenant")

        async def work(tx: Any) -> Answer[Verification]:  # noqa: ANN401 - as above
            if tenant != call.principal.tenant_id:
                await require_tenant(tx, tenant)
            repair = not data.dry_run
            asked = await request_verification(tx, call.principal, tenant, call.request_id, repair=repair)
            return Answer(asked, ACCEPTED)

        return await call.write(work)

    @get("/verifications", operation_id="listVerifications", opt=_WATCH, summary="List comparisons, newest first")
    async def list_verifications(
        self,
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Verification]:
        """List the comparisons and repairs of the tenant's graph; root sees all tenants', or the one that it names."""
        tenant = seen_tenant(call.principal, tenant_id)

        async def read(tx: Any) -> Page[Verification]:  # noqa: ANN401 - as above
            page = await list_verifications(tx, tenant, cursor, limit)
            return Page([await shown_to_reader(tx, found) for found in page.items], page.next_cursor)

        return await call.read(read)

    @get("/verifications/{verification_id:uuid}", operation_id="getVerification", opt=_WATCH, summary="Follow one")
    async def get_verification(
        self, verification_id: FromPath[UUID], call: Call, tenant_id: Annotated[UUID | None, TENANT] = None
    ) -> Verification:
        """Read one comparison: how far it is, what differs."""
        tenant = seen_tenant(call.principal, tenant_id)
        return await call.read(lambda tx: _shown(tx, tenant, verification_id))

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


async def _shown(tx: Transaction, tenant_id: UUID | None, verification_id: UUID) -> Verification:
    return await shown_to_reader(tx, await get_verification(tx, tenant_id, verification_id))


def _require_graph(call: Call, wanted: str) -> None:
    if call.services.graph is None:
        raise FeatureOffError(f"graph memory is off: set ENABLE_GRAPH_MEMORY=true {wanted}")
