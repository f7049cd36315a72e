"""Behaviors that recur are each proposed as an Insight."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from memory_os.cycles.gathering import Community
from memory_os.cycles.planning import Cursor, Plan, Run, Work
from memory_os.cycles.proposing import propose, store, take_back
from memory_os.domain.audiences import Audience
from memory_os.domain.cycles.insights import ORIGIN, recurs, seen_times
from memory_os.storage.database import Transaction

BATCH: Final = 500
_FIRST: Final = UUID(int=0)


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    after = cursor["after"] if cursor else _FIRST
    given = {"tenant_id": tx.tenant_id, "after": after, "origin": ORIGIN, "batch": BATCH}
    rows = await tx.hot("recurring_behaviors", given)
    found = [
        Community(Audience.of_columns(row), (row["id"],), strength=float(seen_times(row["merges"], row["sources"])))
        for row in rows
        if recurs(row["merges"], row["sources"])
    ]
    changes = await propose(tx, run, "evolve_behaviors", found)
    return Plan(changes, {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


EVOLVING: Final = Work(_plan, store, take_back)
