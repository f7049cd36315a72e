"""Applying what retrievals walked to the canonical edges: once each, within the circuit breakers, never beyond 1.0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from memory_os.domain.reinforcement import GONE, NOT_DRAWN, SPENT, Walk, draw, period_of
from memory_os.domain.weights import reinforced
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.storage.database import Transaction

COUNTED: Final = "counted"
"""The outcome of a walk that counts; the other outcomes are the reasons for which one does not."""

MOST_REFERENCES: Final = 2**31 - 1
"""What the column of the counts holds."""


async def reinforce(tx: Transaction, outbox: Outbox, *, share: float, batch: int) -> Counter[str]:
    """Settle up to `batch` walks that wait, and have the edges projected that gain by them.

    All of it is one transaction: whatever stops it, the walks wait as before and no edge has gained.

    Args:
        tx: The unit of work, in the worker's scope and the tenant's.
        outbox: Where the edges' events go.
        share: Of the unconfirmed walks that may count, 0 to 1.
        batch: Walks at most.

    Returns:
        How many walks came to which outcome; together fewer than `batch` say that no more wait.
    """
    walks = [_walk_of(row) for row in await tx.hot("claim_walks", {"tenant_id": tx.tenant_id, "batch": batch})]
    if not walks:
        return Counter()
    wanted, left = draw(walks, share)
    outcomes: dict[Walk, str] = dict.fromkeys(left, NOT_DRAWN)
    edges = {row["id"]: row for row in await _lock(tx, {walk.edge_id for walk in wanted})}
    outcomes |= {walk: GONE for walk in wanted if walk.edge_id not in edges}
    counted = await _spend(tx, [walk for walk in wanted if walk.edge_id in edges])
    outcomes |= {walk: COUNTED if walk in counted else SPENT for walk in wanted if walk.edge_id in edges}
    events = await _add(tx, edges, Counter(walk.edge_id for walk in counted))
    await _settle(tx, outcomes)
    await outbox.enqueue(tx, events, None)
    return Counter(outcomes.values())


def _walk_of(row: Mapping[str, Any]) -> Walk:
    period = period_of(row["conversation_id"], row["user_id"], row["token_id"], row["created_at"])
    return Walk(row["retrieval_id"], row["edge_id"], row["record_id"], row["confirmed"], period)


async def _lock(tx: Transaction, edge_ids: Iterable[UUID]) -> list[dict[str, Any]]:
    return await tx.hot("lock_edges", {"tenant_id": tx.tenant_id, "ids": sorted(edge_ids)})


async def _spend(tx: Transaction, walks: Sequence[Walk]) -> set[Walk]:
    """The walks that are the first of their edge and period."""
    firsts: dict[tuple[UUID, str], Walk] = {}
    for walk in walks:
        firsts.setdefault((walk.edge_id, walk.period), walk)
    if not firsts:
        return set()
    given = {
        "tenant_id": tx.tenant_id,
        "edge_ids": [walk.edge_id for walk in firsts.values()],
        "periods": [walk.period for walk in firsts.values()],
        "retrieval_ids": [walk.retrieval_id for walk in firsts.values()],
    }
    return {firsts[row["edge_id"], row["period"]] for row in await tx.hot("spend_periods", given)}


async def _add(tx: Transaction, edges: Mapping[UUID, Mapping[str, Any]], gains: Counter[UUID]) -> list[NewEvent]:
    if not gains:
        return []
    ids = sorted(gains)
    given = {
        "tenant_id": tx.tenant_id,
        "ids": ids,
        "confidences": [reinforced(edges[ident]["confidence"], gains[ident]) for ident in ids],
        "counts": [min(MOST_REFERENCES, edges[ident]["co_reference_count"] + gains[ident]) for ident in ids],
    }
    return [NewEvent(UPSERT, "edge", row["id"], row["version"]) for row in await tx.hot("reinforce_edges", given)]


async def _settle(tx: Transaction, outcomes: Mapping[Walk, str]) -> None:
    counts = [outcome == COUNTED for outcome in outcomes.values()]
    await tx.touched(
        "settle_walks",
        {
            "tenant_id": tx.tenant_id,
            "retrieval_ids": [walk.retrieval_id for walk in outcomes],
            "edge_ids": [walk.edge_id for walk in outcomes],
            "record_ids": [walk.record_id for walk in outcomes],
            "states": ["counted" if one else "skipped" for one in counts],
            "reasons": [None if one else outcome for one, outcome in zip(counts, outcomes.values(), strict=True)],
        },
    )
