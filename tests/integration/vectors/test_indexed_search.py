"""What a search finds is the same with the index of vectors and without it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.integration.vectors.conftest import MANY, TAIL
from tests.integration.vectors.vector_world import MODEL, NOW, PAST, VectorWorld, direction

from memory_os.domain.ids import new_id
from memory_os.retrieval import vectors
from memory_os.retrieval.arms import ARM_LIMIT, Ref, Window
from memory_os.retrieval.weighing import Asked, weigh
from memory_os.storage.database import Scope, Transaction
from memory_os_workers.context import WorkerContext
from memory_os_workers.indexer import tend

pytestmark = pytest.mark.anyio


async def index(context: WorkerContext, world: VectorWorld) -> None:
    """Do everything that an indexer has to do for the tenant."""
    while await tend(context, world.tenant_id, MODEL):
        pass


def spread(count: int, start: float = 0, end: float = 360) -> list[float]:
    """Directions at equal distances."""
    return [float(degrees) for degrees in np.linspace(start, end, count, endpoint=False)]


async def test_a_small_tenant_has_no_index(world: VectorWorld, indexing: WorkerContext) -> None:
    ids = world.memories(spread(MANY, 0, 100))
    await index(indexing, world)
    assert world.partitions() == []
    found = await world.search(0.2)
    assert len(found) == ARM_LIMIT
    assert next(iter(found)) == Ref("memory", ids[0])
    assert found == pytest.approx(await world.search_all(0.2))


async def test_what_is_near_is_found_in_the_index(world: VectorWorld, indexing: WorkerContext) -> None:
    ids = world.memories(spread(150))
    source = world.source(source_date=PAST)
    passages = world.passages(source, spread(150, 0.7, 360.7))
    await index(indexing, world)
    everything = {("memory", ident) for ident in ids} | {("passage", ident) for ident in passages}
    assert world.indexed() == world.marked() == everything
    assert world.faults() == []
    for degrees in (0.1, 90.3, 271.9):
        found = await world.search(degrees)
        assert found == pytest.approx(await world.search_all(degrees))
        assert list(found) == list(await world.search_all(degrees))
        assert len(found) == ARM_LIMIT


async def test_what_was_just_written_is_found_beside_the_index(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(200))
    await index(indexing, world)
    (fresh,) = world.memories([45.9])
    (passage,) = world.passages(world.source(source_date=PAST), [46.3])
    assert ("memory", fresh) not in world.indexed()
    assert list(await world.search(45.9))[:2] == [Ref("memory", fresh), Ref("passage", passage)]
    await index(indexing, world)
    assert ("memory", fresh) not in world.indexed(), "two vectors may wait"
    more = world.memories(spread(TAIL, 50, 51))
    await index(indexing, world)
    assert world.indexed() == world.marked() >= {("memory", ident) for ident in [fresh, *more]} | {("passage", passage)}
    assert await world.search(45.9) == pytest.approx(await world.search_all(45.9))


async def test_a_build_that_is_not_marked_yet_changes_no_answer(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(200))
    assert await tend(indexing, world.tenant_id, MODEL)
    assert (len(world.indexed()), world.marked()) == (200, set())
    found = await world.search(10)
    assert len(found) == ARM_LIMIT
    assert found == pytest.approx(await world.search_all(10))


async def test_records_of_few_readers_stay_out_of_the_index_and_are_found_by_these(
    world: VectorWorld, indexing: WorkerContext
) -> None:
    world.memories(spread(200))
    (mine,) = world.memories([30.0], visibility="private", user_id="ada")
    (theirs,) = world.memories([30.0], visibility="private", user_id="bob")
    (shared,) = world.memories([30.0], visibility="restricted", user_id="bob", reader_users=["ada"])
    (grouped,) = world.memories([30.0], visibility="restricted", user_id="bob", reader_groups=["oven"])
    own = world.source(visibility="private", user_id="ada", source_date=PAST)
    (passage,) = world.passages(own, [30.0])
    await index(indexing, world)
    few = {mine, theirs, shared, grouped, passage}
    assert not {ident for _, ident in world.indexed()} & few
    for user, groups, seen in (
        ("ada", (), {mine, shared, passage}),
        ("ada", ("oven",), {mine, shared, grouped, passage}),
        ("bob", (), {theirs, shared, grouped}),
        (None, (), set()),
        ("eve", ("fire",), set()),
    ):
        found = await world.search(30, user=user, groups=groups)
        assert {ref.id for ref in found} & few == seen, (user, groups)
        assert found == pytest.approx(await world.search_all(30, user=user, groups=groups))


async def test_records_that_are_no_longer_in_force_do_not_empty_the_answer(
    world: VectorWorld, indexing: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_statements(monkeypatch)
    world.memories(spread(300, -40, 40), status="superseded", valid_to=PAST)
    world.memories(spread(100, 41, 70))
    await index(indexing, world)
    found = await world.search(0)
    assert len(found) == ARM_LIMIT
    assert found == pytest.approx(await world.search_all(0))
    assert asked == ["search_vectors", "search_vectors", "search_all_vectors"], "the second one ended at the last"
    asked.clear()
    history = Window(None, history=True)
    assert await world.search(0, history) == pytest.approx(await world.search_all(0, history))
    assert asked[0] == "search_vectors"
    assert asked[-1] == "search_all_vectors"
    assert len(asked) == 2


async def test_what_hardly_any_record_answers_is_looked_for_in_all(
    world: VectorWorld, indexing: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "REACHES", (20, 40))
    world.memories(spread(300, -40, 40), status="superseded", valid_to=PAST)
    (alive,) = world.memories([60.0])
    await index(indexing, world)
    asked = count_statements(monkeypatch)
    assert list(await world.search(0)) == [Ref("memory", alive)]
    assert asked == ["search_vectors", "search_vectors", "search_all_vectors"]


async def test_the_index_is_not_walked_below_the_floor(
    world: VectorWorld, indexing: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = world.memories(spread(45, -5, 77))
    # More than the index is asked for, and so few that no walk ends before it has met the near ones.
    world.memories(spread(70, 80, 270))
    await index(indexing, world)
    asked = count_statements(monkeypatch)
    assert {ref.id for ref in await world.search(0)} == set(near)
    assert await world.search(0.1) == pytest.approx(await world.search_all(0.1))
    assert asked == ["search_vectors", "search_vectors", "search_all_vectors"], "one search each, and the comparison"


@pytest.mark.parametrize("turn", range(8))
async def test_few_that_are_near_are_found_however_far_the_others_are(
    world: VectorWorld, indexing: WorkerContext, turn: int
) -> None:
    """An index of two parts that hardly touch is walked in the wrong one about every seventh time it is built."""
    near = world.memories(spread(20, -5 + turn, 5 + turn))
    world.memories(spread(300, 100, 260))
    await index(indexing, world)
    assert {ref.id for ref in await world.search(turn)} == set(near)


async def test_that_nothing_is_near_is_seen_by_looking_at_all(
    world: VectorWorld, indexing: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.memories(spread(300, 100, 260))
    await index(indexing, world)
    asked = count_statements(monkeypatch)
    assert await world.search(0) == {}
    assert asked == ["search_vectors", "search_all_vectors"]


async def test_the_time_asked_about_is_that_of_the_source(world: VectorWorld, indexing: WorkerContext) -> None:
    world.memories(spread(150, 90, 180))
    early = world.passages(world.source(source_date=PAST), spread(60, 0, 20))
    late = world.passages(world.source(), spread(60, 0, 20))
    await index(indexing, world)
    then = Window(PAST.replace(year=2021), history=False)
    assert {ref.id for ref in await world.search(0, then) if ref.type == "passage"} <= set(early)
    assert await world.search(0, then) == pytest.approx(await world.search_all(0, then))
    assert {ref.id for ref in await world.search(0)} & set(late)


async def test_what_another_arm_found_has_its_similarity_if_the_reader_sees_it(world: VectorWorld) -> None:
    passages = world.passages(world.source(), [0.0, 60.0])
    (hidden,) = world.passages(world.source(visibility="private", user_id="bob"), [0.0])
    (memory,) = world.memories([60.0])
    (secret,) = world.memories([0.0], visibility="private", user_id="bob")
    found = {Ref("passage", ident): 1.0 for ident in (*passages, hidden)}
    led_to = [Ref("memory", ident) for ident in (memory, secret, new_id())]
    scope = Scope("memory_os_app", world.tenant_id, "reader", "ada")
    async with world.database.transaction(scope) as tx:
        weights = await weigh(tx, Asked("q", None, MODEL, direction(0)), found, {}, led_to)
    similarities = {ref.id: one for ref, one in weights.similarities.items()}
    assert similarities == pytest.approx({passages[0]: 1.0, passages[1]: 0.5, memory: 0.5}, abs=1e-5)
    searched = await world.search(0)
    assert {ident: searched[Ref("passage", ident)] for ident in passages} == pytest.approx(
        {ident: similarities[ident] for ident in passages}
    )


async def test_a_question_of_another_dimension_does_not_reach_the_database(world: VectorWorld) -> None:
    async with world.database.transaction(Scope("memory_os_app", world.tenant_id, "reader", "ada")) as tx:
        with pytest.raises(ValueError, match="dimension"):
            await vectors.search_vectors(tx, MODEL, np.ones(3, dtype=np.float32), NOW)


def count_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The searching statements from now on, in order."""
    asked: list[str] = []
    hot = Transaction.hot

    async def counting(self: Transaction, name: str, *given: object) -> object:
        if name.startswith("search_"):
            asked.append(name)
        return await hot(self, name, *given)  # type: ignore[arg-type] # passed on as they came

    monkeypatch.setattr(Transaction, "hot", counting)
    return asked
