"""What has come to its date expires, and what refers to something retired is archived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from uuid import UUID

from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Undoing, Work
from memory_os.domain.acts import ACTS
from memory_os.domain.cycles.forgetting import expiring_labels, retirable_labels
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.memories.acting import act_on_many
from memory_os.memories.undoing import undo_act
from memory_os.outbox.events import NewEvent
from memory_os.storage.database import Transaction

BATCH: Final = 200
_FIRST: Final = UUID(int=0)


_APART: Final = tuple(kind.name for kind in EDGE_TYPES.values() if kind.category in ("lifecycle", "provenance"))
"""Types of edges that make no memory one of what they lead to."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What is done to which memories: those that a statement finds, which have one of these labels."""

    kind: Literal["expire", "archive"]
    statement: str
    labels: tuple[str, ...]
    given: Mapping[str, Any] = field(default_factory=dict)

    async def find(self, tx: Transaction, run: Run, **given: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - parameters
        """The next memories after an id, or those of certain ones that it still is to be done to."""
        wanted = {"after": _FIRST, "ids": None, "batch": BATCH, **self.given, **given}
        of_run = {"tenant_id": tx.tenant_id, "run_id": run.id, "moment": run.moment}
        return await tx.hot(self.statement, {"labels": list(self.labels), **of_run, **wanted})


_EXPIRE: Final = _Step("expire", "overdue_memories", expiring_labels())
_ARCHIVE: Final = _Step("archive", "memories_of_retired", retirable_labels(), {"apart": list(_APART)})


async def _plan_expiry(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    return await _plan(tx, run, cursor, _EXPIRE)


async def _plan_archiving(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    return await _plan(tx, run, cursor, _ARCHIVE)


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None, step: _Step) -> Plan:
    rows = await step.find(tx, run, after=cursor["after"] if cursor else _FIRST)
    after = {"status": ACTS[step.kind].status}
    changes = [
        Planned("memory", row["id"], {"status": row["status"]}, after, other=row.get("entity_id")) for row in rows
    ]
    return Plan(changes, {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


async def _expire(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    return await _act(tx, run, planned, _EXPIRE)


async def _archive(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    return await _act(tx, run, planned, _ARCHIVE)


async def _act(tx: Transaction, run: Run, planned: Sequence[Planned], step: _Step) -> Made:
    """Do it to those that it still is to be done to, once they are held: somebody may have put off a date meanwhile."""
    ids = [one.target for one in planned]
    await tx.hot("lock_memory_states", {"tenant_id": tx.tenant_id, "ids": ids})
    due = [row["id"] for row in await step.find(tx, run, ids=ids)]
    acts, events = await act_on_many(tx, run.principal, step.kind, due, {"cycle": run.cycle, "run": run.id})
    return Made([one for one in planned if one.target in acts], events, acts)


async def undo_memory_act(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    """Take back what an action did to a memory, by the act that it left in the memory's history."""
    ident, act_id = action["target_id"], action["act_id"]
    await undo_act(tx, undoing.outbox, undoing.principal, ident, act_id, undoing.request_id)
    return []


EXPIRY: Final = Work(_plan_expiry, _expire, undo_memory_act)
RETIREMENT: Final = Work(_plan_archiving, _archive, undo_memory_act)
