"""Dead events in the mass: how many a filter means, and what they died of."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Select, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from memory_os.outbox.operations import EventFilter, conditions_of  # one meaning of a filter for list, count and retry
from memory_os.storage import tables
from memory_os.storage.database import Transaction

GROUPED = 1000
"""Newest dead events that are grouped: their histories have to be read, and the newest say what is going on."""

_TABLE = tables.outbox_events


class DeadGroup(Struct):
    """Dead events whose last error is of one kind; `error` is the newest of them as an example.

    `fingerprint` is null for events that died without an error of their own, such as those that five workers never came
    back from.
    """

    fingerprint: str | None
    error: str
    events: int
    deletes: int
    first_died: datetime
    last_died: datetime


async def count_dead(tx: Transaction, wanted: EventFilter, most: int) -> int:
    """How many dead events a filter means, counted up to `most`; its status does not matter."""
    inner = _of_tenant(select(_TABLE.c.id), wanted.tenant_id).where(_TABLE.c.status == "dead", *conditions_of(wanted))
    row = await tx.row(select(func.count().label("events")).select_from(inner.limit(most).subquery()))
    return int(row["events"]) if row else 0


async def group_dead(tx: Transaction, tenant_id: UUID | None) -> list[DeadGroup]:
    """What the newest thousand dead events died of, the largest group first.

    Args:
        tx: The unit of work.
        tenant_id: Whose events; None is all tenants', for root.
    """
    columns = _TABLE.c
    # Chosen first and read afterwards: the histories are wide, and only those that are grouped should be read.
    newest = _of_tenant(select(columns.tenant_id, columns.id), tenant_id)
    newest = newest.where(columns.status == "dead").order_by(columns.finished_at.desc(), columns.id.desc())
    chosen = newest.limit(GROUPED).subquery()
    fingerprint = columns.errors[-1]["fingerprint"].astext
    examples = func.array_agg(aggregate_order_by(func.coalesce(columns.last_error, ""), columns.id.desc()))
    rows = await tx.rows(
        select(
            fingerprint.label("fingerprint"),
            examples[1].label("error"),
            func.count().label("events"),
            func.count().filter(columns.event_type == "GRAPH_DELETE").label("deletes"),
            func.min(columns.finished_at).label("first_died"),
            func.max(columns.finished_at).label("last_died"),
        )
        .select_from(_TABLE.join(chosen, (columns.tenant_id == chosen.c.tenant_id) & (columns.id == chosen.c.id)))
        .group_by(fingerprint, func.coalesce(fingerprint, columns.last_error))
        .order_by(func.count().desc(), func.max(columns.finished_at).desc())
    )
    return [DeadGroup(**row) for row in rows]


def _of_tenant(statement: Select[Any], tenant_id: UUID | None) -> Select[Any]:
    return statement if tenant_id is None else statement.where(_TABLE.c.tenant_id == tenant_id)
