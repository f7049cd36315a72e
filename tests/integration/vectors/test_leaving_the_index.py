"""A vector leaves the index in the transaction that changes it, narrows its readers, or deletes it."""

from __future__ import annotations

import pytest
from tests.integration.vectors.test_indexed_search import index, spread
from tests.integration.vectors.vector_world import PAST, VectorWorld

from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

ANOTHER = "[0,0,1,0,0,0,0,0]"


@pytest.mark.parametrize(
    ("statement", "stays_marked"),
    [
        (f"UPDATE memory_embeddings SET embedding = '{ANOTHER}' WHERE memory_id = %s", False),
        ("UPDATE memories SET visibility = 'private', user_id = 'ada' WHERE id = %s", False),
        ("UPDATE memories SET visibility = 'restricted', reader_users = '{ada}' WHERE id = %s", False),
        ("UPDATE memory_embeddings SET model = 'other' WHERE memory_id = %s", False),
        ("DELETE FROM memory_embeddings WHERE memory_id = %s", False),
        ("DELETE FROM memories WHERE id = %s", False),
        ("UPDATE memories SET status = 'superseded', valid_to = now() WHERE id = %s", True),
        ("UPDATE memories SET reader_users = '{ada}' WHERE id = %s", True),
        ("UPDATE memory_embeddings SET embedding = embedding WHERE memory_id = %s", True),
    ],
    ids=["vector", "private", "restricted", "model", "deleted-vector", "deleted", "superseded", "readers", "same"],
)
async def test_a_memory_leaves_with_its_change(
    world: VectorWorld, indexing: WorkerContext, statement: str, *, stays_marked: bool
) -> None:
    ids = world.memories(spread(120))
    await index(indexing, world)
    with world.entered() as connection:
        connection.execute(statement, (ids[7],))
        count = "SELECT count(*) FROM vector_index WHERE tenant_id = %s AND record_id = %s"
        assert connection.execute(count, (world.tenant_id, ids[7])).fetchone() == (int(stays_marked),)
    assert (("memory", ids[7]) in world.marked()) is stays_marked
    assert world.indexed() == world.marked()
    assert len(world.indexed()) == len(ids) - (not stays_marked)
    assert world.faults() == []


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE passage_embeddings SET embedding = '{ANOTHER}' WHERE source_id = %s",
        "UPDATE sources SET visibility = 'private', user_id = 'ada' WHERE id = %s",
        "DELETE FROM passages WHERE source_id = %s",
        "DELETE FROM sources WHERE id = %s",
    ],
    ids=["vector", "private", "deleted-passages", "deleted"],
)
async def test_passages_leave_with_a_change_of_their_source(
    world: VectorWorld, indexing: WorkerContext, statement: str
) -> None:
    stays = world.passages(world.source(source_date=PAST), spread(60))
    changed = world.source(source_date=PAST)
    world.passages(changed, spread(60))
    await index(indexing, world)
    assert len(world.indexed()) == 120
    world.run(statement, changed)
    assert world.indexed() == world.marked() == {("passage", ident) for ident in stays}
    assert world.faults() == []


async def test_all_of_it_happens_to_the_service_as_well(world: VectorWorld, indexing: WorkerContext) -> None:
    """Its role may not write the index: what takes vectors out of it runs as the owner, in the tenant entered."""
    ids = world.memories(spread(120), user_id="ada")
    await index(indexing, world)
    scope = Scope("memory_os_app", world.tenant_id, "writer", "ada")
    for statement in ("erase_memories", "erase_made_of_memories"):
        given = {"tenant_id": world.tenant_id, "memories": [ids.pop()], "edges": [], "links": []}
        async with world.database.transaction(scope) as tx:
            await tx.touched(statement, given)
        assert world.indexed() == world.marked() == {("memory", ident) for ident in ids}


async def test_what_is_shared_with_all_again_waits_for_the_index(world: VectorWorld, indexing: WorkerContext) -> None:
    ids = world.memories(spread(120))
    await index(indexing, world)
    world.run("UPDATE memories SET visibility = 'private', user_id = 'ada' WHERE id = %s", ids[0])
    assert ids[0] not in {ref.id for ref in await world.search(0, user="bob")}
    assert ids[0] in {ref.id for ref in await world.search(0, user="ada")}
    world.run("UPDATE memories SET visibility = 'tenant' WHERE id = %s", ids[0])
    assert ids[0] in {ref.id for ref in await world.search(0, user="bob")}
    assert world.faults() == []


async def test_a_tenants_index_is_left_alone_by_what_others_do(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(120))
    await index(indexing, world)
    before = world.indexed()
    other = VectorWorld(world.urls, world.database)
    others = other.memories(spread(120))
    await index(indexing, other)
    other.run("DELETE FROM memories WHERE id = %s", others[0])
    assert world.indexed() == before
    assert len(other.indexed()) == 119
    assert len(world.partitions()) == 2
