"""The provenance of a memory: its sources with their words, and all that happened to it, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.engine import RowMapping

from memory_os.corrections.model import Correction
from memory_os.corrections.reading import read_corrections
from memory_os.domain.principal import Principal
from memory_os.edges.reading import select_edges
from memory_os.errors import NotFoundError
from memory_os.memories.history import could_read, select_acts
from memory_os.memories.lifecycle_model import Who
from memory_os.memories.model import Memory
from memory_os.memories.provenance_model import (
    ChainLink,
    Derivation,
    Provenance,
    Recorded,
    StoryEvent,
    StoryKind,
)
from memory_os.memories.reading import memory_columns, memory_of
from memory_os.sources.evidence import evidence_of, select_evidence
from memory_os.sources.evidence_model import Evidence
from memory_os.storage import provenance_tables, tables
from memory_os.storage.database import Transaction

MOST: Final = 500
"""Acts, pieces of evidence, corrections, derivations of each kind, and memories of a chain that are shown at most."""

_DEEPEST: Final = 200
"""Steps of a chain that are walked in each direction."""

_ACTS: Final[Mapping[str, StoryKind]] = MappingProxyType(
    {
        "change": "changed",
        "merge": "merged",
        "supersede": "superseded",
        "complete": "completed",
        "abandon": "abandoned",
        "expire": "expired",
        "dispute": "disputed",
        "archive": "archived",
        "retract": "retracted",
        "restore": "restored",
        "undo": "undone",
    }
)
"""What the story calls the acts of a history."""


async def read_provenance(tx: Transaction, principal: Principal, memory_id: UUID) -> Provenance:
    """The whole story of a memory, of which this reader is told what they may see.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    row = await _row_of(tx, memory_id)
    memory = memory_of(row)
    evidence = await _evidence(tx, memory_id)
    acts = await _acts(tx, memory_id)
    corrections = await _corrections(tx, principal, memory_id)
    edges = await _derivations(tx, memory_id)
    chain = await _chain(tx, memory_id)
    parts: list[Sequence[Any]] = [evidence, acts, corrections, edges, chain]
    events = [_creation(memory)]
    events += [event for piece in evidence[:MOST] for event in _of_evidence(piece)]
    events += [_of_act(act, memory_id, principal) for act in acts[:MOST]]
    events += [event for one in corrections[:MOST] for event in _of_correction(one, memory_id)]
    events += [_of_edge(edge, memory_id) for edge in edges[:MOST]]
    return Provenance(
        memory=memory,
        recorded=await _recorded(tx, row),
        events=sorted(events, key=lambda event: event.at),
        sources=evidence[:MOST],
        chain=chain[:MOST],
        derived_from=[_far_end(edge, memory_id) for edge in edges[:MOST] if _is_from(edge, memory_id)],
        derivations=[_far_end(edge, memory_id) for edge in edges[:MOST] if not _is_from(edge, memory_id)],
        truncated=any(len(part) > MOST for part in parts),
    )


async def _row_of(tx: Transaction, memory_id: UUID) -> RowMapping:
    columns = tables.memories.c
    row = await tx.row(select(*memory_columns()).where(columns.tenant_id == tx.tenant_id, columns.id == memory_id))
    if row is None:
        raise NotFoundError("there is no such memory")
    return row


async def _recorded(tx: Transaction, row: RowMapping) -> Recorded:
    columns = tables.tokens.c
    token = await tx.row(select(columns.role).where(columns.tenant_id == tx.tenant_id, columns.id == row["created_by"]))
    role = None if token is None else token["role"]
    return Recorded(row["created_at"], row["created_by"], row["user_id"], role, row["origin"])


def _creation(memory: Memory) -> StoryEvent:
    return StoryEvent(memory.created_at, "created", Who(None, memory.user_id))


async def _evidence(tx: Transaction, memory_id: UUID) -> list[Evidence]:
    columns = provenance_tables.evidence.c
    statement = select_evidence(tx).where(columns.memory_id == memory_id)
    return [evidence_of(row) for row in await tx.rows(statement.order_by(columns.at, columns.id).limit(MOST + 1))]


