"""The embedder: makes the vectors of memories and passages that have none.

The model was down when they were stored, or is another one now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog

from memory_os.embedding.port import EmbedderUnavailableError
from memory_os.memories.writing import embedded_text, vector_literal
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage.checks import check_embedder
from memory_os.storage.database import Scope, Transaction
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

EVERY_S = 15.0
BATCH = 64


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is embedded, by the statements that find it, mark it and keep its vectors."""

    find: str
    mark: str
    keep: str


_KINDS: Final = (
    _Kind("memories_without_vector", "mark_embedded", "insert_vectors"),
    _Kind("passages_without_vector", "mark_embedded_passages", "insert_passage_vectors"),
)


async def run(context: WorkerContext) -> None:
    """Look for memories and passages without a vector now and then, until the worker stops."""
    while not context.stopping.is_set():
        async with context.database.transaction(Scope(WORKER_ROLE)) as tx:
            tenants = [row["tenant_id"] for row in await tx.hot("all_tenants")]
        try:
            for tenant_id in tenants:
                while not context.stopping.is_set() and await embed_some(context, tenant_id) >= BATCH:
                    pass
        except EmbedderUnavailableError as error:
            log.warning("embedding_still_down", error=str(error))
        await context.pause(EVERY_S)


async def embed_some(context: WorkerContext, tenant_id: UUID) -> int:
    """Embed up to `BATCH` memories and as many passages of one tenant; returns how many were found.

    They take turns, so that a long document does not keep memories waiting, nor they it.
    """
    return sum([await _embed_batch(context, tenant_id, kind) for kind in _KINDS])


async def _embed_batch(context: WorkerContext, tenant_id: UUID, kind: _Kind) -> int:
    """Embed up to `BATCH` records of one kind. No transaction is open meanwhile."""
    scope = Scope(WORKER_ROLE, tenant_id)
    given = {"tenant_id": tenant_id, "batch": BATCH}
    rows = await context.database.run(scope, lambda tx: tx.hot(kind.find, given))
    if not rows:
        return 0
    await check_embedder(context.database, WORKER_ROLE, await context.embedder.open())
    titles, texts = [row.get("title") for row in rows], [row["text"] for row in rows]  # a passage has no title
    vectors = await context.embedder.embed(list(map(embedded_text, titles, texts)))
    identity = context.embedder.identity

    async def keep(tx: Transaction) -> None:
        kept = await tx.hot(
            kind.mark,
            {
                "tenant_id": tenant_id,
                "ids": [row["id"] for row in rows],
                "titles": titles,
                "texts": texts,
                "model": identity.model,
            },
        )
        there = {row["id"] for row in kept}
        pairs = [(row["id"], vector) for row, vector in zip(rows, vectors, strict=True) if row["id"] in there]
        await tx.touched(
            kind.keep,
            {
                "tenant_id": tenant_id,
                "model": identity.model,
                "dimension": identity.dimension,
                "ids": [ident for ident, _ in pairs],
                "vectors": [vector_literal(vector) for _, vector in pairs],
            },
        )

    await context.database.run(scope, keep)
    return len(rows)
