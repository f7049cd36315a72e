"""`memory-os cycle`: a run that is made in this process, batch by batch, as a worker would make it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from sqlalchemy import select

from memory_os.admin.audit import record
from memory_os.admin.reach import ROOT
from memory_os.checking import parse_moment
from memory_os.cycles.asking import check_request
from memory_os.cycles.model import CycleRun, RunRequest
from memory_os.cycles.reading import find_run, get_run
from memory_os.cycles.running import BatchFailedError, Progress, attempt
from memory_os.cycles.scheduling import enter_run, find_period
from memory_os.domain.cycles.rules import CYCLES, CycleName, rules_of
from memory_os.domain.principal import Principal
from memory_os.errors import InvalidInputError, StartupError
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.settings import Settings
from memory_os.storage import cycle_tables
from memory_os.storage.checks import check_database
from memory_os.storage.database import Database, Scope, Transaction, is_connection_loss

DONE: Final = 0
STOPPED: Final = 1

_OPEN: Final = ("waiting", "running")
_LOOK_S: Final = 0.2
"""Seconds between looks while a worker has the tenant's runs in hand."""

_RUNS: Final = cycle_tables.cycle_runs


@dataclass(frozen=True, slots=True)
class _Making:
    """A run that is being made: where, and in which tenant."""

    database: Database
    scope: Scope
    outbox: Outbox
    bar: Bar

    async def read(self, run_id: UUID) -> CycleRun:
        return await self.database.run(self.scope, lambda tx: get_run(tx, run_id))

    async def oldest(self) -> UUID | None:
        """The open run whose turn it is: one at a time in a tenant."""
        columns = _RUNS.c
        statement = select(columns.id).where(columns.tenant_id == self.scope.tenant_id, columns.status.in_(_OPEN))
        ordered = statement.order_by(columns.created_at, columns.id).limit(1)
        row = await self.database.run(self.scope, lambda tx: tx.row(ordered))
        return row["id"] if row else None


def make_run(
    settings: Settings,
    cycle: CycleName,
    tenant: str,
    *,
    dry_run: bool = False,
    moment: str | None = None,
    tell: Callable[[str], Any] = print,
) -> int:
    """Make a run of a cycle for a tenant from its beginning to its end, and tell what it did.

    A run that is open or failed is gone on with, whoever began it.

    Args:
        settings: WORKER_DATABASE_URL, and whether there is a graph to tell.
        cycle: Which cycle.
        tenant: Its name or id.
        dry_run: Do nothing, and tell what would be done.
        moment: What everything is reckoned from, as ISO 8601 with an offset; by default now.
        tell: Takes the lines.

    Returns:
        The exit code: 0 when the run is done, 1 when it has stopped on the way.

    Raises:
        StartupError: With the mend, if the run can't be begun.
    """
    try:
        request = RunRequest(cycle=cycle, dry_run=dry_run, moment=parse_moment("moment", moment))
        check_request(request, datetime.now(UTC))
    except InvalidInputError as error:
        told = "; ".join(f"--{fault.pointer.removeprefix('/')} {fault.detail}" for fault in error.errors)
        raise StartupError(f"{told}: give it as 2026-01-31T02:00:00+01:00") from None
    return asyncio.run(_make_run(settings, request, tenant, tell))


async def _make_run(settings: Settings, request: RunRequest, tenant: str, tell: Callable[[str], Any]) -> int:
    database = Database(settings.worker_url(), pool_size=1, prepare=settings.database_prepare)
    try:
        await check_database(database, WORKER_ROLE)
        tenant_id, name = await _find_tenant(database, tenant)
        scope = Scope(WORKER_ROLE, tenant_id)
        run_id = await database.run(scope, lambda tx: _begin(tx, request))
        with _bar() as bar:
            making = _Making(database, scope, Outbox(enabled=settings.enable_graph_memory), bar)
            try:
                await _follow(making, run_id)
                fault = None
            except BatchFailedError as error:
                fault = f"{type(error.__cause__).__name__} ({error.__cause__})"
        run = await making.read(run_id)
    except Exception as error:
        if is_connection_loss(error):
            raise StartupError("the database went away: the run keeps its place, repeat the command") from None
        raise
    finally:
        await database.close()
    for line in describe(run, name):
        tell(line)
    if fault is not None:
        tell(f"stopped by {fault}: the run keeps its place, repeat the command to go on with it")
    return DONE if run.status == "done" else STOPPED


async def _find_tenant(database: Database, wanted: str) -> tuple[UUID, str]:
    found = await database.run(Scope(WORKER_ROLE), lambda tx: tx.hot("find_tenants", {"wanted": wanted}))
    if not found:
        raise StartupError(f"there is no tenant {wanted}: GET /v1/tenants lists them, with a token of role root")
    if len(found) > 1:
        ids = ", ".join(str(row["tenant_id"]) for row in found)
        raise StartupError(f"several tenants are called {wanted}: name one by its id, {ids}")
    return found[0]["tenant_id"], found[0]["name"]


async def _begin(tx: Transaction, request: RunRequest) -> UUID:
    """Enter the run, or take up the one of its period that has not come to its end."""
    cycle, moment = CYCLES[request.cycle].name, request.moment or datetime.now(UTC)
    run_id = await enter_run(tx, cycle, moment, dry_run=request.dry_run, role=ROOT)
    if run_id is not None:
        detail = {"cycle": cycle, "moment": moment, "dry_run": request.dry_run}
        await record(tx, Principal(tx.tenant_id, ROOT), "cycle.run", "cycle_run", run_id, detail, None)
        return run_id
    period = await find_period(tx, cycle, moment)
    there = await find_run(tx, cycle, period)
    if there is None or there.status == "done":
        named = f", {there.id}, which is done: undo it with POST /v1/cycles/{there.id}/undo" if there else ": wait"
        raise StartupError(f"{period} has a {cycle} run{named}, or add --dry-run to see what another one would do")
    if there.status == "failed":
        await tx.touched("resume_cycle_run", {"tenant_id": tx.tenant_id, "run_id": there.id})
    return there.id


async def _follow(making: _Making, run_id: UUID) -> None:
    """Make what is open in the tenant, in its order, until the run is over."""
    tasks: dict[str, Any] = {}
    rule = "beginning"
    while (await making.read(run_id)).status in _OPEN:
        progress: Progress | None = None
        if (due := await making.oldest()) is not None:
            progress = await attempt(making.database, making.scope, making.outbox, due)
        if progress is None:
            await asyncio.sleep(_LOOK_S)
            continue
        if progress.run_id != run_id:
            continue
        if rule not in tasks:
            tasks[rule] = making.bar.add_task(rule, total=None)
        making.bar.advance(tasks[rule], progress.made)
        rule = progress.rule or rule


def describe(run: CycleRun, tenant: str) -> list[str]:
    """A run in lines for a terminal: by rule, how much it did."""
    ends = {"done": "would be done" if run.dry_run else "done"}
    head = f"{run.cycle} run {run.id} for {run.period} in {tenant}: {ends.get(run.status, run.status)}"
    rules = rules_of(run.cycle)
    wide = max(len(rule.name) for rule in rules)
    lines = [f"  {rule.name:<{wide}}  {run.counts.get(rule.name, 0):>7}  {rule.meaning}" for rule in rules]
    return [head, *lines, f"  {'all':<{wide}}  {sum(run.counts.values()):>7}"]


def _bar() -> Bar:
    return Bar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:.0f} changes"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
