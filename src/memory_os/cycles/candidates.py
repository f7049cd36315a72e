"""What becomes of candidates for Insights: read, accepted or rejected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from msgspec import structs
from sqlalchemy import Select, func, insert, select, update
from sqlalchemy.engine import RowMapping

from memory_os.admin.audit import record
from memory_os.cycles.insight_model import Acceptance, AcceptedInsight, InsightCandidate, Rejection
from memory_os.domain.cycles.insights import ORIGIN, CandidateStatus
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError, NotFoundError
from memory_os.memories.model import Candidate, DraftEdge, Memory, MemoryDraft, NodeAddress, Readers
from memory_os.memories.reading import existing_memories
from memory_os.memories.reviewing import KINDS
from memory_os.memories.service import MemoryService
from memory_os.memories.states import lock_memories
from memory_os.memories.writing import Prepared, embedded_text
from memory_os.storage import cycle_tables, tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE: Final = cycle_tables.insight_candidates
_MEMBERS: Final = cycle_tables.insight_members
_ABSENT: Final = "there is no such candidate"


@dataclass(frozen=True, slots=True)
class CandidateFilter:
    """What a list is narrowed to; None leaves a field alone. `memory` is one of the members."""

    status: CandidateStatus | None = None
    rule: str | None = None
    memory: UUID | None = None


async def list_candidates(
    tx: Transaction, wanted: CandidateFilter, cursor: str | None, limit: int
) -> Page[InsightCandidate]:
    """Candidates that this reader may read, newest first, one page at a time."""
    columns = _TABLE.c
    statement: Select[Any] = select(_TABLE).where(columns.tenant_id == tx.tenant_id)
    if wanted.status is not None:
        statement = statement.where(columns.status == wanted.status)
    if wanted.rule is not None:
        statement = statement.where(columns.rule == wanted.rule)
    if wanted.memory is not None:
        made_of = select(_MEMBERS.c.candidate_id).where(
            _MEMBERS.c.tenant_id == tx.tenant_id, _MEMBERS.c.memory_id == wanted.memory
        )
        statement = statement.where(columns.id.in_(made_of))
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page(await _candidates_of(tx, page), next_cursor)


async def get_candidate(tx: Transaction, candidate_id: UUID, *, lock: bool = False) -> InsightCandidate:
    """One candidate.

    Args:
        tx: The unit of work.
        candidate_id: Which.
        lock: Keep others from deciding about it until the end of the transaction.

    Raises:
        NotFoundError: If it is absent, or this reader may not read it.
    """
    statement = select(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == candidate_id)
    row = await tx.row(statement.with_for_update() if lock else statement)
    if row is None:
        raise NotFoundError(_ABSENT)
    return (await _candidates_of(tx, [row]))[0]


@dataclass(frozen=True, slots=True)
class InsightService:
    """Decides about candidates. `prepare` is called before a transaction begins, the rest inside the caller's."""

    memories: MemoryService

    async def prepare(self, candidate: InsightCandidate, acceptance: Acceptance) -> Prepared:
        """The vector of the Insight that a candidate would become."""
        text = embedded_text(acceptance.title or candidate.title, acceptance.text or candidate.text)
        return Prepared(text, await self.memories.embed([text]))

    async def accept(
        self,
        tx: Transaction,
        principal: Principal,
        candidate_id: UUID,
        acceptance: Acceptance,
        prepared: Prepared,
        request_id: str | None,
    ) -> AcceptedInsight:
        """Let a candidate become an Insight that all of its members lead into, with their readers.

        It is stored as it was accepted, past the gate: words of its members are no repetition of these.

        Args:
            tx: The unit of work.
            principal: Who accepts it.
            candidate_id: Which.
            acceptance: In what words.
            prepared: The vector of these; if the candidate has got others meanwhile, a worker embeds them later.
            request_id: The request, for the log.

        Raises:
            NotFoundError: If there is no such candidate for this reader.
            ConflictError: If it is decided already.
            InvalidInputError: If it can't be stored in these words.
        """
        await _hold_members(tx, candidate_id)
        candidate = await _open(tx, candidate_id)
        title, text = acceptance.title or candidate.title, acceptance.text or candidate.text
        known = await existing_memories(tx, [one.memory for one in candidate.members if one.memory is not None])
        draft = MemoryDraft(
            text=text,
            label="Insight",
            title=title,
            confidence=sum(one.confidence for one in known.values()) / len(known),
            visibility=candidate.visibility,  # type: ignore[arg-type]  # the database knows no other words
            readers=candidate.readers if candidate.visibility == "restricted" else None,
            origin=ORIGIN,
            metadata={"summary": candidate.summary if text == candidate.text else "edited"},
            edges=_edges(candidate.members, known),
            dedup="off",
        )
        # Its words are the caller's; its readers are those of its members, whoever accepts it.
        self.memories.check(structs.replace(draft, visibility=None, readers=None), principal)
        owner = replace(principal, user_id=candidate.user_id)
        vector = prepared.vector_of(embedded_text(title, text))
        near = (await self.memories.ask_gate(tx, owner, draft, vector)).candidates
        stored = await self.memories.store(tx, owner, draft, vector, request_id)
        await _keep_apart(tx, principal, stored.memory.id, [one for one in near if one.id in known])
        await _decide(tx, principal, candidate_id, "accepted", memory_id=stored.memory.id)
        detail = {"memory_id": stored.memory.id, "edited": (title, text) != (candidate.title, candidate.text)}
        await record(tx, principal, "insight.accept", "insight", candidate_id, detail, request_id)
        return AcceptedInsight(await get_candidate(tx, candidate_id), stored.memory, stored.position)

    async def reject(
        self, tx: Transaction, principal: Principal, candidate_id: UUID, rejection: Rejection, request_id: str | None
    ) -> InsightCandidate:
        """Reject a candidate; it stays, so that it is not proposed again.

        Raises:
            NotFoundError: If there is no such candidate for this reader.
            ConflictError: If it is decided already.
        """
        await _open(tx, candidate_id)
        await _decide(tx, principal, candidate_id, "rejected", reason=rejection.reason)
        await record(tx, principal, "insight.reject", "insight", candidate_id, {}, request_id)
        return await get_candidate(tx, candidate_id)


