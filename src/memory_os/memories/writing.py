"""Storing memories: one unit of work for the rows, their vectors, their edges and their events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from memory_os.domain.ids import new_id
from memory_os.domain.labels import LABELS
from memory_os.domain.principal import Principal
from memory_os.domain.search_text import search_text
from memory_os.edges.storing import DEFAULT_CONFIDENCE, EdgeRow, insert_edges
from memory_os.embedding.port import EmbedderIdentity
from memory_os.errors import ConflictError
from memory_os.memories.model import Memory, MemoryDraft, NodeAddress, StoredMemory
from memory_os.memories.reading import existing_memories, memory_of
from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.storage.database import Transaction


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a batch's texts in order, or None where the embedder was down: a worker embeds those later."""

    identity: EmbedderIdentity
    vectors: np.ndarray[Any, np.dtype[np.float32]] | None

    def only(self, chosen: Sequence[int]) -> Embedded:
        """The vectors of some of the texts."""
        return Embedded(self.identity, None if self.vectors is None else self.vectors[list(chosen)])


@dataclass(frozen=True, slots=True)
class Prepared:
    """A text that was embedded before the unit of work, and its vector; None where there seemed to be none to embed."""

    text: str | None
    embedded: Embedded

    def vector_of(self, text: str) -> Embedded:
        """The vector of a text; none where the memory has changed meanwhile: a worker embeds it later."""
        return self.embedded if text == self.text else Embedded(self.embedded.identity, None)


def embedded_text(title: str | None, text: str) -> str:
    """The text whose vector a memory has: its title and its text, unless that begins with the title anyway."""
    if title is None or _begins_with(text, title.strip()):
        return text
    return f"{title}\n{text}"


def _begins_with(text: str, title: str) -> bool:
    """Whether a text begins with the words of a title, in whatever capitals."""
    start, end = len(text) - len(text.lstrip()), len(text) - len(text.lstrip()) + len(title)
    parted = not (title[-1:].isalnum() and text[end : end + 1].isalnum())  # Ann is no beginning of Annual
    return parted and text[start:end].casefold() == title.casefold()


def vector_literal(vector: np.ndarray[Any, np.dtype[np.float32]]) -> str:
    """A vector as pgvector reads it; six decimals are below the noise of a unit vector in float32."""
    return msgspec.json.encode(vector.astype(np.float64).round(6).tolist()).decode()


async def store_memories(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    drafts: Sequence[MemoryDraft],
    embedded: Embedded,
    request_id: str | None,
    *,
    ids: Sequence[UUID],
    keys: Sequence[bytes | None],
) -> tuple[list[StoredMemory | ConflictError], int]:
    """Store checked drafts under these ids, with their exact keys, vectors, edges and events.

    An id that is there already with the same text and label is answered as merged, since the client repeats itself;
    with another text it is a conflict, and nothing of that draft is stored.

    Returns:
        The outcome of each draft in order, and the position of the whole write.
    """
    first_of = {ident: index for index, ident in reversed(list(enumerate(ids)))}
    fresh = list(first_of.values())  # of an id that comes twice, the first
    times, position = await _insert(
        tx, outbox, principal, [(index, ids[index], drafts[index]) for index in fresh], keys, embedded, request_id
    )
    edges = [edge for index in fresh if ids[index] in times for edge in edge_rows(ids[index], drafts[index])]
    edge_ids = await insert_edges(tx, principal, edges)
    events = [NewEvent(UPSERT, "edge", edge_id, 1) for edge_id in edge_ids]
    position = max(position, await outbox.enqueue(tx, events, request_id))

    known = await existing_memories(tx, [ident for ident in first_of if ident not in times])
    for ident, moments in times.items():
        known[ident] = memory_of_draft(ident, drafts[first_of[ident]], principal, moments)
    outcomes: list[StoredMemory | ConflictError] = []
    for index, (ident, draft) in enumerate(zip(ids, drafts, strict=True)):
        if ident in times and first_of[ident] == index:
            outcomes.append(StoredMemory(known[ident], "created", position))
        else:
            outcomes.append(_repeated(ident, draft, known.get(ident), position))
    return outcomes, position


