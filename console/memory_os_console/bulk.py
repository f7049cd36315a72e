"""Retrying all dead events of a filter: first how many they are, then, once confirmed, those."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from litestar import Response, get, post

from memory_os.admin.dead_events import retry_matching
from memory_os.admin.events import MOST_RETRIED
from memory_os.errors import InvalidInputError
from memory_os.outbox.dead import count_dead
from memory_os.outbox.operations import Event, list_events
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page
from memory_os_console.filters import EventQuery, parse_event_query
from memory_os_console.rendering import PATH
from memory_os_console.sessions import CSRF_FIELD
from memory_os_console.tenants import tenant_names
from memory_os_console.visits import Visit

_EXAMPLES = 10


@get("/events/retry", name="console.confirm_retry", opt={"permission": ("operate",)})
async def confirm_retry(visit: Visit) -> Response[str]:
    """How many events would be retried, with the newest of them as examples."""
    query = _dead_only(parse_event_query(visit.request.query_params, visit.principal))

    async def read(tx: Transaction) -> tuple[int, Page[Event]]:
        count = await count_dead(tx, query.wanted, MOST_RETRIED + 1)
        return count, await list_events(tx, query.wanted, None, _EXAMPLES)

    count, page = await visit.read(read)
    return visit.page(
        "retry.html",
        query=query,
        count=min(count, MOST_RETRIED),
        more=count > MOST_RETRIED,
        events=page.items,
        tenants=await tenant_names(visit),
    )


@post("/events/retry", name="console.retry_events", opt={"permission": ("operate",)})
async def retry_events(visit: Visit) -> Response[Any]:
    """Retry as many as were confirmed, oldest first."""
    form = dict(await visit.form())
    form.pop(CSRF_FIELD, None)
    confirmed = form.pop("confirmed", "")
    if not (confirmed.isascii() and confirmed.isdecimal() and 0 < int(confirmed[:9]) <= MOST_RETRIED):
        raise InvalidInputError(f"between 1 and {MOST_RETRIED} events are retried at once")
    query = _dead_only(parse_event_query(form, visit.principal))
    count = int(confirmed)
    retried = await visit.read(lambda tx: retry_matching(tx, visit.principal, query.wanted, count, visit.request_id))
    notice = f"{_events(retried)} pending again; workers take them within seconds."
    if retried < count:
        notice = (
            f"{_events(retried)} pending again; the others of the {count} had changed meanwhile and were left alone."
        )
    return visit.leave(f"{PATH}/events{query.query(status=None)}", notice)


def _dead_only(query: EventQuery) -> EventQuery:
    """Only dead events are retried in bulk, whatever else the list shows."""
    given = {name: value for name, value in query.given.items() if name != "cursor"}
    return EventQuery(replace(query.wanted, status="dead"), None, {**given, "status": "dead"})


def _events(count: int) -> str:
    return "1 event is" if count == 1 else f"{count:,} events are"
