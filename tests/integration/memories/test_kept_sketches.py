"""What a process keeps of a scope hides no memory from the gate, whoever wrote it, whenever that was committed."""

from __future__ import annotations

import asyncio
from uuid import UUID

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.domain.ids import new_id
from memory_os.memories.sketches import Sketches, sketches_of
from memory_os.storage.database import Database, Scope

pytestmark = pytest.mark.anyio

VECTOR: NDArray[np.float32] = np.array([[1.0, -1.0] * 8], np.float32)


def put(connection: psycopg.Connection, tenant_id: UUID, vector: NDArray[np.float32] = VECTOR[0]) -> UUID:
    ident = new_id()
    # The trigger that keeps sketches sees what its owner may see: the tenant that was entered.
    connection.execute("SELECT set_config('memory_os.tenant_id', %s, false)", (str(tenant_id),))
    connection.execute(
        "INSERT INTO memories (tenant_id, id, label, layer, text, search, embedding_model) "
        "VALUES (%s, %s, 'Skill', 'identity', 'x', '', 'm')",
        (tenant_id, ident),
    )
    connection.execute(
        "INSERT INTO memory_embeddings VALUES (%s, %s, 'm', 16, %s, 'tenant', NULL, '{}', '{}')",
        (tenant_id, ident, str(vector.tolist())),
    )
    return ident


async def near(database: Database, tenant_id: UUID, sketches: Sketches, most: int = 24) -> list[UUID]:
    scope = Scope("memory_os_app", tenant_id)
    return (await database.run(scope, lambda tx: sketches.nearest(tx, "", "m", VECTOR, most)))[0]


@pytest.fixture
async def database(database_urls: DatabaseUrls) -> Database:
    return Database(database_urls.app_url, pool_size=2)


async def test_a_transaction_that_began_earlier_and_commits_later_is_seen(
    database: Database, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    sketches = Sketches()
    with psycopg.connect(database_urls.owner_url) as late, psycopg.connect(database_urls.owner_url) as soon:
        first = put(late, tenant.tenant_id)
        second = put(soon, tenant.tenant_id)
        soon.commit()
        assert await near(database, tenant.tenant_id, sketches) == [second]
        late.commit()
        assert set(await near(database, tenant.tenant_id, sketches)) == {first, second}
    await database.close()


async def test_what_is_gone_makes_room_for_what_is_there(
    database: Database, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    sketches = Sketches()
    far = VECTOR[0].copy()
    far[0] = -1.0
    with psycopg.connect(database_urls.owner_url, autocommit=True) as connection:
        gone = [put(connection, tenant.tenant_id) for _ in range(8)]
        stays = put(connection, tenant.tenant_id, far)
        assert set(await near(database, tenant.tenant_id, sketches, 8)) == set(gone)
        connection.execute("UPDATE memories SET status = 'archived' WHERE id = ANY (%s)", (gone,))
    scope = Scope("memory_os_app", tenant.tenant_id)
    assert await database.run(scope, lambda tx: sketches.forget_gone(tx, "", "m", gone))
    assert await near(database, tenant.tenant_id, sketches, 8) == [stays]
    assert not await database.run(scope, lambda tx: sketches.forget_gone(tx, "", "m", [stays]))
    await database.close()


async def test_other_tenants_and_scopes_are_other_sketches(
    database: Database, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    sketches = Sketches(most=1)
    with psycopg.connect(database_urls.owner_url, autocommit=True) as connection:
        here = put(connection, tenant.tenant_id)
    found = await asyncio.gather(*(near(database, tenant.tenant_id, sketches) for _ in range(4)))
    assert found == [[here]] * 4
    scope = Scope("memory_os_app", tenant.tenant_id)
    assert await database.run(scope, lambda tx: sketches.nearest(tx, "mara", "m", VECTOR, 8)) == [[]]
    assert await near(database, tenant.tenant_id, sketches) == [here]
    await database.close()


def test_a_sketch_is_that_of_pgvector(database_urls: DatabaseUrls) -> None:
    vectors = np.random.default_rng(7).normal(size=(20, 40)).astype(np.float32)
    with psycopg.connect(database_urls.owner_url) as connection:
        for vector, sketch in zip(vectors, sketches_of(vectors), strict=True):
            row = connection.execute(
                "SELECT substring(bit_send(binary_quantize(%s::vector)) FROM 5)", (str(vector.tolist()),)
            ).fetchone()
            assert row is not None
            assert sketch.tobytes()[:5] == row[0]
