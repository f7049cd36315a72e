"""The shapes of erasures, as requests bring them and receipts show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from memory_os.domain.shapes import NO_NUL
from memory_os.memories.lifecycle_model import Who

SubjectType = Literal["memory", "source", "user"]


class ErasureRequest(Struct, forbid_unknown_fields=True):
    """Why something is erased. The words are not kept: who gives a reason likely repeats what is to be forgotten."""

    reason: Annotated[str, Meta(min_length=1, max_length=2_000, pattern=NO_NUL, description="Not kept.")] | None = None


class Place(Struct, omit_defaults=True):
    """A place that was looked into, and how many of its rows were deleted or emptied there."""

    place: str
    rows: int
    note: str | None = None


class Receipt(Struct, kw_only=True):
    """What was erased and where. It names records by their ids, and holds nothing that they said.

    Of a user, `subject` is a SHA-256 digest of tenant, receipt and name: whoever knows the name can tell that it was
    this one, and nobody else can tell whose it was. The graph has followed when it has reached `position`.
    """

    id: UUID
    subject_type: SubjectType
    subject: str
    record_ids: list[UUID]
    places: list[Place]
    position: int
    at: datetime
    by: Who


class ReceiptSummary(Struct, kw_only=True):
    """A receipt in a list, with the number of its records instead of their ids."""

    id: UUID
    subject_type: SubjectType
    subject: str
    records: int
    position: int
    at: datetime
    by: Who
