"""After any history of writes and of indexing, the index holds what it should, and a search finds what there is."""

from __future__ import annotations

import random
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.integration.vectors.test_indexed_search import index
from tests.integration.vectors.vector_world import MODEL, PAST, VectorWorld, direction

from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.writing import vector_literal
from memory_os_workers.context import WorkerContext
from memory_os_workers.indexer import tend

pytestmark = pytest.mark.anyio

OTHER = EmbedderIdentity("another-model", 4)
STEPS, BEST = 40, 10
READERS = (
    "visibility = 'tenant', user_id = NULL, reader_users = '{}'",
    "visibility = 'private', user_id = 'ada', reader_users = '{}'",
    "visibility = 'restricted', user_id = 'bob', reader_users = '{ada}'",
)


class History:
    """Steps drawn by a seed, taken one after the other."""

    def __init__(self, world: VectorWorld, context: WorkerContext, seed: int) -> None:
        self._world, self._context = world, context
        self._draw = random.Random(seed)
        self._memories: list[UUID] = []
        self._sources: list[UUID] = []

    def vector(self) -> NDArray[np.float32]:
        """Any vector: few of them are alike, as of real ones, or the index would be at a loss which to keep."""
        return np.array([self._draw.gauss(0, 1) for _ in range(MODEL.dimension)], dtype=np.float32)

    async def step(self) -> str:
        """Take one step; its name."""
        steps = [self.write, self.write, self.cite, self.turn, self.narrow, self.supersede, self.delete, self.forget]
        name = self._draw.choice([*steps, self.tend, self.tend, self.change_model])
        await name()
        return name.__name__

    async def write(self) -> None:
        """Some memories."""
        many = self._draw.choice((1, 5, 60))
        self._memories += self._world.memories([self.vector() for _ in range(many)])

    async def cite(self) -> None:
        """A source with passages."""
        source = self._world.source(source_date=PAST)
        self._world.passages(source, [self.vector() for _ in range(self._draw.choice((1, 40)))])
        self._sources.append(source)

    async def turn(self) -> None:
        """Another vector for some memories."""
        vector = vector_literal(direction(self.vector()))
        self._some(f"UPDATE memory_embeddings SET embedding = '{vector}' WHERE model = 'a-model' AND memory_id")

    async def narrow(self) -> None:
        """Other readers for some memories and a source."""
        readers = self._draw.choice(READERS)
        self._some(f"UPDATE memories SET {readers} WHERE id")
        if self._sources:
            self._world.run(f"UPDATE sources SET {readers} WHERE id = %s", self._draw.choice(self._sources))

    async def supersede(self) -> None:
        """Some memories are no longer in force."""
        self._some("UPDATE memories SET status = 'superseded', valid_to = '2020-01-01' WHERE id")

    async def delete(self) -> None:
        """Some memories go."""
        self._some("DELETE FROM memories WHERE id")

    async def forget(self) -> None:
        """A source goes, with its passages."""
        if self._sources:
            source = self._sources.pop(self._draw.randrange(len(self._sources)))
            self._world.run("DELETE FROM sources WHERE id = %s", source)

    async def tend(self) -> None:
        """The indexer takes some steps."""
        for _ in range(self._draw.randint(1, 3)):
            await tend(self._context, self._world.tenant_id, MODEL)

    async def change_model(self) -> None:
        """The indexer is told of another model for a moment."""
        if self._draw.random() < 0.3:
            await tend(self._context, self._world.tenant_id, OTHER)

    def _some(self, statement: str) -> None:
        chosen = self._draw.sample(self._memories, min(len(self._memories), self._draw.choice((1, 3, 20))))
        self._world.run(f"{statement} = ANY (%s)", chosen)


@pytest.mark.parametrize("seed", range(4))
async def test_the_index_follows_any_history(world: VectorWorld, indexing: WorkerContext, seed: int) -> None:
    history, taken = History(world, indexing, seed), []
    for _ in range(STEPS):
        taken.append(await history.step())
        assert world.faults() == [], taken
        assert world.marked() <= world.indexed(), taken
        for user in ("ada", None):
            asked = history.vector()
            found, every = await world.search(asked, user=user), await world.search_all(asked, user=user)
            assert len(found) == len(every), taken
            assert list(found.values())[:BEST] == pytest.approx(list(every.values())[:BEST], abs=1e-6), taken
    await index(indexing, world)
    assert world.marked() == world.indexed(), taken
