"""What was believed at an earlier moment: the records that a reader may see now, as they stood in the memory then.

Windows say what held, and acts say what was believed: a correction gives a memory an empty window, and yet it was
believed until then. So memories are read as they are, and what was done to them since is taken back.

Who may see is decided by the readers of today. What nobody can know any more, or this reader never could, is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_os.domain.principal import Principal
from memory_os.graph.port import NodeRef, Path
from memory_os.retrieval.arms import Ref, Window
from memory_os.retrieval.hydrating import Hydrated, Record, assemble, ids_by_kind, record_of, steps_of
from memory_os.retrieval.rewinding import PastAct, in_force, past_act, rewind, touched_since
from memory_os.storage.database import Transaction

_Row = Mapping[str, Any]


async def hydrate_believed(
    tx: Transaction, principal: Principal, refs: Iterable[Ref], paths: Sequence[Path], window: Window
) -> Hydrated:
    """Look up records and the nodes and steps of paths as they stood at a moment, as far as this reader may see them.

    Args:
        tx: The unit of work, in the reader's scope.
        principal: The reader.
        refs: Records that were found, whatever their state is now.
        paths: Paths that were found.
        window: The moment of the record, and the time asked about.
    """
    moment = window.believed_at
    if moment is None:
        raise AssertionError("the question is about what is believed now")
    ids = ids_by_kind(refs, paths)
    given = {
        "tenant_id": tx.tenant_id,
        "believed_at": moment,
        "as_of": window.as_of or moment,
        "history": window.history,
    }
    rows = await tx.hot("believed_records", {**given, **ids})
    seen = {kind: [row["id"] for row in rows if row["type"] == kind] for kind in ("memory", "entity")}
    since = await _acts_since(tx, moment, seen["memory"], seen["entity"])
    states, rewritten = _states_then(rows, since, moment, principal)
    states = [state for state in states if in_force(state, window.as_of or moment, history=window.history)]
    merged = {row["other_id"] for row in since if _was_merged(row, moment)}
    others = [row for row in rows if row["type"] != "memory" and (row["type"] != "entity" or row["id"] not in merged)]
    records = [*await _memories(tx, states), *(record_of({**row, "superseded_by": None}) for row in others)]
    touched = touched_since(since, moment)
    steps = [
        step
        for step in await tx.hot("believed_steps", {**given, **steps_of(paths), **ids})
        if step["id"] is None or str(step["id"]) not in touched
    ]
    return assemble(records, steps, rewritten)


async def _acts_since(
    tx: Transaction, moment: datetime, memories: Sequence[UUID], entities: Sequence[UUID]
) -> list[dict[str, Any]]:
    """What was done since to records that this reader sees, whoever may read the act.

    The other memory of an act may be hidden. Nothing is taken from it here but how the visible ones stood.
    """
    if not memories and not entities:
        return []
    given = {"tenant_id": tx.tenant_id, "believed_at": moment, "memories": list(memories), "entities": list(entities)}
    async with tx.as_steward():
        return await tx.hot("acts_since", given)


def _states_then(
    rows: Iterable[_Row], since: Iterable[_Row], moment: datetime, principal: Principal
) -> tuple[list[dict[str, Any]], frozenset[NodeRef]]:
    """The memories among rows as they stood, and those of them whose text was another."""
    acts: dict[UUID, list[PastAct]] = {}
    for row in since:
        if row["of_memory"] and row["at"] > moment:
            for ident in {row["memory_id"], row["other_id"]} - {None}:
                acts.setdefault(ident, []).append(past_act(row))
    memories = [row for row in rows if row["type"] == "memory"]
    known = [(row, rewind(row, acts.get(row["id"], ()), principal)) for row in memories]
    rewritten = {row["id"] for row, then in known if then is not None and then["text"] != row["text"]}
    states = [then for _, then in known if then is not None]
    return states, frozenset(NodeRef("memory", str(ident)) for ident in rewritten)


def _was_merged(act: _Row, moment: datetime) -> bool:
    """Whether an act had made an entity part of another at that moment; an undo has brought it back since."""
    done = not act["of_memory"] and act["kind"] == "merge" and act["at"] <= moment
    return bool(done and act["undone_at"] is not None and act["undone_at"] > moment)


async def _memories(tx: Transaction, states: Sequence[Mapping[str, Any]]) -> list[Record]:
    """Records of memories; what has taken the place of one is named where this reader sees it."""
    successors = {state["superseded_by"] for state in states} - {None}
    seen = set[UUID]()
    if successors:
        found = await tx.hot("visible_memories", {"tenant_id": tx.tenant_id, "ids": list(successors)})
        seen = {row["id"] for row in found}
    return [
        record_of(
            {
                **state,
                "date": state["occurred_at"] or state["date"],
                "superseded_by": state["superseded_by"] if state["superseded_by"] in seen else None,
            }
        )
        for state in states
    ]
