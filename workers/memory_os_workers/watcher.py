"""The watcher: notices that the graph server was restarted or came back empty, and that a graph is not its tenant's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from memory_os.domain.ids import new_id
from memory_os.graph.port import GraphUnavailableError
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.projection.graph_states import LOST, RESTARTED, replace
from memory_os.storage.database import Scope, Transaction
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

EVERY_S = 5.0
"""Seconds after which some worker looks again; what a projector or a question meets in between is noticed there."""

PAGE = 500
_NOBODY = UUID(int=0)


async def run(context: WorkerContext) -> None:
    """Look now and then until the worker stops; of all workers, whoever comes first looks."""
    while not context.stopping.is_set():
        if context.breaker.state == "closed":
            try:
                await look(context, every_s=EVERY_S)
            except GraphUnavailableError as error:
                log.info("graphs_not_watched", reason=str(error))
        await context.pause(EVERY_S * context.source.uniform(0.5, 1.0))


async def look(context: WorkerContext, *, every_s: float) -> None:
    """Look at the server and at every graph, unless some worker has done so within `every_s` seconds.

    Raises:
        GraphUnavailableError: The graph does not answer.
    """
    backend = context.backend
    identity = await backend.ping()
    given = {"backend": backend.name, "identity": identity, "every_s": every_s}

    async def meet(tx: Transaction) -> str | None:
        """What is to be looked at: nothing, since somebody has; all graphs; or a server that is another one."""
        rows = await tx.hot("watch_server", given)
        if rows and rows[0]["identity"] == identity:
            return "graphs"
        if not rows and await tx.hot("known_server", given):
            return None
        await tx.touched("meet_server", given)
        if not rows or backend.keeps_writes:
            return "graphs"
        await tx.touched("doubt_graphs", {"reason": RESTARTED})
        return "server"

    met = await context.database.run(Scope(WORKER_ROLE), meet)
    if met == "server":
        log.warning("graph_server_restarted", backend=backend.name)
    if met is not None:
        await _look_at_graphs(context)


async def _look_at_graphs(context: WorkerContext) -> None:
    after = _NOBODY
    while not context.stopping.is_set():
        known = await context.database.run(Scope(WORKER_ROLE), partial(_known, after=after))
        for row in known:
            if await context.backend.epoch(row["tenant_id"]) not in (row["epoch"], row["next_epoch"] or ""):
                await _look_again(context, row["tenant_id"])
            elif row["doubt"] is not None:
                await context.database.run(Scope(WORKER_ROLE, row["tenant_id"]), partial(mend, row=row))
        if len(known) < PAGE:
            return
        after = known[-1]["tenant_id"]


async def mend(tx: Transaction, row: Mapping[str, Any]) -> None:
    """See to it that a graph in doubt is on its way to be right, whatever became of the first job for it."""
    if row["doubt"] == RESTARTED:
        await tx.touched("mend_doubted_graph", {"tenant_id": row["tenant_id"], "id": new_id()})
    else:
        await replace(tx, row["tenant_id"], row["doubt"])


async def _known(tx: Transaction, after: UUID) -> list[dict[str, Any]]:
    return await tx.hot("known_graphs", {"after": after, "page": PAGE})


async def _look_again(context: WorkerContext, tenant_id: UUID) -> None:
    """Ask for a rebuild if the graph is still not the one that should be there: a swap may have come in between."""
    given = {"after": UUID(int=tenant_id.int - 1), "page": 1}
    scope = Scope(WORKER_ROLE, tenant_id)
    known = await context.database.run(scope, lambda tx: tx.hot("known_graphs", given))
    epoch = await context.backend.epoch(tenant_id)
    if known and known[0]["tenant_id"] == tenant_id and epoch not in (known[0]["epoch"], known[0]["next_epoch"] or ""):
        await context.database.run(scope, lambda tx: replace(tx, tenant_id, LOST))
