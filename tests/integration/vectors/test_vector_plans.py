"""Plans of the search for vectors: the index gives its hits in order, and only the tenant's few others are measured.

They hold in a young database as well as in one with statistics, and in the plans that a connection keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from tests.integration.retrieval.test_retrieval_plans import nodes, touched
from tests.integration.vectors.test_indexed_search import index
from tests.integration.vectors.vector_world import MODEL, PAST, VectorWorld, direction

from memory_os.memories.writing import vector_literal
from memory_os.storage.database import _ENTER, Scope, hot_statement
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

INDEXED, OWN, OTHERS, REACH = 800, 15, 200, 100
SCANS = "SELECT relname, pg_stat_get_xact_numscans(oid) FROM pg_class WHERE relname LIKE 'vector\\_index\\_%'"


@pytest.fixture(params=["young", "analyzed"])
async def large(world: VectorWorld, indexing: WorkerContext, request: pytest.FixtureRequest) -> VectorWorld:
    """A tenant with an index, some vectors of its user's beside it, and many of another user's; and another tenant."""
    draw = np.random.default_rng(5)

    def some(count: int) -> list[Any]:
        return list(draw.normal(size=(count, MODEL.dimension)).astype(np.float32))

    for tenant in (world, VectorWorld(world.urls, world.database)):
        tenant.memories(some(INDEXED))
        tenant.passages(tenant.source(source_date=PAST), some(OTHERS))
        await index(indexing, tenant)
        tenant.memories(some(OWN), visibility="private", user_id="ada")
        tenant.memories(some(OTHERS), visibility="private", user_id="bob")
    if request.param == "analyzed":
        with psycopg.connect(world.urls.owner_url, autocommit=True) as owner:
            owner.execute("VACUUM ANALYZE")
    return world


def entered(world: VectorWorld) -> Iterator[psycopg.Connection[Any]]:
    """A connection inside the tenant as the application, for Ada."""
    with psycopg.connect(world.urls.app_url) as connection:
        connection.execute(_ENTER, Scope("memory_os_app", world.tenant_id, "reader", "ada").parameters())
        yield connection


async def test_the_index_is_walked_and_no_partition_is_scanned(large: VectorWorld) -> None:
    """Neither the first time nor later: a connection keeps its plans from the fifth time on."""
    near = "SELECT count(*) FROM near_vectors(%s, %s, %s::vector, %s)"
    mine = large.tenant_id.hex
    for connection in entered(large):
        for time in range(1, 13):
            given = (large.tenant_id, MODEL.model, vector_literal(direction(9)), REACH)
            assert connection.execute(near, given, prepare=True).fetchone() == (REACH,)
            used = {name: count for name, count in connection.execute(SCANS).fetchall() if count}
            assert {name.removeprefix(f"vector_index_{mine}") for name in used} == {"_a_hnsw"}, used
            assert set(used.values()) == {time}


@pytest.mark.parametrize("kept", ["force_custom_plan", "force_generic_plan"])
async def test_only_the_few_others_are_measured(large: VectorWorld, kept: str) -> None:
    given = {"tenant_id": large.tenant_id, "vector": vector_literal(direction(9)), "model": MODEL.model}
    given |= {"floor": -1.0, "limit": 50, "reach": REACH, "user_id": "ada", "as_of": None, "history": False}
    for connection in entered(large):
        connection.execute("SELECT set_config('plan_cache_mode', %s, true)", (kept,))
        statement = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + hot_statement("search_vectors")
        (plan,) = connection.execute(statement, given).fetchone()  # type: ignore[misc] # EXPLAIN has a row
    scans = [node for node in nodes(plan[0]["Plan"]) if "Relation Name" in node and node["Actual Loops"]]
    vectors = [node for node in scans if node["Relation Name"].startswith("memory_embeddings")]
    assert len({node["Relation Name"] for node in vectors}) == 1, "the tenant's partition"
    assert sum(touched(node) for node in vectors) <= REACH + OWN
    assert sum(touched(node) for node in scans if node["Relation Name"] == "passage_embeddings") <= REACH
    # Whether what was found is in force is looked up for each of it.
    assert sum(touched(node) for node in scans if node["Relation Name"] == "memories") <= REACH + OWN
    few = ("sources", "vector_partitions")  # of these the tenant has but one
    by_key = [node for node in scans if node["Relation Name"] not in few]
    assert all("Index" in node["Node Type"] or "Bitmap" in node["Node Type"] for node in by_key), by_key


async def test_the_plan_that_is_kept_finds_another_tenants_partition(large: VectorWorld) -> None:
    """One connection serves all tenants."""
    with large.entered() as owner:
        rows = owner.execute("SELECT tenant_id FROM tenants WHERE tenant_id IN (SELECT tenant_id FROM memories)")
        tenants: list[UUID] = [row[0] for row in rows]
    near = "SELECT count(*), count(*) FILTER (WHERE m.id IS NOT NULL) FROM near_vectors(%s, %s, %s::vector, %s) AS v "
    near += "LEFT JOIN memories AS m ON v.kind = 'memory' AND m.id = v.record_id AND m.tenant_id = %s"
    with psycopg.connect(large.urls.app_url) as connection:
        for time in range(12):
            tenant_id = tenants[time % 2]
            connection.execute(_ENTER, Scope("memory_os_app", tenant_id, "reader", "ada").parameters())
            given = (tenant_id, MODEL.model, vector_literal(direction(9)), REACH, tenant_id)
            row = connection.execute(near, given, prepare=True).fetchone()
            assert row
            assert row[0] == REACH
            assert row[1] > 0
            connection.commit()
