"""Applying a correction: the wrong memory is superseded, disputed or retracted, and never edited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

import msgspec
from msgspec import UNSET
from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from memory_os.corrections.checking import TIMES, check_standing, given_in, is_whole, repetitions
from memory_os.corrections.model import Proposal
from memory_os.corrections.renaming import find_naming, renamed
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.inheritance import is_wider
from memory_os.domain.principal import Principal
from memory_os.entities.model import Entity
from memory_os.entities.reading import find_entity
from memory_os.errors import ConflictError, MemoryOSError
from memory_os.memories.correcting import correct
from memory_os.memories.disputing import dispute
from memory_os.memories.model import Memory, MemoryDraft
from memory_os.memories.reading import existing_memories, get_memory
from memory_os.memories.retying import Retying
from memory_os.memories.stepping import step
from memory_os.memories.writing import Prepared, embedded_text, store_memories
from memory_os.outbox.events import Outbox
from memory_os.sources.evidence import add_evidence, copy_evidence
from memory_os.sources.evidence_model import EvidenceDraft
from memory_os.storage import provenance_tables, tables
from memory_os.storage.database import Transaction

_TABLE, _SOURCES = provenance_tables.corrections, provenance_tables.sources


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done: the act, the memory that took the place, if one did, and the position to wait for."""

    act_id: UUID
    result_id: UUID | None
    position: int


async def text_to_embed(tx: Transaction, correction_id: UUID) -> str | None:
    """The text to embed of the memory that applying a correction would store, as far as it can be told now."""
    mine = (_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == correction_id)
    row = await tx.row(select(_TABLE).where(*mine))
    if row is None or row["status"] != "open" or row["kind"] in ("dispute", "retract"):
        return None
    memory, proposal = await get_memory(tx, row["memory_id"]), msgspec.convert(row["proposal"], Proposal)
    if not is_whole(row["kind"], proposal):
        return None
    try:
        draft = await _draft_of(tx, memory, proposal, widen=True)
    except ConflictError:
        return None  # it is told inside the unit of work
    return embedded_text(draft.title, draft.text)


async def apply_proposal(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    row: RowMapping,
    prepared: Prepared,
    *,
    widen: bool,
    request_id: str | None,
) -> Applied:
    """Do what a locked correction asks for.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who applies it.
        row: The correction.
        prepared: The vector of the new text.
        widen: Some may read the memory who may not read the source that the correction rests on, or the entity that it
            names, on purpose.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If this reader does not see the memory any more.
        ConflictError: If the proposal was erased; if the memory was superseded or retracted, says by now what is
            proposed, or has nothing to do with the entity any more; if something that the correction rests on is not
            there for this reader; or if readers would be widened without a word.
    """
    proposal = msgspec.convert(row["proposal"], Proposal)
    if not is_whole(row["kind"], proposal):
        raise ConflictError("what was proposed has been erased: nothing is left to apply")
    await _hold(tx, row, proposal)
    memory = await get_memory(tx, row["memory_id"], lock=True)
    check_standing(memory, row["kind"], proposal, version=row["memory_version"])
    if row["kind"] == "retract":
        said = {"reason": row["reason"], "correction_id": row["id"], "request_id": request_id}
        done = await step(tx, outbox, principal, memory.id, "retract", **said)
        return Applied(done.act_id, None, done.position)
    if row["kind"] == "dispute":
        return await _dispute(tx, outbox, principal, row, memory, proposal, request_id)
    if faults := repetitions(memory, row["kind"], proposal):
        fields = ", ".join(fault.pointer.removeprefix("/") for fault in faults)
        raise ConflictError(f"the memory has changed since, and the proposal makes no sense any more: {fields}")
    return await _replace(tx, outbox, principal, row, memory, proposal, prepared, widen=widen, request_id=request_id)


async def _hold(tx: Transaction, row: RowMapping, proposal: Proposal) -> None:
    """Hold entities and the source until the end of the transaction, before any memory, as who deletes these does."""
    entities = [ident for ident in (proposal.former, proposal.meant) if isinstance(ident, UUID)]
    if entities:
        columns = tables.entities.c
        wanted = select(columns.id).where(columns.tenant_id == tx.tenant_id, columns.id.in_(entities))
        await tx.rows(wanted.order_by(columns.id).with_for_update(read=True, key_share=True))
    if row["source_id"] is not None:
        wanted = select(_SOURCES.c.id).where(_SOURCES.c.tenant_id == tx.tenant_id, _SOURCES.c.id == row["source_id"])
        if await tx.row(wanted.with_for_update(read=True)) is None:
            raise ConflictError("the correction rests on a source: only who may read that can apply it")


