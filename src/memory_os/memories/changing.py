"""Changing and deleting memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from msgspec import UNSET, structs
from sqlalchemy import delete, func, select, update
from sqlalchemy.engine import RowMapping

from memory_os.admin.audit import record
from memory_os.changes import changed_columns, values_before
from memory_os.checking import check_version
from memory_os.domain.audiences import Audience
from memory_os.domain.labels import LABELS, LIVE
from memory_os.domain.principal import Principal
from memory_os.edges.holding import entities_beside, reconsider, relations_beside
from memory_os.errors import ConflictError
from memory_os.memories.acts import note_act
from memory_os.memories.checking import check_patch
from memory_os.memories.exact_keys import exact_key_of
from memory_os.memories.model import ChangedMemory, Deleted, Memory, MemoryPatch
from memory_os.memories.ownership import check_own
from memory_os.memories.reading import get_memory, memory_columns, memory_of
from memory_os.memories.states import enter_scopes, lock_memories
from memory_os.memories.writing import Embedded, Prepared, embedded_text, vector_literal
from memory_os.outbox.events import DELETE, UPSERT, NewEvent, Outbox
from memory_os.sources.evidence import note_widening
from memory_os.sources.widening import check_widening
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.full_text import text_vector

_TABLE = tables.memories
_KEYED: Final = ("text", "label", "status", "visibility", "readers", "subject", "property", "occurred_at", "valid_from")
"""Fields that the exact key follows, or that decide whether it has to be unique."""

_READERS: Final = ("reader_users", "reader_groups")
_HARMLESS: Final = ("title", "tags", "metadata")
"""Columns that change nothing of what a memory claims: whoever writes may change them of everybody's."""


async def change_memory(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    memory_id: UUID,
    patch: MemoryPatch,
    *,
    prepared: Prepared,
    if_match: int | None,
    max_text_chars: int,
    request_id: str | None,
) -> ChangedMemory:
    """Apply a patch under the memory's row lock, with an act and an audit entry of what was there before.

    Args:
        tx: The unit of work.
        outbox: Where the projection is enqueued.
        principal: Who changes.
        memory_id: Which memory.
        patch: What to change.
        prepared: The vector of the new title and text, where one of these changes.
        if_match: The version that the client saw.
        max_text_chars: Longest text.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader sees no such memory.
        PreconditionFailedError: If `if_match` is not its version.
        InvalidInputError: If the patch breaks a rule, or some could read the memory who may not read all of its
            sources, and it does not say `widen`.
        PermissionDeniedError: If it says so, and the caller may not read all of them either; or if the memory is
            another user's, and more than its title, tags and metadata would change.
        ConflictError: If it makes a superseded memory active, which is more than a change.
    """
    if any(getattr(patch, name) is not UNSET for name in _KEYED):
        await enter_scopes(tx, [(await get_memory(tx, memory_id)).user_id])
    row = (await lock_memories(tx, [memory_id]))[memory_id]
    current = memory_of(row)
    if _changed(patch, current).keys() - set(_HARMLESS):
        check_own(principal, current)
    check_version(if_match, current.version)
    check_patch(patch, current, principal, max_text_chars=max_text_chars)
    values = _values(patch, current)
    if not values:
        return ChangedMemory(current, 0)
    if values.get("status") == "active" and row["superseded_by"] is not None:
        raise ConflictError("the memory was superseded: POST .../restore, which lets it hold again, or undo that")
    narrower = await _narrower_sources(tx, principal, current, row, patch, values)
    values |= await _exact_key(tx, row, values)
    text, title = values.get("text", current.text), values.get("title", current.title)
    if "text" in values or "title" in values:
        values["search"] = text_vector(title, text)
    embedded = None
    if embedded_text(title, text) != embedded_text(current.title, current.text):
        embedded = prepared.vector_of(embedded_text(title, text))
        # The worker embeds what could not be embedded now.
        values["embedding_model"] = None if embedded.vectors is None else embedded.identity.model
    changed = await tx.row(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == memory_id)
        .values(**values, version=_TABLE.c.version + 1, updated_at=func.now())
        .returning(*memory_columns())
    )
    if changed is None:
        raise AssertionError("a locked row can't be gone")
    after, before = memory_of(changed), values_before(current, values)
    if "text" in values or "title" in values or Audience.of(current) != Audience.of(after):
        # Mentions follow text and title, and which entities they may be of follows the readers.
        await _forget_extraction(tx, memory_id)
    if embedded is not None:
        await _replace_vector(tx, memory_id, embedded)
    await note_act(
        tx,
        principal,
        "change",
        memory_id,
        detail={"before": before, "after": values_before(after, values)},
        before={"audiences": [Audience.of(current), Audience.of(after)]},
        request_id=request_id,
    )
    await record(
        tx,
        principal,
        "memory.change",
        "memory",
        memory_id,
        {"fields": sorted(before)},
        request_id,
        content={"before": before},
        readers=[Audience.of(current), Audience.of(after)],
    )
    await note_widening(tx, principal, memory_id, narrower, request_id)
    event = NewEvent(UPSERT, "memory", memory_id, changed["version"])
    return ChangedMemory(after, await outbox.enqueue(tx, [event], request_id))