def _of_evidence(piece: Evidence) -> list[StoryEvent]:
    who = Who(piece.recorded.role, piece.recorded.user_id)
    named: dict[str, Any] = {"evidence_id": piece.id, "source_id": piece.source.id}
    events = [StoryEvent(piece.at, "evidence", who, detail={"support": piece.support}, **named)]
    if piece.withdrawn_at is not None:
        detail = {"because": piece.withdrawn_because}
        events.append(StoryEvent(piece.withdrawn_at, "evidence_withdrawn", detail=detail, **named))
    return events


async def _acts(tx: Transaction, memory_id: UUID) -> list[RowMapping]:
    """The acts that a memory has to do with, oldest first; the oldest ones, where there are too many."""
    acts = tables.memory_acts.c
    return list(await tx.rows(select_acts(tx, memory_id).order_by(acts.at, acts.id).limit(MOST + 1)))


def _of_act(act: RowMapping, memory_id: UUID, principal: Principal) -> StoryEvent:
    done_to_it = act["memory_id"] == memory_id
    kind: StoryKind = _ACTS[act["kind"]]
    if act["kind"] == "supersede" and not done_to_it:
        kind = "supersedes"
    return StoryEvent(
        act["at"],
        kind,
        Who(act["role"], act["user_id"]),
        other_id=act["other_id"] if done_to_it else act["memory_id"],
        act_id=act["id"],
        detail=act["detail"] if could_read(act["audiences"], principal) else {},
        undone_at=act["undone_at"],
    )


async def _corrections(tx: Transaction, principal: Principal, memory_id: UUID) -> list[Correction]:
    columns = provenance_tables.corrections.c
    either = or_(columns.memory_id == memory_id, columns.result_id == memory_id)
    return await read_corrections(tx, principal, either, most=MOST + 1)


def _of_correction(one: Correction, memory_id: UUID) -> list[StoryEvent]:
    other = one.result_id if one.target == memory_id else one.target
    named: dict[str, Any] = {"correction_id": one.id, "source_id": one.source_id}
    said: dict[str, Any] = {"kind": one.kind, "reason": one.reason, "proposal": one.proposal}
    events = [StoryEvent(one.created_at, "proposed", one.proposed_by, detail=said, **named)]
    if one.decided_at is None:
        return events
    decided = {"kind": one.kind, "reason": one.decision_reason}
    if one.status == "rejected":
        return [*events, StoryEvent(one.decided_at, "rejected", one.decided_by, detail=decided, **named)]
    named |= {"other_id": other, "act_id": one.act_id}
    return [*events, StoryEvent(one.decided_at, "corrected", one.decided_by, detail=decided, **named)]


async def _derivations(tx: Transaction, memory_id: UUID) -> list[RowMapping]:
    columns = tables.edges.c
    either = or_(columns.source_memory_id == memory_id, columns.target_memory_id == memory_id)
    statement = select_edges(tx).where(columns.type == "EXTRACTED_FROM", either)
    return list(await tx.rows(statement.order_by(columns.created_at, columns.id).limit(MOST + 1)))


def _is_from(edge: RowMapping, memory_id: UUID) -> bool:
    return bool(edge["source_memory_id"] == memory_id)


def _far_end(edge: RowMapping, memory_id: UUID) -> Derivation:
    side = "target" if _is_from(edge, memory_id) else "source"
    kept = edge["id"], edge["confidence"], edge["created_at"]
    if edge[f"{side}_memory_id"] is not None:
        return Derivation("memory", edge[f"{side}_memory_id"], *kept)
    return Derivation("entity", edge[f"{side}_entity_id"], *kept)


def _of_edge(edge: RowMapping, memory_id: UUID) -> StoryEvent:
    kind: StoryKind = "derived_from" if _is_from(edge, memory_id) else "derivation"
    return StoryEvent(edge["created_at"], kind, other_id=_far_end(edge, memory_id).id, edge_id=edge["id"])


async def _chain(tx: Transaction, memory_id: UUID) -> list[ChainLink]:
    given = {"tenant_id": tx.tenant_id, "id": memory_id, "most": _DEEPEST, "rows": MOST + 1}
    async with tx.as_steward():
        order = [row["id"] for row in await tx.hot("supersession_chain", given)]
    columns = tables.memories.c
    shown = [columns[name] for name in ChainLink.__struct_fields__]
    rows = await tx.rows(select(*shown).where(columns.tenant_id == tx.tenant_id, columns.id.in_(order)))
    seen = {row["id"]: ChainLink(**row) for row in rows}
    return [seen[ident] for ident in order if ident in seen]
