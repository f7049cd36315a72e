"""Undoing merges and splits: all is as it was before, but for what changed since, which stays where it is."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.engine import RowMapping

from memory_os.admin.audit import record
from memory_os.domain.principal import Principal
from memory_os.entities.act_model import UndoneAct
from memory_os.entities.acts import get_act, later_acts, mark_undone, note_act
from memory_os.entities.reading import check_entity, find_entity, get_entity
from memory_os.entities.rows import hold_mentions
from memory_os.entities.undo_merge import text_after_undone_merge, undo_merge
from memory_os.entities.undo_split import text_after_undone_split, undo_split
from memory_os.entities.undo_steps import Undoing, Undone
from memory_os.entities.vectors import EmbeddedTexts
from memory_os.errors import ConflictError
from memory_os.outbox.events import Outbox
from memory_os.storage.database import Transaction


async def texts_of_undo(tx: Transaction, entity_id: UUID, act_id: UUID) -> list[str]:
    """The texts to embed for an undo: none, where the vector of before is that of the text of then.

    Raises:
        NotFoundError: If this reader sees no such entity, or it has no such act.
    """
    await check_entity(tx, entity_id)
    act = await get_act(tx, entity_id, act_id)
    current = await find_entity(tx, act["entity_id"])
    if current is None or not _is_kept(act):
        return []
    text = (text_after_undone_merge if act["kind"] == "merge" else text_after_undone_split)(act, current)
    return [] if text is None else [text]


async def undo_act(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    entity_id: UUID,
    act_id: UUID,
    vectors: EmbeddedTexts,
    request_id: str | None,
) -> UndoneAct:
    """Undo a merge or a split.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who undoes.
        entity_id: The entity among whose acts it is.
        act_id: Which act.
        vectors: The vectors of what `texts_of_undo` gave.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader sees no such entity, or it has no such act.
        ConflictError: If it is no merge and no split, it was undone already, something was done since that has to be
            undone first, one of the entities is gone or not this reader's to see, or what has to come back finds its
            place taken.
        EntityMovedError: If the text after it is not one that was embedded.
    """
    await check_entity(tx, entity_id)
    act = await get_act(tx, entity_id, act_id)
    if act["kind"] == "undo":
        raise ConflictError("an undo can't be undone: do again what it took back")
    if not _is_kept(act):
        raise ConflictError("this act was noted without what it takes to undo it")
    await hold_mentions(tx, act["other_id"])
    for ident in sorted((act["entity_id"], act["other_id"])):
        if await find_entity(tx, ident) is not None:
            await get_entity(tx, ident, lock=True)
    act = await get_act(tx, entity_id, act_id, lock=True)
    if act["undone_at"] is not None:
        raise ConflictError(f"this was undone already, at {act['undone_at'].isoformat()}")
    _refuse_later(await later_acts(tx, act))
    undoing = Undoing(tx, principal, act, await get_entity(tx, act["entity_id"]), vectors)
    done = await (undo_merge if act["kind"] == "merge" else undo_split)(undoing)
    await mark_undone(tx, act_id)
    undo_id = await _note(tx, principal, act, done, request_id)
    return UndoneAct(done.entity, done.restored, undo_id, await outbox.enqueue(tx, done.events, request_id))


async def _note(tx: Transaction, principal: Principal, act: RowMapping, done: Undone, request_id: str | None) -> UUID:
    told = {"act_id": act["id"], "kind": act["kind"]}
    undo_id = await note_act(
        tx,
        principal,
        "undo",
        act["entity_id"],
        other_id=act["other_id"],
        detail=told,
        before={},
        readers=done.readers,
        request_id=request_id,
    )
    await record(tx, principal, "entity.undo", "entity", act["entity_id"], told, request_id)
    return undo_id


def _is_kept(act: RowMapping) -> bool:
    """Whether an act holds what it takes to undo it."""
    needed = {"merge": ("row", "into", "after", "edges", "links"), "split": ("old", "left", "taken", "made")}
    return act["other_id"] is not None and all(name in act["before"] for name in needed.get(act["kind"], ("kind",)))


def _refuse_later(later: Sequence[RowMapping]) -> None:
    if later:
        named = ", ".join(f"{row['kind']} at {row['at'].isoformat()}" for row in later)
        raise ConflictError(
            f"more was done since: {named}. Undo these first, the last one first",
            extra={"later": [{name: str(row[name]) for name in ("id", "kind", "entity_id")} for row in later]},
        )
