"""The shapes of corrections, as requests bring them and answers show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from memory_os.domain.corrections import CORRECTION_KINDS
from memory_os.domain.shapes import Moment, UserId, one_of
from memory_os.memories.lifecycle_model import Reason, Who
from memory_os.memories.model import LabelName, Memory, Text
from memory_os.sources.evidence_model import Widen

KindName = Annotated[str, one_of(CORRECTION_KINDS)]


class Proposal(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What is right instead; each kind of correction has its own fields.

    `replace_text` has text; `wrong_label` label; `wrong_entity` from and to, and text where the names in it are not
    all that changes; `wrong_date` at least one of the three times, null for none; `dispute` may have against;
    `retract` has nothing.
    """

    text: Text | UnsetType = UNSET
    label: LabelName | UnsetType = UNSET
    former: UUID | UnsetType = field(default=UNSET, name="from")
    meant: UUID | UnsetType = field(default=UNSET, name="to")
    occurred_at: Moment | UnsetType | None = UNSET
    valid_from: Moment | UnsetType | None = UNSET
    valid_to: Moment | UnsetType | None = UNSET
    against: UUID | UnsetType = UNSET


class CorrectionDraft(Struct, forbid_unknown_fields=True, kw_only=True):
    """What somebody says is wrong with a memory, and why."""

    target: Annotated[UUID, Meta(description="The memory.")]
    kind: KindName
    proposal: Proposal = field(default_factory=Proposal)
    reason: Reason
    source_id: Annotated[
        UUID | None, Meta(description="What says so; it becomes evidence of the memory that takes the place.")
    ] = None
    retrieval_id: Annotated[UUID | None, Meta(description="The answer in which the memory was met.")] = None
    user_id: UserId | None = None


class Application(Struct, forbid_unknown_fields=True):
    """Why a correction is applied. `widen` concerns the source that it rests on, and the entity that it names."""

    reason: Reason | None = None
    widen: Widen = False


class Rejection(Struct, forbid_unknown_fields=True):
    """Why a correction is rejected."""

    reason: Reason


class Correction(Struct):
    """A correction as a reader of its memory sees it.

    Attributes:
        target: The memory that is said to be wrong.
        proposal: What is right instead, without the ids of what this reader may not see.
        reason: Why. Like `proposal` and `decision_reason` it is left out for who could not read the memory at that
            time; a memory may have got more readers since.
        source_id: What it rests on, where this reader may see that.
        retrieval_id: The answer in which the memory was met, where this reader may see that.
        memory_version: The version of the memory that it was said of.
        act_id: What applying it did; undo that to take it back.
        result_id: The memory that took the place, where one did and this reader may see it.
    """

    id: UUID
    target: UUID
    kind: str
    proposal: dict[str, Any]
    reason: str | None
    source_id: UUID | None
    retrieval_id: UUID | None
    memory_version: int
    status: str
    created_at: datetime
    proposed_by: Who
    decided_at: datetime | None
    decided_by: Who | None
    decision_reason: str | None
    act_id: UUID | None
    result_id: UUID | None


class StoredCorrection(Struct):
    """A correction after a write."""

    correction: Correction


class AppliedCorrection(Struct):
    """A correction that was applied: its memory as it is now, and the one that took its place, if one did."""

    correction: Correction
    memory: Memory
    result: Memory | None
    act_id: UUID
    position: int
