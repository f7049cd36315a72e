"""`/v1/outbox`: what operators see of the queue, and what they do about dead events."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.params import FromQuery, JSONBody, PathParameter, QueryParameter

from memory_os.admin.events import Discard, Retried, RetryMany, discard_event, retry_event, retry_many
from memory_os.admin.reach import seen_tenant
from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, Answer, Call, etag, parse_if_match
from memory_os.api.parameters import CURSOR, LIMIT, TENANT, Limit
from memory_os.domain.shapes import NO_NUL, Cursor
from memory_os.outbox.events import AggregateType, EventType
from memory_os.outbox.gauges import QueueStats, queue_stats
from memory_os.outbox.operations import Event, EventFilter, Status, get_event, list_events
from memory_os.storage.pages import Page

_ERROR = QueryParameter(
    min_length=1, max_length=200, pattern=NO_NUL, description="A part of the last error's text, or its fingerprint."
)
_OPERATE = {"permission": "operate"}
EventId = Annotated[int, PathParameter(ge=1, le=2**63 - 1)]
"""The routes call it a text, since Litestar reads integers in paths with `int()`, which takes `1_0` and any digits."""


class OutboxController(Controller):
    """The outbox of the own tenant; root sees all tenants', or the one that it names in `tenant_id`."""

    path = "/v1/outbox"
    tags = ["outbox"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/stats", operation_id="outboxStats", opt=_OPERATE, summary="How the queue stands")
    async def stats(self, call: Call, tenant_id: Annotated[UUID | None, TENANT] = None) -> QueueStats:
        """Counts by status, the age of the oldest due event, and the workers with their heartbeats."""
        tenant = seen_tenant(call.principal, tenant_id)
        return await call.read(lambda tx: queue_stats(tx, tenant))

    @get("/events", operation_id="listEvents", opt=_OPERATE, summary="List events, dead ones first, newest first")
    async def list_all(
        self,
        call: Call,
        status: FromQuery[Status | None] = None,
        event_type: FromQuery[EventType | None] = None,
        aggregate_type: FromQuery[AggregateType | None] = None,
        aggregate_id: FromQuery[UUID | None] = None,
        error: Annotated[str | None, _ERROR] = None,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Event]:
        """List events without their tracebacks."""
        tenant = seen_tenant(call.principal, tenant_id)
        wanted = EventFilter(tenant, status, event_type, aggregate_type, aggregate_id, error)
        return await call.read(lambda tx: list_events(tx, wanted, cursor, limit))

    @get("/events/{event_id:str}", operation_id="getEvent", opt=_OPERATE, summary="Read an event")
    async def get_one(
        self, event_id: EventId, call: Call, tenant_id: Annotated[UUID | None, TENANT] = None
    ) -> Response[Event]:
        """Read one event with every failed attempt; the ETag stands for its present state."""
        tenant = seen_tenant(call.principal, tenant_id)
        event = await call.read(lambda tx: get_event(tx, tenant, event_id))
        return Answer(event, headers=etag(event.revision)).response()

    @post(
        "/events/{event_id:str}/retry",
        operation_id="retryEvent",
        opt=_OPERATE,
        status_code=200,
        summary="Retry a dead or discarded event",
    )
    async def retry(
        self,
        event_id: EventId,
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        if_match: Annotated[str | None, IF_MATCH] = None,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[Event]:
        """Make it pending and due now, with five attempts before it; the history of its errors stays."""
        tenant, revision = seen_tenant(call.principal, tenant_id), parse_if_match(if_match)

        async def work(tx: Any) -> Answer[Event]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            event = await retry_event(tx, call.principal, tenant, event_id, revision, call.request_id)
            return Answer(event, headers=etag(event.revision))

        return await call.write(work)

    @post(
        "/events/{event_id:str}/discard",
        operation_id="discardEvent",
        opt=_OPERATE,
        status_code=200,
        summary="Discard a dead event",
    )
    async def discard(
        self,
        event_id: EventId,
        data: JSONBody[Discard],
        call: Call,
        tenant_id: Annotated[UUID | None, TENANT] = None,
        if_match: Annotated[str | None, IF_MATCH] = None,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[Event]:
        """Give it up for a reason. The graph stays as it is until the record changes again, or is rebuilt."""
        tenant, revision = seen_tenant(call.principal, tenant_id), parse_if_match(if_match)

        async def work(tx: Any) -> Answer[Event]:  # noqa: ANN401 - as above
            event = await discard_event(tx, call.principal, tenant, event_id, data, revision, call.request_id)
            return Answer(event, headers=etag(event.revision))

        return await call.write(work)

    @post("/retry", operation_id="retryEvents", opt=_OPERATE, status_code=200, summary="Retry many dead events")
    async def retry_all(
        self, data: JSONBody[RetryMany], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[Retried]:
        """Retry the dead events that the filter names, oldest first, at most `limit`."""

        async def work(tx: Any) -> Answer[Retried]:  # noqa: ANN401 - as above
            return Answer(await retry_many(tx, call.principal, data, call.request_id))

        return await call.write(work)
