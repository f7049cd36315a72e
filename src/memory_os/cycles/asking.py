"""Asking for runs, taking them back, letting them go on, and saying when they are due."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from memory_os.admin.audit import record
from memory_os.checking import check_word, moment_faults
from memory_os.cycles.model import (
    CyclePlan,
    CycleRun,
    CycleSchedule,
    CycleTime,
    KeptAction,
    RunRequest,
    ScheduleDraft,
    UndoneAction,
    UndoneRun,
)
from memory_os.cycles.planning import Undoing
from memory_os.cycles.reading import find_run, get_action, get_run
from memory_os.cycles.scheduling import enter_run, find_period, read_schedule
from memory_os.cycles.undoing import LAST, undo_action, undo_some
from memory_os.domain.cycles.rules import CYCLES
from memory_os.domain.cycles.schedule import cron_fault, next_due
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError, FieldError, InvalidInputError, NotFoundError
from memory_os.outbox.events import Outbox
from memory_os.storage.database import STEWARD, Database, Scope, Transaction

TOLD: Final = 100
"""Actions that could not be taken back are told one by one up to this many."""

EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)


def check_request(data: RunRequest, now: datetime) -> None:
    """Check which cycle is meant, and its moment.

    Raises:
        UnknownTermError: If there is no such cycle.
        InvalidInputError: If the moment can't be held, lies in the future or before this millennium.
    """
    check_word("/cycle", data.cycle, CYCLES, noun="cycle")
    faults = moment_faults(data, ("moment",))
    if data.moment is not None and not faults and not EARLIEST <= data.moment <= now:
        early = data.moment < EARLIEST
        faults = [FieldError("/moment", "must not lie before the year 2000" if early else "must not lie in the future")]
    if faults:
        raise InvalidInputError("the run can't be entered as it is", errors=faults)


async def request_run(tx: Transaction, principal: Principal, data: RunRequest, request_id: str | None) -> CycleRun:
    """Enter a run that a worker then makes.

    Raises:
        InvalidInputError: As `check_request`.
        ConflictError: If the period has a run that is not undone; it names that.
    """
    now = datetime.now(UTC)
    check_request(data, now)
    cycle, moment = CYCLES[data.cycle].name, data.moment or now
    run_id = await enter_run(tx, cycle, moment, dry_run=data.dry_run, role=principal.role, token_id=principal.token_id)
    if run_id is None:
        period = await find_period(tx, cycle, moment)
        there = await find_run(tx, cycle, period)
        named = f"{there.id}, which is {there.status}" if there else "a run that was entered just now"
        raise ConflictError(
            f"{period} has a {cycle} run: {named}; undo that first, or ask for a dry run",
            extra={"run_id": there.id} if there else None,
        )
    detail = {"cycle": cycle, "moment": moment, "dry_run": data.dry_run}
    await record(tx, principal, "cycle.run", "cycle_run", run_id, detail, request_id)
    return await get_run(tx, run_id)


async def resume_run(tx: Transaction, principal: Principal, run_id: UUID, request_id: str | None) -> CycleRun:
    """Let a run that failed go on from where it stands.

    Raises:
        NotFoundError: If there is no such run.
        ConflictError: If it has not failed.
    """
    run = await get_run(tx, run_id)
    if not await tx.touched("resume_cycle_run", {"tenant_id": tx.tenant_id, "run_id": run_id}):
        raise ConflictError(f"the run has not failed: it is {run.status}")
    await record(tx, principal, "cycle.resume", "cycle_run", run_id, {"rule": run.rule}, request_id)
    return await get_run(tx, run_id)


async def undo_run(
    database: Database, principal: Principal, outbox: Outbox, run_id: UUID, request_id: str | None
) -> UndoneRun:
    """Take back a whole run from its end, in transactions of a few hundred actions.

    Its actions concern records that whoever asks may not read. So the service does it, and tells ids.

    Raises:
        NotFoundError: If there is no such run.
        ConflictError: If it goes on, was a dry run, or was undone already.
    """
    scope = _steward(principal)
    undoing = Undoing(principal, outbox, request_id)
    below, undone, position = LAST, 0, 0
    kept: list[tuple[UUID, str]] = []
    while below:
        batch = await database.run(scope, lambda tx, below=below: undo_some(tx, undoing, run_id, below))  # type: ignore[misc]  # mypy can't infer a lambda with a default
        below, undone, position = batch.below, undone + batch.undone, max(position, batch.position)
        kept += batch.kept

    async def tell(tx: Transaction) -> CycleRun:
        await record(
            tx, principal, "cycle.undo", "cycle_run", run_id, {"undone": undone, "kept": len(kept)}, request_id
        )
        return await get_run(tx, run_id)

    run = await database.run(scope, tell)
    return UndoneRun(run, undone, len(kept), [KeptAction(*one) for one in kept[:TOLD]], position)


async def undo_one(
    database: Database, principal: Principal, outbox: Outbox, action_id: UUID, request_id: str | None
) -> UndoneAction:
    """Take back one action of a run; see `undo_run`.

    Raises:
        NotFoundError: If there is no such action.
        ConflictError: If it is undone already, was only predicted, or what it changed has changed since.
    """

    async def work(tx: Transaction) -> UndoneAction:
        try:
            position = await undo_action(tx, Undoing(principal, outbox, request_id), action_id)
        except NotFoundError:
            await get_action(tx, action_id)
            raise ConflictError("what it changed is gone: there is nothing to take back") from None
        await record(tx, principal, "cycle.undo_action", "cycle_action", action_id, {}, request_id)
        return UndoneAction(await get_action(tx, action_id), position)

    return await database.run(_steward(principal), work)


def _steward(principal: Principal) -> Scope:
    return Scope("memory_os_app", principal.tenant_id, STEWARD)


async def get_schedule(tx: Transaction) -> CycleSchedule:
    """When the cycles of the tenant run.

    Raises:
        NotFoundError: If the tenant is gone.
    """
    schedule = await read_schedule(tx)
    if schedule is None:
        raise NotFoundError("there is no such tenant")
    now = datetime.now(UTC)
    plans = {
        cycle: CyclePlan(cron, enabled, next_due(cron, schedule.zone, now) if enabled else None)
        for cycle, (cron, enabled) in schedule.times.items()
    }
    return CycleSchedule(schedule.zone, **plans)


async def put_schedule(
    tx: Transaction, principal: Principal, draft: ScheduleDraft, request_id: str | None
) -> CycleSchedule:
    """Say when the cycles of the tenant run.

    Raises:
        InvalidInputError: With a pointer to each cron expression that has a fault.
    """
    wanted: dict[str, CycleTime] = {name: getattr(draft, name) for name in CYCLES}
    crons = {name: time.cron or CYCLES[name].cron for name, time in wanted.items()}
    faults = [FieldError(f"/{name}/cron", fault) for name, cron in crons.items() if (fault := cron_fault(cron))]
    if faults:
        raise InvalidInputError("cycles can't run at these times", errors=faults)
    given = {
        "tenant_id": tx.tenant_id,
        "ids": [new_id() for _ in crons],
        "cycles": list(crons),
        "crons": list(crons.values()),
        "enabled": [str(time.enabled).lower() for time in wanted.values()],
    }
    await tx.touched("put_cycle_schedule", given)
    detail = {name: {"cron": cron, "enabled": wanted[name].enabled} for name, cron in crons.items()}
    await record(tx, principal, "cycle.schedule", "tenant", tx.tenant_id, detail, request_id)
    return await get_schedule(tx)
