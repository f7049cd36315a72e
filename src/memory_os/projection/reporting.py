"""What is in a tenant's graph, as a reader may know it, and how far it is behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct
from sqlalchemy import distinct, func, select

from memory_os.domain.roles import may
from memory_os.domain.weights import strength
from memory_os.errors import UnavailableError
from memory_os.graph.facade import GraphMemory
from memory_os.graph.port import EntityNode, GraphError
from memory_os.graph.port import GraphStats as Counts
from memory_os.outbox.gauges import Lag, graph_lag
from memory_os.projection.graph_states import graph_condition
from memory_os.projection.visible_counts import count_visible
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.shown_names import shown_name


class TopEntity(Struct):
    """One of the strongest entities, with its strength (0 to 5) and the number of memories that mention it.

    Both are reckoned from the memories that the reader may see: they do not betray hidden ones.
    """

    id: UUID
    name: str
    strength: float
    mentions: int


class LagReport(Struct):
    """Events that still have to be projected, and the age in seconds of the oldest."""

    events: int
    seconds: float


class GraphReport(Struct):
    """What is in a tenant's graph. Up to `position`, every event has been projected or parked.

    While `doubt` says something, the graph was lost, damaged or on a server that was restarted, and is not known to be
    mended. At `verified_at` it was last compared with the canonical rows; null while it never was.
    """

    enabled: bool
    backend: str | None
    nodes: int
    edges: int
    entity_nodes: int
    memory_nodes: int
    edges_by_type: dict[str, int]
    top_entities: list[TopEntity]
    lag: LagReport
    position: int
    doubt: str | None
    verified_at: datetime | None


async def count_graph(graph: GraphMemory | None, tenant_id: UUID) -> Counts:
    """Ask the backend, outside of any transaction; all zero while graph memory is off.

    Raises:
        UnavailableError: If the graph can't answer.
    """
    if graph is None:
        return Counts()
    try:
        return await graph.stats(tenant_id)
    except GraphError:
        raise UnavailableError(
            "the graph does not answer now; what is stored is safe", headers={"Retry-After": "5"}
        ) from None


async def report_graph(tx: Transaction, graph: GraphMemory | None, tenant_id: UUID, counts: Counts) -> GraphReport:
    """The counts with names, lag, and whether the graph is in doubt.

    Names come from the canonical rows under the reader's row-level security: an entity that the reader may not see is
    left out. Who is no operator gets counts of what they may see.
    """
    if graph is not None and not may(tx.scope.role, "operate"):
        counts = await count_visible(tx, tenant_id)
    lag = Lag(0, 0.0, 0) if graph is None else await graph_lag(tx, tenant_id)
    condition = None if graph is None else await graph_condition(tx, tenant_id)
    return GraphReport(
        enabled=graph is not None,
        backend=graph.backend.name if graph is not None else None,
        nodes=counts.nodes,
        edges=counts.edges,
        entity_nodes=counts.entity_nodes,
        memory_nodes=counts.memory_nodes,
        edges_by_type=dict(counts.edges_by_type),
        top_entities=await _visible(tx, tenant_id, counts.top_entities),
        lag=LagReport(lag.events, lag.seconds),
        position=lag.position,
        doubt=condition.doubt if condition else None,
        verified_at=condition.verified_at if condition else None,
    )


async def _visible(tx: Transaction, tenant_id: UUID, top: Sequence[tuple[EntityNode, int]]) -> list[TopEntity]:
    # What a damaged graph calls an entity may be no id of ours.
    ids = [ident for node, _ in top if (ident := _uuid(node.id)) is not None]
    names = await visible_names(tx, tenant_id, ids)
    mentions = await _visible_mentions(tx, tenant_id, list(names))
    found = [TopEntity(ident, names[ident], *mentions.get(ident, (0.0, 0))) for ident in ids if ident in names]
    return sorted(found, key=lambda entity: (-entity.strength, -entity.mentions))


async def _visible_mentions(tx: Transaction, tenant_id: UUID, ids: Collection[UUID]) -> dict[UUID, tuple[float, int]]:
    """Strength of entities, and the number of memories that mention them, of those that the reader may see."""
    columns = tables.mentions.c
    if not ids:
        return {}
    rows = await tx.rows(
        select(
            columns.entity_id,
            func.count(distinct(columns.memory_id)).label("records"),
            func.sum(columns.occurrences).label("occurrences"),
            func.max(columns.confidence).label("confidence"),
        )
        .where(columns.tenant_id == tenant_id, columns.entity_id.in_(ids))
        .group_by(columns.entity_id)
    )
    return {row["entity_id"]: (strength(row["confidence"], int(row["occurrences"])), row["records"]) for row in rows}


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def visible_names(tx: Transaction, tenant_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    """Names of entities by id; those that the reader may not see are left out, and root sees none."""
    columns = tables.entities.c
    if not ids:
        return {}
    name = shown_name(tables.entities).label("name")
    rows = await tx.rows(select(columns.id, name).where(columns.tenant_id == tenant_id, columns.id.in_(ids)))
    return {row["id"]: row["name"] for row in rows}
