"""A memory is contradicted: it is shown as disputed, together with what contradicts it, until somebody decides."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from memory_os.admin.audit import record
from memory_os.checking import unknown_term
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.labels import check_transition
from memory_os.domain.principal import Principal
from memory_os.domain.vocabulary import VocabularyError
from memory_os.edges.storing import EdgeRow, insert_edges
from memory_os.errors import ConflictError, FieldError, InvalidInputError
from memory_os.memories.acts import note_act
from memory_os.memories.migrating import EdgeChanges
from memory_os.memories.model import Memory, NodeAddress
from memory_os.memories.reading import get_memory, memory_of
from memory_os.memories.states import lock_memories, put_states, state_of
from memory_os.memories.superseding import CERTAIN
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.storage import tables
from memory_os.storage.database import Transaction


@dataclass(frozen=True, slots=True)
class Disputed:
    """The memory, and what it contradicts, as they are now; the act, and the position to wait for."""

    memory: Memory
    against: Memory | None
    act_id: UUID
    position: int


async def dispute(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    memory: Memory,
    *,
    against: Memory | None,
    reason: str | None,
    correction_id: UUID | None = None,
    request_id: str | None,
) -> Disputed:
    """Mark a memory as disputed, and with it the one that it can't hold beside; both are locked here.

    One that is disputed already can be disputed against a further memory.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who disputes.
        memory: What is disputed.
        against: What contradicts it; a CONTRADICTS edge leads there unless the two have one.
        reason: Why, in words; the history shows it.
        correction_id: The correction that asks for it, if one does.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader does not see both.
        UnknownTermError: If the status of one does not allow it.
        InvalidInputError: If the two are one.
        ConflictError: If all of it has been said already.
    """
    if against is not None and against.id == memory.id:
        fault = FieldError("/against", "a memory can't contradict itself")
        raise InvalidInputError("the memory can't be disputed like that", errors=[fault])
    rows = await lock_memories(tx, [one.id for one in (memory, against) if one is not None])
    both = [rows[memory.id]] if against is None else [rows[memory.id], rows[against.id]]
    undisputed = [row for row in both if row["status"] != "disputed" or against is None]
    for row in undisputed:
        _check(memory_of(row), "/status" if row["id"] == memory.id else "/against")
    events = await put_states(tx, [state_of({**row, "status": "disputed"}) for row in undisputed])
    changes = EdgeChanges()
    if against is not None and not await _contradict(tx, memory.id, against.id):
        ends = NodeAddress(memory=memory.id), NodeAddress(memory=against.id)
        changes.added = await insert_edges(tx, principal, [EdgeRow(new_id(), "CONTRADICTS", *ends, CERTAIN)])
        events += [NewEvent(UPSERT, "edge", ident, 1) for ident in changes.added]
    if not undisputed and not changes.added:
        raise ConflictError("the two are disputed, and contradict each other, already")
    said = {} if reason is None else {"reason": reason}
    other_id = None if against is None else against.id
    readers = [Audience.of(memory_of(row)) for row in both]
    act_id = await note_act(
        tx,
        principal,
        "dispute",
        memory.id,
        other_id=other_id,
        detail=said if correction_id is None else {**said, "correction": correction_id},
        before={
            "memories": [state_of(row) for row in undisputed],
            "edges": changes.kept(),
            "audiences": readers,
        },
        request_id=request_id,
    )
    await record(
        tx,
        principal,
        "memory.dispute",
        "memory",
        memory.id,
        {"against": other_id},
        request_id,
        content=said,
        readers=readers,
    )
    position = await outbox.enqueue(tx, events, request_id)
    other = None if against is None else await get_memory(tx, against.id)
    return Disputed(await get_memory(tx, memory.id), other, act_id, position)


def _check(memory: Memory, pointer: str) -> None:
    try:
        check_transition(memory.label, memory.status, "disputed")
    except VocabularyError as error:
        raise unknown_term(error, pointer) from None


async def _contradict(tx: Transaction, one: UUID, other: UUID) -> bool:
    """Whether an edge says already that the two can't both hold, in either direction."""
    columns = tables.edges.c
    row = await tx.row(
        select(columns.id).where(
            columns.tenant_id == tx.tenant_id,
            columns.type == "CONTRADICTS",
            columns.source_memory_id.in_((one, other)),
            columns.target_memory_id.in_((one, other)),
        )
    )
    return row is not None
