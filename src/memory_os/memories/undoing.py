"""Undoing acts on memories: all is as it was before, and the history tells of both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final
from uuid import UUID

from sqlalchemy.engine import RowMapping

from memory_os.admin.audit import record
from memory_os.domain.acts import ACTS
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError, NotFoundError
from memory_os.memories.acts import get_act, later_acts, mark_undone, note_act
from memory_os.memories.lifecycle_model import ActedMemory
from memory_os.memories.migrating import take_edges_back
from memory_os.memories.ownership import check_own
from memory_os.memories.reading import existing_memories, get_memory
from memory_os.memories.retying import take_ties_back
from memory_os.memories.reviewing import reopen_reviews
from memory_os.memories.states import enter_scopes, lock_memories, put_states, state_of
from memory_os.memories.unmerging import unmerge
from memory_os.outbox.events import NewEvent, Outbox
from memory_os.sources.evidence import drop_evidence
from memory_os.storage.database import Transaction


@dataclass(frozen=True, slots=True)
class Undoing:
    """An act that is being undone; its memories are locked, and nothing was done to them since."""

    tx: Transaction
    outbox: Outbox
    principal: Principal
    act: RowMapping
    request_id: str | None


Undoer = Callable[[Undoing], Awaitable[list[NewEvent]]]
"""Puts back what one kind of act changed, and gives the events of it."""


async def undo_act(
    tx: Transaction, outbox: Outbox, principal: Principal, memory_id: UUID, act_id: UUID, request_id: str | None
) -> ActedMemory:
    """Undo an act of a memory. What edges gained by use since stays with them.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who undoes.
        memory_id: The memory in whose history the act is.
        act_id: Which act.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader sees no such memory, or it has no such act.
        PermissionDeniedError: If the act was done to another user's memory, and this one is no reviewer.
        ConflictError: If acts of that kind can't be undone, it was undone already, something was done to its memories
            since, one of them is gone or not this reader's to see, or an edge is in the way.
    """
    await get_memory(tx, memory_id)
    act = await get_act(tx, memory_id, act_id)
    undoer = UNDOERS.get(act["kind"])
    if undoer is None:
        raise ConflictError(f"this can't be undone: {ACTS[act['kind']].meaning}")
    ids = {ident for ident in (act["memory_id"], act["other_id"]) if ident is not None}
    seen = await existing_memories(tx, list(ids))
    if act["kind"] != "dispute" and act["memory_id"] in seen:  # anybody who writes may dispute, and take that back
        check_own(principal, seen[act["memory_id"]])
    await enter_scopes(tx, [memory.user_id for memory in seen.values()])
    rows = await _lock(tx, ids, act["at"])
    act = await get_act(tx, memory_id, act_id, lock=True)
    _check_not_undone(act)
    if not is_draft_merge(act):
        await _check_last(tx, act)
    events = await undoer(Undoing(tx, outbox, principal, act, request_id))
    await mark_undone(tx, act_id)
    await reopen_reviews(tx, act)
    detail = {"act_id": act_id, "kind": act["kind"]}
    undo_id = await note_act(
        tx,
        principal,
        "undo",
        act["memory_id"],
        other_id=act["other_id"],
        detail=detail,
        before={"memories": [{**state_of(row), "confidence": row["confidence"]} for row in rows]},
        request_id=request_id,
    )
    await record(tx, principal, "memory.undo", "memory", act["memory_id"], detail, request_id)
    return ActedMemory(await get_memory(tx, memory_id), undo_id, await outbox.enqueue(tx, events, request_id))


async def _lock(tx: Transaction, ids: Collection[UUID], since: datetime) -> list[RowMapping]:
    """Lock the memories of an act and give their rows; one stored after it has only the id of one that is gone."""
    try:
        rows = await lock_memories(tx, ids)
    except NotFoundError:
        rows = {}
    if not rows or any(row["created_at"] > since for row in rows.values()):
        raise ConflictError(
            "the other memory of this act was deleted, or is not yours to see: restore this one instead"
        )
    return list(rows.values())


def is_draft_merge(act: RowMapping) -> bool:
    """Whether an act let a draft merge: that changes no state, so it can be undone whatever came after it."""
    return bool(act["kind"] == "merge" and act["other_id"] is None)


def _check_not_undone(act: RowMapping) -> None:
    if act["undone_at"] is not None:
        raise ConflictError(f"this was undone already, at {act['undone_at'].isoformat()}")


async def _check_last(tx: Transaction, act: RowMapping) -> None:
    later = await later_acts(tx, act)
    if later:
        named = ", ".join(f"{row['kind']} at {row['at'].isoformat()}" for row in later)
        raise ConflictError(
            f"the memory has changed since: {named}. Undo these first, the last one first",
            extra={"later": [{name: str(row[name]) for name in ("id", "kind", "memory_id")} for row in later]},
        )


async def put_back(undoing: Undoing) -> list[NewEvent]:
    """Put back the states of memories and what became of edges, as the act kept them."""
    tx, act = undoing.tx, undoing.act
    events = await put_states(tx, act["before"].get("memories", ()))
    edges = act["before"].get("edges", {})
    events += await take_edges_back(tx, edges, act["memory_id"], act["other_id"])
    return events + await take_ties_back(tx, act["before"].get("ties", {}))


async def part(undoing: Undoing) -> list[NewEvent]:
    """Part two memories that were merged; a draft that never was one becomes a memory of its own."""
    if undoing.act["other_id"] is not None:
        await drop_evidence(undoing.tx, [UUID(one) for one in undoing.act["before"].get("evidence_copies", ())])
        return await put_back(undoing)
    return await unmerge(undoing.tx, undoing.outbox, undoing.principal, undoing.act, undoing.request_id)


UNDOERS: Final[Mapping[str, Undoer]] = MappingProxyType(
    dict.fromkeys(
        ("supersede", "complete", "abandon", "expire", "dispute", "archive", "retract", "restore"),
        put_back,
    )
    | {"merge": part}
)
"""What undoes each kind of act that can be undone."""
