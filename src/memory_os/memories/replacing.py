"""Superseding a memory on a client's command: by a memory that is stored already, or by a new one."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msgspec import UNSET, Struct, structs

from memory_os.checking import check_version
from memory_os.domain.labels import LABELS
from memory_os.domain.principal import Principal
from memory_os.errors import FieldError, InvalidInputError, NotFoundError
from memory_os.memories.lifecycle_model import SupersededMemory, Supersession
from memory_os.memories.model import Memory, MemoryDraft, Readers
from memory_os.memories.ownership import check_own
from memory_os.memories.reading import get_memory
from memory_os.memories.service import MemoryService
from memory_os.memories.superseding import check_supersedable, supersede
from memory_os.memories.writing import Embedded
from memory_os.storage.database import Transaction

_OF_A_NEW_ONE: Final = tuple(name for name in Supersession.__struct_fields__ if name not in ("by", "user_id"))


class Replacement(Struct, frozen=True):
    """What takes the place: the id of a stored memory, or a draft with its vector."""

    by: UUID | None = None
    draft: MemoryDraft | None = None
    embedded: Embedded | None = None


def check_body(body: Supersession) -> None:
    """Check that a body names one of the two: a stored memory, or the text of a new one.

    Raises:
        InvalidInputError: With a pointer to each field that is too much or missing.
    """
    if body.by is None:
        faults = [FieldError("/text", "needed, unless by names a stored memory")] if body.text is None else []
    else:
        empty = Supersession()
        faults = [
            FieldError(f"/{name}", "belongs to a new memory, and by names a stored one")
            for name in _OF_A_NEW_ONE
            if getattr(body, name) != getattr(empty, name)
        ]
    if faults:
        raise InvalidInputError("the memory can't be superseded like that", errors=faults)


def draft_of(body: Supersession, old: Memory, principal: Principal) -> MemoryDraft:
    """The new memory that a body asks for. What it leaves open about its claim and its readers is as of the old one.

    It never passes the gate: who supersedes has seen what is there.
    """
    given = {name: getattr(body, name) for name in _OF_A_NEW_ONE}
    for name in ("subject", "property"):
        if given[name] is UNSET:
            given[name] = getattr(old, name)
    if body.label is None:
        given["label"] = old.label
    if body.visibility is None:
        given["visibility"] = old.visibility if body.readers is None else "restricted"
        if given["visibility"] == "restricted" and body.readers is None:
            given["readers"] = _same_readers(old, principal)
    return MemoryDraft(**given, user_id=body.user_id, dedup="off")


def check_old(old: Memory, draft: MemoryDraft | None) -> None:
    """Check what is known before anything is embedded.

    Raises:
        UnknownTermError: If the old memory's label or status does not allow it.
        InvalidInputError: If the new one is immutable.
        ConflictError: If the old one has lost its place already.
    """
    check_supersedable(old)
    if draft is not None and draft.label in LABELS and LABELS[draft.label].immutable_text:
        fault = FieldError("/label", f"an {draft.label} is what happened, and takes nothing's place")
        raise InvalidInputError("the memory can't be superseded like that", errors=[fault])


async def replace_memory(
    tx: Transaction,
    service: MemoryService,
    principal: Principal,
    memory_id: UUID,
    replacement: Replacement,
    *,
    if_match: int | None,
    request_id: str | None,
) -> SupersededMemory:
    """Store the new memory where it is one, and let it take the place; see `supersede` for what else is refused.

    Raises:
        NotFoundError: If this reader does not see the old memory.
        PermissionDeniedError: If that is another user's, and this one is no reviewer.
        InvalidInputError: If there is no memory to take its place.
        PreconditionFailedError: If `if_match` is not the old one's version.
    """
    old = await get_memory(tx, memory_id)
    check_own(principal, old)
    check_version(if_match, old.version)
    if replacement.draft is not None and replacement.embedded is not None:
        check_old(old, replacement.draft)
        stored = await service.store(tx, principal, replacement.draft, replacement.embedded, request_id)
        new, position = stored.memory, stored.position
    else:
        new, position = await _stored(tx, replacement.by), 0
    done = await supersede(tx, service.outbox, principal, old, new, request_id)
    return SupersededMemory(done.new, "superseded", done.old, done.act_id, max(position, done.position))


async def _stored(tx: Transaction, memory_id: UUID | None) -> Memory:
    if memory_id is None:
        raise AssertionError("the body was checked")
    try:
        return await get_memory(tx, memory_id)
    except NotFoundError as error:
        faults = [FieldError("/by", error.detail)]
        raise InvalidInputError("there is no memory to take its place", errors=faults) from None


def _same_readers(old: Memory, principal: Principal) -> Readers:
    """The readers of a restricted memory, and its user where the new one will be somebody else's."""
    if old.user_id is None or old.user_id == principal.user_id or old.user_id in old.readers.users:
        return old.readers
    return structs.replace(old.readers, users=[*old.readers.users, old.user_id])
