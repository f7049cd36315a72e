"""What a retrieval may add to the edges that it walked, and the breakers that keep it from feeding on itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final, Literal
from uuid import UUID

Verdict = Literal["used", "irrelevant", "wrong"]
"""What the asker says of a record of a pack."""

SkipReason = Literal["share", "period", "gone", "irrelevant", "wrong"]
"""Why a walk does not count: not drawn, the edge has had its share of this period, it is no more, or the verdict."""

NOT_DRAWN: Final[SkipReason] = "share"
SPENT: Final[SkipReason] = "period"
GONE: Final[SkipReason] = "gone"

STATES: Final = ("waiting", "counted", "skipped")

_RANGE: Final = 2**64


@dataclass(frozen=True, slots=True)
class Walk:
    """An edge that led to a record of a pack; `confirmed` where the asker has used that record."""

    retrieval_id: UUID
    edge_id: UUID
    record_id: UUID
    confirmed: bool
    period: str


def period_of(conversation_id: str | None, user_id: str | None, token_id: UUID | None, at: datetime) -> str:
    """The period in which an edge gains once: the conversation, or the hour of the principal where none is given.

    Args:
        conversation_id: As the question named it.
        user_id: Whom it was asked for; a user is one principal whichever token asks.
        token_id: Which token asked, where it was for nobody.
        at: When, with its offset.
    """
    whose = f"u:{user_id}" if user_id is not None else f"t:{token_id or ''}"
    if conversation_id is not None:
        return f"c:{conversation_id}"
    return f"p:{at.astimezone(UTC):%Y-%m-%dT%H}:{whose}"


def is_drawn(retrieval_id: UUID, edge_id: UUID, share: float) -> bool:
    """Whether an unconfirmed walk is of the share (0 to 1) that counts; the same answer whenever it is asked.

    A draw by hash: of many walks the share is kept closely, of few only in the long run.
    """
    drawn = int.from_bytes(blake2b(retrieval_id.bytes + edge_id.bytes, digest_size=8).digest())
    return drawn < share * _RANGE


def draw(walks: Iterable[Walk], share: float) -> tuple[list[Walk], list[Walk]]:
    """Part walks into those that ask to be counted and those that are not drawn."""
    counted, left = list[Walk](), list[Walk]()
    for walk in walks:
        (counted if walk.confirmed or is_drawn(walk.retrieval_id, walk.edge_id, share) else left).append(walk)
    return counted, left
