"""The overview: is it healthy, in one look, and kept up to date by server-sent events."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from litestar import Response, get
from litestar.response import ServerSentEvent, ServerSentEventMessage

from memory_os.admin.health import graph_state
from memory_os.admin.reach import seen_tenant
from memory_os.outbox.gauges import QueueStats, queue_stats
from memory_os.outbox.pace import projected_per_second
from memory_os.projection.graph_states import GraphCondition, wanting_graphs
from memory_os.storage.database import Transaction, is_connection_loss
from memory_os_console.health import alarm, judge, judge_graphs
from memory_os_console.tenants import tenant_names
from memory_os_console.visits import ActiveVisit, Visit

EVERY_S: Final = 2.0
SLOWEST_S: Final = 10.0
STREAM_S: Final = 300.0
"""A stream ends after five minutes and the browser opens a new one, so that a half-dead connection does not linger."""

_RETRY_MS: Final = 2000
_GRAPHS: Final = 5
"""Graphs in doubt or with differences that are named; the others are counted."""


@get("/", name="console.overview")
async def show_overview(visit: Visit) -> Response[str]:
    """The overview as a page."""
    return visit.page("overview.html", **await _state(visit))


@get("/live", opt={"fragment": True}, name="console.live")
async def stream_overview(visit: Visit) -> ServerSentEvent:
    """The overview's figures every two seconds, as HTML, until the session is over or the database away."""
    return ServerSentEvent(_stream(visit))


async def _stream(visit: ActiveVisit) -> AsyncIterator[ServerSentEventMessage]:
    clock = asyncio.get_running_loop().time
    until, wait = clock() + STREAM_S, EVERY_S
    yield ServerSentEventMessage(comment="the overview", data=None, retry=_RETRY_MS)
    while clock() < until:
        if await _is_stopping(visit.console.stopping, wait):
            return
        started = clock()
        message = await _next_message(visit)
        # A queue that is slow to count is in trouble enough: looking at it should take a tenth of the time, not more.
        wait = min(max(EVERY_S, 9 * (clock() - started)), SLOWEST_S)
        yield message
        if message.event != "figures":
            return


async def _next_message(visit: ActiveVisit) -> ServerSentEventMessage:
    """The figures as they are now, or why there are none: the page then asks for itself, and says how old it is."""
    try:
        if await visit.console.sessions.principal(visit.services.database, visit.session) is None:
            return ServerSentEventMessage(event="ended", data="log in again")
        html = visit.console.pages.render("_figures.html", visit=visit, **await _state(visit))
    except Exception as error:
        if not is_connection_loss(error):
            raise
        return ServerSentEventMessage(event="away", data="the database does not answer")
    return ServerSentEventMessage(event="figures", data=html)


async def _is_stopping(stopping: asyncio.Event, wait_s: float) -> bool:
    """Wait for the next update, or for the stop if that comes first."""
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await stopping.wait()
    return stopping.is_set()


async def _state(visit: ActiveVisit) -> dict[str, Any]:
    tenant_id = seen_tenant(visit.principal, None)

    async def read(tx: Transaction) -> tuple[QueueStats, float, tuple[list[GraphCondition], int], list[dict[str, Any]]]:
        stats = await queue_stats(tx, tenant_id)
        pace = await projected_per_second(tx, tenant_id)
        wanting = await wanting_graphs(tx, tenant_id, _GRAPHS)
        return stats, pace, wanting, await tx.hot("outbox_gauges") if visit.is_root else []

    (stats, pace, (wanting, count), gauges), graph = await asyncio.gather(
        visit.read(read), graph_state(visit.services.graph)
    )
    names = await tenant_names(visit) if gauges or wanting else {}
    now = datetime.now(UTC)
    graphs = judge_graphs(wanting, count, now, names if visit.is_root else None)
    return {
        "stats": stats,
        "pace": pace,
        "graph": graph,
        "alarm": alarm(stats),
        "findings": judge(stats, graph, visit.services.settings.outbox_ready_max_age_s, graphs),
        "tenants": _by_tenant(names, gauges),
        "now": now,
    }


def _by_tenant(names: Mapping[UUID, str], gauges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is in the queue by tenant, those with dead events and then the longest queues first."""
    rows: dict[UUID, dict[str, Any]] = defaultdict(lambda: {"pending": 0, "leased": 0, "dead": 0, "oldest": 0.0})
    for gauge in gauges:
        row = rows[gauge["tenant_id"]]
        row[gauge["status"]] = gauge["events"]
        if gauge["status"] != "dead":
            row["oldest"] = max(row["oldest"], float(gauge["oldest_seconds"]))
    shown = [{"id": ident, "name": names.get(ident, ""), **row} for ident, row in rows.items()]
    return sorted(shown, key=lambda row: (-row["dead"], -row["pending"] - row["leased"], row["name"]))
