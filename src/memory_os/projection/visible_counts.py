"""What a tenant's graph holds of that which a reader may see, counted in the canonical rows.

The graph counts all, hidden records too, and a number that changes with these would tell of them.
"""

from __future__ import annotations

from uuid import UUID

from memory_os.domain.weights import CAP, MENTION_STEP, strength
from memory_os.graph.port import STRONGEST, EntityNode, GraphStats
from memory_os.storage.database import Transaction


async def count_visible(tx: Transaction, tenant_id: UUID) -> GraphStats:
    """Counts as `GraphBackend.stats` gives them, under the reader's row-level security."""
    nodes: dict[str, int] = {}
    edges: dict[str, int] = {}
    for row in await tx.hot("count_visible", {"tenant_id": tenant_id}):
        if row["number"]:
            (nodes if row["what"] == "node" else edges)[row["kind"]] = row["number"]
    bounds = {"cap": CAP, "step": MENTION_STEP, "limit": STRONGEST}
    strongest = await tx.hot("strongest_visible", {"tenant_id": tenant_id, **bounds})
    return GraphStats(
        nodes=sum(nodes.values()),
        edges=sum(edges.values()),
        entity_nodes=nodes.get("entity", 0),
        memory_nodes=nodes.get("memory", 0),
        edges_by_type=dict(sorted(edges.items())),
        top_entities=[
            (
                EntityNode(
                    str(row["id"]),
                    "",  # the report looks it up
                    row["entity_type"],
                    strength(row["confidence"], row["occurrences"]),
                    declared=row["declared"],
                ),
                row["mentions"],
            )
            for row in strongest
        ],
    )
