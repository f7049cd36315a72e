"""Erasing a memory, a source or a user: all copies in one transaction, and a receipt of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import select

from memory_os.admin.audit import record
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.erasure.finding import Doomed, find_doomed
from memory_os.erasure.model import Receipt, SubjectType
from memory_os.erasure.receipts import keep_receipt, places_of
from memory_os.erasure.removing import remove
from memory_os.erasure.users import memories_of, others_of, remove_user
from memory_os.errors import NotFoundError
from memory_os.memories.reading import get_memory
from memory_os.outbox.events import Outbox
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction


async def erase_memory(
    tx: Transaction, outbox: Outbox, principal: Principal, memory_id: UUID, request_id: str | None
) -> Receipt:
    """Erase a memory with every copy of it, and with what was derived from it, whoever may read that.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    await _enter(tx)
    await get_memory(tx, memory_id)
    async with tx.as_steward():
        doomed = await find_doomed(tx, [memory_id])
        rows = await remove(tx, doomed)
    return await _finish(tx, outbox, principal, ("memory", str(memory_id)), doomed, rows, request_id)


async def erase_source(
    tx: Transaction, outbox: Outbox, principal: Principal, source_id: UUID, request_id: str | None
) -> Receipt:
    """Erase a source with its passages and evidence, and the memories that nothing else bears out.

    Raises:
        NotFoundError: If this reader sees no such source.
    """
    columns = provenance_tables.sources.c
    statement = select(columns.id, columns.version, columns.created_at).where(
        columns.tenant_id == tx.tenant_id, columns.id == source_id
    )
    await _enter(tx)
    row = await tx.row(statement.with_for_update())
    if row is None:
        raise NotFoundError("there is no such source")
    async with tx.as_steward():
        doomed = await find_doomed(tx, [], [{"kind": "source", **row}])
        rows = await remove(tx, doomed)
    return await _finish(tx, outbox, principal, ("source", str(source_id)), doomed, rows, request_id)


async def erase_user(
    tx: Transaction, outbox: Outbox, principal: Principal, user: str, request_id: str | None
) -> Receipt:
    """Erase all that is a user's, and take the user out of what others have.

    Of somebody whom nobody knows there is nothing: a second time is harmless, and tells nobody who was there.
    """
    await _enter(tx)
    async with tx.as_steward():
        doomed = await find_doomed(tx, await memories_of(tx, user), await others_of(tx, user))
        rows = await remove(tx, doomed)
        rows.update(await remove_user(tx, user))
    who = replace(principal, user_id=None) if principal.user_id == user else principal
    return await _finish(tx, outbox, who, ("user", user), doomed, rows, request_id)


async def _enter(tx: Transaction) -> None:
    """Keep out other erasures, and whoever is just writing down what was read of records."""
    await tx.hot("erase_enter", {"tenant_id": tx.tenant_id})


async def _finish(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    subject: tuple[SubjectType, str],
    doomed: Doomed,
    rows: Counter[str],
    request_id: str | None,
) -> Receipt:
    """Tell the graph, write the receipt and the audit entry."""
    receipt_id, (kind, name) = new_id(), subject
    if kind == "user":
        name = digest_of(tx.tenant_id, receipt_id, name)
    async with tx.as_steward():
        elsewhere = await _copies_elsewhere(tx, doomed)
        position = await outbox.enqueue(tx, doomed.events, request_id)
        places = places_of(rows, len(doomed.events) if outbox.enabled else 0, elsewhere)
        ids = doomed.record_ids
        receipt = await keep_receipt(tx, principal, receipt_id, (kind, name), ids, places, position, request_id)
    detail = {"erasure_id": receipt_id, "records": len(ids)}
    await record(tx, principal, f"{kind}.erase", kind, name, detail, request_id)
    return receipt


async def _copies_elsewhere(tx: Transaction, doomed: Doomed) -> dict[str, Any]:
    if doomed.since is None:
        return {"exports": 0, "backups": 0}
    return (await tx.hot("erase_copies_elsewhere", {"tenant_id": tx.tenant_id, "since": doomed.since}))[0]


def digest_of(tenant_id: UUID, receipt_id: UUID, user: str) -> str:
    """What a receipt calls a user: it can be checked by whoever knows the name, and tells it to nobody else."""
    return hashlib.sha256(f"{tenant_id}\0{receipt_id}\0{user}".encode()).hexdigest()
