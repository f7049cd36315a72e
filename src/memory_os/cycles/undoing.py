"""Taking back what a run did: one action, or all of them from the last to the first.

Actions concern records that whoever undoes them may not read: all of this runs as the service itself, and tells ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.exc import IntegrityError

from memory_os.cycles.planning import Undoing
from memory_os.cycles.works import WORKS
from memory_os.errors import ConflictError, MemoryOSError, NotFoundError
from memory_os.outbox.events import NewEvent, Outbox
from memory_os.storage import cycle_tables
from memory_os.storage.database import Transaction

BATCH: Final = 200
LAST: Final = 2**31 - 1
"""A number above that of every action."""

_ACTIONS: Final = cycle_tables.cycle_actions
_RUNS: Final = cycle_tables.cycle_runs
_SAVEPOINT: Final = text("SAVEPOINT action")
_RELEASE: Final = text("RELEASE SAVEPOINT action")
_BACK: Final = text("ROLLBACK TO SAVEPOINT action")


@dataclass(frozen=True, slots=True)
class UndoneBatch:
    """What became of the last actions of a run that stood.

    Attributes:
        below: The number of the last one that was looked at; 0 when there are no more.
        undone: How many were taken back.
        kept: Those that could not be, with the reason.
        position: The position to wait for.
    """

    below: int
    undone: int
    kept: list[tuple[UUID, str]] = field(default_factory=list)
    position: int = 0


async def undo_action(tx: Transaction, undoing: Undoing, action_id: UUID) -> int:
    """Take back one action of a run.

    Returns:
        The position to wait for.

    Raises:
        NotFoundError: If there is no such action.
        ConflictError: If it is undone already, was only predicted, or what it changed has changed since.
    """
    await _hold(tx)
    mine = (_ACTIONS.c.tenant_id == tx.tenant_id, _ACTIONS.c.id == action_id)
    row = await tx.row(select(_ACTIONS).where(*mine).with_for_update())
    if row is None:
        raise NotFoundError("there is no such action")
    if row["undone_at"] is not None:
        raise ConflictError(f"this was undone already, at {row['undone_at'].isoformat()}")
    await _check_real(tx, row["run_id"])
    try:
        position = await _take_back(tx, undoing, row)
    except IntegrityError as error:
        raise ConflictError(_reason(error)) from None
    await end_undone_run(tx, row["run_id"])
    return position


async def undo_some(tx: Transaction, undoing: Undoing, run_id: UUID, below: int = LAST) -> UndoneBatch:
    """Take back the last actions of a run that stand, `BATCH` at most, from those with a number under `below` on.

    Raises:
        NotFoundError: If there is no such run.
        ConflictError: If it goes on, or was a dry run.
    """
    await _hold(tx)
    if await _check_real(tx, run_id) in ("waiting", "running"):
        raise ConflictError("the run goes on: wait until it is done")
    given: dict[str, Any] = {"tenant_id": tx.tenant_id, "run_id": run_id, "below": below, "batch": BATCH}
    rows = await tx.hot("actions_to_undo", given)
    kept: list[tuple[UUID, str]] = []
    position = 0
    for row in rows:
        await tx.run(_SAVEPOINT)
        try:
            position = max(position, await _take_back(tx, undoing, row))
        except (MemoryOSError, IntegrityError) as error:
            await tx.run(_BACK)
            kept.append((row["id"], _reason(error)))
        await tx.run(_RELEASE)
    more = not await end_undone_run(tx, run_id) and len(rows) == BATCH
    return UndoneBatch(rows[-1]["number"] if more else 0, len(rows) - len(kept), kept, position)


async def end_undone_run(tx: Transaction, run_id: UUID) -> bool:
    """A run of which nothing stands any more was undone; whether it is that now."""
    return bool(await tx.touched("end_undone_run", {"tenant_id": tx.tenant_id, "run_id": run_id}))


async def _hold(tx: Transaction) -> None:
    await tx.hot("hold_cycles", {"tenant_id": tx.tenant_id})


async def _check_real(tx: Transaction, run_id: UUID) -> str:
    run = await tx.row(
        select(_RUNS.c.dry_run, _RUNS.c.status).where(_RUNS.c.tenant_id == tx.tenant_id, _RUNS.c.id == run_id)
    )
    if run is None:
        raise NotFoundError("there is no such run")
    if run["dry_run"]:
        raise ConflictError("a dry run has changed nothing, so there is nothing to undo")
    if run["status"] == "undone":
        raise ConflictError("the run was undone already")
    return str(run["status"])


async def _take_back(tx: Transaction, undoing: Undoing, row: Mapping[Any, Any]) -> int:
    outbox = _RememberingOutbox(enabled=undoing.outbox.enabled)
    events = await WORKS[row["rule"]].take_back(tx, replace(undoing, outbox=outbox), dict(row))
    mine = (_ACTIONS.c.tenant_id == tx.tenant_id, _ACTIONS.c.id == row["id"])
    await tx.run(update(_ACTIONS).where(*mine).values(undone_at=func.now()))
    await outbox.enqueue(tx, events, undoing.request_id)
    return outbox.position


class _RememberingOutbox(Outbox):
    """An outbox that knows how far the graph has to follow: services of other areas enqueue what is theirs."""

    position = 0

    async def enqueue(self, tx: Transaction, events: Sequence[NewEvent], request_id: str | None) -> int:
        position = await super().enqueue(tx, events, request_id)
        self.position = max(self.position, position)
        return position


def _reason(error: Exception) -> str:
    """Why; the words of the service's own errors name no more than ids, and the database's are not told."""
    if isinstance(error, MemoryOSError):
        return error.detail
    return "something else is in the way by now"
