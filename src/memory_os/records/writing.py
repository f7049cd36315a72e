"""Storing, changing and deleting records. They have no node of their own in the graph; links to them do."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from memory_os.admin.audit import record as audit
from memory_os.changes import changed_columns, values_before
from memory_os.checking import check_version
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.edges.holding import reconsider
from memory_os.errors import ConflictError
from memory_os.memories.model import Deleted
from memory_os.outbox.events import DELETE, NewEvent, Outbox
from memory_os.records.checking import check_patch
from memory_os.records.model import Record, RecordDraft, RecordLayer, RecordPatch
from memory_os.records.reading import find_record, get_record, record_of, shown_columns
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.full_text import text_vector


async def store_record(
    tx: Transaction, principal: Principal, layer: RecordLayer, draft: RecordDraft
) -> tuple[Record, bool]:
    """Store a checked record, or find it where its id was stored with the same title and summary before.

    Returns:
        The record, and whether it is new.

    Raises:
        ConflictError: If its id is taken by another record.
    """
    ident = draft.id or new_id()
    values = {
        "tenant_id": tx.tenant_id,
        "id": ident,
        "title": draft.title,
        "summary": draft.summary,
        "payload": draft.payload,
        "confidence": draft.confidence,
        "status": draft.status,
        "visibility": draft.visibility,
        "user_id": principal.user_id,
        "reader_users": draft.readers.users if draft.readers else [],
        "reader_groups": draft.readers.groups if draft.readers else [],
        "search": text_vector(draft.title, draft.summary),
        "created_by": principal.token_id,
    }
    statement = insert(tables.RECORD_TABLES[layer]).values(values)
    row = await tx.row(
        statement.on_conflict_do_nothing(index_elements=["tenant_id", "id"]).returning(*shown_columns(layer))
    )
    if row is not None:
        return record_of(row), True
    known = await find_record(tx, layer, ident)
    if known is None or (known.title, known.summary) != (draft.title, draft.summary):
        raise ConflictError(
            f"the id {ident} is taken by another record: leave the id out, or change that record with PATCH"
        )
    return known, False


async def change_record(
    tx: Transaction,
    principal: Principal,
    layer: RecordLayer,
    record_id: UUID,
    patch: RecordPatch,
    *,
    if_match: int | None,
    request_id: str | None,
) -> Record:
    """Apply a patch under the record's row lock, with an audit entry of what was there before.

    Raises:
        NotFoundError: If this reader sees no such record.
        PreconditionFailedError: If `if_match` is not its version.
        InvalidInputError: If the patch breaks a rule.
    """
    current = await get_record(tx, layer, record_id, lock=True)
    check_version(if_match, current.version)
    check_patch(patch, current, principal)
    values = changed_columns(patch, current)
    if not values:
        return current
    before = values_before(current, values)
    if "title" in values or "summary" in values:
        values["search"] = text_vector(values.get("title", current.title), values.get("summary", current.summary))
    table = tables.RECORD_TABLES[layer]
    changed = await tx.row(
        update(table)
        .where(table.c.tenant_id == tx.tenant_id, table.c.id == record_id)
        .values(**values, version=table.c.version + 1, updated_at=func.now())
        .returning(*shown_columns(layer))
    )
    if changed is None:
        raise AssertionError("a locked row can't be gone")
    after = record_of(changed)
    await audit(
        tx,
        principal,
        f"{layer}.change",
        layer,
        record_id,
        {"fields": sorted(before)},
        request_id,
        content={"before": before},
        readers=[Audience.of(current), Audience.of(after)],
    )
    return after


async def delete_record(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    layer: RecordLayer,
    record_id: UUID,
    *,
    if_match: int | None,
    request_id: str | None,
) -> Deleted:
    """Delete a record with the links to it, each of which leaves the graph by an event of its own.

    Raises:
        NotFoundError: If this reader sees no such record.
        PreconditionFailedError: If `if_match` is not its version.
    """
    current = await get_record(tx, layer, record_id, lock=True)
    check_version(if_match, current.version)
    # The lock keeps new links out: their foreign key waits for it, and then finds nothing.
    links = tables.entity_links.c
    found = select(links.id, links.version, links.entity_id).where(
        links.tenant_id == tx.tenant_id, links.layer == layer, links.target_id == record_id
    )
    async with tx.as_steward():  # of entities that this reader does not see, too: they go with it
        rows = await tx.rows(found)
    table = tables.RECORD_TABLES[layer]
    await tx.run(delete(table).where(table.c.tenant_id == tx.tenant_id, table.c.id == record_id))
    await audit(tx, principal, f"{layer}.delete", layer, record_id, {}, request_id)
    events = [NewEvent(DELETE, "entity_link", row["id"], row["version"] + 1) for row in rows]
    events += reconsider(row["entity_id"] for row in rows)
    return Deleted(1, await outbox.enqueue(tx, events, request_id))
