"""The state of memories (status, window, successor), as acts change it and as an undo puts it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from memory_os.errors import NotFoundError
from memory_os.memories.reading import memory_columns
from memory_os.outbox.events import UPSERT, NewEvent
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.memories
_STATE = ("id", "status", "valid_from", "valid_to", "superseded_by", "exact_key")

Row = Mapping[str, Any] | RowMapping
"""A row of `memories`."""

State = dict[str, Any]
"""The columns of a memory that acts change, as they travel in JSON."""


async def lock_memories(tx: Transaction, ids: Iterable[UUID]) -> dict[UUID, RowMapping]:
    """The rows of memories, held in the order of their ids until the end of the transaction.

    Raises:
        NotFoundError: If one of them is absent or this reader may not see it.
    """
    wanted = set(ids)
    columns = _TABLE.c
    statement = select(*memory_columns()).where(columns.tenant_id == tx.tenant_id, columns.id.in_(wanted))
    rows = {row["id"]: row for row in await tx.rows(statement.order_by(columns.id).with_for_update(of=_TABLE))}
    if rows.keys() != wanted:
        raise NotFoundError("there is no such memory")
    return rows


async def enter_scopes(tx: Transaction, users: Iterable[str | None]) -> None:
    """Wait for whoever else stores memories of these users: what becomes active must not meet its equal in the making.

    To be called before rows are locked, as by those who store.
    """
    for scope in sorted({user or "" for user in users}):
        await tx.hot("enter_gate", {"tenant_id": tx.tenant_id, "scope": scope})


def state_of(row: Row) -> State:
    """The state of a row."""
    state: State = msgspec.to_builtins({name: row[name] for name in _STATE if name != "exact_key"})
    key = row["exact_key"]
    return {**state, "exact_key": None if key is None else f"\\x{bytes(key).hex()}"}


async def put_states(tx: Transaction, states: Sequence[State]) -> list[NewEvent]:
    """Set the states of memories that are locked; gives the events of it."""
    if not states:
        return []
    given = {"tenant_id": tx.tenant_id, "rows": msgspec.json.encode(states).decode()}
    rows = await tx.hot("put_memory_states", given)
    return [NewEvent(UPSERT, "memory", row["id"], row["version"]) for row in rows]
