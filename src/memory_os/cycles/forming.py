"""Schemas: what is used together again and again is proposed as one higher-level Insight."""

from __future__ import annotations

from typing import Final

from memory_os.cycles.gathering import EdgeBounds, gather
from memory_os.cycles.planning import Cursor, Plan, Run, Work
from memory_os.cycles.proposing import BATCH, propose, store, take_back
from memory_os.domain.cycles.insights import CLUSTER, OFTEN, SURE, forms_schema
from memory_os.storage.database import Transaction


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    start = cursor["from"] if cursor else 0
    found = await gather(
        tx, EdgeBounds(OFTEN, SURE), lambda edge: forms_schema(edge["confidence"], edge["co_reference_count"]), CLUSTER
    )
    changes = await propose(tx, run, "form_schemas", found[start : start + BATCH])
    return Plan(changes, {"from": start + BATCH} if len(found) > start + BATCH else None)


FORMING: Final = Work(_plan, store, take_back)
