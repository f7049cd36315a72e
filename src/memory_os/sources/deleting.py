"""Deleting sources, and what becomes of the memories that were taken from them, whoever may read these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from sqlalchemy import delete, func, select, update

from memory_os.admin.audit import record
from memory_os.checking import check_version
from memory_os.domain.acts import ACTS
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.labels import LABELS
from memory_os.domain.principal import Principal
from memory_os.domain.sources import DeletionPolicy
from memory_os.edges.holding import entities_beside, reconsider, relations_beside
from memory_os.memories.migrating import EdgeChanges
from memory_os.memories.states import put_states, state_of
from memory_os.outbox.events import NewEvent, Outbox
from memory_os.sources.model import DeletedSource, Source
from memory_os.sources.ownership import check_own
from memory_os.sources.reading import get_source
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction

_TABLE = provenance_tables.sources
_EVIDENCE = provenance_tables.evidence

Removal = Literal["archive", "retract"]

_REMOVALS: Final[Mapping[str, Removal]] = MappingProxyType({"orphan-archive": "archive", "cascade": "retract"})
"""What each policy does to the memories that it concerns."""

_ASIDE: Final = ("archived", "retracted", "superseded")
"""Statuses of what is out of the way already, and stays as it is."""


@dataclass(frozen=True, slots=True)
class _Deleting:
    """A source that is being deleted; it is locked, so that nobody cites it any more."""

    tx: Transaction
    principal: Principal
    source: Source
    request_id: str | None


async def delete_source(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    source_id: UUID,
    policy: DeletionPolicy,
    *,
    if_match: int | None,
    request_id: str | None,
) -> DeletedSource:
    """Delete a source with its passages, their vectors and the links to it; its evidence stays, withdrawn.

    Each memory that is archived or retracted gets an act of its own, so that its history tells why, and that one can be
    undone. Memories that the caller may not see are treated alike, and not told of.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who deletes.
        source_id: Which source.
        policy: What becomes of the memories.
        if_match: The version that the client saw.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader sees no such source.
        PreconditionFailedError: If `if_match` is not its version.
        PermissionDeniedError: If it is another user's, and the caller is no reviewer.
    """
    source = await get_source(tx, source_id, lock=True)
    check_version(if_match, source.version)
    check_own(principal, source)
    deleting = _Deleting(tx, principal, source, request_id)
    beside, events = await entities_beside(tx, source_id), await relations_beside(tx, source_id)
    seen = await _count_visible(tx, source_id)
    async with tx.as_steward():
        changed, more = await _remove(deleting, policy)
        await _withdraw(tx, source_id)
    await tx.run(delete(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == source_id))
    told = await _visible(tx, changed)
    await record(
        tx,
        principal,
        "source.delete",
        "source",
        source_id,
        {"policy": policy, "evidence": seen, "memories": len(told)},  # no count of what the caller may not read
        request_id,
        content={"title": source.title, "uri": source.uri},
        readers=[Audience.of(source)],
    )
    position = await outbox.enqueue(tx, [*more, *events, *reconsider(beside)], request_id)
    removal = _REMOVALS.get(policy)
    return DeletedSource(
        deleted=1,
        policy=policy,
        evidence_withdrawn=seen,
        archived=told if removal == "archive" else [],
        retracted=told if removal == "retract" else [],
        position=position,
    )


async def _remove(deleting: _Deleting, policy: DeletionPolicy) -> tuple[list[UUID], list[NewEvent]]:
    """Archive or retract what the policy says; the ids of what has changed, and the events of it."""
    tx, removal = deleting.tx, _REMOVALS.get(policy)
    if removal is None:
        return [], []
    given: dict[str, Any] = {"tenant_id": tx.tenant_id, "source_id": deleting.source.id}
    found = await tx.hot("memories_left_by_source", {**given, "orphans": removal == "archive"})
    ids = [row["id"] for row in found]
    locked = await tx.hot("lock_memory_states", {"tenant_id": tx.tenant_id, "ids": ids}) if ids else []
    status = ACTS[removal].status
    rows = [row for row in locked if row["status"] not in _ASIDE and _may_become(row, status)]
    if not rows:
        return [], []
    events = await put_states(tx, [state_of({**row, "status": status}) for row in rows])
    await _note_acts(deleting, removal, rows)
    return [row["id"] for row in rows], events


def _may_become(row: Mapping[str, Any], status: str | None) -> bool:
    return status in LABELS[row["label"]].transitions[row["status"]]


async def _note_acts(deleting: _Deleting, removal: Removal, rows: Sequence[Mapping[str, Any]]) -> None:
    source = deleting.source
    acts = [
        {
            "id": new_id(),
            "memory_id": row["id"],
            "before": {
                "memories": [state_of(row)],
                "edges": EdgeChanges().kept(),
                # The detail names the source: who may not read that is not told.
                "audiences": [Audience.of_columns(row), Audience.of(source)],
            },
        }
        for row in rows
    ]
    await deleting.tx.touched(
        "note_acts",
        {
            "tenant_id": deleting.tx.tenant_id,
            "kind": removal,
            "detail": msgspec.json.encode({"source_deleted": source.id}).decode(),
            "rows": msgspec.json.encode(acts).decode(),
            "token_id": deleting.principal.token_id,
            "role": deleting.principal.role,
            "user_id": deleting.principal.user_id,
            "request_id": deleting.request_id,
        },
    )


async def _withdraw(tx: Transaction, source_id: UUID) -> None:
    """Withdraw the living evidence of a source, and empty the quotes of all of it."""
    columns = _EVIDENCE.c
    mine = (columns.tenant_id == tx.tenant_id, columns.source_id == source_id)
    empty = {"passage_id": None, "quote_start": None, "quote_end": None}
    await tx.run(update(_EVIDENCE).where(*mine, columns.withdrawn_at.is_not(None)).values(**empty))
    await tx.run(
        update(_EVIDENCE)
        .where(*mine, columns.withdrawn_at.is_(None))
        .values(withdrawn_at=func.clock_timestamp(), withdrawn_because="source_deleted", **empty)
    )


async def _count_visible(tx: Transaction, source_id: UUID) -> int:
    """How much living evidence of a source the caller sees."""
    columns = _EVIDENCE.c
    statement = select(func.count()).where(
        columns.tenant_id == tx.tenant_id, columns.source_id == source_id, columns.withdrawn_at.is_(None)
    )
    return int((await tx.run(statement)).scalar_one())


async def _visible(tx: Transaction, ids: Sequence[UUID]) -> list[UUID]:
    """Those of some memories that the caller sees."""
    if not ids:
        return []
    rows = await tx.hot("visible_memories", {"tenant_id": tx.tenant_id, "ids": list(ids)})
    return [row["id"] for row in rows]
