"""The raw limits beside `retrieval.py`: what the stores take for the same work without the product."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import falkordb
import psycopg
from graph_raw import connect
from stack import Stores

SCAN = (
    "SELECT memory_id FROM memory_embeddings WHERE tenant_id = %(tenant)s "
    "ORDER BY (embedding <=> %(vector)s::vector) + 0 LIMIT 50"
)
"""The nearest vectors by looking at each."""

INDEX = (
    "SELECT record_id FROM vector_index WHERE tenant_id = %(tenant)s "
    "ORDER BY embedding::halfvec(384) <=> %(vector)s::halfvec(384) LIMIT 50"
)
"""The nearest vectors by the index that large tenants have."""

POSTINGS = """
SELECT count(*), sum(p.impact)
FROM unnest(to_tsvector('english', %(text)s)) AS w
CROSS JOIN LATERAL (
    SELECT impact FROM postings
    WHERE tenant_id = %(tenant)s AND term = memory_os_term(memory_os_scope('', false), w.lexeme)
    ORDER BY impact DESC LIMIT 300
) AS p
"""
"""Reading up to 300 postings of each word of the question, in the order of the index."""

TWO_HOPS = (
    "UNWIND $ids AS id MATCH (n:Memory {id: id})-[a:MENTIONS]->(e:Entity)<-[b:MENTIONS]-(m:Memory) "
    "RETURN id, e.id, m.id, a.weight, b.weight LIMIT 100"
)
"""Two hops from eight memories, whatever comes first, unranked."""


class Raw:
    """Asks the stores directly, as the superuser: no policies, no service."""

    def __init__(self, on: Stores, tenant: UUID) -> None:
        self._tenant = tenant
        self._connection = psycopg.connect(on.owner_url, autocommit=True)
        self._graph = _graph(on, tenant)
        self._vectors = [row[0] for row in self._asked("SELECT embedding::text FROM memory_embeddings", 20)]
        self._ids = [str(row[0]) for row in self._asked("SELECT id FROM memories", 160)]
        self._connection.execute("SET hnsw.ef_search = 100")

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def measure(self, queries: Sequence[str]) -> dict[str, list[float]]:
        """Milliseconds of each raw way, as far as the stores have what it needs."""
        vectors = [{"tenant": self._tenant, "vector": vector} for vector in self._vectors]
        texts = [{"tenant": self._tenant, "text": query} for query in queries]
        made = {"exact vector scan": self._times(SCAN, vectors)}
        if self._there("vector_index"):
            made["vector index"] = self._times(INDEX, vectors)
        if self._there("postings"):
            made["reading postings"] = self._times(POSTINGS, texts)
        if self._graph is not None:
            starts = [self._ids[place : place + 8] for place in range(0, len(self._ids), 8)]
            graph = self._graph
            made["two bare hops"] = [_timed(lambda ids=ids: graph.ro_query(TWO_HOPS, {"ids": ids})) for ids in starts]
        return made

    def _asked(self, question: str, limit: int) -> list[Any]:
        return self._connection.execute(
            f"{question} WHERE tenant_id = %s LIMIT %s",
            (self._tenant, limit),
        ).fetchall()

    def _there(self, table: str) -> bool:
        if self._connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() == (None,):
            return False
        row = self._connection.execute(
            f"SELECT EXISTS (SELECT FROM {table} WHERE tenant_id = %s)",  # noqa: S608 - our own words
            (self._tenant,),
        ).fetchone()
        return row == (True,)

    def _times(self, statement: str, given: Sequence[dict[str, Any]]) -> list[float]:
        return [_timed(lambda one=one: self._connection.execute(statement, one).fetchall()) for one in given]


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def _graph(on: Stores, tenant: UUID) -> falkordb.Graph | None:
    client = connect(on.environment())
    name = next((key for key in client.list_graphs() if str(tenant) in key), None)
    return client.select_graph(name) if name else None
