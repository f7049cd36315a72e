"""What the API asks of entities: check, embed outside of any transaction, then one unit of work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from memory_os.domain.principal import Principal
from memory_os.entities.checking import check_draft, check_patch, distinct_aliases
from memory_os.entities.merging import texts_of_merge
from memory_os.entities.model import EntityDraft, EntityMerge, EntityPatch, EntitySplit, StoredEntity
from memory_os.entities.reading import get_entity
from memory_os.entities.splitting import texts_of_split
from memory_os.entities.undoing import texts_of_undo
from memory_os.entities.vectors import EmbeddedTexts
from memory_os.entities.writing import EntityMovedError, change_entity, embedded_text, store_entity, text_after
from memory_os.errors import ConflictError, MemoryOSError
from memory_os.memories.writing import Embedded
from memory_os.outbox.events import Outbox
from memory_os.storage.database import Database, Scope, Transaction

T = TypeVar("T")

RACES = 5
"""How often a change is tried again because the entity changed while its new text was being embedded."""


@dataclass(frozen=True, slots=True)
class EntityService:
    """Writes entities.

    Attributes:
        database: Where units of work run.
        embed: Vectors of texts, or none while the embedder is down; never called inside a transaction.
        outbox: Where projections are enqueued.
    """

    database: Database
    embed: Callable[[Sequence[str]], Awaitable[Embedded]]
    outbox: Outbox

    def check(self, draft: EntityDraft, principal: Principal) -> None:
        """Check an entity.

        Raises:
            InvalidInputError: With a pointer for each fault.
        """
        check_draft(draft, principal)

    async def embed_draft(self, draft: EntityDraft) -> Embedded:
        """The vector of a new entity's text."""
        aliases = distinct_aliases(draft.name, draft.aliases)
        return await self.embed([embedded_text(draft.name, aliases, draft.summary)])

    async def store(
        self, tx: Transaction, principal: Principal, draft: EntityDraft, embedded: Embedded, request_id: str | None
    ) -> tuple[StoredEntity, bool]:
        """Store a checked entity; see `store_entity`."""
        return await store_entity(tx, self.outbox, principal, draft, embedded, request_id)

    async def change(
        self, principal: Principal, entity_id: UUID, patch: EntityPatch, if_match: int | None, request_id: str | None
    ) -> StoredEntity:
        """Change an entity in a unit of work of its own; see `change_entity`.

        Raises:
            ConflictError: If others keep changing the same entity.
        """
        scope = Scope.of(principal)

        async def once() -> StoredEntity:
            seen = await self.database.run(scope, lambda tx: get_entity(tx, entity_id))
            check_patch(patch, seen, principal)  # nobody pays for embedding what will be refused
            text = text_after(patch, seen)
            embedded = await self.embed([] if text is None else [text])

            async def work(tx: Transaction) -> StoredEntity:
                return await change_entity(
                    tx,
                    self.outbox,
                    principal,
                    entity_id,
                    patch,
                    text=text,
                    embedded=embedded,
                    if_match=if_match,
                    request_id=request_id,
                )

            return await self.database.run(scope, work)

        return await self.race(once)

    async def embed_merge(self, principal: Principal, merge: EntityMerge) -> EmbeddedTexts:
        """The vectors that a merge wants."""
        return await self._embed(principal, lambda tx: texts_of_merge(tx, merge))

    async def embed_split(self, principal: Principal, split: EntitySplit) -> EmbeddedTexts:
        """The vectors that a split wants."""
        return await self._embed(principal, lambda tx: texts_of_split(tx, split))

    async def embed_undo(self, principal: Principal, entity_id: UUID, act_id: UUID) -> EmbeddedTexts:
        """The vectors that an undo wants."""
        return await self._embed(principal, lambda tx: texts_of_undo(tx, entity_id, act_id))

    async def race(self, once: Callable[[], Awaitable[T]]) -> T:
        """Do something whose unit of work finds out that what was embedded for it is of another text by now.

        Args:
            once: Reads, embeds and writes; called again when it raises `EntityMovedError`.

        Raises:
            ConflictError: If others keep changing the same entity.
        """
        for _ in range(RACES):
            try:
                return await once()
            except EntityMovedError:
                continue
        raise ConflictError("others are changing this entity: read it again and repeat the change")

    async def _embed(
        self, principal: Principal, texts_of: Callable[[Transaction], Awaitable[list[str]]]
    ) -> EmbeddedTexts:
        try:
            texts = await self.database.run(Scope.of(principal), texts_of)
        except MemoryOSError:
            texts = []  # the unit of work refuses it too, or has the answer to the same request from before
        return EmbeddedTexts(texts, await self.embed(texts))
