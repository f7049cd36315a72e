"""How fast events are being projected just now."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, select

from memory_os.storage import tables
from memory_os.storage.database import Transaction

WINDOW_S = 10
"""Long enough that a batch every second shows as a steady figure, short enough to see the projection stop."""


async def projected_per_second(tx: Transaction, tenant_id: UUID | None) -> float:
    """Events that became done within the last ten seconds, by the second; None is all tenants', for root."""
    columns = tables.outbox_events.c
    since = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, WINDOW_S)  # not clock_timestamp(): no index serves that
    statement = select(func.count().label("events")).where(columns.status == "done", columns.finished_at > since)
    if tenant_id is not None:
        statement = statement.where(columns.tenant_id == tenant_id)
    row = await tx.row(statement)
    return int(row["events"]) / WINDOW_S if row else 0.0
