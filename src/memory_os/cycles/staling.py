"""References and Resources that nobody uses go stale; one that is used again is fresh again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Undoing, Work
from memory_os.domain.cycles.forgetting import is_stale, perishable_labels
from memory_os.outbox.events import NewEvent
from memory_os.storage.database import Transaction

BATCH: Final = 500
_FIRST: Final = UUID(int=0)


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    given = {"after": cursor["after"] if cursor else _FIRST, "labels": list(perishable_labels()), "moment": run.moment}
    rows = await tx.hot("perishable_memories", {"tenant_id": tx.tenant_id, "batch": BATCH, **given})
    changes = []
    for row in rows:
        stale = is_stale(row["label"], row["used_at"], run.moment)
        if stale != (row["stale_at"] is not None):
            after = {"stale_at": run.moment if stale else None}
            changes.append(Planned("memory", row["id"], {"stale_at": row["stale_at"]}, after))
    return Plan(changes, {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


async def _mark(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    del run
    marked = await _put(tx, [(one.target, one.after["stale_at"]) for one in planned])
    return Made([one for one in planned if one.target in marked])


async def _unmark(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    del undoing
    stale = action["before"]["stale_at"]
    await _put(tx, [(action["target_id"], datetime.fromisoformat(stale) if stale else None)])
    return []


async def _put(tx: Transaction, rows: Sequence[tuple[UUID, datetime | None]]) -> set[UUID]:
    given = {"ids": [row[0] for row in rows], "stale": [row[1] for row in rows]}
    return {row["id"] for row in await tx.hot("mark_stale", {"tenant_id": tx.tenant_id, **given})}


STALENESS: Final = Work(_plan, _mark, _unmark)
