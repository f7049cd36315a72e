"""What is in a tenant's graph, as a reader may know it, and how far it is behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct
from sqlalchemy import select

from memory_os.errors import UnavailableError
from memory_os.graph.facade import GraphMemory
from memory_os.graph.port import EntityNode, GraphError
from memory_os.graph.port import GraphStats as Counts
from memory_os.outbox.gauges import Lag, graph_lag
from memory_os.projection.graph_states import graph_condition
from memory_os.storage import tables
from memory_os.storage.database import Transaction


class TopEntity(Struct):
    """An entity with its strength in the graph (0 to 5) and the number of memories that mention it."""

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
    left out.
    """
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
    known = [(ident, node, mentions) for node, mentions in top if (ident := _uuid(node.id)) is not None]
    names = await visible_names(tx, tenant_id, [ident for ident, _, _ in known])
    return [
        TopEntity(ident, names[ident], node.strength, mentions) for ident, node, mentions in known if ident in names
    ]


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
    rows = await tx.rows(select(columns.id, columns.name).where(columns.tenant_id == tenant_id, columns.id.in_(ids)))
    return {row["id"]: row["name"] for row in rows}
