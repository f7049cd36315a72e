"""What operators do about events: retry, discard, retry many; each act is in the audit log of the event's tenant."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from memory_os.admin.audit import record
from memory_os.admin.reach import seen_tenant
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import NO_NUL, Key, check_text
from memory_os.errors import ConflictError, FieldError, InvalidInputError, PreconditionFailedError
from memory_os.outbox.events import AggregateType, EventType
from memory_os.outbox.operations import Event, EventFilter, get_event, revive, revive_dead, set_aside
from memory_os.storage.database import Transaction

MOST_RETRIED = 1000
"""Events of one bulk retry: few enough for one short transaction; call again for more."""


class Discard(Struct, forbid_unknown_fields=True):
    """Why an event is given up."""

    reason: Annotated[str, Meta(min_length=1, max_length=2000, pattern=NO_NUL)]


class RetryMany(Struct, forbid_unknown_fields=True):
    """Which dead events to retry, oldest first. Root may name the tenant; without it, it means all."""

    status: Literal["dead"]
    event_type: EventType | None = None
    aggregate_type: AggregateType | None = None
    error_class: Key | None = None
    tenant_id: UUID | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_RETRIED)] = MOST_RETRIED


class Retried(Struct):
    """How many events are pending again."""

    retried: int


def actor(principal: Principal) -> str:
    """Who acts, as one text for a column: the user if there is one, else the token."""
    return principal.user_id or f"token {principal.token_id}"


async def retry_event(
    tx: Transaction,
    principal: Principal,
    tenant_id: UUID | None,
    event_id: int,
    if_match: int | None,
    request_id: str | None,
) -> Event:
    """Make a dead or discarded event pending again, with all its attempts before it.

    Args:
        tx: The unit of work.
        principal: Who acts.
        tenant_id: The event's tenant; None is any, for root.
        event_id: Which event.
        if_match: The revision that the operator saw.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If there is no such event.
        PreconditionFailedError: If it has changed since the operator saw it.
        ConflictError: If it is neither dead nor discarded.
    """
    event = await _settled(tx, tenant_id, event_id, if_match, ("dead", "discarded"), "retried")
    revived = await revive(tx, event)
    told = ("attempts", "last_error", "aggregate_id")
    detail = {"was": event.status, **{name: getattr(event, name) for name in told}}
    await record(tx, principal, "outbox.retry", "outbox_event", event.id, detail, request_id, tenant_id=event.tenant_id)
    return revived


async def discard_event(
    tx: Transaction,
    principal: Principal,
    tenant_id: UUID | None,
    event_id: int,
    discard: Discard,
    if_match: int | None,
    request_id: str | None,
) -> Event:
    """Give a dead event up; the graph stays as it is. See `retry_event` for the arguments.

    Raises:
        InvalidInputError: If the reason is blank.
        NotFoundError, PreconditionFailedError: As `retry_event`.
        ConflictError: If it is not dead.
    """
    fault = check_text(discard.reason) or (None if discard.reason.strip() else "must not be blank")
    if fault:
        raise InvalidInputError("an event is only discarded for a reason", errors=[FieldError("/reason", fault)])
    event = await _settled(tx, tenant_id, event_id, if_match, ("dead",), "discarded")
    discarded = await set_aside(tx, event, discard.reason.strip(), actor(principal))
    # The aggregate is named so that the words can be erased with it, even when the event itself is pruned.
    detail = {
        "reason": discarded.discard_reason,
        "last_error": event.last_error,
        "aggregate_id": event.aggregate_id,
    }
    await record(
        tx, principal, "outbox.discard", "outbox_event", event.id, detail, request_id, tenant_id=event.tenant_id
    )
    return discarded


async def _settled(
    tx: Transaction,
    tenant_id: UUID | None,
    event_id: int,
    if_match: int | None,
    allowed: tuple[str, ...],
    participle: str,
) -> Event:
    event = await get_event(tx, tenant_id, event_id, lock=True)
    if if_match is not None and if_match != event.revision:
        raise PreconditionFailedError("the event has changed meanwhile: read it again")
    if event.status not in allowed:
        raise ConflictError(
            f"the event is {event.status}: only {' and '.join(allowed)} events are {participle}",
            extra={"event_status": event.status},
        )
    return event


async def retry_many(tx: Transaction, principal: Principal, wanted: RetryMany, request_id: str | None) -> Retried:
    """Make dead events pending again, with one audit entry in the log of each tenant that had some.

    Raises:
        PermissionDeniedError: If anybody but root names another tenant.
    """
    tenant_id = seen_tenant(principal, wanted.tenant_id)
    narrowed = EventFilter(tenant_id, event_type=wanted.event_type, aggregate_type=wanted.aggregate_type)
    revived = await revive_dead(tx, narrowed, wanted.error_class, wanted.limit)
    by_tenant: dict[UUID, list[int]] = defaultdict(list)
    for owner, event_id in revived:
        by_tenant[owner].append(event_id)
    for owner, ids in by_tenant.items():
        filters = {name: getattr(wanted, name) for name in ("event_type", "aggregate_type", "error_class")}
        detail = {"events": ids, **filters}
        target = f"{len(ids)} events"
        await record(tx, principal, "outbox.retry_many", "outbox_event", target, detail, request_id, tenant_id=owner)
    return Retried(len(revived))
