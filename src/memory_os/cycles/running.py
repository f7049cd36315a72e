"""Going on with a run: one batch of one rule in one transaction, from wherever it stands.

The changes, their actions and the run's place commit together. Whatever stops a run, another process goes on with it
and comes to the same end.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
from psycopg import Error as PostgresError
from sqlalchemy.exc import DBAPIError

from memory_os.cycles.planning import Made, Planned, Run
from memory_os.cycles.works import WORKS
from memory_os.domain.cycles.rules import SERVICE_ROLE, Rule, rules_of
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import MemoryOSError
from memory_os.outbox.events import Outbox
from memory_os.storage.database import Database, Scope, Transaction

PAUSES_S: Final = (30.0, 120.0, 600.0, 1800.0)
"""Seconds before a batch that failed is tried again, by how often it has failed in a row; then the run has failed."""

_ERROR_CHARS: Final = 500


class BatchFailedError(Exception):
    """A batch has raised. The run keeps its place, and its row says what happened.

    Attributes:
        attempts: How many times in a row.
        status: What the run is now: `running` if it is tried again after a pause, or `failed`.
    """

    def __init__(self, message: str, attempts: int, status: str) -> None:
        super().__init__(message)
        self.attempts = attempts
        self.status = status


@dataclass(frozen=True, slots=True)
class Progress:
    """What a batch came to. `rule` is where the run stands after it; None at its end."""

    run_id: UUID
    rule: str | None
    made: int


async def attempt(database: Database, scope: Scope, outbox: Outbox, run_id: UUID) -> Progress | None:
    """Make the next batch of a run in a transaction of its own; see `advance`.

    What looks like a lost connection counts as a fault of the batch wherever that can be noted: one that the database
    ends each time must not be made for ever. Without a database, the error is that of noting it.

    Raises:
        BatchFailedError: If it could not be made; it is noted on the run.
    """
    try:
        return await database.run(scope, lambda tx: advance(tx, outbox, run_id))
    except Exception as error:
        told = _describe(error)
        patience = {"most": len(PAUSES_S) + 1, "pauses": list(PAUSES_S)}
        given = {"tenant_id": scope.tenant_id, "run_id": run_id, "error": told, **patience}
        rows = await database.run(scope, lambda tx: tx.hot("note_cycle_fault", given))
        if not rows:
            raise  # it is over, or gone with its tenant
        raise BatchFailedError(told, rows[0]["attempts"], rows[0]["status"]) from error


def _describe(error: Exception) -> str:
    """An error as a run's row tells it: of what kind, and where. Its own words may quote a record; the log has them."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    name = type(cause).__name__
    if isinstance(cause, MemoryOSError):
        return f"{name}: {cause.detail}"[:_ERROR_CHARS]
    if isinstance(cause, PostgresError) and cause.sqlstate is not None:
        at = f" at {cause.diag.constraint_name}" if cause.diag.constraint_name else ""
        return f"{name} ({cause.sqlstate}){at}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{name}{place}"[:_ERROR_CHARS]


async def advance(tx: Transaction, outbox: Outbox, run_id: UUID | None = None) -> Progress | None:
    """Make the next batch of the tenant's oldest open run, or of a certain one.

    Returns:
        What it came to; None if no run is open, or somebody else has it in hand.
    """
    rows = await tx.hot("next_cycle_run", {"tenant_id": tx.tenant_id, "run_id": run_id})
    if not rows:
        return None
    row = rows[0]
    await tx.hot("beside_erasures", {"tenant_id": tx.tenant_id})  # actions name what is read here
    run = Run(row["id"], row["cycle"], row["moment"], Principal(tx.tenant_id, SERVICE_ROLE), outbox)
    rules = rules_of(run.cycle)
    at = next((place for place, rule in enumerate(rules) if rule.name == row["rule"]), 0)
    rule, work = rules[at], WORKS[rules[at].name]
    plan = await work.plan(tx, run, row["cursor"])
    changes = await _untouched(tx, run, rule, plan.changes)
    made = Made(changes) if row["dry_run"] or not changes else await work.make(tx, run, changes)
    await _note(tx, run, rule, made)
    await outbox.enqueue(tx, made.events, None)
    following = rule if plan.cursor is not None else (rules[at + 1] if at + 1 < len(rules) else None)
    counts = {**row["counts"], rule.name: row["counts"].get(rule.name, 0) + len(made.changes)}
    name = following.name if following else None
    await _move(tx, run, name, plan.cursor, counts)
    return Progress(run.id, name, len(made.changes))


async def _untouched(tx: Transaction, run: Run, rule: Rule, changes: Sequence[Planned]) -> list[Planned]:
    """Those changes whose target no earlier rule of the run has acted on: nothing depends on what the run did."""
    if not changes:
        return []
    given = {"tenant_id": tx.tenant_id, "run_id": run.id, "rule": rule.name, "ids": [one.target for one in changes]}
    taken = {row["target_id"] for row in await tx.hot("targets_of_run", given)}
    return [one for one in changes if one.target not in taken]


async def _note(tx: Transaction, run: Run, rule: Rule, made: Made) -> None:
    if not made.changes:
        return
    rows = [
        {
            "id": new_id(),
            "place": place,
            "target_kind": one.kind,
            "target_id": one.target,
            "other_id": one.other,
            "before": one.before,
            "after": one.after,
            "act_id": made.acts.get(one.target),
        }
        for place, one in enumerate(made.changes, start=1)
    ]
    given = {"tenant_id": tx.tenant_id, "run_id": run.id, "rule": rule.name, "rows": _json(rows)}
    await tx.touched("note_actions", given)


async def _move(tx: Transaction, run: Run, rule: str | None, cursor: Any, counts: dict[str, int]) -> None:  # noqa: ANN401 - JSON
    given = {"tenant_id": tx.tenant_id, "run_id": run.id, "rule": rule, "counts": _json(counts)}
    await tx.touched("move_cycle_run", {**given, "cursor": None if cursor is None else _json(cursor)})


def _json(value: Any) -> str:  # noqa: ANN401 - whatever is JSON
    return msgspec.json.encode(value).decode()
