"""The shapes of memories, as requests bring them and answers show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.labels import LABELS, STATUSES
from memory_os.domain.shapes import NO_NUL, Confidence, Key, Moment, Payload, Tags, Title, UserId, one_of
from memory_os.sources.evidence_model import MAX_EVIDENCE, EvidenceDraft, Widen

Text = Annotated[
    str,
    Meta(
        min_length=1,
        pattern=NO_NUL,
        description="The knowledge itself; not blank.",
        examples=["Alex makes Detroit-style pizza from scratch."],
    ),
]
LabelName = Annotated[str, one_of(LABELS)]
StatusName = Annotated[str, one_of(STATUSES)]
EdgeTypeName = Annotated[str, one_of(EDGE_TYPES)]
Visibility = Literal["tenant", "private", "restricted"]


class Readers(Struct, forbid_unknown_fields=True):
    """Who may read a `restricted` record, beside its own user."""

    users: Annotated[list[UserId], Meta(max_length=200)] = []
    groups: Annotated[list[UserId], Meta(max_length=200)] = []


class NodeAddress(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One end of an edge: exactly one of a memory's and an entity's id."""

    memory: UUID | None = None
    entity: UUID | None = None


class DraftEdge(Struct, forbid_unknown_fields=True):
    """An edge stored together with its memory; `to` is a memory's id or a node's address."""

    type: EdgeTypeName
    to: UUID | NodeAddress
    direction: Literal["out", "in"] = "out"
    confidence: Confidence | None = None


class MemoryDraft(Struct, forbid_unknown_fields=True):
    """A memory as a client brings it."""

    text: Text
    label: LabelName
    id: UUID | None = None
    user_id: UserId | None = None
    title: Title | None = None
    confidence: Confidence = 1.0
    visibility: Annotated[
        Visibility | None,
        Meta(description="By default those may read it who may read all of its sources; without evidence, all."),
    ] = None
    readers: Readers | None = None
    occurred_at: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    subject: Key | None = None
    property: Key | None = None
    conversation_id: Key | None = None
    origin: Key | None = None
    tags: Tags = []
    metadata: Payload = {}
    edges: Annotated[list[DraftEdge], Meta(max_length=64)] = []
    evidence: Annotated[list[EvidenceDraft], Meta(max_length=MAX_EVIDENCE)] = []
    widen: Widen = False
    dedup: Annotated[
        Literal["gate", "off"],
        Meta(description="gate: one that says what is there already merges with it; off: stored as it is brought."),
    ] = "gate"
    on_conflict: Annotated[
        Literal["report", "supersede"],
        Meta(description="What to do with a memory that this one gives a new value to, or contradicts."),
    ] = "report"


class MemoryPatch(Struct, forbid_unknown_fields=True):
    """What to change of a memory; fields left out stay as they are, null empties an optional one."""

    text: Text | UnsetType = UNSET
    label: LabelName | UnsetType = UNSET
    status: StatusName | UnsetType = UNSET
    title: Title | UnsetType | None = UNSET
    confidence: Confidence | UnsetType = UNSET
    visibility: Visibility | UnsetType = UNSET
    readers: Readers | UnsetType = UNSET
    occurred_at: Moment | UnsetType | None = UNSET
    valid_from: Moment | UnsetType | None = UNSET
    valid_to: Moment | UnsetType | None = UNSET
    subject: Key | UnsetType | None = UNSET
    property: Key | UnsetType | None = UNSET
    tags: Tags | UnsetType = UNSET
    metadata: Payload | UnsetType = UNSET
    widen: Widen | UnsetType = UNSET


class Memory(Struct):
    """A memory as a reader sees it; of those that it supersedes, the one that held last."""

    id: UUID
    text: str
    label: str
    layer: str
    status: str
    title: str | None
    confidence: float
    visibility: str
    user_id: str | None
    readers: Readers
    occurred_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    created_at: datetime
    updated_at: datetime
    version: int
    subject: str | None
    property: str | None
    conversation_id: str | None
    origin: str | None
    tags: list[str]
    metadata: dict[str, Any]
    superseded_by: UUID | None = None
    supersedes: UUID | None = None


Outcome = Literal["created", "merged", "review", "superseded", "disputed"]


class Candidate(Struct, omit_defaults=True):
    """A memory that a new one was held against, and what the guard found between the two."""

    id: UUID
    text: str
    similarity: float | None
    tier: Literal["exact", "recent", "older"]
    verdict: Literal["merge", "distinct", "review", "supersede", "contradict"]
    rule: str
    guard: list[str]


class Check(Struct):
    """What the gate would do with a memory."""

    outcome: Literal["distinct", "merge", "review", "supersede", "contradict"]
    rule: str | None
    candidates: list[Candidate]


class StoredMemory(Struct, omit_defaults=True):
    """What became of a write; `position` is what to wait for to see it in the graph."""

    memory: Memory
    outcome: Outcome
    position: int
    duplicate_of: UUID | None = None
    similarity: float | None = None
    rule: str | None = None
    candidates: list[Candidate] = []
    act_id: UUID | None = None


class ChangedMemory(Struct):
    """A memory after a change."""

    memory: Memory
    position: int


class Deleted(Struct):
    """How many records a call deleted, and the position to wait for."""

    deleted: int
    position: int


class ProblemSummary(Struct, omit_defaults=True):
    """Why one item of a batch was not stored."""

    code: str
    title: str
    detail: str
    errors: list[dict[str, str]] = []
    allowed: list[str] = []
    did_you_mean: str | None = None


class BatchResult(Struct, omit_defaults=True):
    """The outcome of one item of a batch, at its place in the request."""

    index: int
    status: int
    memory_id: UUID | None = None
    outcome: Outcome | None = None
    similarity: float | None = None
    rule: str | None = None
    error: ProblemSummary | None = None


class BatchAnswer(Struct):
    """The outcomes of a batch, one an item, in the order of the request."""

    results: list[BatchResult]
    position: int