async def _dispute(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    row: RowMapping,
    memory: Memory,
    proposal: Proposal,
    request_id: str | None,
) -> Applied:
    against = None
    if isinstance(proposal.against, UUID):
        against = (await existing_memories(tx, [proposal.against])).get(proposal.against)
        if against is None:
            raise ConflictError("the memory that contradicts it is not there any more")
    try:
        done = await dispute(
            tx,
            outbox,
            principal,
            memory,
            against=against,
            reason=row["reason"],
            correction_id=row["id"],
            request_id=request_id,
        )
    except MemoryOSError as error:
        raise ConflictError(f"the memory can't be disputed like that by now: {error.detail}") from error
    return Applied(done.act_id, None, done.position)


async def _replace(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    row: RowMapping,
    memory: Memory,
    proposal: Proposal,
    prepared: Prepared,
    *,
    widen: bool,
    request_id: str | None,
) -> Applied:
    """Store the right memory, give it what speaks for it, and let it stand in the place of the wrong one."""
    draft = await _draft_of(tx, memory, proposal, widen=widen)
    ident = new_id()
    outcomes, stored_at = await store_memories(
        tx,
        outbox,
        replace(principal, user_id=memory.user_id),
        [draft],
        prepared.vector_of(embedded_text(draft.title, draft.text)),
        request_id,
        ids=[ident],
        keys=[None],
    )
    if isinstance(outcomes[0], MemoryOSError):
        raise outcomes[0]
    if draft.text == memory.text:
        await copy_evidence(tx, memory.id, ident)  # it still says the same
    if row["source_id"] is not None:
        states = [EvidenceDraft(row["source_id"], "states")]
        await add_evidence(tx, principal, outcomes[0].memory, states, request_id, widen=widen)
    retying = None
    if isinstance(proposal.former, UUID) and isinstance(proposal.meant, UUID):
        retying = Retying(proposal.former, proposal.meant)
    done = await correct(
        tx, outbox, principal, memory.id, ident, correction_id=row["id"], retying=retying, request_id=request_id
    )
    return Applied(done.act_id, ident, max(stored_at, done.position))


async def _draft_of(tx: Transaction, memory: Memory, proposal: Proposal, *, widen: bool) -> MemoryDraft:
    """The memory that stands in the place of a wrong one: the same in all that the proposal leaves alone."""
    given = given_in(proposal)
    text, title, subject = given.get("text", memory.text), memory.title, memory.subject
    if isinstance(proposal.former, UUID) and isinstance(proposal.meant, UUID):
        naming = await find_naming(tx, memory, proposal.former)
        meant = await _meant(tx, memory, proposal, widen=widen)
        if not naming:
            raise ConflictError("the memory has nothing to do with the entity any more")
        text = renamed(memory.text, naming.text, meant.name) if proposal.text is UNSET else text
        title = None if title is None else renamed(title, naming.title, meant.name)
        subject = meant.name if naming.subject else subject
    times = {name: given.get(name, getattr(memory, name)) for name in TIMES}
    kept = ("confidence", "visibility", "property", "conversation_id", "origin", "tags", "metadata")
    return MemoryDraft(
        text=text,
        title=title,
        label=given.get("label", memory.label),
        subject=subject,
        readers=memory.readers if memory.visibility == "restricted" else None,
        dedup="off",
        **times,
        **{name: getattr(memory, name) for name in kept},
    )


async def _meant(tx: Transaction, memory: Memory, proposal: Proposal, *, widen: bool) -> Entity:
    """The entity that is meant.

    Raises:
        ConflictError: If one of the two entities is not there any more, or its name would be told to more readers.
    """
    ends = [ident for ident in (proposal.former, proposal.meant) if isinstance(ident, UUID)]
    found = [await find_entity(tx, ident) for ident in ends]
    meant = found[-1]
    if meant is None or None in found:
        raise ConflictError("an entity that the correction names is not there any more")
    told = proposal.text is UNSET and is_wider(Audience.of(memory), Audience.of(meant), memory.user_id)
    if told and not widen:
        raise ConflictError(
            "some who may read the memory may not know of the entity that it would name: say widen: true to tell them"
        )
    return meant
