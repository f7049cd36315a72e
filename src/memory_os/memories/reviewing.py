"""What the gate could not decide by itself, queued with both texts for a person, a model or the nightly cycle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from msgspec import Struct
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import NotFoundError
from memory_os.memories.gate import Decision
from memory_os.memories.model import Memory
from memory_os.memories.reading import existing_memories
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = tables.memory_reviews

ReviewKind = Literal["duplicate", "supersession", "contradiction"]
ReviewStatus = Literal["open", "merged", "superseded", "disputed", "kept"]

KINDS: Final = {"review": "duplicate", "supersede": "supersession", "contradict": "contradiction"}
"""The kind of review that each verdict asks for."""


class Review(Struct):
    """Two memories that may say the same, or of which the newer may replace or contradict the older.

    `memory` came later; `guard` tells what was found between the two texts.
    """

    id: UUID
    kind: ReviewKind
    status: ReviewStatus
    memory: Memory
    other: Memory
    similarity: float | None
    tier: str
    rule: str
    guard: list[str]
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """What a list is narrowed to; None leaves a field alone. `memory` matches either of the two."""

    status: str | None = None
    kind: str | None = None
    memory: UUID | None = None


async def ask_for_review(tx: Transaction, memory_id: UUID, decision: Decision) -> None:
    """Queue a stored memory beside each candidate that is not distinct from it."""
    values = [
        {
            "tenant_id": tx.tenant_id,
            "id": new_id(),
            "memory_id": memory_id,
            "other_id": nominee.memory.id,
            "kind": KINDS[nominee.judgement.verdict],
            "similarity": nominee.similarity,
            "tier": nominee.tier,
            "rule": nominee.judgement.rule,
            "guard": list(nominee.judgement.guard),
        }
        for nominee in decision.nominees
        if nominee.judgement.verdict in KINDS and nominee.memory.id != memory_id
    ]
    if values:
        await tx.run(insert(_TABLE).values(values).on_conflict_do_nothing())


async def list_reviews(tx: Transaction, wanted: ReviewFilter, cursor: str | None, limit: int) -> Page[Review]:
    """Reviews of memories that the reader sees both of, newest first, one page at a time."""
    columns = _TABLE.c
    statement = select(_TABLE).where(columns.tenant_id == tx.tenant_id)
    if wanted.status is not None:
        statement = statement.where(columns.status == wanted.status)
    if wanted.kind is not None:
        statement = statement.where(columns.kind == wanted.kind)
    if wanted.memory is not None:
        statement = statement.where((columns.memory_id == wanted.memory) | (columns.other_id == wanted.memory))
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    memories = await existing_memories(tx, [row[name] for row in page for name in ("memory_id", "other_id")])
    return Page([_review_of(row, memories[row["memory_id"]], memories[row["other_id"]]) for row in page], next_cursor)


async def get_review(tx: Transaction, review_id: UUID, *, lock: bool = False) -> Review:
    """One review.

    Raises:
        NotFoundError: If it is absent, or this reader does not see both memories.
    """
    statement = select(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == review_id)
    row = await tx.row(statement.with_for_update() if lock else statement)
    memories = await existing_memories(tx, [row["memory_id"], row["other_id"]]) if row else {}
    if row is None or len(memories) < 2:  # noqa: PLR2004 - both of them
        raise NotFoundError("there is no such review")
    return _review_of(row, memories[row["memory_id"]], memories[row["other_id"]])


async def settle_reviews(tx: Transaction, principal: Principal, gone: UUID, stays: UUID) -> None:
    """Note that a pair has merged, where it waits for a decision."""
    ids = (gone, stays)
    await tx.run(
        update(_TABLE)
        .where(
            _TABLE.c.tenant_id == tx.tenant_id,
            _TABLE.c.memory_id.in_(ids),
            _TABLE.c.other_id.in_(ids),
            _TABLE.c.status == "open",
        )
        .values(status="merged", decided_at=func.now(), decided_by=principal.user_id or principal.role)
    )


async def reopen_reviews(tx: Transaction, act: RowMapping) -> None:
    """Let a pair be decided about anew once the act that followed from its decision is undone."""
    if act["other_id"] is None:
        return
    ids = (act["memory_id"], act["other_id"])
    await tx.run(
        update(_TABLE)
        .where(
            _TABLE.c.tenant_id == tx.tenant_id,
            _TABLE.c.memory_id.in_(ids),
            _TABLE.c.other_id.in_(ids),
            _TABLE.c.status.not_in(("open", "kept")),
        )
        .values(status="open", decided_at=None, decided_by=None, reason=None)
    )


def _review_of(row: RowMapping, memory: Memory, other: Memory) -> Review:
    return Review(
        row["id"],
        row["kind"],
        row["status"],
        memory,
        other,
        row["similarity"],
        row["tier"],
        row["rule"],
        list(row["guard"]),
        row["created_at"],
        row["decided_at"],
        row["decided_by"],
        row["reason"],
    )