def _repeated(ident: UUID, draft: MemoryDraft, known: Memory | None, position: int) -> StoredMemory | ConflictError:
    if known is not None and known.text == draft.text and known.label == draft.label:
        return StoredMemory(known, "merged", position, duplicate_of=ident, rule="same_id")
    return ConflictError(
        f"the id {ident} is taken by another record: leave the id out, or change that record with PATCH",
    )


async def _insert(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    given: Sequence[tuple[int, UUID, MemoryDraft]],
    keys: Sequence[bytes | None],
    embedded: Embedded,
    request_id: str | None,
) -> tuple[dict[UUID, tuple[datetime, datetime]], int]:
    """Insert drafts with the index of their vectors; the times of those whose id was free, and the position."""
    rows = [
        {
            "id": ident,
            "label": draft.label,
            "layer": LABELS[draft.label].layer,
            "text": draft.text,
            "title": draft.title,
            "confidence": draft.confidence,
            "visibility": draft.visibility,
            "user_id": principal.user_id,
            "reader_users": draft.readers.users if draft.readers else [],
            "reader_groups": draft.readers.groups if draft.readers else [],
            "subject": draft.subject,
            "property": draft.property,
            "origin": draft.origin,
            "conversation_id": draft.conversation_id,
            "tags": draft.tags,
            "metadata": draft.metadata,
            "occurred_at": draft.occurred_at,
            "valid_from": draft.valid_from,
            "valid_to": draft.valid_to,
            "search_text": search_text(f"{draft.title}\n{draft.text}" if draft.title else draft.text),
            "exact_key": None if (key := keys[index]) is None else key.hex(),
        }
        for index, ident, draft in given
    ]
    vectors = embedded.vectors
    found = await tx.hot(
        "store_memories",
        {
            "tenant_id": tx.tenant_id,
            "rows": msgspec.json.encode(rows).decode(),
            "ids": [] if vectors is None else [ident for _, ident, _ in given],
            "vectors": [] if vectors is None else [vector_literal(vectors[index]) for index, _, _ in given],
            "model": None if vectors is None else embedded.identity.model,
            "dimension": embedded.identity.dimension,
            "created_by": principal.token_id,
            "graph": outbox.enabled,
            "request_id": request_id,
        },
    )
    position = (found[0]["position"] or 0) if found else 0
    return {row["id"]: (row["created_at"], row["updated_at"]) for row in found}, position


def edge_rows(ident: UUID, draft: MemoryDraft) -> list[EdgeRow]:
    """The edges that come with a draft, for a memory of that id."""
    rows = []
    for edge in draft.edges:
        here = NodeAddress(memory=ident)
        there = edge.to if isinstance(edge.to, NodeAddress) else NodeAddress(memory=edge.to)
        source, target = (here, there) if edge.direction == "out" else (there, here)
        confidence = DEFAULT_CONFIDENCE if edge.confidence is None else edge.confidence
        rows.append(EdgeRow(new_id(), edge.type, source, target, confidence))
    return rows


def memory_of_draft(ident: UUID, draft: MemoryDraft, principal: Principal, times: tuple[datetime, datetime]) -> Memory:
    """A draft as it is once it is stored; `times` are those of its creation and its last change."""
    return memory_of(
        {
            "id": ident,
            "text": draft.text,
            "label": draft.label,
            "layer": LABELS[draft.label].layer,
            "status": "active",
            "title": draft.title,
            "confidence": draft.confidence,
            "visibility": draft.visibility,
            "user_id": principal.user_id,
            "reader_users": draft.readers.users if draft.readers else [],
            "reader_groups": draft.readers.groups if draft.readers else [],
            "occurred_at": draft.occurred_at,
            "valid_from": draft.valid_from,
            "valid_to": draft.valid_to,
            "created_at": times[0],
            "updated_at": times[1],
            "version": 1,
            "subject": draft.subject,
            "property": draft.property,
            "conversation_id": draft.conversation_id,
            "origin": draft.origin,
            "tags": draft.tags,
            "metadata": draft.metadata,
        }
    )
