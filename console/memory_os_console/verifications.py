"""Comparisons of a graph with its canonical rows: asking for one, following it, and repairing what differs."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from litestar import Response, get, post
from litestar.params import FromPath

from memory_os.admin.reach import require_tenant, seen_tenant
from memory_os.errors import NotFoundError, PreconditionFailedError, VerificationRunningError
from memory_os.projection.graph_states import GraphCondition, graph_condition
from memory_os.projection.reporting import visible_names
from memory_os.projection.verifications import Verification, get_verification, request_verification
from memory_os.storage.database import Transaction
from memory_os_console.differences import ShownDifference, entities_of, show_difference, show_parts
from memory_os_console.rendering import PATH
from memory_os_console.tenants import chosen_tenant, find_uuid, tenant_names, tenant_of_form
from memory_os_console.visits import ActiveVisit, Visit

_ADMIN: Final = {"permission": ("admin", "instance")}


@post("/graph/verifications", name="console.compare", opt={"permission": ("operate",)})
async def compare(visit: Visit) -> Response[Any]:
    """Ask for a comparison, or join the one that is under way, and follow it."""
    tenant_id = tenant_of_form(visit, await visit.form(), "compared")

    async def ask(tx: Transaction) -> Verification:
        if visit.is_root:
            await require_tenant(tx, tenant_id)
        return await request_verification(tx, visit.principal, tenant_id, visit.request_id)

    return visit.leave(_address(await visit.read(ask)))


@get("/graph/verifications/{verification_id:path}", name="console.verification")
async def show_verification(visit: Visit, verification_id: FromPath[str]) -> Response[str]:
    """A comparison: its progress until it has ended, and then what differs."""
    ident, tenant_id = find_uuid(verification_id.strip("/")), seen_tenant(visit.principal, None)
    if ident is None:
        raise NotFoundError("there is no such comparison")
    job = await visit.read(lambda tx: get_verification(tx, tenant_id, ident))
    measured = job.status == "running" and job.total > 0
    return visit.page(
        "verification.html",
        job=job,
        parts=show_parts(job.parts),
        differences=await _shown(visit, job),
        live=job.finished_at is None,
        percent=100.0 if job.status == "done" else round(100 * job.checked / job.total, 1) if measured else None,
        rows=sum(part.rows for part in job.parts.values()),
        tenants=await tenant_names(visit),
    )


@get("/graph/repair", name="console.confirm_repair", opt=_ADMIN)
async def confirm_repair(visit: Visit) -> Response[Any]:
    """What a repair would mend: the differences that the newest comparison has found."""
    tenant_id = chosen_tenant(visit, visit.request.query_params.get("tenant_id", ""))
    return visit.leave(f"{PATH}/graph") if tenant_id is None else await _repair_page(visit, tenant_id)


@post("/graph/repair", name="console.repair", opt=_ADMIN)
async def repair(visit: Visit) -> Response[Any]:
    """Ask for the repair of what was seen to differ, unless the graph was compared or rebuilt since."""
    form = await visit.form()
    tenant_id, seen = tenant_of_form(visit, form, "repaired"), find_uuid(form.get("seen", ""))

    async def ask(tx: Transaction) -> Verification:
        if visit.is_root:
            await require_tenant(tx, tenant_id)
        condition = await graph_condition(tx, tenant_id)
        if condition is None or condition.compared_by != seen or condition.rebuilt_since or not condition.left:
            raise PreconditionFailedError("the graph was compared or rebuilt since")
        return await request_verification(tx, visit.principal, tenant_id, visit.request_id, repair=True)

    try:
        return visit.leave(_address(await visit.read(ask)))
    except PreconditionFailedError:
        fault = "Nothing was done: the graph was compared or rebuilt since you opened this page. This is how it stands."
        return await _repair_page(visit, tenant_id, status=409, fault=fault)
    except VerificationRunningError as error:
        notice = "Nothing was started: the graph is being compared just now. Repair it once this has ended."
        return visit.leave(f"{PATH}/graph/verifications/{error.extra['verification_id']}", notice)


async def _repair_page(visit: ActiveVisit, tenant_id: UUID, status: int = 200, fault: str = "") -> Response[str]:
    async def read(tx: Transaction) -> tuple[GraphCondition, Verification | None]:
        condition = await graph_condition(tx, tenant_id)
        if condition is None:
            raise NotFoundError("there is no such tenant")
        if condition.compared_by is None or condition.rebuilt_since:
            return condition, None
        return condition, await get_verification(tx, tenant_id, condition.compared_by)

    condition, job = await visit.read(read)
    return visit.page(
        "repair.html",
        status=status,
        tenant_id=tenant_id,
        condition=condition,
        job=job,
        parts=show_parts(job.parts) if job else [],
        differences=await _shown(visit, job) if job else [],
        fault=fault,
        tenants=await tenant_names(visit),
    )


async def _shown(visit: ActiveVisit, job: Verification) -> list[ShownDifference]:
    """The differences as this reader may know them: without names of entities that it does not see."""
    ids = entities_of(job.differences)
    names = await visit.read(lambda tx: visible_names(tx, job.tenant_id, ids)) if ids else {}
    return [show_difference(difference, names) for difference in job.differences]


def _address(job: Verification) -> str:
    return f"{PATH}/graph/verifications/{job.id}"
