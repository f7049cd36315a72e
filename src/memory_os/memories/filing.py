"""Single-valued properties: of one subject and property, one memory holds at a time, in whatever order they arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final
from uuid import UUID

from sqlalchemy import select

from memory_os.domain.audiences import Audience
from memory_os.domain.labels import LABELS
from memory_os.domain.principal import Principal
from memory_os.memories.acts import corrected_among
from memory_os.memories.model import Memory
from memory_os.memories.reading import get_memory, memory_columns, memory_of
from memory_os.memories.states import Row, lock_memories
from memory_os.memories.superseding import take_place
from memory_os.outbox.events import Outbox
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.memories
_ASIDE: Final = ("archived", "retracted")
"""Statuses of what is no value any more."""


@dataclass(frozen=True, slots=True)
class Filed:
    """A memory in its place among the values of its property.

    Attributes:
        memory: It, as it is now.
        superseded: The value before it, which ends where it begins; None if it is the first.
        superseded_by: The value after it; None if it is the newest.
        act_id: The last act that this took, None where it took none.
        position: What to wait for, 0 where nothing changed.
    """

    memory: Memory
    superseded: Memory | None = None
    superseded_by: Memory | None = None
    act_id: UUID | None = None
    position: int = 0


def effective_time(memory: Row) -> datetime:
    """When a value began to hold: as it says, else when it happened, else when it was stored."""
    found: datetime = memory["valid_from"] or memory["occurred_at"] or memory["created_at"]
    return found


async def file_value(
    tx: Transaction, outbox: Outbox, principal: Principal, new: Memory, request_id: str | None
) -> Filed:
    """Put a stored memory in its place among those with its subject, property, user and readers.

    Its place is by its effective time, so history that arrives late goes into the past: the value after it takes its
    place at once, and the value before it ends where it begins. Events have none, nor have archived and retracted ones.
    Values that are equal in time follow each other in the order of their ids. Others of the property that nobody has
    filed yet are filed with it: afterwards one value holds at a time.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    if new.subject is None or new.property is None or LABELS[new.label].immutable_text:
        return Filed(new)
    await _enter(tx, new)
    chain = await _chain(tx, new)
    place = next((index for index, row in enumerate(chain) if row["id"] == new.id), None)
    if place is None or len(chain) == 1:
        return Filed(await get_memory(tx, new.id))
    act_id, position = None, 0
    for older, newer in pairwise(chain):
        if older["superseded_by"] == newer["id"]:
            continue
        rows = await lock_memories(tx, (older["id"], newer["id"]))  # as the step before has left them
        begins = effective_time(newer)
        placed = await take_place(tx, outbox, principal, rows[older["id"]], rows[newer["id"]], begins, request_id)
        act_id, position = placed.act_id, placed.position
    beside = [chain[index]["id"] if 0 <= index < len(chain) else None for index in (place - 1, place + 1)]
    before, after = [None if ident is None else await get_memory(tx, ident) for ident in beside]
    return Filed(await get_memory(tx, new.id), before, after, act_id, position)


async def _enter(tx: Transaction, memory: Memory) -> None:
    """Wait for whoever else files a value of this property: neither would see the other's."""
    scope = "/".join(("value", memory.user_id or "", memory.subject or "", memory.property or ""))
    await tx.hot("enter_gate", {"tenant_id": tx.tenant_id, "scope": scope})


async def _chain(tx: Transaction, memory: Memory) -> Sequence[Row]:
    """The values of a property, locked, in the order in which they hold."""
    columns = _TABLE.c
    statement = select(*memory_columns()).where(
        columns.tenant_id == tx.tenant_id,
        columns.subject == memory.subject,
        columns.property == memory.property,
        columns.user_id.is_not_distinct_from(memory.user_id),
        columns.status.not_in(_ASIDE),
    )
    locked = await tx.rows(statement.order_by(columns.id).with_for_update(of=_TABLE))
    audience = Audience.of(memory)
    values = {
        row["id"]: row
        for row in locked
        if not LABELS[row["label"]].immutable_text and Audience.of(memory_of(row)) == audience
    }
    replaced = await _replaced(tx, values)
    return sorted((row for row in values.values() if row["id"] not in replaced), key=_order)


def _order(row: Row) -> tuple[datetime, UUID]:
    return effective_time(row), row["id"]


async def _replaced(tx: Transaction, values: Mapping[UUID, Row]) -> set[UUID]:
    """Values that a command has replaced: by a memory that is none of this property, or by one that begins earlier.

    So has a correction, whenever what it put there begins: the one that it replaced has never held.

    What stood in place of those that were replaced by something withdrawn since is taken up again.
    """
    pairs = {ident: row["superseded_by"] for ident, row in values.items() if row["superseded_by"] is not None}
    corrected = {ident for ident, by in pairs.items() if by in values and _order(values[by]) < _order(values[ident])}
    corrected |= await corrected_among(tx, pairs.keys()) if pairs else set()
    others = set(pairs.values()) - values.keys()
    if not others:
        return corrected
    columns = _TABLE.c
    rows = await tx.rows(
        select(columns.id).where(
            columns.tenant_id == tx.tenant_id, columns.id.in_(others), columns.status.not_in(_ASIDE)
        )
    )
    standing = {row["id"] for row in rows}
    return corrected | {ident for ident, by in pairs.items() if by in standing}