def _changed(patch: MemoryPatch, current: Memory) -> dict[str, Any]:
    return changed_columns(structs.replace(patch, widen=UNSET), current)


def _values(patch: MemoryPatch, current: Memory) -> dict[str, Any]:
    """The columns that a patch changes; the layer goes with the label."""
    values = _changed(patch, current)
    if "label" in values:
        values["layer"] = LABELS[values["label"]].layer
    return values


async def _narrower_sources(
    tx: Transaction,
    principal: Principal,
    current: Memory,
    row: RowMapping,
    patch: MemoryPatch,
    values: Mapping[str, Any],
) -> list[UUID]:
    """The sources of a memory that some of its new readers may not read; see `check_widening`."""
    if values.keys().isdisjoint(("visibility", *_READERS)):
        return []
    after = Audience.of_columns({**row, **values})
    return await check_widening(tx, principal, current, after, widen=patch.widen is True)


async def _exact_key(tx: Transaction, row: RowMapping, values: Mapping[str, Any]) -> dict[str, bytes | None]:
    """The key as it follows from changed columns; none where another memory has it, or where the client wanted none."""
    if row["exact_key"] is None or values.keys().isdisjoint((*_KEYED, *_READERS)):
        return {}
    changed: dict[str, Any] = {**row, **values}
    key = exact_key_of(
        changed["text"],
        label=changed["label"],
        visibility=changed["visibility"],
        reader_users=changed["reader_users"],
        reader_groups=changed["reader_groups"],
        subject=changed["subject"],
        property_=changed["property"],
        occurred_at=changed["occurred_at"],
        valid_from=changed["valid_from"],
    )
    columns = _TABLE.c
    equal = select(columns.id).where(
        columns.tenant_id == tx.tenant_id,
        func.coalesce(columns.user_id, "") == (changed["user_id"] or ""),
        columns.exact_key == key,
        columns.status.in_(LIVE),
        columns.id != changed["id"],
    )
    taken = changed["status"] in LIVE and await tx.row(equal) is not None
    return {"exact_key": None if taken else key}


async def _forget_extraction(tx: Transaction, memory_id: UUID) -> None:
    """Empty the mark, which is kept since it tells that there are mentions of the older text or title."""
    done = tables.extractions
    mine = (done.c.tenant_id == tx.tenant_id) & (done.c.memory_id == memory_id)
    await tx.run(update(done).where(mine).values(extractor=""))


async def _replace_vector(tx: Transaction, memory_id: UUID, embedded: Embedded) -> None:
    vectors = tables.memory_embeddings
    await tx.run(delete(vectors).where(vectors.c.tenant_id == tx.tenant_id, vectors.c.memory_id == memory_id))
    if embedded.vectors is None:
        return
    await tx.touched(
        "insert_vectors",
        {
            "tenant_id": tx.tenant_id,
            "model": embedded.identity.model,
            "dimension": embedded.identity.dimension,
            "ids": [memory_id],
            "vectors": [vector_literal(embedded.vectors[0])],
        },
    )


async def delete_memory(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    memory_id: UUID,
    *,
    if_match: int | None,
    request_id: str | None,
) -> Deleted:
    """Delete a memory with its vector, mentions, edges and links; it is hidden at commit, wherever the graph stands.

    Raises:
        NotFoundError: If this reader sees no such memory.
        PermissionDeniedError: If it is another user's, and this one is no reviewer.
        PreconditionFailedError: If `if_match` is not its version.
    """
    current = await get_memory(tx, memory_id, lock=True)
    check_own(principal, current)
    check_version(if_match, current.version)
    mentioned = await _mentioned(tx, memory_id)
    beside, relations = await entities_beside(tx, memory_id), await relations_beside(tx, memory_id)
    async with tx.as_steward():  # the other memory of an act may be hidden from who deletes this one
        await tx.touched("hand_on_states", {"tenant_id": tx.tenant_id, "memory_id": memory_id})
    await tx.run(delete(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == memory_id))
    await record(tx, principal, "memory.delete", "memory", memory_id, {"label": current.label}, request_id)
    gone = NewEvent(DELETE, "memory", memory_id, current.version + 1, mentioned)
    return Deleted(1, await outbox.enqueue(tx, [gone, *relations, *reconsider(beside)], request_id))


async def _mentioned(tx: Transaction, memory_id: UUID) -> list[UUID]:
    """The entities that a memory mentions, which the graph need not know: it may never have been written there."""
    mentions = tables.mentions.c
    rows = await tx.rows(
        select(mentions.entity_id)
        .where(mentions.tenant_id == tx.tenant_id, mentions.memory_id == memory_id)
        .distinct()
        .order_by(mentions.entity_id)
    )
    return [row["entity_id"] for row in rows]
