"""A stored memory is found to say what another one says: its context moves there, and it is archived, not deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory_os.admin.audit import record
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.inheritance import is_wider
from memory_os.domain.labels import LIVE
from memory_os.domain.principal import Principal
from memory_os.edges.storing import EdgeRow, insert_edges
from memory_os.errors import ConflictError
from memory_os.memories.acts import note_act
from memory_os.memories.migrating import migrate_edges
from memory_os.memories.model import Memory, NodeAddress
from memory_os.memories.reading import get_memory, memory_of
from memory_os.memories.states import lock_memories, put_states, state_of
from memory_os.memories.superseding import CERTAIN
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.sources.evidence import copy_evidence, note_widening
from memory_os.storage.database import Transaction


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why two memories are taken for one, as the history of the one that goes tells it.

    Attributes:
        similarity: Of their vectors; None where one is missing.
        tier: The tier by which they were judged.
        rule: The rule of the guard that decided.
        guard: What it found between the two texts.
        further: What else the history tells, such as who looked for them.
    """

    similarity: float | None
    tier: str
    rule: str
    guard: Sequence[str]
    further: Mapping[str, Any] = field(default_factory=dict)

    def detail(self) -> dict[str, Any]:
        """As an act keeps them."""
        told = {"similarity": self.similarity, "tier": self.tier, "rule": self.rule, "guard": list(self.guard)}
        return {**self.further, **told}


@dataclass(frozen=True, slots=True)
class Absorbed:
    """Both memories as they are now, the act, and the position to wait for."""

    memory: Memory
    kept: Memory
    act_id: UUID
    position: int


async def absorb(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    memory: Memory,
    kept: Memory,
    grounds: Grounds,
    request_id: str | None,
) -> Absorbed:
    """Let a stored memory merge into another one: context edges move, a DUPLICATES edge leads to the one that stays.

    That one gets the living evidence, too. Where some may read it who may not read a source of that, they may read the
    same claim already; it is audited all the same.

    Raises:
        ConflictError: If one of them is not active or disputed any more, or not everybody who may read the one may read
            the other.
    """
    rows = await lock_memories(tx, (memory.id, kept.id))
    gone, stays = memory_of(rows[memory.id]), memory_of(rows[kept.id])
    for one in (gone, stays):
        if one.status not in LIVE:
            raise ConflictError(f"the memory {one.id} is {one.status} by now, and can't be merged")
    if Audience.of(gone) != Audience.of(stays):
        raise ConflictError("the two have different readers, so that one can't stand for both: keep both")
    events = await put_states(tx, [state_of({**rows[memory.id], "status": "archived"})])
    changes, moved = await migrate_edges(tx, gone.id, stays.id)
    edge = EdgeRow(new_id(), "DUPLICATES", NodeAddress(memory=gone.id), NodeAddress(memory=stays.id), CERTAIN)
    changes.added = await insert_edges(tx, principal, [edge])
    copies = await _share_evidence(tx, principal, gone, stays, request_id)
    events += [*moved, *(NewEvent(UPSERT, "edge", ident, 1) for ident in changes.added)]
    act_id = await note_act(
        tx,
        principal,
        "merge",
        gone.id,
        other_id=stays.id,
        detail=grounds.detail(),
        before={
            "memories": [state_of(rows[memory.id])],
            "edges": changes.kept(),
            "evidence_copies": copies,
            "audiences": [Audience.of(gone), Audience.of(stays)],
        },
        request_id=request_id,
    )
    await record(tx, principal, "memory.merge", "memory", gone.id, {"into": stays.id}, request_id)
    position = await outbox.enqueue(tx, events, request_id)
    return Absorbed(await get_memory(tx, gone.id), await get_memory(tx, stays.id), act_id, position)


async def _share_evidence(
    tx: Transaction, principal: Principal, gone: Memory, stays: Memory, request_id: str | None
) -> list[UUID]:
    """Copy the evidence of the one to the other; the ids of the copies."""
    copies = await copy_evidence(tx, gone.id, stays.id)
    readers = Audience.of(stays)
    narrower = {
        row["source_id"] for row in copies.values() if is_wider(readers, Audience.of_columns(row), stays.user_id)
    }
    await note_widening(tx, principal, stays.id, sorted(narrower), request_id)
    return list(copies)
