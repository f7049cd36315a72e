"""Evidence of memories: added, listed, withdrawn; and what becomes of it when memories merge and part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Select, and_, case, delete, func, select, update
from sqlalchemy.engine import RowMapping

from memory_os.admin.audit import record
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.inheritance import is_wider
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError, InvalidInputError, NotFoundError
from memory_os.memories.model import Memory
from memory_os.memories.reading import get_memory
from memory_os.sources.evidence_model import Evidence, EvidenceDraft, EvidenceSource, Recorder
from memory_os.sources.resolving import Support, evidence_faults, resolve
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = provenance_tables.evidence
_SOURCES = provenance_tables.sources
_PASSAGES = provenance_tables.passages


async def add_evidence(
    tx: Transaction,
    principal: Principal,
    memory: Memory,
    drafts: Sequence[EvidenceDraft],
    request_id: str | None,
    *,
    widen: bool = False,
    pointer: str = "/evidence/{}",
) -> list[Evidence]:
    """Add evidence to a stored memory; what it has already is found and stays as it is.

    Args:
        tx: The unit of work.
        principal: Who records it.
        memory: Which memory; this reader sees it.
        drafts: What comes.
        request_id: The request, for the log.
        widen: Some may read the memory who may not read all of the sources, on purpose; it is audited.
        pointer: Where each piece of evidence stands in the body; its place is put in.

    Returns:
        The evidence, in order.

    Raises:
        UnknownTermError: If a support is none of the four.
        InvalidInputError: If a source is not there for this reader, or a quote does not stand in it.
        ConflictError: If some may read the memory who may not read one of the sources, and `widen` is not said.
        NotFoundError: If the memory has gone by now.
    """
    faults = evidence_faults(drafts, pointer)
    resolved = await resolve(tx, [drafts], pointer)
    faults += resolved.faults.get(0, ())
    if faults:
        raise InvalidInputError("evidence leads nowhere", errors=faults)
    supports = resolved.supports[0]
    await support_memory(tx, principal, memory.id, supports, resolved.readers, request_id, widen=widen)
    known = await _standing(tx, memory.id)
    return [known[one.key] for one in supports]


async def support_memory(
    tx: Transaction,
    principal: Principal,
    memory_id: UUID,
    supports: Sequence[Support],
    sources: Mapping[UUID, Audience],
    request_id: str | None,
    *,
    widen: bool,
) -> None:
    """Add evidence that leads somewhere to a stored memory; `sources` are the readers of each source.

    Raises:
        ConflictError: If some may read the memory who may not read one of the sources, and `widen` is not said.
        NotFoundError: If the memory has gone by now.
    """
    if not supports:
        return
    memory = await get_memory(tx, memory_id, lock=True)  # so that nobody gives it other readers meanwhile
    known = await standing_ids(tx, memory_id, supports)
    fresh = {one.source_id for one in supports if one.key not in known}
    readers = Audience.of(memory)
    narrower = sorted(each for each in fresh if is_wider(readers, sources[each], principal.user_id))
    if narrower and not widen:
        raise ConflictError(
            f"the memory is {memory.visibility}, and some who may read it may not read the source that it would come "
            "from: give it fewer readers, or say widen: true"
        )
    await insert_evidence(tx, principal, [(memory_id, one) for one in supports], request_id)
    await note_widening(tx, principal, memory_id, narrower, request_id)


async def insert_evidence(
    tx: Transaction, principal: Principal, given: Sequence[tuple[UUID, Support]], request_id: str | None
) -> list[dict[str, Any]]:
    """Insert evidence that leads somewhere, for memories that are there; gives the rows of what is new."""
    if not given:
        return []
    rows = [
        {
            "id": new_id(),
            "memory_id": memory_id,
            "source_id": one.source_id,
            "passage_id": one.passage_id,
            "support": one.support,
            "confidence": one.confidence,
            "quote_start": one.quote_start,
            "quote_end": one.quote_end,
        }
        for memory_id, one in given
    ]
    return await tx.hot(
        "store_evidence",
        {
            "tenant_id": tx.tenant_id,
            "rows": msgspec.json.encode(rows).decode(),
            "token_id": principal.token_id,
            "role": principal.role,
            "acting_user": principal.user_id,
            "request_id": request_id,
        },
    )


async def note_widening(
    tx: Transaction, principal: Principal, memory_id: UUID, sources: Sequence[UUID], request_id: str | None
) -> None:
    """Audit that some may read a memory who may not read these sources of it."""
    if sources:
        detail = {"sources": list(sources)}
        await record(tx, principal, "memory.widen", "memory", memory_id, detail, request_id)


async def list_evidence(tx: Transaction, memory_id: UUID, cursor: str | None, limit: int) -> Page[Evidence]:
    """The evidence of a memory, newest first, what was withdrawn too, one page at a time.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    await get_memory(tx, memory_id)
    statement = select_evidence(tx).where(_TABLE.c.memory_id == memory_id)
    rows = await tx.rows(newest_first(statement, _TABLE.c.at, _TABLE.c.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["at"], row["id"]))
    return Page([evidence_of(row) for row in page], next_cursor)


