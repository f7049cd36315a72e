"""Edges that no answer uses fade, and those that are weak for long are put into the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Undoing, Work
from memory_os.domain.cycles.forgetting import (
    REST,
    STEP,
    UNUSED,
    UsedEdge,
    faded_confidence,
    fading_types,
    is_prunable,
    prunable_types,
)
from memory_os.edges.holding import reconsider
from memory_os.errors import ConflictError
from memory_os.outbox.events import DELETE, UPSERT, NewEvent
from memory_os.storage.database import Transaction

BATCH: Final = 500
"""Edges of one batch: whoever writes one of them waits for some 50 ms."""

_FIRST: Final = UUID(int=0)


async def _unused(
    tx: Transaction, run: Run, cursor: Cursor | None, since: timedelta, types: Sequence[str]
) -> list[dict[str, Any]]:
    given = {"after": cursor["after"] if cursor else _FIRST, "since": run.moment - since, "types": list(types)}
    return await tx.hot("unused_edges", {"tenant_id": tx.tenant_id, "batch": BATCH, **given})


def _cursor(rows: Sequence[Mapping[str, Any]]) -> Cursor | None:
    return {"after": str(rows[-1]["id"])} if len(rows) == BATCH else None


def _edge_of(row: Mapping[str, Any]) -> UsedEdge:
    return UsedEdge(
        row["type"], row["confidence"], row["co_reference_count"], row["used_at"], row["faded_at"], row["committed"]
    )


async def _plan_fading(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    rows = await _unused(tx, run, cursor, REST, fading_types())
    changes = []
    for row in rows:
        after = faded_confidence(_edge_of(row), run.moment)
        if after < row["confidence"] and after <= row["confidence"] * (1 - STEP):  # one of 0 has nothing to lose
            before = {name: row[name] for name in ("confidence", "claimed_confidence", "faded_at")}
            changes.append(Planned("edge", row["id"], before, {"confidence": after}, work=row["used_at"]))
    return Plan(changes, _cursor(rows))


async def _fade(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    rows = await tx.hot(
        "fade_edges",
        {
            "tenant_id": tx.tenant_id,
            "moment": run.moment,
            "ids": [one.target for one in planned],
            "befores": [one.before["confidence"] for one in planned],
            "afters": [one.after["confidence"] for one in planned],
            "claimed_befores": [one.before["claimed_confidence"] for one in planned],
            "claimed": [_faded_claim(one) for one in planned],
            "used": [one.work for one in planned],
        },
    )
    made = {row["id"] for row in rows}
    events = [NewEvent(UPSERT, "edge", row["id"], row["version"]) for row in rows]
    return Made([one for one in planned if one.target in made], events)


def _faded_claim(planned: Planned) -> float | None:
    """What an edge is worth without the answers that used it fades by the same share."""
    claimed: float | None = planned.before["claimed_confidence"]
    if claimed is None:
        return None
    after: float = planned.after["confidence"]
    return min(claimed * (after / planned.before["confidence"]), after)  # what rounding adds, nobody has claimed


async def _unfade(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    del undoing
    before = action["before"]
    given = {
        "tenant_id": tx.tenant_id,
        "id": action["target_id"],
        "before": before["confidence"],
        "claimed": before["claimed_confidence"],
        "faded_at": before["faded_at"] and datetime.fromisoformat(before["faded_at"]),
        "after": action["after"]["confidence"],
    }
    rows = await tx.hot("unfade_edge", given)
    if not rows:
        raise ConflictError("the edge has changed since, or is gone: nothing is taken back from it")
    return [NewEvent(UPSERT, "edge", row["id"], row["version"]) for row in rows]


async def _plan_pruning(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    rows = await _unused(tx, run, cursor, UNUSED, prunable_types())
    changes = [
        Planned("edge", row["id"], {"confidence": row["confidence"]}, {"archived": True}, work=row["used_at"])
        for row in rows
        if is_prunable(_edge_of(row), run.moment)
    ]
    return Plan(changes, _cursor(rows))


async def _archive(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    del run
    rows = await tx.hot(
        "archive_edges",
        {
            "tenant_id": tx.tenant_id,
            "ids": [one.target for one in planned],
            "confidences": [one.before["confidence"] for one in planned],
            "used": [one.work for one in planned],
        },
    )
    made = {row["id"] for row in rows}
    events = [NewEvent(DELETE, "edge", row["id"], row["version"] + 1) for row in rows]
    events += reconsider(row[side] for row in rows for side in ("source_entity_id", "target_entity_id"))
    return Made([one for one in planned if one.target in made], events)


async def _return(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    del undoing
    rows = await tx.hot("return_archived_edge", {"tenant_id": tx.tenant_id, "id": action["target_id"]})
    if not rows:
        raise ConflictError("the edge is gone for good, or the same is claimed again by now")
    return [NewEvent(UPSERT, "edge", row["id"], row["version"]) for row in rows]


FADING: Final = Work(_plan_fading, _fade, _unfade)
PRUNING: Final = Work(_plan_pruning, _archive, _return)
