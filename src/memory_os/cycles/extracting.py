"""Memories whose extraction failed, or is of an older extractor, are read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Undoing, Work
from memory_os.outbox.events import UPSERT, NewEvent
from memory_os.projection.derivation import EXTRACTED_BY
from memory_os.storage.database import Transaction

BATCH: Final = 500
_FIRST: Final = UUID(int=0)


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    after = cursor["after"] if cursor else _FIRST
    given = {"tenant_id": tx.tenant_id, "after": after, "moment": run.moment, "batch": BATCH, **EXTRACTED_BY}
    rows = await tx.hot("memories_to_extract_again", given)
    changes = [
        Planned(
            "memory",
            row["id"],
            {"extractor": row["extractor"], "extractor_version": row["extractor_version"]},
            dict(EXTRACTED_BY),
            work=row["version"],
        )
        for row in rows
    ]
    return Plan(changes, {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


async def _ask(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    del tx, run
    return Made(planned, [NewEvent(UPSERT, "memory", one.target, one.work) for one in planned])


async def _leave(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    """Nothing is to be taken back: what a memory mentions follows its text, whoever asked for it to be read."""
    del tx, undoing, action
    return []


EXTRACTION: Final = Work(_plan, _ask, _leave)
