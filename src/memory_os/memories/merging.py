"""Merging what says the same into the memory that is there, which stays as it was said; and taking that back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import func, select, update

from memory_os.domain.audiences import Audience
from memory_os.domain.principal import Principal
from memory_os.edges.storing import EdgeRow, insert_edges
from memory_os.memories.acts import note_act
from memory_os.memories.model import Memory
from memory_os.memories.nominating import Nominee
from memory_os.memories.reading import get_memory, memory_of
from memory_os.memories.writing import edge_rows
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.sources.evidence import insert_evidence, note_widening, standing_ids
from memory_os.sources.inheriting import Settled
from memory_os.storage import tables
from memory_os.storage.database import Transaction

BORNE_OUT: Final = 0.1
"""The share of what is missing to certainty that another assertion adds, times its own confidence. Ours; not tuned."""

_ENDS: Final = ("source_memory_id", "source_entity_id", "target_memory_id", "target_entity_id")


@dataclass(frozen=True, slots=True)
class Merged:
    """A memory after another has merged into it, the act that keeps what was rejected, and the position."""

    memory: Memory
    act_id: UUID
    position: int


def borne_out(confidence: float, by: float) -> float:
    """The confidence of a claim that was made again, with confidence `by`; never more than 1."""
    return min(1.0, max(confidence, by) + (1.0 - max(confidence, by)) * BORNE_OUT * min(confidence, by))


async def merge_draft(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    draft: tuple[UUID, Settled],
    nominee: Nominee,
    request_id: str | None,
) -> Merged:
    """Let a draft merge into the memory that says the same: that one's confidence and edges are borne out by it.

    That one gets its evidence, too. The act keeps the draft, and what undoing needs; of evidence, which has readers of
    its own, the ids.
    """
    ident, rejected = draft[0], draft[1].draft
    kept = await get_memory(tx, nominee.memory.id, lock=True)
    confidence = borne_out(kept.confidence, rejected.confidence)
    events: list[NewEvent] = []
    memory = kept
    if confidence != kept.confidence:
        memory = await _set_confidence(tx, kept.id, confidence)
        events.append(NewEvent(UPSERT, "memory", memory.id, memory.version))
    edges = [edge for edge in edge_rows(kept.id, rejected) if edge.source != edge.target]
    added = await insert_edges(tx, principal, edges)
    again = await _bear_out_edges(tx, [edge for edge in edges if edge.id not in set(added)])
    events += [NewEvent(UPSERT, "edge", edge_id, 1) for edge_id in added]
    events += [NewEvent(UPSERT, "edge", row["id"], row["version"]) for row in again]
    evidence = await _take_evidence(tx, principal, kept.id, draft[1], request_id)
    act_id = await note_act(
        tx,
        principal,
        "merge",
        kept.id,
        detail={
            "rejected": {**msgspec.to_builtins(msgspec.structs.replace(rejected, evidence=[])), "id": str(ident)},
            "similarity": nominee.similarity,
            "tier": nominee.tier,
            "rule": nominee.judgement.rule,
            "guard": list(nominee.judgement.guard),
        },
        before={
            "confidence": kept.confidence,
            "after": confidence,
            "added_edges": added,
            "borne_out": [{"id": row["id"], "before": row["before"], "after": row["confidence"]} for row in again],
            "evidence": evidence,
            "audiences": [Audience.of(kept)],
        },
        request_id=request_id,
    )
    return Merged(memory, act_id, await outbox.enqueue(tx, events, request_id))


async def _take_evidence(
    tx: Transaction, principal: Principal, memory_id: UUID, draft: Settled, request_id: str | None
) -> dict[str, Any]:
    """Give a memory the evidence of a draft; the ids of what it did not have (`added`), and of what it had."""
    if not draft.supports:
        return {}
    known = await standing_ids(tx, memory_id, draft.supports)
    rows = await insert_evidence(tx, principal, [(memory_id, one) for one in draft.supports], request_id)
    await note_widening(tx, principal, memory_id, draft.narrower, request_id)
    return {"added": [row["id"] for row in rows], "known": sorted(known.values())}


async def _set_confidence(tx: Transaction, memory_id: UUID, confidence: float) -> Memory:
    table = tables.memories
    row = await tx.row(
        update(table)
        .where(table.c.tenant_id == tx.tenant_id, table.c.id == memory_id)
        .values(confidence=confidence, version=table.c.version + 1, updated_at=func.now())
        .returning(table)
    )
    if row is None:
        raise AssertionError("a locked row can't be gone")
    return memory_of(row)


async def _bear_out_edges(tx: Transaction, edges: Sequence[EdgeRow]) -> list[dict[str, Any]]:
    """Reinforce edges that stood already where a draft claims them again: counted once more, the surer one counts.

    Gives id, version and confidence of each, and the confidence `before`.
    """
    rows: list[dict[str, Any]] = []
    table = tables.edges
    for edge in sorted(edges, key=lambda edge: (edge.type, str(edge.source), str(edge.target))):
        ends = (edge.source.memory, edge.source.entity, edge.target.memory, edge.target.entity)
        known = await tx.row(
            select(table.c.id, table.c.confidence)
            .where(
                table.c.tenant_id == tx.tenant_id,
                table.c.type == edge.type,
                *(table.c[name].is_not_distinct_from(end) for name, end in zip(_ENDS, ends, strict=True)),
            )
            .with_for_update()
        )
        if known is None:
            continue  # deleted in this moment
        changed = await tx.rows(
            update(table)
            .where(table.c.tenant_id == tx.tenant_id, table.c.id == known["id"])
            .values(
                confidence=func.greatest(table.c.confidence, edge.confidence),
                co_reference_count=table.c.co_reference_count + 1,
                version=table.c.version + 1,
                updated_at=func.now(),
            )
            .returning(table.c.id, table.c.version, table.c.confidence)
        )
        rows += [{**row, "before": known["confidence"]} for row in changed]
    return rows
