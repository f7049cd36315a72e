"""A tenant with vectors, and a worker for which a hundred of them are many."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.integration.vectors.vector_world import VectorWorld

from memory_os.api.services import Services
from memory_os.storage.database import Database
from memory_os_workers.context import WorkerContext
from memory_os_workers.process import open_worker

MANY, TAIL = 100, 10


@pytest.fixture
async def world(database_urls: DatabaseUrls) -> AsyncIterator[VectorWorld]:
    """A tenant without any vectors yet."""
    database = Database(database_urls.app_url, pool_size=2)
    yield VectorWorld(database_urls, database)
    await database.close()


@pytest.fixture
async def indexing(services: Services) -> AsyncIterator[WorkerContext]:
    """A worker that builds an index of more than a hundred vectors, and lets ten wait for it."""
    assert services.graph is not None
    changed = {"vector_index_from": MANY, "vector_index_tail": TAIL, "vector_index_memory_mb": 16}
    settings = services.settings.model_copy(update=changed)
    async with open_worker(settings, services.embedder, services.graph.backend) as context:
        yield context
