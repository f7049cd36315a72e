"""Outbox events as operators see them: lists, one, and the two ways back out of `dead`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct, field
from sqlalchemy import ColumnElement, Select, func, or_, select, true, update

from memory_os.errors import FieldError, InvalidInputError, NotFoundError
from memory_os.outbox.events import CHANNEL, AggregateType, EventType
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut

Status = Literal["pending", "leased", "done", "dead", "discarded"]

_TABLE = tables.outbox_events
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventError(Struct, omit_defaults=True):
    """One failed attempt. `fingerprint` is the same for errors of one kind, whatever ids and numbers they name."""

    at: str
    error_class: str = field(name="class")
    message: str
    fingerprint: str
    worker: str
    traceback: str | None = None


class Event(Struct):
    """An outbox event. `revision` is what its ETag names: it changes whenever the event's state does."""

    id: int
    tenant_id: UUID
    event_type: str
    aggregate_type: str
    aggregate_id: UUID
    version: int
    payload: dict[str, Any]
    status: Status
    attempts: int
    available_at: datetime
    lease_until: datetime | None
    last_error: str | None
    errors: list[EventError]
    superseded_by: int | None
    discard_reason: str | None
    discarded_by: str | None
    request_id: str | None
    created_at: datetime
    finished_at: datetime | None
    revision: int


@dataclass(frozen=True, slots=True)
class EventFilter:
    """What a list is narrowed to; None leaves a field alone. `tenant_id` None is all tenants, for root.

    `error` is a part of the last error's text, or its fingerprint.
    """

    tenant_id: UUID | None = None
    status: Status | None = None
    event_type: EventType | None = None
    aggregate_type: AggregateType | None = None
    aggregate_id: UUID | None = None
    error: str | None = None


def event_of(row: Mapping[Any, Any], *, traces: bool) -> Event:
    """A row of `outbox_events`; lists leave the tracebacks out."""
    errors = [
        EventError(
            at=str(entry.get("at", "")),
            error_class=str(entry.get("class", "")),
            message=str(entry.get("message", "")),
            fingerprint=str(entry.get("fingerprint", "")),
            worker=str(entry.get("worker", "")),
            traceback=entry.get("traceback") if traces else None,
        )
        for entry in row["errors"]
    ]
    copied = {name: row[name] for name in Event.__struct_fields__ if name not in ("errors", "revision")}
    return Event(**copied, errors=errors, revision=_revision(row))


def _revision(row: Mapping[Any, Any]) -> int:
    """The moment that the present state was entered, as microseconds since 1970.

    Attempts would not do: an event that is retried and dies again has as many as before.
    """
    moment: datetime = row["finished_at"] or row["lease_until"] or row["available_at"]
    return (moment - _EPOCH) // timedelta(microseconds=1)


async def get_event(tx: Transaction, tenant_id: UUID | None, event_id: int, *, lock: bool = False) -> Event:
    """One event with its tracebacks; `lock` keeps workers and others from changing it meanwhile.

    Raises:
        NotFoundError: If there is no such event in the tenant (None is any, for root).
    """
    statement = _of_tenant(select(_TABLE).where(_TABLE.c.id == event_id), tenant_id)
    row = await tx.row(statement.with_for_update() if lock else statement)
    if row is None:
        raise NotFoundError("there is no such event")
    return event_of(row, traces=True)


async def list_events(tx: Transaction, wanted: EventFilter, cursor: str | None, limit: int) -> Page[Event]:
    """Events, newest first, one page at a time; without a status in the filter the dead ones come first of all."""
    statuses = _TABLE.c.status
    sections: list[ColumnElement[bool]] = (
        [statuses == wanted.status] if wanted.status else [statuses == "dead", statuses != "dead"]
    )
    first, before = _decode(cursor, len(sections)) if cursor is not None else (0, None)
    rows: list[tuple[int, Mapping[Any, Any]]] = []
    for number in range(first, len(sections)):
        statement = _page(wanted, sections[number], before, limit + 1 - len(rows))
        rows += [(number, row) for row in await tx.rows(statement)]
        before = None
        if len(rows) > limit:
            break
    page, next_cursor = cut(rows, limit, lambda last: _encode(last[0], last[1]["id"]))
    return Page([event_of(row, traces=False) for _, row in page], next_cursor)