async def withdraw_evidence(
    tx: Transaction, principal: Principal, memory_id: UUID, evidence_id: UUID, request_id: str | None
) -> Evidence:
    """Mark evidence as withdrawn; what is withdrawn already stays so. The memory stays as it is.

    Raises:
        NotFoundError: If this reader sees no such memory or no such evidence of it.
    """
    await get_memory(tx, memory_id)
    columns = _TABLE.c
    mine = (columns.tenant_id == tx.tenant_id, columns.memory_id == memory_id, columns.id == evidence_id)
    changed = await tx.row(
        update(_TABLE)
        .where(*mine, columns.withdrawn_at.is_(None))
        .values(withdrawn_at=func.clock_timestamp(), withdrawn_because="withdrawn")
        .returning(columns.source_id)
    )
    if changed is not None:
        detail = {"memory_id": memory_id, "source_id": changed["source_id"]}
        await record(tx, principal, "evidence.withdraw", "evidence", evidence_id, detail, request_id)
    row = await tx.row(select_evidence(tx).where(*mine))
    if row is None:
        raise NotFoundError("there is no such evidence")
    return evidence_of(row)


def select_evidence(tx: Transaction) -> Select[Any]:
    """The evidence that this reader sees, with its source, the locator of its passage and the words of its quote."""
    columns = _TABLE.c
    # A source may have got the id of one that is gone.
    same_source = and_(
        _SOURCES.c.tenant_id == tx.tenant_id,
        _SOURCES.c.id == columns.source_id,
        columns.withdrawn_because.is_distinct_from("source_deleted"),
    )
    same_passage = (_PASSAGES.c.tenant_id == tx.tenant_id) & (_PASSAGES.c.id == columns.passage_id)
    length = columns.quote_end - columns.quote_start
    words = func.substring(_PASSAGES.c.text, columns.quote_start + 1, length)
    quote = case((columns.quote_start.is_not(None), words))
    return (
        select(
            _TABLE,
            _SOURCES.c.kind,
            _SOURCES.c.title,
            _SOURCES.c.source_date,
            _PASSAGES.c.locator,
            quote.label("quote"),
        )
        .select_from(_TABLE.outerjoin(_SOURCES, same_source).outerjoin(_PASSAGES, same_passage))
        .where(columns.tenant_id == tx.tenant_id)
    )


def evidence_of(row: Mapping[str, Any] | RowMapping) -> Evidence:
    """A row of `select_evidence` as readers see it."""
    return Evidence(
        id=row["id"],
        memory_id=row["memory_id"],
        source=EvidenceSource(row["source_id"], row["kind"], row["title"], row["source_date"]),
        passage_id=row["passage_id"],
        locator=row["locator"],
        support=row["support"],
        confidence=row["confidence"],
        quote=row["quote"],
        recorded=Recorder(row["role"], row["acting_user"], row["token_id"]),
        at=row["at"],
        withdrawn_at=row["withdrawn_at"],
        withdrawn_because=row["withdrawn_because"],
    )


async def readers_of_sources(tx: Transaction, memory_id: UUID) -> dict[UUID, Audience]:
    """The readers of each source that a memory has living evidence from, whoever may read it."""
    columns = _TABLE.c
    async with tx.as_steward():
        rows = await tx.rows(
            select(columns.source_id, columns.visibility, columns.user_id, columns.reader_users, columns.reader_groups)
            .where(columns.tenant_id == tx.tenant_id, columns.memory_id == memory_id, columns.withdrawn_at.is_(None))
            .distinct()
        )
    return {row["source_id"]: Audience.of_columns(row) for row in rows}


async def copy_evidence(
    tx: Transaction, source: UUID, into: UUID, ids: Sequence[UUID] | None = None
) -> dict[UUID, Any]:
    """Let a memory have the living evidence of another one, too, or some of it; whoever may read that.

    Gives the ids of the copies, each with its row of source and readers.
    """
    given = {"tenant_id": tx.tenant_id, "source": source, "into": into, "ids": None if ids is None else list(ids)}
    async with tx.as_steward():
        rows = await tx.hot("copy_evidence", given)
    return {row["id"]: row for row in rows}


async def drop_evidence(tx: Transaction, ids: Iterable[UUID]) -> None:
    """Take copies of evidence back."""
    wanted = list(ids)
    if wanted:
        async with tx.as_steward():
            await tx.run(delete(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id.in_(wanted)))


async def move_evidence(tx: Transaction, ids: Iterable[UUID], into: UUID) -> None:
    """Give evidence to another memory."""
    wanted = list(ids)
    if wanted:
        mine = (_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id.in_(wanted))
        async with tx.as_steward():
            await tx.run(update(_TABLE).where(*mine).values(memory_id=into))


async def standing_ids(tx: Transaction, memory_id: UUID, supports: Sequence[Support]) -> dict[tuple[Any, ...], UUID]:
    """The ids of the living evidence of a memory, by what it says; of these supports alone."""
    if not supports:
        return {}
    columns = _TABLE.c
    rows = await tx.rows(
        select(_TABLE).where(
            columns.tenant_id == tx.tenant_id,
            columns.memory_id == memory_id,
            columns.withdrawn_at.is_(None),
            columns.source_id.in_({one.source_id for one in supports}),
        )
    )
    wanted = {one.key for one in supports}
    return {key: row["id"] for row in rows if (key := _key(row)) in wanted}


async def _standing(tx: Transaction, memory_id: UUID) -> dict[tuple[Any, ...], Evidence]:
    columns = _TABLE.c
    statement = select_evidence(tx).where(columns.memory_id == memory_id, columns.withdrawn_at.is_(None))
    return {_key(row): evidence_of(row) for row in await tx.rows(statement)}


def _key(row: RowMapping) -> tuple[Any, ...]:
    return row["source_id"], row["passage_id"], row["support"], row["quote_start"], row["quote_end"]
