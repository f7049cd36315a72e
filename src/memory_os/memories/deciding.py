"""Deciding about a pair that the gate has queued: merge, supersede, dispute, or keep both."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import Meta, Struct
from sqlalchemy import func, update

from memory_os.admin.audit import record
from memory_os.domain.audiences import Audience
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import NO_NUL
from memory_os.errors import ConflictError
from memory_os.memories.absorbing import Grounds, absorb
from memory_os.memories.disputing import dispute
from memory_os.memories.reviewing import Review, get_review
from memory_os.memories.superseding import supersede
from memory_os.outbox.events import Outbox
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.memory_reviews

Verdict = Literal["merge", "supersede", "dispute", "keep"]

_STATUSES: Final = {"merge": "merged", "supersede": "superseded", "dispute": "disputed", "keep": "kept"}


class ReviewDecision(Struct, forbid_unknown_fields=True):
    """What is to become of the two: the newer merges into the older, supersedes it, contradicts it, or both stay."""

    decision: Verdict
    reason: Annotated[str, Meta(max_length=1000, pattern=NO_NUL)] | None = None


class DecidedReview(Struct):
    """A review that was decided, with both memories as they are now; `act_id` is what an undo needs."""

    review: Review
    act_id: UUID | None
    position: int


async def decide_review(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    review_id: UUID,
    decision: ReviewDecision,
    request_id: str | None,
) -> DecidedReview:
    """Decide about a pair, and do what follows.

    Raises:
        NotFoundError: If there is no such review for this reader.
        ConflictError: If it is decided already, or the memories have changed so that it can't be done.
    """
    review = await get_review(tx, review_id, lock=True)
    if review.status != "open":
        raise ConflictError(f"the review is decided already: {review.status}; undo the act to take that back")
    act_id, position = await _act(tx, outbox, principal, review, decision, request_id)
    await tx.run(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == review_id)
        .values(
            status=_STATUSES[decision.decision],
            decided_at=func.now(),
            decided_by=principal.user_id or principal.role,
            reason=decision.reason,
        )
    )
    detail = {"decision": decision.decision, "other": review.other.id}
    both = [Audience.of(review.memory), Audience.of(review.other)]
    await record(
        tx,
        principal,
        "review.decide",
        "memory",
        review.memory.id,
        detail,
        request_id,
        content=_reason(decision),
        readers=both,
    )
    return DecidedReview(await get_review(tx, review_id), act_id, position)


def _reason(decision: ReviewDecision) -> dict[str, str]:
    return {} if decision.reason is None else {"reason": decision.reason}


async def _act(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    review: Review,
    decision: ReviewDecision,
    request_id: str | None,
) -> tuple[UUID | None, int]:
    newer, older = review.memory, review.other
    done: Any
    if decision.decision == "merge":
        grounds = Grounds(review.similarity, review.tier, review.rule, review.guard)
        done = await absorb(tx, outbox, principal, newer, older, grounds, request_id)
    elif decision.decision == "supersede":
        done = await supersede(tx, outbox, principal, older, newer, request_id)
    elif decision.decision == "dispute":
        done = await dispute(tx, outbox, principal, newer, against=older, reason=decision.reason, request_id=request_id)
    else:
        return None, 0
    return done.act_id, done.position
