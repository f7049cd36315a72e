"""Whatever was asked, confirmed and taken back, in whatever batches it is applied: the sums on the edges are right."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.postgres import DatabaseUrls

from memory_os.domain.reinforcement import is_drawn
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.retrieval.reinforcing import reinforce
from memory_os.storage.database import Database, Scope, Transaction

EDGES = 4
RECORDS = 2

Figures = tuple[float, int, float | None]


@dataclass(frozen=True)
class Asked:
    """One retrieval: which edges led to which of its records, in which conversation, and what was said of it."""

    conversation: int
    walks: frozenset[tuple[int, int]]
    confirmed: bool


_asked = st.builds(
    Asked,
    st.integers(0, 3),
    st.frozensets(st.tuples(st.integers(0, EDGES - 1), st.integers(0, RECORDS - 1)), max_size=5),
    st.booleans(),
)
_confidences = st.lists(st.floats(0, 1).map(lambda x: round(x, 6)), min_size=EDGES, max_size=EDGES)
_steps = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["commit", "die", "both at once"])), max_size=12)


class World:
    """A tenant of its own with a chain of edges."""

    def __init__(self, owner_url: str, confidences: Sequence[float]) -> None:
        self._connection = psycopg.connect(owner_url, autocommit=True)
        self.tenant = uuid4()
        self._run("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'sums')", self.tenant)
        memories = [uuid4() for _ in range(EDGES + 1)]
        for ident in memories:
            self._run(
                "INSERT INTO memories (tenant_id, id, label, layer, text, search) "
                "VALUES (%s, %s, 'Attribute', 'identity', 'x', '')",
                *(self.tenant, ident),
            )
        self.edges = [uuid4() for _ in range(EDGES)]
        for place, (ident, confidence) in enumerate(zip(self.edges, confidences, strict=True)):
            self._run(
                "INSERT INTO edges (tenant_id, id, type, source_memory_id, target_memory_id, confidence) "
                "VALUES (%s, %s, 'SUPPORTS', %s, %s, %s)",
                *(self.tenant, ident, memories[place], memories[place + 1], confidence),
            )

    def log(self, asked: Asked) -> UUID:
        """Log a retrieval; later ones have greater ids."""
        ident = uuid4()
        self._run(
            "INSERT INTO retrievals (tenant_id, id, conversation_id, query, arms, bounds, timings_ms, graph_state, "
            "no_match, items, omitted, pack_tokens) "
            "VALUES (%s, %s, %s, 'q', '{}', '{}', '{}', 'current', false, 1, 0, 1)",
            *(self.tenant, ident, f"c{asked.conversation}"),
        )
        for edge, record in asked.walks:
            self._run(
                "INSERT INTO retrieval_edges (tenant_id, retrieval_id, edge_id, record_id, record_type, confirmed) "
                "VALUES (%s, %s, %s, %s, 'memory', %s)",
                *(self.tenant, ident, self.edges[edge], UUID(int=record), asked.confirmed),
            )
        return ident

    def figures(self) -> list[Figures]:
        """Confidence, count and claimed confidence of each edge."""
        rows = self._connection.execute(
            "SELECT id, confidence, co_reference_count, claimed_confidence FROM edges WHERE tenant_id = %s",
            (self.tenant,),
        )
        found: dict[UUID, Any] = {row[0]: row[1:] for row in rows}
        return [found[ident] for ident in self.edges]

    def one(self, query: str) -> int:
        """A number about the tenant."""
        row = self._connection.execute(query, (self.tenant,)).fetchone()
        assert row
        return int(row[0])

    def close(self) -> None:
        """Leave."""
        self._connection.close()

    def _run(self, query: str, *values: Any) -> None:
        self._connection.execute(query, values)


class WorkerDiedError(Exception):
    """A worker that dies before its transaction ends."""


async def apply(url: str, tenant: UUID, share: float, steps: Sequence[tuple[int, str]]) -> None:
    """Apply what waits in these batches, of which some die and some are two workers' at once; then the rest."""
    database = Database(url, pool_size=2)
    scope, outbox = Scope(WORKER_ROLE, tenant), Outbox(enabled=True)

    async def die(tx: Transaction) -> None:
        await reinforce(tx, outbox, share=share, batch=3)
        raise WorkerDiedError

    async def take(batch: int) -> int:
        return (await database.run(scope, lambda tx: reinforce(tx, outbox, share=share, batch=batch))).total()

    try:
        for batch, end in steps:
            if end == "die":
                with pytest.raises(WorkerDiedError):
                    await database.run(scope, die)
            else:
                await asyncio.gather(*[take(batch) for _ in range(2 if end == "both at once" else 1)])
        while await take(1_000):
            pass
    finally:
        await database.close()


@settings(max_examples=80, deadline=None)
@given(
    confidences=_confidences,
    history=st.lists(_asked, max_size=12),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    steps=_steps,
)
def test_the_sums_are_right_however_they_are_applied(
    history_urls: DatabaseUrls,
    confidences: list[float],
    history: list[Asked],
    share: float,
    steps: list[tuple[int, str]],
) -> None:
    world = World(history_urls.owner_url, confidences)
    try:
        logged = [(world.log(asked), asked) for asked in history]
        asyncio.run(apply(history_urls.worker_url, world.tenant, share, steps))
        gained: list[set[int]] = [set() for _ in range(EDGES)]
        for ident, asked in logged:
            for edge, _ in asked.walks:
                if asked.confirmed or is_drawn(ident, world.edges[edge], share):
                    gained[edge].add(asked.conversation)
        for before, periods, (confidence, count, claimed) in zip(confidences, gained, world.figures(), strict=True):
            assert count == len(periods)
            assert confidence == pytest.approx(min(1.0, before + 0.05 * count), abs=1e-5)
            assert confidence <= 1.0
            assert claimed == (before if count else None)
        walks = "SELECT count(*) FROM retrieval_edges WHERE tenant_id = %s AND state "
        assert world.one(walks + "= 'waiting'") == 0
        assert world.one(walks + "= 'counted'") == sum(map(len, gained))
        assert world.one("SELECT count(*) FROM edge_reinforcements WHERE tenant_id = %s") == sum(map(len, gained))
        events = "SELECT coalesce(sum(version) - count(*), 0) FROM edges WHERE tenant_id = %s"
        assert world.one("SELECT count(*) FROM outbox_events WHERE tenant_id = %s") == world.one(events)
    finally:
        world.close()
