"""Storing edges, alone or together with a memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from memory_os.domain.principal import Principal
from memory_os.memories.model import NodeAddress
from memory_os.storage import tables
from memory_os.storage.database import Transaction

DEFAULT_CONFIDENCE = 0.5
"""An edge that nobody rated: in the middle, so that use and disuse can move it either way."""

_TABLE = tables.edges


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """A checked edge on its way into the database."""

    id: UUID
    type: str
    source: NodeAddress
    target: NodeAddress
    confidence: float


async def visible_endpoints(tx: Transaction, addresses: Iterable[NodeAddress]) -> set[tuple[str, UUID]]:
    """Which of these nodes the reader sees, as (kind, id). Foreign keys alone would tell of invisible ones."""
    wanted: dict[str, set[UUID]] = {"memory": set(), "entity": set()}
    for address in addresses:
        if address.memory is not None:
            wanted["memory"].add(address.memory)
        if address.entity is not None:
            wanted["entity"].add(address.entity)
    seen: set[tuple[str, UUID]] = set()
    for kind, table in (("memory", tables.memories), ("entity", tables.entities)):
        if wanted[kind]:
            rows = await tx.rows(
                select(table.c.id).where(table.c.tenant_id == tx.tenant_id, table.c.id.in_(wanted[kind]))
            )
            seen |= {(kind, row["id"]) for row in rows}
    return seen


async def insert_edges(tx: Transaction, principal: Principal, edges: Sequence[EdgeRow]) -> list[UUID]:
    """Insert edges whose endpoints were checked; one that is there already (from, type, to) stays as it is.

    Returns:
        The ids of those that are new.
    """
    if not edges:
        return []
    statement = (
        insert(_TABLE)
        .values(
            [
                {
                    "tenant_id": tx.tenant_id,
                    "id": edge.id,
                    "type": edge.type,
                    "source_memory_id": edge.source.memory,
                    "source_entity_id": edge.source.entity,
                    "target_memory_id": edge.target.memory,
                    "target_entity_id": edge.target.entity,
                    "confidence": edge.confidence,
                    "created_by": principal.token_id,
                }
                for edge in edges
            ]
        )
        .on_conflict_do_nothing()
        .returning(_TABLE.c.id)
    )
    return [row["id"] for row in await tx.rows(statement)]
