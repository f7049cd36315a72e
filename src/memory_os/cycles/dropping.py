"""Derived entities that nothing names and nothing ties down any more go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

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
    changes = [Planned("entity", row["id"], {"name": row["name"]}, {"gone": True}) for row in rows]
    return Plan(changes, {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


async def _drop(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    del run
    given = {"tenant_id": tx.tenant_id, "ids": [one.target for one in planned]}
    held = [row["id"] for row in await tx.hot("lock_unnamed_entities", given)]
    gone = {row["id"] for row in await tx.hot("drop_unheld_entities", {**given, "ids": held})} if held else set()
    return Made([one for one in planned if one.target in gone], reconsider(gone))


async def _bring_back(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    del undoing
    given = {"ids": [action["target_id"]], "names": [action["before"]["name"]]}
    await tx.touched("insert_derived_entities", {"tenant_id": tx.tenant_id, **given})
    return reconsider([action["target_id"]])


DROPPING: Final = Work(_plan, _drop, _bring_back)
