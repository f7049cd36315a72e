"""Taking a merge back: what was rejected becomes a memory of its own, and the other is as sure as it was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import case, func, select, update
from sqlalchemy.engine import RowMapping

from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.migrating import take_edges_back
from memory_os.memories.model import MemoryDraft
from memory_os.memories.reading import existing_memories
from memory_os.memories.writing import Embedded, store_memories
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.sources.evidence import copy_evidence, move_evidence
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_UNKNOWN = Embedded(EmbedderIdentity("", 0), None)
"""A worker embeds it: no transaction waits for an embedder."""


async def unmerge(
    tx: Transaction, outbox: Outbox, principal: Principal, act: RowMapping, request_id: str | None
) -> list[NewEvent]:
    """Make a memory of what was rejected by an act of the gate, and take from the other what that gave it.

    What the other has gained in other ways since stays with it. Gives the events of what changed there; those of the
    new memory are enqueued here.
    """
    before, rejected = act["before"], dict(act["detail"]["rejected"])
    ident = UUID(rejected.pop("id"))
    draft = msgspec.convert({**rejected, "dedup": "off", "id": None, "user_id": None}, MemoryDraft)
    if await existing_memories(tx, [ident]):
        ident = new_id()
    events = await _less_sure(tx, act["memory_id"], before)
    events += await take_edges_back(tx, {"added": before["added_edges"]}, act["memory_id"], None)
    events += await _count_down(tx, before.get("borne_out", ()))
    await store_memories(tx, outbox, principal, [draft], _UNKNOWN, request_id, ids=[ident], keys=[None])
    await _part_evidence(tx, act, ident)
    return events


async def _part_evidence(tx: Transaction, act: RowMapping, ident: UUID) -> None:
    """Give a memory that comes out of a merge the evidence that it brought.

    The other keeps what it had of its own, and what a further merge has brought to it, too.
    """
    brought = _evidence(act, "added") | _evidence(act, "known")
    if not brought:
        return
    acts = tables.memory_acts.c
    others = await tx.rows(
        select(acts.before, acts.undone_at).where(
            acts.tenant_id == tx.tenant_id,
            acts.memory_id == act["memory_id"],
            acts.kind == "merge",
            acts.other_id.is_(None),
            acts.id != act["id"],
        )
    )
    merged = [row for row in others if row["undone_at"] is None]
    kept = set[UUID]().union(*(_evidence(row, name) for row in merged for name in ("added", "known")))
    gained = _evidence(act, "added").union(*(_evidence(row, "added") for row in others))
    await move_evidence(tx, brought & gained - kept, ident)
    if copied := brought - gained | brought & kept:
        await copy_evidence(tx, act["memory_id"], ident, sorted(copied))


def _evidence(act: RowMapping, name: str) -> set[UUID]:
    """Evidence of the memory that stayed: what a merge `added` to it, or what that had already (`known`)."""
    return {UUID(one) for one in (act["before"].get("evidence") or {}).get(name, ())}


async def _less_sure(tx: Transaction, memory_id: UUID, before: Mapping[str, Any]) -> list[NewEvent]:
    """Give a memory its confidence of before the merge, unless it has another by now."""
    columns = tables.memories.c
    rows = await tx.rows(
        update(tables.memories)
        .where(
            columns.tenant_id == tx.tenant_id,
            columns.id == memory_id,
            columns.confidence == before["after"],
            columns.confidence != before["confidence"],
        )
        .values(confidence=before["confidence"], version=columns.version + 1, updated_at=func.now())
        .returning(columns.id, columns.version)
    )
    return [NewEvent(UPSERT, "memory", row["id"], row["version"]) for row in rows]


async def _count_down(tx: Transaction, edges: Sequence[Mapping[str, Any]]) -> list[NewEvent]:
    """Take back one reference of each edge, and its confidence where nothing has changed that since."""
    columns, events = tables.edges.c, list[NewEvent]()
    for edge in sorted(edges, key=lambda edge: str(edge["id"])):
        unchanged = columns.confidence == edge["after"]
        rows = await tx.rows(
            update(tables.edges)
            .where(columns.tenant_id == tx.tenant_id, columns.id == UUID(edge["id"]))
            .values(
                confidence=case((unchanged, edge["before"]), else_=columns.confidence),
                co_reference_count=func.greatest(columns.co_reference_count - 1, 0),
                version=columns.version + 1,
                updated_at=func.now(),
            )
            .returning(columns.id, columns.version)
        )
        events += [NewEvent(UPSERT, "edge", row["id"], row["version"]) for row in rows]
    return events
