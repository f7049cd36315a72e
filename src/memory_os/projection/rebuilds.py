"""Rebuilds as jobs: asked for by an admin, done by a worker, followed by whoever waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct
from sqlalchemy import Select, func, select, update
from sqlalchemy.dialects.postgresql import insert

from memory_os.admin.audit import record
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import UserId
from memory_os.errors import ConflictError, NotFoundError, RebuildRunningError
from memory_os.outbox.operations import wake_workers
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = tables.graph_rebuilds
_UNMEASURED = ("waiting", "starting", "extracting")
"""Phases before the total of rows is known: a share of it would run to 100 % and start again."""


class RebuildRequest(Struct, forbid_unknown_fields=True):
    """What to rebuild: by default the whole graph of the own tenant, all memories, archived ones included.

    `limit` bounds the memories; a whole-tenant rebuild that would leave some out is refused unless `allow_partial`.
    `user_id` projects that user's memories again, in place. `tenant` is for root, which must name one.
    """

    tenant: UUID | None = None
    user_id: UserId | None = None
    limit: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    allow_partial: bool = False


class Rebuild(Struct):
    """A rebuild and how far it is. `rate` is rows a second, `eta_seconds` and `percent` are null while unknown."""

    id: UUID
    tenant_id: UUID
    status: str
    phase: str
    user_id: str | None
    limit: int | None
    allow_partial: bool
    truncated: bool
    total: int
    processed: int
    percent: float | None
    rate: float | None
    eta_seconds: float | None
    attempts: int
    error: str | None
    requested_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def rebuild_of(row: Mapping[Any, Any], now: datetime) -> Rebuild:
    """A row of `graph_rebuilds` as it stands at `now`."""
    total, processed = row["total"], row["processed"]
    measured = row["status"] in ("running", "failed") and row["phase"] not in _UNMEASURED and total > 0
    percent = 100.0 if row["status"] == "done" else round(100 * processed / total, 1) if measured else None
    rate = _rate(row, now)
    running = row["status"] == "running" and measured and rate
    copied = {
        name: row[name] for name in Rebuild.__struct_fields__ if name not in ("limit", "percent", "rate", "eta_seconds")
    }
    return Rebuild(
        **copied,
        limit=row["max_memories"],
        percent=percent,
        rate=round(rate, 1) if rate is not None else None,
        eta_seconds=round((total - processed) / rate, 1) if running and rate else None,
    )


def _rate(row: Mapping[Any, Any], now: datetime) -> float | None:
    """Rows a second since the start; after a worker's death it counts from the first start, and so is too low."""
    if row["started_at"] is None:
        return None
    seconds: float = ((row["finished_at"] or now) - row["started_at"]).total_seconds()
    return row["processed"] / seconds if seconds > 0 else None


async def request_rebuild(
    tx: Transaction, principal: Principal, tenant_id: UUID, wanted: RebuildRequest, request_id: str | None
) -> Rebuild:
    """Ask for a rebuild; the workers are woken when this commits.

    Args:
        tx: The unit of work.
        principal: Who asks.
        tenant_id: Whose graph; the caller has checked that the principal may.
        wanted: What to rebuild.
        request_id: The request, for the log.

    Raises:
        RebuildRunningError: If one of this tenant is pending or running; `rebuild_id` names it.
    """
    row = await tx.row(
        insert(_TABLE)
        .values(
            tenant_id=tenant_id,
            id=new_id(),
            user_id=wanted.user_id,
            max_memories=wanted.limit,
            allow_partial=wanted.allow_partial,
            requested_by=principal.user_id or (f"token {principal.token_id}" if principal.token_id else principal.role),
            request_id=request_id,
        )
        .on_conflict_do_nothing()
        .returning(_TABLE)
    )
    if row is None:
        raise RebuildRunningError(
            "a rebuild of this tenant's graph is pending or running: wait for it", extra=await _running(tx, tenant_id)
        )
    detail = {"user_id": wanted.user_id, "limit": wanted.limit, "allow_partial": wanted.allow_partial}
    await record(tx, principal, "graph.rebuild", "graph_rebuild", row["id"], detail, request_id, tenant_id=tenant_id)
    await wake_workers(tx)
    return rebuild_of(row, datetime.now(UTC))


async def cancel_rebuild(
    tx: Transaction, principal: Principal, tenant_id: UUID | None, rebuild_id: UUID, request_id: str | None
) -> Rebuild:
    """Call a rebuild off: the live graph stays as it is, but for what a rebuild of one user has done in place.

    Raises:
        NotFoundError: If there is none in the tenant (None is any, for root).
        ConflictError: If it has ended.
    """
    statement = (
        update(_TABLE)
        .where(_TABLE.c.id == rebuild_id, _TABLE.c.status.in_(("pending", "running")))
        .values(status="cancelled", phase="cancelled", finished_at=func.now())
        .returning(_TABLE)
    )
    if tenant_id is not None:
        statement = statement.where(_TABLE.c.tenant_id == tenant_id)
    row = await tx.row(statement)
    if row is None:
        ended = await get_rebuild(tx, tenant_id, rebuild_id)
        raise ConflictError(f"the rebuild has ended: it is {ended.status}")
    await record(tx, principal, "graph.cancel", "graph_rebuild", rebuild_id, {}, request_id, tenant_id=row["tenant_id"])
    return rebuild_of(row, datetime.now(UTC))


async def _running(tx: Transaction, tenant_id: UUID) -> dict[str, Any]:
    statement = select(_TABLE.c.id).where(_TABLE.c.tenant_id == tenant_id, _TABLE.c.status.in_(("pending", "running")))
    row = await tx.row(statement)  # it may have ended since
    return {"rebuild_id": str(row["id"])} if row else {}


async def get_rebuild(tx: Transaction, tenant_id: UUID | None, rebuild_id: UUID) -> Rebuild:
    """One rebuild.

    Raises:
        NotFoundError: If there is none in the tenant (None is any, for root).
    """
    row = await tx.row(_of_tenant(select(_TABLE).where(_TABLE.c.id == rebuild_id), tenant_id))
    if row is None:
        raise NotFoundError("there is no such rebuild")
    return rebuild_of(row, datetime.now(UTC))


async def list_rebuilds(tx: Transaction, tenant_id: UUID | None, cursor: str | None, limit: int) -> Page[Rebuild]:
    """Rebuilds of one tenant, or of all for root, newest first, one page at a time."""
    statement = _of_tenant(select(_TABLE), tenant_id)
    rows = await tx.rows(newest_first(statement, _TABLE.c.created_at, _TABLE.c.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    now = datetime.now(UTC)
    return Page([rebuild_of(row, now) for row in page], next_cursor)


def _of_tenant(statement: Select[Any], tenant_id: UUID | None) -> Select[Any]:
    return statement if tenant_id is None else statement.where(_TABLE.c.tenant_id == tenant_id)
