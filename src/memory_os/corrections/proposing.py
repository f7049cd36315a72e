"""Proposing a correction: it is held against the memory as it is, and kept for a reviewer to decide."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec import UNSET, to_builtins
from sqlalchemy import insert, select

from memory_os.admin.audit import record
from memory_os.corrections.checking import check_standing, in_proposal, repetitions
from memory_os.corrections.model import Correction, CorrectionDraft, Proposal
from memory_os.corrections.reading import get_correction
from memory_os.corrections.renaming import find_naming, renamed
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.entities.reading import find_entity
from memory_os.errors import FieldError, InvalidInputError, NotFoundError
from memory_os.memories.model import Memory
from memory_os.memories.reading import existing_memories
from memory_os.retrieval.log import find_retrieval
from memory_os.sources.resolving import NO_SOURCE
from memory_os.storage import provenance_tables, retrieval_tables
from memory_os.storage.database import Transaction

_TABLE = provenance_tables.corrections


async def propose_correction(
    tx: Transaction, principal: Principal, draft: CorrectionDraft, *, max_text_chars: int, request_id: str | None
) -> Correction:
    """Keep a correction whose shape was checked.

    Args:
        tx: The unit of work.
        principal: Who proposes.
        draft: What is wrong, what is right instead, and why.
        max_text_chars: Longest text.
        request_id: The request, for the log.

    Raises:
        InvalidInputError: If it leads to something that is not there for this reader, or says what is there already.
        ConflictError: If its memory has lost its place or was withdrawn, or its status does not allow it.
    """
    memory = (await existing_memories(tx, [draft.target])).get(draft.target)
    if memory is None:
        raise _refused([FieldError("/target", "there is no such memory")])
    faults = await _stray(tx, principal, draft)
    faults += in_proposal(repetitions(memory, draft.kind, draft.proposal))
    faults += in_proposal(await _entity_faults(tx, memory, draft.proposal, max_text_chars))
    if faults:
        raise _refused(faults)
    check_standing(memory, draft.kind, draft.proposal, version=memory.version)
    ident, proposal = new_id(), to_builtins(draft.proposal)
    await tx.run(insert(_TABLE).values(**_values(tx, principal, memory, draft), id=ident, request_id=request_id))
    await record(
        tx,
        principal,
        "correction.propose",
        "correction",
        ident,
        {"memory": memory.id, "kind": draft.kind},
        request_id,
        content={"proposal": proposal, "reason": draft.reason},
        readers=[Audience.of(memory)],
    )
    return await get_correction(tx, principal, ident)


def _values(tx: Transaction, principal: Principal, memory: Memory, draft: CorrectionDraft) -> dict[str, Any]:
    return {
        "tenant_id": tx.tenant_id,
        "memory_id": memory.id,
        "kind": draft.kind,
        "proposal": to_builtins(draft.proposal),
        "reason": draft.reason,
        "source_id": draft.source_id,
        "retrieval_id": draft.retrieval_id,
        "memory_version": memory.version,
        "proposed_by": principal.token_id,
        "proposed_role": principal.role,
        "proposed_user": principal.user_id,
    }


def _refused(faults: list[FieldError]) -> InvalidInputError:
    return InvalidInputError("the correction can't be proposed like that", errors=faults)


async def _stray(tx: Transaction, principal: Principal, draft: CorrectionDraft) -> list[FieldError]:
    """What a correction names that is not there for who proposes it."""
    faults = []
    sources = provenance_tables.sources.c
    if draft.source_id is not None:
        named = select(sources.id).where(sources.tenant_id == tx.tenant_id, sources.id == draft.source_id)
        if await tx.row(named) is None:
            faults.append(FieldError("/source_id", NO_SOURCE))
    if draft.retrieval_id is not None:
        faults += await _retrieval_faults(tx, principal, draft.retrieval_id, draft.target)
    against = draft.proposal.against
    if isinstance(against, UUID) and not await existing_memories(tx, [against]):
        faults.append(FieldError("/proposal/against", "there is no such memory"))
    return faults


async def _retrieval_faults(
    tx: Transaction, principal: Principal, retrieval_id: UUID, memory_id: UUID
) -> list[FieldError]:
    try:
        await find_retrieval(tx, principal, retrieval_id)
    except NotFoundError as error:
        return [FieldError("/retrieval_id", error.detail)]
    items = retrieval_tables.retrieval_items.c
    held = select(items.position).where(
        items.tenant_id == tx.tenant_id, items.retrieval_id == retrieval_id, items.record_id == memory_id
    )
    return [] if await tx.row(held.limit(1)) else [FieldError("/retrieval_id", "the memory was not found by it")]


async def _entity_faults(tx: Transaction, memory: Memory, proposal: Proposal, max_text_chars: int) -> list[FieldError]:
    """What is wrong with the entities of a proposal; pointers into it."""
    if not isinstance(proposal.former, UUID) or not isinstance(proposal.meant, UUID):
        return []
    former, meant = [await find_entity(tx, ident) for ident in (proposal.former, proposal.meant)]
    ends = {"from": former, "to": meant}
    faults = [FieldError(f"/{name}", "there is no such entity") for name, found in ends.items() if found is None]
    if former is None or meant is None:
        return faults
    naming = await find_naming(tx, memory, former.id)
    if not naming:
        return [FieldError("/from", "the memory neither names this entity nor is tied to it")]
    if proposal.text is UNSET and len(renamed(memory.text, naming.text, meant.name)) > max_text_chars:
        return [FieldError("/to", f"the text would have more than {max_text_chars} characters")]
    return []
