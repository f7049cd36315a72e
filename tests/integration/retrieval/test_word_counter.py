"""The word counter counts what the postings hold, when a reader's records have grown, and no answer changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.retrieval.arms import Window
from memory_os.retrieval.words import find_words, weigh_words
from memory_os.storage.database import Database, Scope
from memory_os_workers.context import WorkerContext
from memory_os_workers.word_counter import count_words

pytestmark = pytest.mark.anyio

LEAST = 5


async def store(client: httpx.AsyncClient, tenant: TestTenant, texts: list[str], **fields: Any) -> list[UUID]:
    items = [{"text": text, "label": "Attribute", "dedup": "off", **fields} for text in texts]
    answer = await client.post("/v1/memories/batch", json={"items": items}, headers=tenant.headers(user="ada"))
    assert answer.status_code in (200, 201), answer.text
    return [UUID(result["memory_id"]) for result in answer.json()["results"]]


def rows(tenant: TestTenant, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(tenant.owner_url) as connection:
        return connection.execute(statement, values).fetchall()


def counts(tenant: TestTenant) -> list[tuple[Any, ...]]:
    return rows(
        tenant, "SELECT term, reader, records FROM text_frequencies WHERE tenant_id = %s ORDER BY 1", tenant.tenant_id
    )


def counted(tenant: TestTenant) -> list[tuple[Any, ...]]:
    return rows(
        tenant,
        "SELECT term, reader, count(*) FROM postings WHERE tenant_id = %s "
        "GROUP BY 1, 2 HAVING count(*) >= %s ORDER BY 1",
        tenant.tenant_id,
        LEAST,
    )


async def test_what_has_grown_is_counted_and_no_answer_changes(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    await store(client, tenant, [f"gearbox oil number{number}" for number in range(8)])
    await store(client, tenant, [f"gearbox secret{number}" for number in range(3)], visibility="private")

    async def ask(user: str) -> list[tuple[Any, float]]:
        database = Database(database_urls.app_url, pool_size=1)
        try:
            async with database.transaction(Scope("memory_os_app", tenant.tenant_id, "reader", user)) as tx:
                window = Window(None, history=False)
                words = await weigh_words(tx, "gearbox number3", window)
                return [*(await find_words(tx, words, window)).items()]
        finally:
            await database.close()

    before = await ask("ada"), await ask("ben")
    assert await count_words(worker, LEAST) == 1  # hers are too few
    assert counts(tenant) == counted(tenant)
    assert {reader for _, reader, _ in counts(tenant)} == {""}
    assert (await ask("ada"), await ask("ben")) == before
    assert await count_words(worker, LEAST) == 0
    await store(client, tenant, [f"gearbox secret{number}" for number in range(3, 6)], visibility="private")
    await store(client, tenant, ["gearbox once more"])
    assert await count_words(worker, LEAST) == 1
    assert [row for row in counts(tenant) if row[1] == "uada"] == [row for row in counted(tenant) if row[1] == "uada"]
    assert {records for _, reader, records in counts(tenant) if reader == ""} == {8}  # as it was


async def test_counts_go_with_the_records_and_with_the_user(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    await store(client, tenant, [f"gearbox secret{number}" for number in range(6)], visibility="private")
    assert await count_words(worker, LEAST) == 1
    assert counts(tenant)
    answer = await client.delete("/v1/users/ada", headers=tenant.headers("admin"))
    assert answer.status_code == 200, answer.text
    assert counts(tenant) == []
    await store(client, tenant, [f"gearbox number{number}" for number in range(6)])
    assert await count_words(worker, LEAST) == 1
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("DELETE FROM memories WHERE tenant_id = %s", (tenant.tenant_id,))
    await count_words(worker, LEAST)
    assert counts(tenant) == []
