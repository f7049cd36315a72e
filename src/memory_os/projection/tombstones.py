"""Telling what was deleted from what can't be seen: only a tombstone proves a deletion.

A row that an event names and that is not there was deleted; but so it looks, too, to a worker whose transaction has
entered no tenant or the wrong one. Row-level security then shows nothing and says nothing, and everything that was
asked for would be removed from the graph.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from memory_os.graph.port import FenceLostError
from memory_os.outbox.queue import Lease
from memory_os.storage.database import Transaction


class UnseenRowError(Exception):
    """Rows that must be there can't be seen, so nothing can be said about what is not."""


async def hold_tenant(tx: Transaction, lease: Lease, *, sees: bool = True) -> None:
    """Make sure that this transaction works for who holds the tenant, until it ends, and sees the tenant's rows.

    What is derived in Postgres has no fence of its own: a worker that slept past its lease would put what it read
    before into the place of what another one has derived since, and no event would come to tell of it.

    Args:
        tx: The unit of work; this is the first that it does.
        lease: The worker's hold on the tenant.
        sees: Whether the tenant's own rows are read; those of its queue and its graph can be seen from everywhere.

    Raises:
        FenceLostError: The tenant is somebody else's by now.
        UnseenRowError: The transaction has not entered the tenant.
    """
    rows = await tx.hot("hold_tenant", {"tenant_id": lease.tenant_id, "token": lease.token})
    if not rows:
        raise FenceLostError(f"the lease of tenant {lease.tenant_id} was lost")
    if sees and not rows[0]["entered"]:
        raise UnseenRowError(f"the transaction has not entered the tenant {lease.tenant_id}")


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
