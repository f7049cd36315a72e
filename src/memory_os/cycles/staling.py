"""References and Resources that nobody uses go stale; one that is used again is fresh again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Undoing, Work
from memory_os.domain.cycles.forgetting import is_stale, perishable_labels
from memory_os.errors import ConflictError
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
            before = {"stale_at": row["stale_at"]}
            changes.append(Planned("memory", row["id"], before, after, work=row["updated_at"]))
    return Plan(changes, {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


async def _mark(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    del run
    given = {
        "ids": [one.target for one in planned],
        "befores": [one.before["stale_at"] for one in planned],
        "afters": [one.after["stale_at"] for one in planned],
        "updated": [one.work for one in planned],
    }
    marked = {row["id"] for row in await tx.hot("mark_stale", {"tenant_id": tx.tenant_id, **given})}
    return Made([one for one in planned if one.target in marked])


async def _unmark(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    del undoing
    given = {"id": action["target_id"]}
    for name in ("before", "after"):
        stale = action[name]["stale_at"]
        given[name] = datetime.fromisoformat(stale) if stale else None
    if not await tx.hot("unmark_stale", {"tenant_id": tx.tenant_id, **given}):
        raise ConflictError("the memory has been marked or used since, or is gone: nothing is taken back from it")
    return []


STALENESS: Final = Work(_plan, _mark, _unmark)
