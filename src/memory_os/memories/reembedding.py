"""Changing the embedder: the new model becomes the one that vectors are made with, and workers make them anew."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from sqlalchemy import update
from sqlalchemy.dialects.postgresql import insert

from memory_os.embedding.port import EmbedderIdentity
from memory_os.storage import tables
from memory_os.storage.database import Database, Scope

WORKER_ROLE = "memory_os_worker"
BATCH = 1000


async def reembed(database: Database, identity: EmbedderIdentity, say: Callable[[str], None]) -> int:
    """Make `identity` the current model and mark all memories and passages with vectors of another one.

    Doing it again after an interruption goes on where it stopped. Until a worker has embedded a record anew, the text
    and graph arms find it and the vector arm does not.

    Args:
        database: With the worker's role.
        identity: The model that the settings name, and its dimension.
        say: Takes a line of progress.

    Returns:
        How many memories and passages were marked.
    """
    models = tables.embedding_models
    async with database.transaction(Scope(WORKER_ROLE)) as tx:
        await tx.run(update(models).where(models.c.model != identity.model).values(current=False))
        made = insert(models).values(model=identity.model, dimension=identity.dimension, current=True)
        await tx.run(
            made.on_conflict_do_update(
                index_elements=["model"], set_={"dimension": made.excluded.dimension, "current": True}
            )
        )
        tenants = [row["tenant_id"] for row in await tx.hot("all_tenants")]
    total = 0
    for number, tenant_id in enumerate(tenants, start=1):
        for statement in ("forget_vectors", "forget_passage_vectors"):
            while count := await _forget_some(database, tenant_id, identity.model, statement):
                total += count
                say(f"tenant {number} of {len(tenants)}: {total} memories and passages marked")
    return total


async def _forget_some(database: Database, tenant_id: UUID, model: str, statement: str) -> int:
    parameters = {"tenant_id": tenant_id, "model": model, "batch": BATCH}
    return await database.run(Scope(WORKER_ROLE, tenant_id), lambda tx: tx.touched(statement, parameters))
