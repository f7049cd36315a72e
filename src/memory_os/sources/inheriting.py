"""Settling drafts of memories: where their evidence leads, and who may read what was taken from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from msgspec import structs

from memory_os.domain.audiences import Audience
from memory_os.domain.inheritance import is_wider, narrowest
from memory_os.domain.principal import Principal
from memory_os.errors import FieldError, InvalidInputError
from memory_os.memories.model import MemoryDraft, Readers
from memory_os.sources.resolving import Resolved, Support, resolve
from memory_os.storage.database import Transaction

DEFAULT: Final = "tenant"
"""The visibility of a memory that names none and comes from no source."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A draft whose visibility is settled, with the evidence that comes with it.

    Attributes:
        draft: The draft.
        supports: Its evidence.
        readers: The readers of each source that this leads to.
        narrower: The sources that some who may read it may not read; it says `widen`.
    """

    draft: MemoryDraft
    supports: Sequence[Support] = ()
    readers: Mapping[UUID, Audience] = field(default_factory=dict)
    narrower: Sequence[UUID] = ()


async def settle(
    tx: Transaction, principal: Principal, drafts: Sequence[MemoryDraft]
) -> list[Settled | InvalidInputError]:
    """Settle checked drafts; to be called before the gate is entered. One whose evidence leads nowhere is an error.

    A draft that names no visibility gets the narrowest readers: those who may read all of its sources. One that names a
    visibility may have readers who may not only if it says so.
    """
    backed = [draft for draft in drafts if draft.evidence]
    if not backed:
        return [Settled(with_visibility(draft)) for draft in drafts]
    resolved = await resolve(tx, [draft.evidence for draft in drafts])
    return [_settled(principal, draft, index, resolved) for index, draft in enumerate(drafts)]


def with_visibility(draft: MemoryDraft) -> MemoryDraft:
    """A draft without evidence with the visibility that it will have."""
    return draft if draft.visibility is not None else structs.replace(draft, visibility=DEFAULT)


def _settled(principal: Principal, draft: MemoryDraft, index: int, resolved: Resolved) -> Settled | InvalidInputError:
    if faults := resolved.faults.get(index):
        return InvalidInputError("evidence of this memory leads nowhere", errors=faults)
    if not draft.evidence:
        return Settled(with_visibility(draft))
    supports = resolved.supports[index]
    sources = {one.source_id: resolved.readers[one.source_id] for one in supports}
    if draft.visibility is None:
        found = narrowest(sources.values(), principal.user_id, principal.groups)
        if found is None:
            return _refused(
                "nobody may read all of its sources: act for a user, or name a visibility and say widen: true"
            )
        readers = Readers(list(found.users), list(found.groups)) if found.visibility == "restricted" else None
        return Settled(structs.replace(draft, visibility=found.visibility, readers=readers), supports, sources)
    audience = audience_of(draft, principal)
    narrower = sorted(ident for ident, readers in sources.items() if is_wider(audience, readers, principal.user_id))
    if narrower and not draft.widen:
        return _refused(
            "some could read it who may not read all of its sources: leave the visibility out, or say widen: true"
        )
    return Settled(draft, supports, sources, narrower)


def audience_of(draft: MemoryDraft, principal: Principal) -> Audience:
    """The readers of a draft whose visibility is settled, once it is stored."""
    readers = draft.readers or Readers()
    columns = {"visibility": draft.visibility, "user_id": principal.user_id}
    return Audience.of_columns({**columns, "reader_users": readers.users, "reader_groups": readers.groups})


def _refused(fault: str) -> InvalidInputError:
    return InvalidInputError("the memory can't have these readers", errors=[FieldError("/visibility", fault)])
