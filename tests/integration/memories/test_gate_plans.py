"""The gate's look-ups go by keys, also in tables that nobody has analysed yet."""

from __future__ import annotations

from uuid import UUID

import httpx
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.storage.database import hot_statement

pytestmark = pytest.mark.anyio

MANY = 300


async def test_candidates_of_a_large_batch_are_looked_up_by_key(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    items = [{"text": f"The shelf {number} holds parcels.", "label": "Attribute"} for number in range(MANY)]
    answer = await client.post("/v1/memories/batch", json={"items": items}, headers=tenant.headers("writer"))
    ids = [UUID(result["memory_id"]) for result in answer.json()["results"]]
    with psycopg.connect(database_urls.app_url) as connection:
        connection.execute(
            "SELECT set_config('memory_os.tenant_id', %s, true), set_config('memory_os.role', 'writer', true)",
            (str(tenant.tenant_id),),
        )
        given = {
            "tenant_id": tenant.tenant_id,
            "scope": "",
            "model": "any",
            "read": 24,
            "keys": [None] * MANY,
            "subjects": [None] * MANY,
            "properties": [None] * MANY,
            "vectors": [None] * MANY,
            "near_n": [1 + place % MANY for place in range(24 * MANY)],
            "near_ids": [ids[place % MANY] for place in range(24 * MANY)],
        }
        rows = connection.execute(b"EXPLAIN " + hot_statement("gate_candidates"), given).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert "memories_pkey" in plan
    assert "Seq Scan on" not in plan, plan
