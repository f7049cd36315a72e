"""Taking back what a run did: one action, or all of them from the last to the first."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from sqlalchemy import func, select, update

from memory_os.cycles.planning import Undoing
from memory_os.cycles.works import WORKS
from memory_os.errors import ConflictError, NotFoundError
from memory_os.storage import cycle_tables
from memory_os.storage.database import Transaction

BATCH: Final = 200
_ACTIONS: Final = cycle_tables.cycle_actions
_RUNS: Final = cycle_tables.cycle_runs
_LAST: Final = 2**31 - 1


async def undo_action(tx: Transaction, undoing: Undoing, action_id: UUID) -> int:
    """Take back one action of a run.

    Returns:
        The position to wait for.

    Raises:
        NotFoundError: If there is no such action.
        ConflictError: If it is undone already, was only predicted, or what it changed has changed since.
    """
    mine = (_ACTIONS.c.tenant_id == tx.tenant_id, _ACTIONS.c.id == action_id)
    row = await tx.row(select(_ACTIONS).where(*mine).with_for_update())
    if row is None:
        raise NotFoundError("there is no such action")
    if row["undone_at"] is not None:
        raise ConflictError(f"this was undone already, at {row['undone_at'].isoformat()}")
    run = await tx.row(select(_RUNS.c.dry_run).where(_RUNS.c.tenant_id == tx.tenant_id, _RUNS.c.id == row["run_id"]))
    if run is None or run["dry_run"]:
        raise ConflictError("a dry run has changed nothing, so there is nothing to undo")
    events = await WORKS[row["rule"]].take_back(tx, undoing, dict(row))
    await tx.run(update(_ACTIONS).where(*mine).values(undone_at=func.now()))
    return await undoing.outbox.enqueue(tx, events, undoing.request_id)


async def undo_some(tx: Transaction, undoing: Undoing, run_id: UUID, below: int = _LAST) -> tuple[int, list[UUID]]:
    """Take back the last actions of a run that stand, `BATCH` at most.

    Returns:
        The number of the last one that was looked at, 0 when there are no more; and those that could not be taken
        back, because what they changed has changed since.
    """
    given: dict[str, Any] = {"tenant_id": tx.tenant_id, "run_id": run_id, "below": below, "batch": BATCH}
    kept: list[UUID] = []
    rows = await tx.hot("actions_to_undo", given)
    for row in rows:
        try:
            await undo_action(tx, undoing, row["id"])
        except ConflictError:
            kept.append(row["id"])
    return (rows[-1]["number"] if len(rows) == BATCH else 0), kept
