"""What has come to its date expires, and what refers to something retired is archived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from uuid import UUID

from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Undoing, Work
from memory_os.domain.acts import ACTS
from memory_os.domain.cycles.forgetting import expiring_labels, retirable_labels
from memory_os.memories.acting import act_on_many
from memory_os.memories.undoing import undo_act
from memory_os.outbox.events import NewEvent
from memory_os.storage.database import Transaction

BATCH: Final = 200
_FIRST: Final = UUID(int=0)


async def _plan_expiry(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    return await _plan(tx, run, cursor, "overdue_memories", expiring_labels(), "expire")


async def _plan_archiving(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    return await _plan(tx, run, cursor, "memories_of_retired", retirable_labels(), "archive")


async def _plan(
    tx: Transaction,
    run: Run,
    cursor: Cursor | None,
    statement: str,
    labels: Sequence[str],
    kind: Literal["expire", "archive"],
) -> Plan:
    given = {"after": cursor["after"] if cursor else _FIRST, "labels": list(labels), "moment": run.moment}
    rows = await tx.hot(statement, {"tenant_id": tx.tenant_id, "batch": BATCH, **given})
    after = {"status": ACTS[kind].status}
    changes = [
        Planned("memory", row["id"], {"status": row["status"]}, after, other=row.get("entity_id")) for row in rows
    ]
    return Plan(changes, {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


async def _expire(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    return await _act(tx, run, planned, "expire")


async def _archive(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    return await _act(tx, run, planned, "archive")


async def _act(tx: Transaction, run: Run, planned: Sequence[Planned], kind: Literal["expire", "archive"]) -> Made:
    detail = {"cycle": run.cycle, "run": run.id}
    acts, events = await act_on_many(tx, run.principal, kind, [one.target for one in planned], detail)
    return Made([one for one in planned if one.target in acts], events, acts)


async def undo_memory_act(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    """Take back what an action did to a memory, by the act that it left in the memory's history."""
    ident, act_id = action["target_id"], action["act_id"]
    await undo_act(tx, undoing.outbox, undoing.principal, ident, act_id, undoing.request_id)
    return []


EXPIRY: Final = Work(_plan_expiry, _expire, undo_memory_act)
RETIREMENT: Final = Work(_plan_archiving, _archive, undo_memory_act)
