"""A memory that was never right gives way to the right one, which holds in its place from the beginning.

A supersession says that the world has changed: each of the two held in its time. A correction says that the record was
wrong: the new memory takes over the window, and the old one keeps an empty one, so that no question about any past
finds it, unless it asks for history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from memory_os.admin.audit import record
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.labels import LABELS
from memory_os.domain.principal import Principal
from memory_os.edges.storing import EdgeRow, insert_edges
from memory_os.memories.acts import note_act
from memory_os.memories.migrating import EdgeChanges, migrate_edges
from memory_os.memories.model import Memory, NodeAddress
from memory_os.memories.reading import get_memory, memory_of
from memory_os.memories.retying import (
    Retying,
    Ties,
    claim_edges_of,
    declare_links_of,
    edges_between,
    remove_edges,
)
from memory_os.memories.states import Row, State, lock_memories, put_states, state_of
from memory_os.memories.superseding import CERTAIN
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.storage.database import Transaction

_TAKEN_OVER: Final = ("completed", "abandoned", "expired")
"""What became of the old memory, and is true of the new one too. A dispute was about the old one."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """Both memories as they are now, the act, and the position to wait for."""

    old: Memory
    new: Memory
    act_id: UUID
    position: int


def is_settled(old: str, new: str) -> bool:
    """Whether labels forbid that a memory of the one supersedes one of the other: what happened gives way to nothing.

    Then the wrong one is retracted, and the right one stands by itself; the correction links the two.
    """
    return LABELS[old].immutable_text or LABELS[new].immutable_text


async def correct(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    old: UUID,
    new: UUID,
    *,
    correction_id: UUID,
    retying: Retying | None,
    request_id: str | None,
) -> Corrected:
    """Let a new memory, which has the right window already, stand in the place of a wrong one; both are locked here.

    An undo gives the old one back all that it had, and retracts the new one.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who applies the correction.
        old: The memory that is wrong and stands; the caller has checked that.
        new: The right one, stored in this unit of work for the same readers.
        correction_id: The correction that asks for it.
        retying: The entity that it was tied to by mistake, and the one that is meant.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader does not see both.
    """
    rows = await lock_memories(tx, (old, new))
    older, newer = rows[old], rows[new]
    kind: Final = "retract" if is_settled(older["label"], newer["label"]) else "supersede"
    wrong_edges = [] if retying is None else await edges_between(tx, old, retying.former, lock=True)
    events = await remove_edges(tx, wrong_edges)
    events += await put_states(tx, _states_after(older, newer))
    changes, moved = await migrate_edges(tx, old, new)
    events += moved
    changes.removed, ties = wrong_edges, Ties()
    if retying is not None:
        changes.added += await claim_edges_of(tx, principal, wrong_edges, old, new, retying)
        ties, declared = await declare_links_of(tx, principal, old, new, retying)
        events += declared
    if kind == "supersede":
        edge = EdgeRow(new_id(), "SUPERSEDES", NodeAddress(memory=new), NodeAddress(memory=old), CERTAIN)
        changes.added += await insert_edges(tx, principal, [edge])
    events += [NewEvent(UPSERT, "edge", ident, 1) for ident in changes.added]
    detail = {"correction": correction_id, **_counts(changes)}
    act_id = await note_act(
        tx,
        principal,
        kind,
        old,
        other_id=new,
        detail=detail,
        before={
            "memories": [state_of(older), {**state_of(newer), "status": "retracted"}],
            "edges": changes.kept(),
            "ties": {} if retying is None else ties.kept(),
            "audiences": [Audience.of(memory_of(older))],
        },
        request_id=request_id,
    )
    await record(tx, principal, f"memory.{kind}", "memory", old, {"by": new, **detail}, request_id)
    position = await outbox.enqueue(tx, events, request_id)
    return Corrected(await get_memory(tx, old), await get_memory(tx, new), act_id, position)


def _states_after(old: Row, new: Row) -> list[State]:
    """The states of both; only the old one's where the new one stays as it was stored."""
    if is_settled(old["label"], new["label"]):
        states = [state_of({**old, "status": "retracted"})]
    else:
        never = old["valid_from"] or old["created_at"]
        ended = {"status": "superseded", "superseded_by": new["id"], "valid_from": never, "valid_to": never}
        states = [state_of({**old, **ended})]
    if old["status"] in _TAKEN_OVER and old["status"] in LABELS[new["label"]].statuses:
        states.append(state_of({**new, "status": old["status"]}))
    return states


def _counts(changes: EdgeChanges) -> dict[str, int]:
    return {
        "edges_moved": len(changes.moved),
        "edges_merged": len(changes.merged),
        "edges_retied": len(changes.removed),
    }
