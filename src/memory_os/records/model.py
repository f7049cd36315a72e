"""The shape that observations, procedures and outcomes share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from memory_os.domain.shapes import NO_NUL, Confidence, Payload, Title, UserId, one_of
from memory_os.memories.model import Readers, Visibility

RecordLayer = Literal["observation", "procedure", "outcome"]

RECORD_STATUSES: Final[Mapping[str, str]] = MappingProxyType(
    {"active": "In use.", "archived": "Out of the way, not gone."}
)

Summary = Annotated[str, Meta(max_length=32_768, pattern=NO_NUL)]
RecordStatus = Annotated[str, one_of(RECORD_STATUSES)]


class RecordDraft(Struct, forbid_unknown_fields=True):
    """A record as a client brings it."""

    title: Title
    summary: Summary = ""
    payload: Payload = {}
    confidence: Confidence = 1.0
    status: RecordStatus = "active"
    id: UUID | None = None
    user_id: UserId | None = None
    visibility: Visibility = "tenant"
    readers: Readers | None = None


class RecordPatch(Struct, forbid_unknown_fields=True):
    """What to change of a record; fields left out stay as they are."""

    title: Title | UnsetType = UNSET
    summary: Summary | UnsetType = UNSET
    payload: Payload | UnsetType = UNSET
    confidence: Confidence | UnsetType = UNSET
    status: RecordStatus | UnsetType = UNSET
    visibility: Visibility | UnsetType = UNSET
    readers: Readers | UnsetType = UNSET


class Record(Struct):
    """An observation, procedure or outcome as a reader sees it."""

    id: UUID
    title: str
    summary: str
    payload: dict[str, Any]
    confidence: float
    status: str
    visibility: str
    user_id: str | None
    readers: Readers
    created_at: datetime
    updated_at: datetime
    version: int


class StoredObservation(Struct):
    """An observation after a write; `position` is 0, for records have no projection of their own."""

    observation: Record
    position: int = 0


class StoredProcedure(Struct):
    """A procedure after a write; `position` is 0, for records have no projection of their own."""

    procedure: Record
    position: int = 0


class StoredOutcome(Struct):
    """An outcome after a write; `position` is 0, for records have no projection of their own."""

    outcome: Record
    position: int = 0
