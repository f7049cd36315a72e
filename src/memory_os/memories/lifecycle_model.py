"""The shapes of acts on memories, as requests bring them and answers and histories show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from memory_os.domain.shapes import NO_NUL, Confidence, Key, Moment, Payload, Tags, Title, UserId
from memory_os.memories.model import DraftEdge, LabelName, Memory, Readers, Text, Visibility
from memory_os.sources.evidence_model import MAX_EVIDENCE, EvidenceDraft, Widen

Reason = Annotated[str, Meta(min_length=1, max_length=2_000, pattern=NO_NUL, description="Shown in the history.")]


class Supersession(Struct, forbid_unknown_fields=True, kw_only=True):
    """What takes a memory's place: one that is stored already (`by`), or a new one as it would be stored.

    A new one has the label, subject, property and readers of the memory that it supersedes, unless it names its own.
    """

    by: UUID | None = None
    text: Text | None = None
    label: LabelName | None = None
    id: UUID | None = None
    user_id: UserId | None = None
    title: Title | None = None
    confidence: Confidence = 1.0
    visibility: Visibility | None = None
    readers: Readers | None = None
    occurred_at: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    subject: Key | UnsetType | None = UNSET
    property: Key | UnsetType | None = UNSET
    conversation_id: Key | None = None
    origin: Key | None = None
    tags: Tags = []
    metadata: Payload = {}
    edges: Annotated[list[DraftEdge], Meta(max_length=64)] = []
    evidence: Annotated[list[EvidenceDraft], Meta(max_length=MAX_EVIDENCE)] = []
    widen: Widen = False


class Retraction(Struct, forbid_unknown_fields=True):
    """Why a memory is withdrawn."""

    reason: Reason | None = None
    user_id: UserId | None = None


class Dispute(Struct, forbid_unknown_fields=True):
    """Why a memory is disputed, and which one it can't hold beside."""

    reason: Reason | None = None
    against: UUID | None = None
    user_id: UserId | None = None


class ActedMemory(Struct):
    """A memory after an act; `act_id` is what to undo, `position` what to wait for."""

    memory: Memory
    act_id: UUID
    position: int


class SupersededMemory(Struct):
    """A memory that took another one's place, and that other one."""

    memory: Memory
    outcome: str
    superseded: Memory
    act_id: UUID
    position: int


class Who(Struct):
    """Who acted; the role is null for the creation, which is no act."""

    role: str | None
    user_id: str | None


class HistoryEntry(Struct):
    """One act of a memory's history.

    Attributes:
        kind: What was done; `create` is the memory's own beginning.
        memory_id: The memory that it was done to.
        other_id: The other memory of it, where this reader may see that one.
        detail: Of a change the fields before and after; else counts and reasons. Empty for who could not have read
            the memory at that time.
        undone_at: When it was taken back.
    """

    id: UUID
    kind: str
    at: datetime
    who: Who
    memory_id: UUID
    other_id: UUID | None
    detail: dict[str, Any]
    undone_at: datetime | None
