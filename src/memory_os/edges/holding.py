"""Derived entities that an edge or a link holds: when it goes, they may have nothing left that keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from memory_os.domain.ids import may_be_derived
from memory_os.outbox.events import UPSERT, NewEvent
from memory_os.storage.database import Transaction


async def entities_beside(tx: Transaction, node_id: UUID) -> list[UUID]:
    """Entities that edges and links tie to a node; ask before the node is deleted, since these go with it."""
    return [row["id"] for row in await tx.hot("entities_beside", {"tenant_id": tx.tenant_id, "id": node_id})]


def reconsider(entity_ids: Iterable[UUID | None]) -> list[NewEvent]:
    """Events that have the projection look again at those of these entities that may be derived.

    Declared ones stay whatever is tied to them. A derived one that nothing names and nothing ties down any more has no
    place in the graph, and no other event would speak of it.
    """
    held = {ident for ident in entity_ids if ident is not None and may_be_derived(ident)}
    return [NewEvent(UPSERT, "entity", ident, 1) for ident in sorted(held)]
