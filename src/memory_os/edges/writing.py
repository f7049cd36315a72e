"""Claiming and withdrawing single edges."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete

from memory_os.admin.audit import record
from memory_os.checking import check_version
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.edges.holding import reconsider
from memory_os.edges.model import Edge, EdgeDraft, StoredEdge
from memory_os.edges.reading import find_equal, get_edge
from memory_os.edges.storing import DEFAULT_CONFIDENCE, EdgeRow, insert_edges, visible_endpoints
from memory_os.errors import ConflictError, FieldError, InvalidInputError
from memory_os.memories.model import Deleted, NodeAddress
from memory_os.outbox.events import DELETE, UPSERT, NewEvent, Outbox
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.edges


async def store_edge(
    tx: Transaction, outbox: Outbox, principal: Principal, draft: EdgeDraft, request_id: str | None
) -> tuple[StoredEdge, bool]:
    """Store a checked edge, or find it where the same claim was made before.

    Returns:
        The edge, and whether it is new.

    Raises:
        InvalidInputError: If one of its ends is not there for this reader.
        ConflictError: If the same claim stands with another confidence or id, or the id is taken.
    """
    await _check_ends(tx, draft)
    confidence = DEFAULT_CONFIDENCE if draft.confidence is None else draft.confidence
    ident = draft.id or new_id()
    row = EdgeRow(ident, draft.type, draft.source, draft.to, confidence)
    if await insert_edges(tx, principal, [row]):
        edge = await get_edge(tx, ident)
        event = NewEvent(UPSERT, "edge", ident, edge.version)
        return StoredEdge(edge, await outbox.enqueue(tx, [event], request_id)), True
    known = await find_equal(tx, draft.type, draft.source, draft.to)
    if known is None:
        raise ConflictError(f"the id {ident} is taken by another record: leave the id out")
    _check_same(draft, known)
    return StoredEdge(known, 0), False


async def delete_edge(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    edge_id: UUID,
    *,
    if_match: int | None,
    request_id: str | None,
) -> Deleted:
    """Delete an edge.

    Raises:
        NotFoundError: If this reader sees no such edge.
        PreconditionFailedError: If `if_match` is not its version.
    """
    current = await get_edge(tx, edge_id, lock=True)
    check_version(if_match, current.version)
    await tx.run(delete(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == edge_id))
    detail = {"type": current.type, "from": current.source, "to": current.to}
    await record(tx, principal, "edge.delete", "edge", edge_id, detail, request_id)
    events = [NewEvent(DELETE, "edge", edge_id, current.version + 1)]
    events += reconsider([current.source.entity, current.to.entity])
    return Deleted(1, await outbox.enqueue(tx, events, request_id))


async def _check_ends(tx: Transaction, draft: EdgeDraft) -> None:
    seen = await visible_endpoints(tx, (draft.source, draft.to))
    faults = [
        FieldError(pointer, f"there is no such {kind}")
        for pointer, (kind, ident) in (("/from", _key(draft.source)), ("/to", _key(draft.to)))
        if (kind, ident) not in seen
    ]
    if faults:
        raise InvalidInputError("the edge leads nowhere", errors=faults)


def _check_same(draft: EdgeDraft, known: Edge) -> None:
    if draft.id is not None and draft.id != known.id:
        raise ConflictError(f"the same edge is there already as {known.id}")
    if draft.confidence is not None and draft.confidence != known.confidence:
        raise ConflictError(
            f"the same edge is there already as {known.id}, with confidence {known.confidence}: "
            "leave the confidence out to find it, or delete it first"
        )


def _key(address: NodeAddress) -> tuple[str, UUID | None]:
    return ("memory", address.memory) if address.memory is not None else ("entity", address.entity)
