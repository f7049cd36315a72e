"""What a node that goes takes with it: its edges and links, and what nothing else holds than these."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from memory_os.domain.ids import may_be_derived
from memory_os.outbox.events import DELETE, UPSERT, NewEvent
from memory_os.storage.database import Transaction


async def entities_beside(tx: Transaction, node_id: UUID) -> list[UUID]:
    """Entities that edges and links tie to a node; ask before the node is deleted, since these go with it."""
    async with tx.as_steward():
        return [row["id"] for row in await tx.hot("entities_beside", {"tenant_id": tx.tenant_id, "id": node_id})]


async def relations_beside(tx: Transaction, node_id: UUID) -> list[NewEvent]:
    """Events of the edges and links that go with a node; ask before the node is deleted.

    The graph drops a node with all that touches it, but only where it finds the node gone: if a client gives its id to
    another one before the deletion is projected, nothing else tells that these are gone.
    """
    async with tx.as_steward():
        rows = await tx.hot("relations_beside", {"tenant_id": tx.tenant_id, "id": node_id})
    return [NewEvent(DELETE, row["aggregate_type"], row["id"], row["version"] + 1) for row in rows]


def reconsider(entity_ids: Iterable[UUID | None]) -> list[NewEvent]:
    """Events that have the projection look again at those of these entities that may be derived.

    Declared ones stay whatever is tied to them. A derived one that nothing names and nothing ties down any more has no
    place in the graph, and no other event would speak of it.
    """
    held = {ident for ident in entity_ids if ident is not None and may_be_derived(ident)}
    return [NewEvent(UPSERT, "entity", ident, 1) for ident in sorted(held)]
