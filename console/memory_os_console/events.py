"""Events: the list, dead ones first, and the page of one with what can be done about it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from litestar import Response, get, post
from litestar.params import FromPath

from memory_os.admin.canonical import CanonicalRecord, find_canonical
from memory_os.admin.events import Discard, discard_event, retry_event
from memory_os.admin.reach import seen_tenant
from memory_os.errors import ConflictError, InvalidInputError, NotFoundError, PreconditionFailedError
from memory_os.graph.port import GraphError
from memory_os.outbox.dead import GROUPED, DeadGroup, group_dead
from memory_os.outbox.events import MAX_ATTEMPTS
from memory_os.outbox.operations import Event, get_event, list_events
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page
from memory_os_console.filters import AGGREGATE_TYPES, EVENT_TYPES, STATUSES, parse_event_query
from memory_os_console.rendering import PATH
from memory_os_console.tenants import tenant_names
from memory_os_console.visits import ActiveVisit, Visit

ON_A_PAGE: Final = 50
_REASON_CHARS: Final = 2000
_GRAPH_S: Final = 1.0
_LARGEST_ID: Final = 2**63


@get("/events", name="console.events")
async def show_events(visit: Visit) -> Response[str]:
    """The list, with what the dead ones died of above it."""
    query = parse_event_query(visit.request.query_params, visit.principal)
    grouped = query.wanted.status in (None, "dead") and query.given.keys() <= {"status", "tenant_id"}

    async def read(tx: Transaction) -> tuple[Page[Event], list[DeadGroup]]:
        groups = await group_dead(tx, query.wanted.tenant_id) if grouped else []
        return await list_events(tx, query.wanted, query.cursor, ON_A_PAGE), groups

    page, groups = await visit.read(read)
    return visit.page(
        "events.html",
        query=query,
        events=page.items,
        next_cursor=page.next_cursor,
        groups=groups,
        grouped_most=GROUPED,
        tenants=await tenant_names(visit),
        words={"status": STATUSES, "event_type": EVENT_TYPES, "aggregate_type": AGGREGATE_TYPES},
    )


@get("/events/{event:path}", name="console.event")
async def show_event(visit: Visit, event: FromPath[str]) -> Response[str]:
    """One event: payload, attempts, the record as it is now, and what can be done."""
    return await _page_of(visit, _number(event))


@post("/events/{event:path}", name="console.act_on_event", opt={"permission": ("operate",)})
async def act_on_event(visit: Visit, event: FromPath[str]) -> Response[Any]:
    """Retry or discard, unless the event has changed since its page was shown."""
    number, form = _number(event), await visit.form()
    tenant_id, reason = seen_tenant(visit.principal, None), form.get("reason", "")
    revision = int(form["revision"]) if form.get("revision", "").isdecimal() else -1
    discards = form.get("action") == "discard"

    async def act(tx: Transaction) -> Event:
        who, asked = visit.principal, visit.request_id
        if discards:
            return await discard_event(tx, who, tenant_id, number, Discard(reason), revision, asked)
        return await retry_event(tx, who, tenant_id, number, revision, asked)

    if form.get("action") not in ("retry", "discard"):
        raise InvalidInputError("an event can be retried or discarded")
    if discards and len(reason) > _REASON_CHARS:
        return await _page_of(visit, number, status=422, fault=f"The reason is longer than {_REASON_CHARS} characters.")
    try:
        done = await visit.read(act)
    except InvalidInputError:
        return await _page_of(visit, number, status=422, fault="An event is only discarded for a reason: say it.")
    except (PreconditionFailedError, ConflictError):
        return await _page_of(visit, number, status=409, fault=_changed(form.get("status", "")))
    verb = "discarded" if discards else "pending again; a worker takes it within seconds"
    return visit.leave(f"{PATH}/events/{done.id}", f"Event {done.id} is {verb}.")


def _number(event: str) -> int:
    digits = event.strip("/")
    if not (digits.isascii() and digits.isdecimal() and 0 < int(digits[:20]) < _LARGEST_ID):
        raise NotFoundError("there is no such event")
    return int(digits)


def _changed(seen: str) -> str:
    was = f", when it was {seen}" if seen.isalpha() else ""
    return f"Nothing was done: the event has changed since you opened it{was}. This is how it stands now."


async def _page_of(visit: ActiveVisit, number: int, status: int = 200, fault: str = "") -> Response[str]:
    tenant_id = seen_tenant(visit.principal, None)
    event = await visit.read(lambda tx: get_event(tx, tenant_id, number))
    record, in_graph = await asyncio.gather(_record(visit, event), _in_graph(visit, event))
    return visit.page(
        "event.html",
        status=status,
        event=event,
        record=record,
        in_graph=in_graph,
        tenants=await tenant_names(visit),
        fault=fault,
        most_attempts=MAX_ATTEMPTS,
        reason_chars=_REASON_CHARS,
    )


async def _record(visit: ActiveVisit, event: Event) -> CanonicalRecord | None:
    """The record of an event as this operator may see it. Root, who reads no tenant's records, gets no content."""
    record = await visit.read_in(
        event.tenant_id, lambda tx: find_canonical(tx, event.aggregate_type, event.aggregate_id)
    )
    if record is not None and not visit.may("read"):
        return CanonicalRecord(record.facts, {})
    return record


async def _in_graph(visit: ActiveVisit, event: Event) -> str:
    """What the graph holds of the record, in a sentence."""
    graph = visit.services.graph
    if graph is None:
        return "Graph memory is off."
    if event.aggregate_type != "memory":
        return ""
    try:
        async with asyncio.timeout(_GRAPH_S):
            found = await graph.backend.mentioned_entities(event.tenant_id, [str(event.aggregate_id)])
    except (GraphError, TimeoutError):
        return "The graph does not answer now."
    entities = found.get(str(event.aggregate_id))
    if entities is None:
        return "The graph does not hold this memory."
    return f"The graph holds this memory, with mentions of {len(entities)} entities."
