"""Derived entities that nothing names and nothing ties down any more go.

Their names stand in the actions, or nothing could bring them back, and came from texts that are not known any more:
whatever is erased takes all of them with it (`erase_cycle_actions.sql`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Undoing, Work
from memory_os.edges.holding import reconsider
from memory_os.outbox.events import NewEvent
from memory_os.storage.database import Transaction

BATCH: Final = 500
_FIRST: Final = UUID(int=0)


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    after = cursor["after"] if cursor else _FIRST
    given = {"tenant_id": tx.tenant_id, "after": after, "moment": run.moment, "batch": BATCH}
    rows = await tx.hot("unheld_entities", given)
    changes = [Planned("entity", row["id"], row["kept"], {"gone": True}) for row in rows]
    return Plan(changes, {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


async def _drop(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    del run
    given = {"tenant_id": tx.tenant_id, "ids": [one.target for one in planned]}
    held = [row["id"] for row in await tx.hot("lock_unnamed_entities", given)]
    gone = {row["id"] for row in await tx.hot("drop_unheld_entities", {**given, "ids": held})} if held else set()
    return Made([one for one in planned if one.target in gone], reconsider(gone))


async def _bring_back(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    """Bring back the row; the graph had no place for it. One that was named again meanwhile is there by itself."""
    del undoing
    row = msgspec.json.encode({**action["before"], "id": action["target_id"]}).decode()
    await tx.touched("return_derived_entity", {"tenant_id": tx.tenant_id, "row": row})
    return []


DROPPING: Final = Work(_plan, _drop, _bring_back)
