"""Reading runs and their actions: reviewers, operators and admins see ids and states, whoever may read the records."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import select

from memory_os.cycles.model import CycleAction, CycleRun
from memory_os.domain.cycles.rules import RULES
from memory_os.errors import FieldError, InvalidInputError, NotFoundError
from memory_os.storage import cycle_tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_RUNS: Final = cycle_tables.cycle_runs
_ACTIONS: Final = cycle_tables.cycle_actions

_ORDER: Final = {name: place for place, name in enumerate(RULES)}

_WORDS: Final = frozenset({"name"})
"""What the state of an entity holds that is more than a state: it comes back with it, and is shown to nobody."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What a list is narrowed to; None leaves a field alone."""

    cycle: str | None = None
    status: str | None = None


def run_of(row: Mapping[Any, Any]) -> CycleRun:
    """A row of `cycle_runs`; its counts are in the order of the rules."""
    told = {name: row[name] for name in CycleRun.__struct_fields__}
    told["counts"] = dict(sorted(row["counts"].items(), key=lambda count: _ORDER.get(count[0], len(_ORDER))))
    return CycleRun(**told)


def action_of(row: Mapping[Any, Any]) -> CycleAction:
    """A row of `cycle_actions`, without words."""
    told = {name: row[name] for name in CycleAction.__struct_fields__}
    for side in ("before", "after"):
        told[side] = {name: value for name, value in row[side].items() if name not in _WORDS}
    return CycleAction(**told)


async def get_run(tx: Transaction, run_id: UUID) -> CycleRun:
    """One run.

    Raises:
        NotFoundError: If there is none of that id.
    """
    row = await tx.row(select(_RUNS).where(_RUNS.c.tenant_id == tx.tenant_id, _RUNS.c.id == run_id))
    if row is None:
        raise NotFoundError("there is no such run")
    return run_of(row)


async def get_action(tx: Transaction, action_id: UUID) -> CycleAction:
    """One action.

    Raises:
        NotFoundError: If there is none of that id.
    """
    row = await tx.row(select(_ACTIONS).where(_ACTIONS.c.tenant_id == tx.tenant_id, _ACTIONS.c.id == action_id))
    if row is None:
        raise NotFoundError("there is no such action")
    return action_of(row)


async def find_run(tx: Transaction, cycle: str, period: str) -> CycleRun | None:
    """The run of a period that is not undone; None if that has none."""
    columns = _RUNS.c
    mine = (columns.tenant_id == tx.tenant_id, columns.cycle == cycle, columns.period == period)
    row = await tx.row(select(_RUNS).where(*mine, ~columns.dry_run, columns.status != "undone"))
    return None if row is None else run_of(row)


async def list_runs(tx: Transaction, wanted: RunFilter, cursor: str | None, limit: int) -> Page[CycleRun]:
    """Runs, newest first, one page at a time."""
    columns = _RUNS.c
    statement = select(_RUNS).where(columns.tenant_id == tx.tenant_id)
    for column, value in ((columns.cycle, wanted.cycle), (columns.status, wanted.status)):
        if value is not None:
            statement = statement.where(column == value)
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([run_of(row) for row in page], next_cursor)


async def list_actions(
    tx: Transaction, run_id: UUID, rule: str | None, cursor: str | None, limit: int
) -> Page[CycleAction]:
    """The actions of a run in their order, one page at a time.

    Raises:
        NotFoundError: If there is no such run.
        InvalidInputError: If the cursor is not one of ours.
    """
    await get_run(tx, run_id)
    columns = _ACTIONS.c
    statement = select(_ACTIONS).where(columns.tenant_id == tx.tenant_id, columns.run_id == run_id)
    if rule is not None:
        statement = statement.where(columns.rule == rule)
    if cursor is not None:
        statement = statement.where(columns.number > _decode(cursor))
    rows = await tx.rows(statement.order_by(columns.number).limit(limit + 1))
    page, next_cursor = cut(rows, limit, lambda row: _encode(row["number"]))
    return Page([action_of(row) for row in page], next_cursor)


def _encode(number: int) -> str:
    return base64.urlsafe_b64encode(str(number).encode()).decode().rstrip("=")


def _decode(cursor: str) -> int:
    try:
        number = int(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii"))
    except (binascii.Error, ValueError):
        number = 0
    if not 0 < number < 2**31:
        raise InvalidInputError(
            "the cursor is not one that this list gave out", errors=[FieldError("/cursor", "unknown cursor")]
        )
    return number
