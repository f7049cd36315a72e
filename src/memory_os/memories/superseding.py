"""One memory takes the place of another: the older one stays for history, and its context moves to the newer one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from memory_os.admin.audit import record
from memory_os.checking import unknown_term
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.labels import LABELS, check_transition
from memory_os.domain.principal import Principal
from memory_os.domain.vocabulary import VocabularyError
from memory_os.edges.storing import EdgeRow, insert_edges
from memory_os.errors import ConflictError, FieldError, InvalidInputError
from memory_os.memories.acts import note_act
from memory_os.memories.migrating import EdgeChanges, migrate_edges, remove_supersedes
from memory_os.memories.model import Memory, NodeAddress
from memory_os.memories.reading import get_memory, memory_of
from memory_os.memories.states import Row, State, lock_memories, put_states, state_of
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.storage.clock import transaction_time
from memory_os.storage.database import Transaction

STANDING: Final = ("active", "completed", "abandoned", "disputed")
"""Statuses in which a memory can take the place of another."""

CERTAIN: Final = 1.0
"""Confidence of an edge that follows from an act: nobody guessed it."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Both memories as they are now, the act, and the position to wait for."""

    old: Memory
    new: Memory
    act_id: UUID
    position: int


async def supersede(
    tx: Transaction, outbox: Outbox, principal: Principal, old: Memory, new: Memory, request_id: str | None
) -> Superseded:
    """Let a stored memory take the place of another one; both are locked here.

    The old one ends where the new one begins: now, where that says no time. A window that ended earlier stays so, and
    one that begins later becomes empty.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who does it.
        old: What is superseded.
        new: What takes its place.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader does not see both.
        UnknownTermError: If the old one's status does not allow it; the error names the steps that it does allow.
        InvalidInputError: If the two are one, or one of them is immutable.
        ConflictError: If the old one has lost its place already, the new one does not stand or was superseded by the
            old one, or readers of the old one may not read the new one.
    """
    if old.id == new.id:
        raise _unfit("a memory can't supersede itself")
    rows = await lock_memories(tx, (old.id, new.id))
    older, newer = memory_of(rows[old.id]), memory_of(rows[new.id])
    check_supersedable(older)
    await _check_successor(tx, older, newer)
    start = newer.valid_from or await transaction_time(tx)
    return await take_place(tx, outbox, principal, rows[old.id], rows[new.id], start, request_id)


def check_supersedable(memory: Memory) -> None:
    """Check that a memory can lose its place.

    Raises:
        UnknownTermError: If its label or status does not allow it.
        ConflictError: If it has lost its place already.
    """
    if memory.status == "superseded":
        by = {} if memory.superseded_by is None else {"superseded_by": str(memory.superseded_by)}
        raise ConflictError(
            "the memory has been superseded already: supersede the one that took its place, or undo that first",
            extra=by,
        )
    try:
        check_transition(memory.label, memory.status, "superseded")
    except VocabularyError as error:
        raise unknown_term(error, "/status") from None


async def _check_successor(tx: Transaction, old: Memory, new: Memory) -> None:
    if LABELS[new.label].immutable_text:
        raise _unfit(f"an {new.label} is what happened, and takes nothing's place: store what holds since then")
    if await _has_superseded(tx, old.id, new.id):
        raise ConflictError("that would be a circle: the new memory was itself superseded by the old one")
    if new.status not in STANDING:
        raise ConflictError(f"the new memory is {new.status}, and can't take another's place: restore it first")
    if not Audience.of(new).covers(Audience.of(old)):
        raise ConflictError(
            f"the new memory is {new.visibility}, and some who may read the old one, which is {old.visibility}, may "
            "not read it: they would lose sight of the claim. Give the new one the readers of the old one first"
        )


def _unfit(fault: str) -> InvalidInputError:
    return InvalidInputError("the memory can't be superseded like that", errors=[FieldError("/by", fault)])


async def _has_superseded(tx: Transaction, newer: UUID, older: UUID) -> bool:
    given = {"tenant_id": tx.tenant_id, "newer": newer, "older": older}
    return bool((await tx.hot("supersedes_already", given))[0]["found"])


async def take_place(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    old: Row,
    new: Row,
    start: datetime,
    request_id: str | None,
) -> Superseded:
    """Let one locked row take the place of another, whatever their statuses; the caller has checked that it may.

    If the old one has a successor, the new one comes in between. Context moves unless the new memory has more readers:
    they were not meant to see it.
    """
    older, newer = memory_of(old), memory_of(new)
    changes, events = EdgeChanges(), list[NewEvent]()
    if old["superseded_by"] is not None:
        changes.removed, events = await remove_supersedes(tx, old["superseded_by"], older.id)
    before = [state_of(old)] if newer.valid_from else [state_of(old), state_of(new)]
    events += await put_states(tx, _states_after(old, new, start))
    if Audience.of(older).covers(Audience.of(newer)):
        moved, more = await migrate_edges(tx, older.id, newer.id)
        changes.moved, changes.merged = moved.moved, moved.merged
        events += more
    edge = EdgeRow(new_id(), "SUPERSEDES", NodeAddress(memory=newer.id), NodeAddress(memory=older.id), CERTAIN)
    changes.added = await insert_edges(tx, principal, [edge])
    events += [NewEvent(UPSERT, "edge", ident, 1) for ident in changes.added]
    detail = {"edges_moved": len(changes.moved), "edges_merged": len(changes.merged)}
    act_id = await note_act(
        tx,
        principal,
        "supersede",
        older.id,
        other_id=newer.id,
        detail=detail,
        before={"memories": before, "edges": changes.kept()},
        request_id=request_id,
    )
    await record(tx, principal, "memory.supersede", "memory", older.id, {"by": newer.id, **detail}, request_id)
    position = await outbox.enqueue(tx, events, request_id)
    return Superseded(await get_memory(tx, older.id), await get_memory(tx, newer.id), act_id, position)


def _states_after(old: Row, new: Row, start: datetime) -> list[State]:
    """The states of both when the new one begins at `start`; only the old one's where the new one's stays as it is."""
    ends = min(end for end in (old["valid_to"], start) if end is not None)
    if old["valid_from"] is not None:
        ends = max(ends, old["valid_from"])
    closed = {**old, "status": "superseded", "superseded_by": new["id"], "valid_to": ends}
    if new["valid_from"] is not None:
        return [state_of(closed)]
    # What ended before it was said to begin never held.
    until = new["valid_to"] if new["valid_to"] is None else max(start, new["valid_to"])
    return [state_of(closed), state_of({**new, "valid_from": start, "valid_to": until})]
