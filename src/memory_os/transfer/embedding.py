"""The vectors of imported entities: those of memories and passages are made by workers, those of entities by nobody."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from uuid import UUID

from memory_os.embedding.port import Embedder
from memory_os.entities.writing import embedded_text
from memory_os.memories.writing import vector_literal
from memory_os.storage.database import Database, Scope, Transaction

BATCH: Final = 64


async def embed_entities(
    database: Database, scope: Scope, embedder: Embedder, advance: Callable[[int], None] = lambda _: None
) -> int:
    """Make the vectors that declared entities of a tenant lack; a unit of work for each batch, none while embedding.

    Returns:
        How many entities were without one.

    Raises:
        EmbedderUnavailableError: If the embedder can't serve now; what was made stays.
    """
    count, after = 0, UUID(int=0)
    while rows := await database.run(scope, partial(_vectorless, after=after)):
        vectors = await embedder.embed([embedded_text(row["name"], row["aliases"], row["summary"]) for row in rows])
        given = {
            "tenant_id": scope.tenant_id,
            "model": embedder.identity.model,
            "ids": [row["id"] for row in rows],
            "versions": [row["version"] for row in rows],
            "vectors": [vector_literal(vector) for vector in vectors],
        }
        await database.run(scope, partial(_keep, given=given))
        count, after = count + len(rows), rows[-1]["id"]
        advance(len(rows))
    return count


async def _vectorless(tx: Transaction, after: UUID) -> list[dict[str, Any]]:
    async with tx.as_steward():
        given = {"tenant_id": tx.tenant_id, "after": after, "batch": BATCH}
        return await tx.hot("import_vectorless_entities", given)


async def _keep(tx: Transaction, given: dict[str, Any]) -> None:
    async with tx.as_steward():
        await tx.touched("import_entity_vectors", given)
