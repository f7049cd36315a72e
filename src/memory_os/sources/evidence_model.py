"""The shapes of evidence. Memories come with it, so this module knows nothing of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from msgspec import Meta, Struct

from memory_os.domain.shapes import NO_NUL, Confidence, UserId, one_of
from memory_os.domain.sources import SUPPORTS

MAX_EVIDENCE: Final = 32
"""Pieces of evidence that come with one memory."""

SupportName = Annotated[str, one_of(SUPPORTS)]
Quote = Annotated[
    str,
    Meta(min_length=1, max_length=32_768, pattern=NO_NUL, description="Stands in the passage word for word."),
]
Widen = Annotated[bool, Meta(description="Let some read the memory who may not read all of its sources; audited.")]


class EvidenceDraft(Struct, forbid_unknown_fields=True):
    """How a source bears on a memory; a quote without a passage is looked for in all passages of the source."""

    source_id: UUID
    support: SupportName
    passage_id: UUID | None = None
    quote: Quote | None = None
    confidence: Confidence = 1.0


class EvidenceAddition(Struct, forbid_unknown_fields=True):
    """Evidence for a memory that is stored already."""

    source_id: UUID
    support: SupportName
    passage_id: UUID | None = None
    quote: Quote | None = None
    confidence: Confidence = 1.0
    widen: Widen = False
    user_id: UserId | None = None

    def draft(self) -> EvidenceDraft:
        """The evidence itself."""
        return EvidenceDraft(self.source_id, self.support, self.passage_id, self.quote, self.confidence)


class EvidenceSource(Struct):
    """The source that evidence leads to; of a deleted one only the id is known."""

    id: UUID
    kind: str | None
    title: str | None
    source_date: datetime | None


class Recorder(Struct):
    """Who recorded evidence."""

    role: str
    user_id: str | None
    token_id: UUID | None


class Evidence(Struct):
    """How a source bears on a memory, as a reader of both sees it.

    What was withdrawn stays: by somebody (`withdrawn`), or with its source (`source_deleted`), which takes quote and
    passage with it.
    """

    id: UUID
    memory_id: UUID
    source: EvidenceSource
    passage_id: UUID | None
    locator: dict[str, Any] | None
    support: str
    confidence: float
    quote: str | None
    recorded: Recorder
    at: datetime
    withdrawn_at: datetime | None
    withdrawn_because: str | None


class StoredEvidence(Struct):
    """Evidence after a write."""

    evidence: Evidence
