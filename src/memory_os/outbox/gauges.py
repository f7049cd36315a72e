"""How the queue stands: counts by status, ages, workers, and how far a tenant's graph lags behind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct, field
from sqlalchemy import ColumnElement, Select, case, func, literal, select, union_all

from memory_os.outbox.events import DELETE, UPSERT
from memory_os.storage import tables
from memory_os.storage.database import Transaction

COUNT_CAP = 100_000
"""Events counted of one status at most: a larger number tells an operator nothing more, and the page stays quick."""

LOST_S = 60
"""A worker that has not been seen for these seconds is lost, as in `worker_gauges.sql`."""

_EVENTS = tables.outbox_events
_WORKERS = tables.workers
_LIVE = ("pending", "leased", "dead")


class TypeCounts(Struct):
    """Events of one type by status."""

    pending: int = 0
    leased: int = 0
    dead: int = 0


class WorkerState(Struct):
    """A worker as its last heartbeat described it; `state` is `lost` when that is too long ago."""

    id: UUID
    host: str
    pid: int
    version: str
    state: str
    breaker: str
    breaker_reason: str | None
    started_at: datetime
    last_seen: datetime
    seconds_since_seen: float
    done: int
    failed: int
    stale_acks: int


class QueueStats(Struct):
    """How the queue stands. Counts end at 100,000 a status; `capped` says that one of them did.

    `dead_deletes` counts dead `GRAPH_DELETE` events apart: as long as there is one, the graph holds what was deleted.
    `oldest_due_seconds` is how long the oldest due event has been due; 0 when none is.
    """

    pending: int
    leased: int
    dead: int
    dead_deletes: int
    discarded: int
    done_last_hour: int
    oldest_due_seconds: float
    capped: bool
    by_event_type: dict[str, TypeCounts]
    workers: list[WorkerState] = field(default_factory=list)


class Lag(Struct):
    """How far a tenant's graph is behind: events still to project, the age of the oldest in seconds, and the position.

    Everything up to `position` has been dealt with: projected, or parked as dead or discarded.
    """

    events: int
    seconds: float
    position: int


async def queue_stats(tx: Transaction, tenant_id: UUID | None) -> QueueStats:
    """Count one tenant's events, or all tenants' for root, and list the workers, which serve all of them."""
    columns = _EVENTS.c
    mine: list[ColumnElement[bool]] = [] if tenant_id is None else [columns.tenant_id == tenant_id]
    hour_ago = func.now() - func.make_interval(0, 0, 0, 0, 1)
    parts = [_capped(status, columns.status == status, *mine) for status in (*_LIVE, "discarded")]
    parts.append(_capped("done", columns.status == "done", columns.finished_at > hour_ago, *mine))
    events = union_all(*parts).subquery()
    counted = await tx.rows(
        select(events.c.status, events.c.event_type, func.count().label("events")).group_by(
            events.c.status, events.c.event_type
        )
    )
    totals: dict[str, int] = {}
    types = {UPSERT: TypeCounts(), DELETE: TypeCounts()}
    for row in counted:
        totals[row["status"]] = totals.get(row["status"], 0) + row["events"]
        if row["status"] in _LIVE:
            setattr(types[row["event_type"]], row["status"], row["events"])
    due = select(func.extract("epoch", func.clock_timestamp() - func.min(columns.available_at)).label("seconds"))
    oldest = await tx.row(due.where(columns.status == "pending", columns.available_at <= func.now(), *mine))
    return QueueStats(
        pending=totals.get("pending", 0),
        leased=totals.get("leased", 0),
        dead=totals.get("dead", 0),
        dead_deletes=types[DELETE].dead,
        discarded=totals.get("discarded", 0),
        done_last_hour=totals.get("done", 0),
        oldest_due_seconds=_seconds(oldest),
        capped=any(count >= COUNT_CAP for count in totals.values()),
        by_event_type={str(name): counts for name, counts in types.items()},
        workers=await list_workers(tx),
    )


def _capped(name: str, *conditions: ColumnElement[bool]) -> Select[Any]:
    inner = select(_EVENTS.c.event_type).where(*conditions).limit(COUNT_CAP).subquery()
    return select(literal(name).label("status"), inner.c.event_type)


async def list_workers(tx: Transaction) -> list[WorkerState]:
    """The workers that have not said goodbye, most recently seen first."""
    columns = _WORKERS.c
    seconds = func.extract("epoch", func.now() - columns.last_seen)
    state = case((seconds > LOST_S, "lost"), else_=columns.state).label("shown_state")
    rows = await tx.rows(
        select(_WORKERS, state, seconds.label("seconds"))
        .where(columns.state != "stopped")
        .order_by(columns.last_seen.desc(), columns.id)
        .limit(200)
    )
    return [_worker_of(row) for row in rows]


def _worker_of(row: Mapping[Any, Any]) -> WorkerState:
    names = ("id", "host", "pid", "version", "breaker", "breaker_reason", "started_at", "last_seen", "done", "failed")
    copied = {name: row[name] for name in names}
    return WorkerState(
        **copied, state=row["shown_state"], seconds_since_seen=_seconds(row), stale_acks=row["stale_acks"]
    )


async def graph_lag(tx: Transaction, tenant_id: UUID) -> Lag:
    """How far one tenant's graph is behind its canonical rows."""
    columns = _EVENTS.c
    age = func.extract("epoch", func.clock_timestamp() - func.min(columns.created_at)).label("seconds")
    live = await tx.row(
        select(func.count().label("events"), age, func.min(columns.id).label("first")).where(
            columns.tenant_id == tenant_id, columns.status.in_(("pending", "leased"))
        )
    )
    if live is not None and live["first"] is not None:
        return Lag(live["events"], _seconds(live), live["first"] - 1)
    last = await tx.row(select(func.max(columns.id).label("last")).where(columns.tenant_id == tenant_id))
    return Lag(0, 0.0, (last["last"] if last else None) or 0)


def _seconds(row: Mapping[Any, Any] | None) -> float:
    value = row["seconds"] if row else None
    return round(max(float(value), 0.0), 3) if value is not None else 0.0
