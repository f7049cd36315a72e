"""Patterns: what grew together within a week, across layers or types of entities, is proposed as an Insight."""

from __future__ import annotations

from typing import Final

from memory_os.cycles.gathering import EdgeBounds, gather
from memory_os.cycles.planning import Cursor, Plan, Run, Work
from memory_os.cycles.proposing import BATCH, propose, store, take_back
from memory_os.domain.cycles.insights import PATTERN, WEEK, spans_domains, strengthened
from memory_os.storage.database import Transaction


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    start = cursor["from"] if cursor else 0
    communities = await gather(
        tx,
        EdgeBounds(references=1, since=run.moment - WEEK, until=run.moment),
        lambda edge: strengthened(edge["used_at"], edge["co_reference_count"], run.moment),
        PATTERN,
    )
    found = [one for one in communities if spans_domains(one.layers, one.entity_types)]
    changes = await propose(tx, run, "find_patterns", found[start : start + BATCH])
    return Plan(changes, {"from": start + BATCH} if len(found) > start + BATCH else None)


PATTERNS: Final = Work(_plan, store, take_back)
