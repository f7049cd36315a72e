"""The shapes of candidates for Insights, as requests bring them and answers show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from memory_os.domain.cycles.insights import CandidateStatus, SummaryKind
from memory_os.domain.shapes import NO_NUL, Title
from memory_os.memories.model import Memory, NodeAddress, Readers, Text


class InsightCandidate(Struct):
    """What a cycle proposes as an Insight.

    `summary` tells whose words title and text are: its members', or a model's. `memory_id` is the Insight that an
    accepted one became, null if that is gone by now.
    """

    id: UUID
    rule: str
    status: CandidateStatus
    title: str
    text: str
    summary: SummaryKind
    strength: float
    visibility: str
    user_id: str | None
    readers: Readers
    members: list[NodeAddress]
    memory_id: UUID | None
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    reason: str | None


class Acceptance(Struct, forbid_unknown_fields=True):
    """How a candidate is accepted: as it is, or with other words."""

    title: Title | None = None
    text: Text | None = None


class Rejection(Struct, forbid_unknown_fields=True):
    """Why a candidate is rejected. It stays, so that it is not proposed again."""

    reason: Annotated[str, Meta(max_length=1000, pattern=NO_NUL)] | None = None


class AcceptedInsight(Struct):
    """A candidate that was accepted, with the Insight that it became; `position` is what to wait for in the graph."""

    candidate: InsightCandidate
    memory: Memory
    position: int