async def _hold_members(tx: Transaction, candidate_id: UUID) -> None:
    """Hold the memories that a candidate is made of, before itself, in the order in which who deletes one does."""
    candidate = await get_candidate(tx, candidate_id)
    try:
        await lock_memories(tx, [one.memory for one in candidate.members if one.memory is not None])
    except NotFoundError:
        raise NotFoundError(_ABSENT) from None  # it went with one of them just now


async def _open(tx: Transaction, candidate_id: UUID) -> InsightCandidate:
    candidate = await get_candidate(tx, candidate_id, lock=True)
    if candidate.status != "open":
        became = f" as the Insight {candidate.memory_id}" if candidate.memory_id else ""
        raise ConflictError(f"the candidate was {candidate.status} already{became}")
    return candidate


async def _decide(
    tx: Transaction,
    principal: Principal,
    candidate_id: UUID,
    status: CandidateStatus,
    *,
    memory_id: UUID | None = None,
    reason: str | None = None,
) -> None:
    values = {"status": status, "memory_id": memory_id, "reason": reason}
    await tx.run(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == candidate_id)
        .values(**values, decided_at=func.now(), decided_by=principal.user_id or principal.role)
    )


async def _keep_apart(tx: Transaction, principal: Principal, insight: UUID, near: Sequence[Candidate]) -> None:
    """Note that an Insight and a member of it that says the same are two: it is accepted beside it, and must not merge.

    An Insight of one Behavior has its very words; without this it would be gone the next night.
    """
    decided = {"status": "kept", "decided_at": func.now(), "decided_by": principal.user_id or principal.role}
    rows = [
        {
            "tenant_id": tx.tenant_id,
            "id": new_id(),
            "memory_id": insight,
            "other_id": one.id,
            "kind": KINDS.get(one.verdict, "duplicate"),
            "similarity": one.similarity,
            "tier": one.tier,
            "rule": one.rule,
            "guard": one.guard,
            **decided,
        }
        for one in near
    ]
    if rows:
        await tx.run(insert(tables.memory_reviews).values(rows))


def _edges(members: Sequence[NodeAddress], known: dict[UUID, Memory]) -> list[DraftEdge]:
    """How an Insight is tied to what it was made of: Behaviors grew into it, other memories are a part of it."""
    edges: list[DraftEdge] = []
    for member in members:
        if member.memory is None:
            edges.append(DraftEdge("ABOUT", member))
            continue
        grew = known[member.memory].label == "Behavior"
        edges.append(DraftEdge("EXTRACTED_FROM", member))
        edges.append(DraftEdge("EVOLVED_INTO" if grew else "PART_OF", member, direction="in"))
    return edges


async def _candidates_of(tx: Transaction, rows: Sequence[RowMapping]) -> list[InsightCandidate]:
    members: defaultdict[UUID, list[NodeAddress]] = defaultdict(list)
    columns = _MEMBERS.c
    statement = select(_MEMBERS).where(
        columns.tenant_id == tx.tenant_id, columns.candidate_id.in_([row["id"] for row in rows])
    )
    for one in await tx.rows(statement.order_by(columns.member_id)) if rows else ():
        members[one["candidate_id"]].append(NodeAddress(memory=one["memory_id"], entity=one["entity_id"]))
    told = [name for name in InsightCandidate.__struct_fields__ if name not in ("readers", "members")]
    return [
        InsightCandidate(
            **{name: row[name] for name in told},
            readers=Readers(list(row["reader_users"]), list(row["reader_groups"])),
            members=members[row["id"]],
        )
        for row in rows
    ]