def _page(wanted: EventFilter, section: ColumnElement[bool], before: int | None, rows: int) -> Select[Any]:
    conditions = [section, *conditions_of(wanted)]
    if before is not None:
        conditions.append(_TABLE.c.id < before)
    statement = select(_TABLE).where(*conditions).order_by(_TABLE.c.id.desc()).limit(rows)
    if wanted.tenant_id is not None:
        return statement.where(_TABLE.c.tenant_id == wanted.tenant_id)
    # Every index begins with the tenant, so take each tenant's newest and merge them.
    page = statement.where(_TABLE.c.tenant_id == tables.tenants.c.tenant_id).lateral("page")
    merged = select(page).select_from(tables.tenants.join(page, true()))
    return merged.order_by(page.c.id.desc()).limit(rows)


def conditions_of(wanted: EventFilter) -> list[ColumnElement[bool]]:
    """What a filter means, for lists, counts and bulk acts alike; the status is the caller's."""
    columns = _TABLE.c
    conditions: list[ColumnElement[bool]] = [
        columns[name] == value
        for name in ("event_type", "aggregate_type", "aggregate_id")
        if (value := getattr(wanted, name)) is not None
    ]
    if wanted.error is not None:
        fingerprint = columns.errors[-1]["fingerprint"].astext
        conditions.append(or_(columns.last_error.icontains(wanted.error, autoescape=True), fingerprint == wanted.error))
    return conditions


def _of_tenant(statement: Select[Any], tenant_id: UUID | None) -> Select[Any]:
    return statement if tenant_id is None else statement.where(_TABLE.c.tenant_id == tenant_id)


def _encode(section: int, event_id: int) -> str:
    return base64.urlsafe_b64encode(f"{section}|{event_id}".encode()).decode().rstrip("=")


def _decode(cursor: str, sections: int) -> tuple[int, int]:
    try:
        parts = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").split("|")
        section, event_id = (int(part) for part in parts)
    except (binascii.Error, ValueError, UnicodeError):
        section, event_id = -1, -1
    if not (0 <= section < sections and 0 <= event_id < 2**63):
        raise InvalidInputError(
            "the cursor is not one that this list gave out", errors=[FieldError("/cursor", "unknown cursor")]
        )
    return section, event_id


_REVIVED = {
    "status": "pending",
    "attempts": 0,
    "available_at": func.clock_timestamp(),
    "finished_at": None,
    "discard_reason": None,
    "discarded_by": None,
}
"""A retried event starts over; the history of its errors stays."""


async def revive(tx: Transaction, event: Event) -> Event:
    """Make an event that the caller has locked pending again, due now, and wake the workers."""
    changed = await tx.row(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == event.tenant_id, _TABLE.c.id == event.id)
        .values(_REVIVED)
        .returning(_TABLE)
    )
    await wake_workers(tx)
    return _still_there(changed)


async def revive_dead(
    tx: Transaction, wanted: EventFilter, error_class: str | None, limit: int
) -> Sequence[tuple[UUID, int]]:
    """Make dead events pending again, oldest first; those that somebody else is about to change are passed over.

    Args:
        tx: The unit of work.
        wanted: Which of them; its status does not matter.
        error_class: Only those whose last error is of this class.
        limit: How many at most.

    Returns:
        Tenant and id of each.
    """
    columns = _TABLE.c
    chosen = _of_tenant(select(columns.tenant_id, columns.id), wanted.tenant_id)
    chosen = chosen.where(columns.status == "dead", *conditions_of(wanted))
    if error_class is not None:
        chosen = chosen.where(func.split_part(columns.last_error, ":", 1) == error_class)
    locked = chosen.order_by(columns.id).limit(limit).with_for_update(skip_locked=True).cte("chosen")
    rows = await tx.rows(
        update(_TABLE)
        .where(columns.tenant_id == locked.c.tenant_id, columns.id == locked.c.id)
        .values(_REVIVED)
        .returning(columns.tenant_id, columns.id)
    )
    if rows:
        await wake_workers(tx)
    return sorted((row["tenant_id"], row["id"]) for row in rows)


async def set_aside(tx: Transaction, event: Event, reason: str, who: str) -> Event:
    """Discard an event that the caller has locked: it is out of the way, and can be retried until it is pruned."""
    changed = await tx.row(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == event.tenant_id, _TABLE.c.id == event.id)
        .values(status="discarded", discard_reason=reason, discarded_by=who, finished_at=func.clock_timestamp())
        .returning(_TABLE)
    )
    return _still_there(changed)


async def wake_workers(tx: Transaction) -> None:
    """Tell the workers, when this transaction commits, that there is work."""
    await tx.run(select(func.pg_notify(CHANNEL, "")))


def _still_there(row: Mapping[Any, Any] | None) -> Event:
    if row is None:
        raise AssertionError("a locked row can't be gone")
    return event_of(row, traces=True)
