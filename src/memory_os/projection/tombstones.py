"""Telling what was deleted from what can't be seen: only a tombstone proves a deletion.

A row that an event names and that is not there was deleted; but so it looks, too, to a worker whose transaction has
entered no tenant or the wrong one. Row-level security then shows nothing and says nothing, and everything that was
asked for would be removed from the graph.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from memory_os.storage.database import Transaction


class UnseenRowError(Exception):
    """An aggregate that an event names is neither there nor deleted, so nothing can be said about it."""


async def require_tombstones(tx: Transaction, missing: Collection[UUID]) -> None:
    """Make sure that what is not there was deleted.

    Raises:
        UnseenRowError: There is no tombstone of one of them.
    """
    if not missing:
        return
    rows = await tx.hot("tombstones_of", {"tenant_id": tx.tenant_id, "ids": sorted(missing)})
    if unseen := set(missing) - {row["aggregate_id"] for row in rows}:
        raise UnseenRowError(
            f"{len(unseen)} of the rows that events name are neither visible nor deleted: {min(unseen)}"
        )
