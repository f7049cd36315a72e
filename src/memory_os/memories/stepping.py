"""Steps of a memory's life that concern it alone: completed, given up, expired, archived, retracted, restored."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from sqlalchemy.engine import RowMapping

from memory_os.admin.audit import record
from memory_os.checking import check_version, unknown_term
from memory_os.domain.acts import ACTS
from memory_os.domain.audiences import Audience
from memory_os.domain.labels import check_transition
from memory_os.domain.principal import Principal
from memory_os.domain.vocabulary import VocabularyError
from memory_os.memories.acts import first_superseding, note_act
from memory_os.memories.lifecycle_model import ActedMemory
from memory_os.memories.migrating import EdgeChanges, remove_supersedes
from memory_os.memories.model import Memory
from memory_os.memories.ownership import check_own
from memory_os.memories.reading import get_memory, memory_of
from memory_os.memories.states import State, enter_scopes, lock_memories, put_states, state_of
from memory_os.outbox.events import NewEvent, Outbox
from memory_os.storage.database import Transaction

StepKind = Literal["complete", "abandon", "expire", "archive", "retract", "restore"]


async def step(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    memory_id: UUID,
    kind: StepKind,
    *,
    reason: str | None = None,
    correction_id: UUID | None = None,
    if_match: int | None = None,
    request_id: str | None = None,
) -> ActedMemory:
    """Let a memory take a step that its label allows.

    One that is restored after it was superseded holds beside the one that took its place, with the window that it had
    before; its edges stay where they went. To have these back, undo the supersession instead.

    Args:
        tx: The unit of work.
        outbox: Where the projection is enqueued.
        principal: Who acts.
        memory_id: Which memory.
        kind: Which step.
        reason: Why, in words; the history shows it.
        correction_id: The correction that asks for it, if one does.
        if_match: The version that the client saw.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader sees no such memory.
        PermissionDeniedError: If it is another user's, and this one is no reviewer.
        PreconditionFailedError: If `if_match` is not its version.
        UnknownTermError: If its label or status does not allow the step; the error names those that it does allow.
    """
    if kind == "restore":
        await enter_scopes(tx, [(await get_memory(tx, memory_id)).user_id])
    row = (await lock_memories(tx, [memory_id]))[memory_id]
    current = memory_of(row)
    check_own(principal, current)
    check_version(if_match, current.version)
    status = _status_after(current, kind)
    state, changes = {**state_of(row), "status": status}, EdgeChanges()
    events = list[NewEvent]()
    if kind == "restore" and row["superseded_by"] is not None:
        changes.removed, events = await remove_supersedes(tx, row["superseded_by"], memory_id)
    if kind == "restore" and current.status == "superseded":
        state |= await _reopened(tx, row)  # whether or not what took its place is still there
    events += await put_states(tx, [state])
    said = {} if reason is None else {"reason": reason}
    act_id = await note_act(
        tx,
        principal,
        kind,
        memory_id,
        detail=said if correction_id is None else {**said, "correction": correction_id},
        before={"memories": [state_of(row)], "edges": changes.kept(), "audiences": [Audience.of(current)]},
        request_id=request_id,
    )
    await record(
        tx,
        principal,
        f"memory.{kind}",
        "memory",
        memory_id,
        {"before": current.status},
        request_id,
        content=said,
        readers=[Audience.of(current)],
    )
    return ActedMemory(await get_memory(tx, memory_id), act_id, await outbox.enqueue(tx, events, request_id))


def _status_after(memory: Memory, kind: StepKind) -> str:
    status = ACTS[kind].status
    if status is None:
        raise AssertionError(f"{kind} is no step")
    try:
        check_transition(memory.label, memory.status, status)
    except VocabularyError as error:
        raise unknown_term(error, "/status") from None
    return status


async def _reopened(tx: Transaction, row: RowMapping) -> State:
    """The window of a superseded memory as it was before it lost its place for the first time."""
    act = await first_superseding(tx, row["id"])
    if act is None:
        return {"superseded_by": None}
    # A correction takes the beginning, too: what is corrected has never held.
    taken = ("valid_from", "valid_to") if "correction" in act["detail"] else ("valid_to",)
    kept: State = next((state for state in act["before"]["memories"] if state["id"] == str(row["id"])), {})
    return {"superseded_by": None, **{name: kept[name] for name in taken if name in kept}}
