"""`memory-os graph`: comparing, mending and rebuilding graphs from a shell beside the stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from memory_os.app import build_embedder, build_graph
from memory_os.domain.ids import new_id
from memory_os.errors import StartupError
from memory_os.graph.port import GraphUnavailableError
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.projection.differences import Outcome
from memory_os.projection.verifier import Verifier
from memory_os.settings import Settings
from memory_os.storage.database import Scope, Transaction
from memory_os_workers.context import WorkerContext
from memory_os_workers.process import open_worker
from memory_os_workers.verifier import mender

EQUAL: Final = 0
DIFFERENT: Final = 1

_PATIENCE_S: Final = 15.0
"""Seconds after which a rebuild that no worker has taken is remarked upon."""


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[WorkerContext]:
    if settings.graph_backend == "networkx" and settings.enable_graph_memory:
        raise StartupError(
            "GRAPH_BACKEND=networkx lives in the API's process: ask that with GET /v1/graph/verify or "
            "POST /v1/graph/repair"
        )
    graph = build_graph(settings)
    if graph is None:
        raise StartupError("ENABLE_GRAPH_MEMORY is off, so there is no graph: set it to true")
    embedder = build_embedder(settings)
    try:
        await graph.backend.open()
        async with open_worker(settings, embedder, graph.backend) as context:
            yield context
    except GraphUnavailableError as error:
        raise StartupError(f"the graph does not answer ({error}): are FALKOR_HOST and FALKOR_PORT right?") from None
    finally:
        await graph.backend.close()
        await embedder.close()


async def compare(settings: Settings, tenant_id: UUID | None, *, repair: bool) -> int:
    """Compare one tenant's graph or all of them with the canonical rows, mend if wanted, and print what differs.

    Returns:
        The exit code: 0 when every graph is equal, or is so now; 1 otherwise.

    Raises:
        StartupError: With the mend, if the stores don't answer or the settings forbid it.
    """
    code = EQUAL
    async with _opened(settings) as context:
        for tenant in await _tenants(context, tenant_id):
            with _bar() as bar:
                task = bar.add_task("comparing", total=None)

                async def progress(phase: str, checked: int, total: int, bar: Any = bar, task: Any = task) -> None:  # noqa: ANN401 - rich's own
                    bar.update(task, description=phase, completed=checked, total=total or None)

                mend = mender(context, tenant) if repair else None
                outcome = await Verifier(context.database, context.backend).verify(tenant, progress, mend)
            for line in describe(tenant, outcome):
                typer.echo(line)
            if outcome.left or outcome.dead or outcome.damage:
                code = DIFFERENT
    return code


def describe(tenant_id: UUID, outcome: Outcome) -> list[str]:
    """An outcome in lines for a terminal."""
    if outcome.damage is not None:
        return [f"{tenant_id}: DAMAGED: {outcome.damage}: run `memory-os graph rebuild --tenant {tenant_id}`"]
    rows = sum(counts.rows for counts in outcome.parts.values())
    told = [f"{tenant_id}: {'equal' if not outcome.left and not outcome.dead else 'DIFFERENT'}, {rows} rows compared"]
    told += [
        f"  {part}: {counts.missing} missing, {counts.extra} extra, {counts.differing} differing of {counts.rows}"
        for part, counts in outcome.parts.items()
        if counts.missing or counts.extra or counts.differing
    ]
    for difference in outcome.sample:
        found = difference.described()
        told.append(
            f"    {difference.part} {' '.join(difference.key)}: {difference.kind}, "
            f"expected {found['expected']}, found {found['found']}"
        )
    notes = (
        (outcome.repaired, "repaired"),
        (outcome.waiting, "that the queue is going to settle"),
        (outcome.dead, "kept out by dead events: retry or discard them"),
    )
    return told + [f"  {count} {meaning}" for count, meaning in notes if count]


async def rebuild(settings: Settings, tenant_id: UUID, user_id: str | None, *, follow: bool) -> int:
    """Ask the workers for a rebuild, and follow it.

    Returns:
        The exit code: 0 when it is done, or was asked for and is not followed; 1 when it failed or was cancelled.

    Raises:
        StartupError: If one is pending or running, or there is no such tenant.
    """
    ident = new_id()

    async def ask(tx: Transaction) -> bool:
        given = {"tenant_id": tenant_id, "id": ident, "user_id": user_id}
        return bool(await tx.hot("request_rebuild", given))

    async with _opened(settings) as context:
        await _tenants(context, tenant_id)
        if not await context.database.run(Scope(WORKER_ROLE, tenant_id), ask):
            raise StartupError("a rebuild of this tenant's graph is pending or running: wait for it, or cancel it")
        typer.echo(f"rebuild {ident} is asked for")
        return await _follow(context, tenant_id, ident) if follow else EQUAL


async def _follow(context: WorkerContext, tenant_id: UUID, ident: UUID) -> int:
    waited = 0.0
    given = {"tenant_id": tenant_id, "id": ident}
    with _bar() as bar:
        task = bar.add_task("waiting", total=None)
        while True:
            scope = Scope(WORKER_ROLE, tenant_id)
            (row,) = await context.database.run(scope, lambda tx: tx.hot("rebuild_state", given))
            bar.update(task, description=row["phase"], completed=row["processed"], total=row["total"] or None)
            if row["status"] in ("done", "failed", "cancelled"):
                break
            waited += 0.5 if row["status"] == "pending" else 0.0
            if waited == _PATIENCE_S:
                typer.echo("no worker has taken it yet: is one running? Start one with `memory-os worker`", err=True)
            await asyncio.sleep(0.5)
    typer.echo(f"{row['status']}{': ' + row['error'] if row['error'] else ''}")
    return EQUAL if row["status"] == "done" else DIFFERENT


async def _tenants(context: WorkerContext, tenant_id: UUID | None) -> Sequence[UUID]:
    rows = await context.database.run(Scope(WORKER_ROLE), lambda tx: tx.hot("all_tenants"))
    every = [row["tenant_id"] for row in rows]
    if tenant_id is None:
        return every
    if tenant_id not in every:
        raise StartupError(f"there is no tenant {tenant_id}: GET /v1/tenants lists them")
    return [tenant_id]


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
