"""The worker makes the vectors that passages lack, beside those of memories, and again when the model changes."""

from __future__ import annotations

import httpx
import psycopg
import pytest
from tests.fixtures.acting import rows_of
from tests.fixtures.citing import Citer
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.integration.retrieval.conftest import Ask

from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.reembedding import reembed
from memory_os.settings import Settings
from memory_os.storage.database import Database
from memory_os_workers.context import WorkerContext
from memory_os_workers.embedder import BATCH, embed_some

pytestmark = pytest.mark.anyio

ARMS = {"text": False, "graph": False}


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """Vectors without meaning are enough here."""
    return service_settings.model_copy(
        update={"embedding_provider": "deterministic-for-tests", "memory_os_allow_test_embedder": True}
    )


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    """Stores sources and memories for nobody in particular."""
    return Citer(client, tenant)


def lose_vectors(urls: DatabaseUrls) -> None:
    """As if the model had been down when everything was stored."""
    with psycopg.connect(urls.owner_url) as connection:
        for table, vectors in (("memories", "memory_embeddings"), ("passages", "passage_embeddings")):
            connection.execute(f"UPDATE {table} SET embedding_model = NULL")
            connection.execute(f"DELETE FROM {vectors}")


def left(urls: DatabaseUrls) -> tuple[int, int]:
    """How many memories and passages lack a vector."""
    (row,) = rows_of(
        urls,
        "SELECT (SELECT count(*) FROM memories WHERE embedding_model IS NULL) AS memories, "
        "(SELECT count(*) FROM passages WHERE embedding_model IS NULL) AS passages",
    )
    return row["memories"], row["passages"]


async def test_memories_and_passages_take_turns(
    citer: Citer, ask: Ask, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    tenant_id, extra = citer.tenant.tenant_id, 5
    await citer.source(*(f"Passage {number}." for number in range(BATCH + extra)))
    await citer.memory("The gearbox needs oil.")
    lose_vectors(database_urls)
    assert (await ask("Passage 3.", arms=ARMS))["no_match"]
    assert left(database_urls) == (1, BATCH + extra)
    assert await embed_some(worker, tenant_id) == 1 + BATCH
    assert left(database_urls) == (0, extra)
    assert await embed_some(worker, tenant_id) == extra
    assert await embed_some(worker, tenant_id) == 0
    assert left(database_urls) == (0, 0)
    assert (await ask("Passage 3.", arms=ARMS))["items"][0]["text"] == "Passage 3."


async def test_the_new_vectors_have_the_readers_of_the_source(
    citer: Citer, ask: Ask, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    readers = {"visibility": "restricted", "readers": {"users": ["cleo"], "groups": ["ops"]}}
    await citer.acting("ada").source("The secret gearbox.", **readers)
    lose_vectors(database_urls)
    await embed_some(worker, citer.tenant.tenant_id)
    (row,) = rows_of(database_urls, "SELECT visibility, user_id, reader_users, reader_groups FROM passage_embeddings")
    assert row == {"visibility": "restricted", "user_id": "ada", "reader_users": ["cleo"], "reader_groups": ["ops"]}
    assert len((await ask("The secret gearbox.", user="cleo", arms=ARMS))["items"]) == 1
    assert (await ask("The secret gearbox.", user="ben", arms=ARMS))["no_match"]


async def test_another_model_takes_all_of_them_anew(
    citer: Citer, ask: Ask, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    await citer.source("One passage.", "Another passage.")
    await citer.memory("The gearbox needs oil.")
    here, lines = worker.embedder.identity, list[str]()
    database = Database(database_urls.worker_url, pool_size=1)
    try:
        assert await reembed(database, here, lines.append) == 0
        assert await reembed(database, EmbedderIdentity("another", here.dimension), lines.append) == 3
        assert left(database_urls) == (1, 2)
        assert lines[-1] == "tenant 1 of 1: 3 memories and passages marked"
        assert await reembed(database, here, lines.append) == 0  # what is marked is marked
    finally:
        await database.close()
    assert await embed_some(worker, citer.tenant.tenant_id) == 3
    assert left(database_urls) == (0, 0)
    assert len(rows_of(database_urls, "SELECT FROM passage_embeddings")) == 2
    assert (await ask("One passage.", arms=ARMS))["items"][0]["text"] == "One passage."
