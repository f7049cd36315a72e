"""What the API asks of memories: check, embed outside of any transaction, then one unit of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from msgspec import UNSET

from memory_os.domain.principal import Principal
from memory_os.edges.storing import visible_endpoints
from memory_os.embedding.port import Embedder, EmbedderUnavailableError
from memory_os.errors import FieldError, InvalidInputError, MemoryOSError
from memory_os.memories.changing import change_memory, delete_memory
from memory_os.memories.checking import check_draft
from memory_os.memories.gate import Gate
from memory_os.memories.model import (
    ChangedMemory,
    Check,
    Deleted,
    Memory,
    MemoryDraft,
    MemoryPatch,
    NodeAddress,
    StoredMemory,
)
from memory_os.memories.storing import Storing
from memory_os.memories.writing import Embedded, Prepared, embedded_text
from memory_os.outbox.events import Outbox
from memory_os.sources.inheriting import Settled, settle
from memory_os.storage.database import Transaction

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class MemoryService:
    """Writes memories. `embed` is called before a transaction begins, the rest inside the caller's."""

    embedder: Embedder
    outbox: Outbox
    max_text_chars: int
    gate: Gate

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of texts; None for all of them while the embedder is down, since a write must not be lost to that."""
        if not texts:
            return Embedded(self.embedder.identity, None)
        try:
            return Embedded(self.embedder.identity, await self.embedder.embed(texts))
        except EmbedderUnavailableError as error:
            log.warning("embedding_deferred", texts=len(texts), error=str(error))
            return Embedded(self.embedder.identity, None)

    async def embed_drafts(self, drafts: Sequence[MemoryDraft]) -> Embedded:
        """The vectors of drafts, in order."""
        return await self.embed([embedded_text(draft.title, draft.text) for draft in drafts])

    async def embed_patch(self, patch: MemoryPatch, current: Memory) -> Prepared:
        """The vector of a memory as a patch makes it, where that changes what it is made of."""
        text = current.text if patch.text is UNSET else patch.text
        after = embedded_text(current.title if patch.title is UNSET else patch.title, text)
        same = not text.strip() or after == embedded_text(current.title, current.text)
        return Prepared(None if same else after, await self.embed([] if same else [after]))

    def check(self, draft: MemoryDraft, principal: Principal) -> None:
        """Check one draft.

        Raises:
            InvalidInputError: With a pointer for each fault.
        """
        check_draft(draft, principal, max_text_chars=self.max_text_chars)

    async def store(
        self, tx: Transaction, principal: Principal, draft: MemoryDraft, embedded: Embedded, request_id: str | None
    ) -> StoredMemory:
        """Store one checked draft.

        Raises:
            ConflictError: If its id is taken by another text.
            InvalidInputError: If one of its edges or its evidence leads nowhere, or it has readers who may not read all
                of its sources.
        """
        outcome = (await self.store_batch(tx, principal, [draft], embedded, request_id))[0][0]
        if isinstance(outcome, MemoryOSError):
            raise outcome
        return outcome

    async def store_batch(
        self,
        tx: Transaction,
        principal: Principal,
        drafts: Sequence[MemoryDraft],
        embedded: Embedded,
        request_id: str | None,
    ) -> tuple[list[StoredMemory | MemoryOSError], int]:
        """Store many checked drafts; one whose edges or evidence lead nowhere fails alone.

        Returns:
            The outcome of each draft in order, and the position of the whole.
        """
        settled = dict(enumerate(await settle(tx, principal, drafts)))
        unfit = {index: one for index, one in settled.items() if isinstance(one, InvalidInputError)}
        faults = await _edge_faults(tx, drafts, unfit)
        good = {index: one for index, one in settled.items() if index not in faults and isinstance(one, Settled)}
        storing = Storing(tx, self.outbox, principal, self.gate, request_id)
        stored = await storing.store(list(good.values()), embedded.only(list(good)))
        outcomes: dict[int, StoredMemory | MemoryOSError] = dict(zip(good, stored, strict=True))
        outcomes |= faults
        return [outcomes[index] for index in range(len(drafts))], storing.position

    async def ask_gate(self, tx: Transaction, principal: Principal, draft: MemoryDraft, embedded: Embedded) -> Check:
        """What the gate would do with a checked draft; nothing is stored and nobody is held up.

        Raises:
            InvalidInputError: If its evidence leads nowhere, or it has readers who may not read all of its sources.
        """
        settled = (await settle(tx, principal, [draft]))[0]
        if isinstance(settled, InvalidInputError):
            raise settled
        return await self.gate.check(tx, principal, settled.draft, embedded)

    async def change(
        self,
        tx: Transaction,
        principal: Principal,
        memory_id: UUID,
        patch: MemoryPatch,
        prepared: Prepared,
        if_match: int | None,
        request_id: str | None,
    ) -> ChangedMemory:
        """Change a memory; see `change_memory`."""
        return await change_memory(
            tx,
            self.outbox,
            principal,
            memory_id,
            patch,
            prepared=prepared,
            if_match=if_match,
            max_text_chars=self.max_text_chars,
            request_id=request_id,
        )

    async def delete(
        self, tx: Transaction, principal: Principal, memory_id: UUID, if_match: int | None, request_id: str | None
    ) -> Deleted:
        """Delete a memory; see `delete_memory`."""
        return await delete_memory(tx, self.outbox, principal, memory_id, if_match=if_match, request_id=request_id)


async def _edge_faults(
    tx: Transaction, drafts: Sequence[MemoryDraft], unfit: Mapping[int, InvalidInputError]
) -> dict[int, InvalidInputError]:
    """The drafts whose edges name a node that is neither visible nor stored by this same call, and the unfit ones."""
    faults = dict(unfit)
    if not any(draft.edges for draft in drafts):
        return faults
    addresses = [
        [edge.to if isinstance(edge.to, NodeAddress) else NodeAddress(memory=edge.to) for edge in draft.edges]
        for draft in drafts
    ]
    seen = await visible_endpoints(tx, (address for row in addresses for address in row))
    while True:
        # A draft that fails takes those with it that point at it, so look again until nothing changes.
        there = seen | {("memory", draft.id) for index, draft in enumerate(drafts) if draft.id and index not in faults}
        found = {
            index: fault
            for index, row in enumerate(addresses)
            if index not in faults and (fault := _missing(row, drafts[index], there))
        }
        if not found:
            return faults
        faults |= found


def _missing(
    addresses: Sequence[NodeAddress], draft: MemoryDraft, there: set[tuple[str, UUID]]
) -> InvalidInputError | None:
    errors = []
    for index, address in enumerate(addresses):
        kind, ident = ("memory", address.memory) if address.memory is not None else ("entity", address.entity)
        if ident is None or (kind, ident) not in there:
            errors.append(FieldError(f"/edges/{index}/to", f"there is no such {kind}"))
        elif kind == "memory" and ident == draft.id:
            errors.append(FieldError(f"/edges/{index}/to", "an edge can't lead to its own memory"))
    return InvalidInputError("an edge of this memory leads nowhere", errors=errors) if errors else None
