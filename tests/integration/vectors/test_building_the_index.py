"""Builds: one at a time, in one piece, whatever happens meanwhile, and again for another model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import errors
from tests.fixtures.waiting import wait_for
from tests.integration.vectors.test_indexed_search import index, spread
from tests.integration.vectors.vector_world import MODEL, VectorWorld

from memory_os.domain.ids import new_id
from memory_os.embedding.port import EmbedderIdentity
from memory_os.retrieval.arms import ARM_LIMIT
from memory_os_workers.context import WorkerContext
from memory_os_workers.indexer import tend

pytestmark = pytest.mark.anyio

BUILD = "SELECT build_vector_index(%s, %s, %s, 16)"
OTHER = EmbedderIdentity("another-model", 4)


@contextmanager
def building(world: VectorWorld) -> Iterator[psycopg.Connection[Any]]:
    """A worker's connection that has built the tenant's index, and has not committed."""
    with psycopg.connect(world.urls.worker_url) as connection:
        connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(world.tenant_id),))
        row = connection.execute(BUILD, (world.tenant_id, MODEL.model, MODEL.dimension)).fetchone()
        assert row
        assert row[0]
        yield connection


async def test_two_builders_do_not_build_at_the_same_time(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(120))
    other = VectorWorld(world.urls, world.database)
    other.memories(spread(120))
    with building(world) as connection:
        assert not await tend(indexing, world.tenant_id, MODEL)
        assert not await tend(indexing, other.tenant_id, MODEL), "not even of two tenants"
        assert world.partitions() == []
        connection.commit()
    await index(indexing, world)
    await index(indexing, other)
    assert len(world.partitions()) == 2
    assert len(world.marked()) == len(other.marked()) == 120


async def test_nothing_is_left_of_a_build_that_was_killed(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(120))
    with building(world) as connection, world.entered() as owner:
        owner.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(errors.AdminShutdown):
            connection.execute("SELECT 1")
    assert (world.partitions(), world.indexed(), world.marked()) == ([], set(), set())
    await index(indexing, world)
    assert len(world.indexed()) == len(world.marked()) == 120


async def test_marking_goes_on_where_a_killed_worker_stopped(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(250))
    assert await tend(indexing, world.tenant_id, MODEL)
    world.run(
        "UPDATE memory_embeddings SET indexed = true "
        "WHERE memory_id IN (SELECT memory_id FROM memory_embeddings LIMIT 77)"
    )
    (partition,) = world.partitions()
    await index(indexing, world)
    assert world.partitions() == [partition], "it was not built again"
    assert world.indexed() == world.marked()
    assert len(world.marked()) == 250


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memory_embeddings SET embedding = '[0,0,1,0,0,0,0,0]' WHERE memory_id = %s",
        "UPDATE memories SET visibility = 'private', user_id = 'ada' WHERE id = %s",
        "DELETE FROM memories WHERE id = %s",
    ],
    ids=["vector", "private", "deleted"],
)
async def test_what_changes_during_a_build_is_not_in_it(
    world: VectorWorld, indexing: WorkerContext, statement: str
) -> None:
    ids = world.memories(spread(120))
    with world.entered() as changing:
        changing.execute(statement, (ids[5],))
        build = asyncio.create_task(tend(indexing, world.tenant_id, MODEL))  # it does not see the change yet
        await asyncio.to_thread(wait_for, lambda: somebody_waits(world))
        changing.commit()
        assert await build
    (fresh,) = world.memories([5.0])
    assert world.indexed() == {("memory", ident) for ident in ids if ident != ids[5]}
    assert world.faults() == []
    await index(indexing, world)
    assert world.faults() == []
    assert fresh in {ref.id for ref in await world.search(5.0)}


def somebody_waits(world: VectorWorld, kind: str = "advisory") -> bool:
    """Whether a lock of that kind is waited for."""
    with world.entered() as connection:
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = %s AND NOT granted"
        row = connection.execute(waiting, (kind,)).fetchone()
    return row == (1,)


async def test_changes_are_kept_waiting_by_nothing_but_the_last_steps(
    world: VectorWorld, indexing: WorkerContext
) -> None:
    """A change that comes while the last steps are not committed waits, and is not lost."""
    ids = world.memories(spread(120))
    with building(world) as connection:
        deleting = threading.Thread(target=world.run, args=("DELETE FROM memories WHERE id = %s", ids[3]))
        deleting.start()
        await asyncio.to_thread(wait_for, lambda: somebody_waits(world))
        assert len(await world.search(0)) > 0
        connection.commit()
        await asyncio.to_thread(deleting.join)
    assert world.indexed() == {("memory", ident) for ident in ids if ident != ids[3]}
    await index(indexing, world)
    assert world.indexed() == world.marked()


async def test_another_model_has_the_index_built_anew(world: VectorWorld, indexing: WorkerContext) -> None:
    ids = world.memories(spread(120))
    await index(indexing, world)
    assert await tend(indexing, world.tenant_id, OTHER)
    assert (world.partitions(), world.marked()) == ([], set())
    assert await world.search(3) == pytest.approx(await world.search_all(3))
    world.embed_anew(ids, spread(120), OTHER)
    while await tend(indexing, world.tenant_id, OTHER):
        pass
    assert world.faults() == []
    assert len(world.indexed()) == len(world.marked()) == 120
    world.run("DELETE FROM memory_embeddings WHERE model = %s", MODEL.model)
    assert len(world.indexed()) == 120, "the old model's vectors are not those of the index"


@pytest.mark.parametrize("act", ["drop", "build"])
async def test_a_search_during_an_exchange_misses_nothing(
    world: VectorWorld, indexing: WorkerContext, act: str
) -> None:
    """Its statement has begun before the exchange is committed, and gets to the index after it."""
    world.memories(spread(250))
    await index(indexing, world)
    calls = {"drop": "SELECT drop_vector_index(%s)", "build": "SELECT build_vector_index(%s, 'a-model', 8, 16)"}
    with psycopg.connect(world.urls.worker_url) as connection:
        connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(world.tenant_id),))
        connection.execute(calls[act], (world.tenant_id,))
        searching = asyncio.create_task(world.search(33))
        await asyncio.to_thread(wait_for, lambda: somebody_waits(world, "relation"))
        connection.commit()
        found = await searching
    assert len(found) == ARM_LIMIT
    assert found == pytest.approx(await world.search_all(33))


async def test_very_many_that_wait_are_built_in_at_once(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(120))
    await index(indexing, world)
    before = world.partitions()
    world.memories(spread(80, 0.5, 360.5))
    await index(indexing, world)
    after = world.partitions()
    assert len(after) == len(before) == 1
    assert after != before
    assert world.indexed() == world.marked()
    assert len(world.marked()) == 200
    assert world.faults() == []
    assert await world.search(3.3) == pytest.approx(await world.search_all(3.3))


@pytest.mark.parametrize(
    ("tenant", "model", "dimension"),
    [
        ("other", MODEL.model, 8),
        (None, MODEL.model, 8),
        ("own", None, 8),
        ("own", "m", 0),
        ("own", "m", 4001),
        ("own", "m", None),
    ],
)
async def test_an_index_is_built_for_nothing_but_the_entered_tenant(
    world: VectorWorld, tenant: str | None, model: str | None, dimension: int | None
) -> None:
    given = {"own": world.tenant_id, "other": new_id(), None: None}[tenant]
    with psycopg.connect(world.urls.worker_url) as connection:
        connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(world.tenant_id),))
        with pytest.raises((errors.InsufficientPrivilege, errors.InvalidParameterValue)):
            connection.execute(BUILD, (given, model, dimension))
    with psycopg.connect(world.urls.app_url) as connection:
        connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(world.tenant_id),))
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for function"):
            connection.execute(BUILD, (world.tenant_id, MODEL.model, MODEL.dimension))


async def test_a_partition_is_reached_through_the_policies_alone(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(120))
    await index(indexing, world)
    (partition,) = world.partitions()
    other = new_id()
    for url in (world.urls.app_url, world.urls.worker_url):
        with psycopg.connect(url) as connection:
            connection.execute("SELECT set_config('memory_os.tenant_id', %s, false)", (str(other),))
            assert connection.execute("SELECT count(*) FROM vector_index").fetchone() == (0,)
            near = "SELECT count(*) FROM near_vectors(%s, %s, '[1,0,0,0,0,0,0,0]', 10)"
            assert connection.execute(near, (world.tenant_id, MODEL.model)).fetchone() == (0,)
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(f"SELECT count(*) FROM {partition}")
