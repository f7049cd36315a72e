"""The shapes of edges, as requests bring them and answers show them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import Struct, field

from memory_os.domain.shapes import Confidence, UserId
from memory_os.memories.model import EdgeTypeName, NodeAddress


class EdgeDraft(Struct, forbid_unknown_fields=True):
    """An edge as a client claims it: a type, and the two ends that the claim leads from and to."""

    type: EdgeTypeName
    source: NodeAddress = field(name="from")
    to: NodeAddress
    id: UUID | None = None
    user_id: UserId | None = None
    confidence: Confidence | None = None


class Edge(Struct):
    """An edge as a reader sees it, who sees both of its ends."""

    id: UUID
    type: str
    source: NodeAddress = field(name="from")
    to: NodeAddress
    confidence: float
    co_reference_count: int
    created_at: datetime
    updated_at: datetime
    version: int


class StoredEdge(Struct):
    """An edge after a write; `position` is what to wait for to see it in the graph, 0 when nothing changed."""

    edge: Edge
    position: int
