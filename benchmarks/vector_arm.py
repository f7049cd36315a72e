"""The vector arm: what it finds of what there is, and how long it takes, from the smallest tenant to the largest.

Tenants with 0.1, 1, 10 and 89 % of the rows stand side by side, and tenants of growing sizes beside them; the vectors
lie in clusters that have nothing to do with the tenants. Large ones are indexed by the worker's own code. Each question
is asked of the arm and of the exact scan of all vectors that the reader may see, in turn, and then others of pgvector's
index alone, without policies, look-ups and second measurement. A reader with few private memories in the largest tenant
is asked for, too; and what the index costs is measured: building it, moving what was written since, and each insert.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from stack import Stores, add_tenants, parser, quantile, report, stores
from vector_rows import Clusters, add_rows, literal

from memory_os.domain.ids import new_id
from memory_os.embedding.port import EmbedderIdentity
from memory_os.retrieval.arms import ARM_LIMIT, Ref, Window
from memory_os.retrieval.vectors import SIMILARITY_FLOOR, search_vectors
from memory_os.settings import Settings
from memory_os.storage.database import Database, Scope, Transaction
from memory_os_workers.indexer import tend

SHARES = {"0.1 %": 0.001, "1 %": 0.01, "10 %": 0.1, "89 %": 0.889}
NOW = Window(None, history=False)
BEST = 10
USER = "ada"

Json = dict[str, Any]


@dataclass(slots=True)
class Bench:
    """The stores, what vectors are drawn from, and the parts that the service and a worker would have."""

    on: Stores
    model: EmbedderIdentity
    clusters: Clusters
    app: Database
    worker: Any

    def tenant(self, count: int) -> UUID:
        """A tenant with so many memories that all of it may read."""
        (tenant_id,) = add_tenants(self.on, 1)
        self.add(tenant_id, count)
        return tenant_id

    def add(self, tenant_id: UUID, count: int, *, user: str | None = None) -> None:
        """More memories, of a user alone if one is named."""
        with psycopg.connect(self.on.owner_url, autocommit=True) as connection:
            add_rows(connection, tenant_id, count, self.clusters, self.model, user=user)

    def run(self, statement: str) -> None:
        """A statement of the superuser, outside a transaction."""
        with psycopg.connect(self.on.owner_url, autocommit=True) as connection:
            connection.execute(statement)

    async def index(self, tenant_id: UUID) -> Json | None:
        """Index a tenant as a worker does; None for one that is too small for it."""
        started = time.perf_counter()
        if not await tend(self.worker, tenant_id, self.model):
            return None
        built = time.perf_counter()
        while await tend(self.worker, tenant_id, self.model):
            pass
        return {"build_s": round(built - started, 1), "mark_s": round(time.perf_counter() - built, 1)}

    async def arm(self, tx: Transaction, vector: NDArray[np.float32]) -> list[Ref]:
        """What the arm finds, the nearest first."""
        return list(await search_vectors(tx, self.model, vector, NOW))

    async def exact(self, tx: Transaction, vector: NDArray[np.float32]) -> list[Ref]:
        """What there is, the nearest first."""
        given = {"tenant_id": tx.tenant_id, "vector": literal(vector), "model": self.model.model}
        given |= {"as_of": None, "history": False, "floor": SIMILARITY_FLOOR, "limit": ARM_LIMIT}
        return [Ref(row["type"], row["id"]) for row in await tx.hot("search_all_vectors", given)]


async def compare(bench: Bench, tenant_id: UUID, questions: int, *, user: str | None = None) -> Json:
    """Recall of the arm and the milliseconds of both ways, asked in turn."""
    scope = Scope("memory_os_app", tenant_id, "reader", user)
    ways: dict[str, Callable[[Transaction, NDArray[np.float32]], Awaitable[list[Ref]]]] = {
        "arm": bench.arm,
        "exact": bench.exact,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    best, every = [], []
    for number, vector in enumerate(bench.clusters.vectors(questions + 8)):
        found = {}
        for name, way in ways.items():
            started = time.perf_counter()
            async with bench.app.transaction(scope, plans="generic") as tx:  # as a retrieval does
                found[name] = await way(tx, vector)
            if number >= 8:  # what comes before warms up: statements are prepared at their fifth use
                times[name].append((time.perf_counter() - started) * 1000)
        if found["exact"]:
            best.append(recall(found["arm"][:BEST], found["exact"][:BEST]))
            every.append(recall(found["arm"], found["exact"]))
    told = {f"recall_at_{BEST}": mean(best), f"recall_at_{ARM_LIMIT}": mean(every), "lowest": min(best, default=1)}
    return told | {f"{name}_ms": spread(values) for name, values in times.items()}


def raw(bench: Bench, tenant_id: UUID, questions: int) -> Json:
    """Milliseconds of pgvector's index alone: the ids of the nearest ten, and of as many as the arm takes."""
    told = {}
    with psycopg.connect(bench.on.owner_url) as connection:
        named = connection.execute(
            "SELECT tableoid::regclass::text FROM vector_index WHERE tenant_id = %s", (tenant_id,)
        )
        row = named.fetchone()
        if row is None:
            return {}
        connection.execute("SET LOCAL enable_sort = off")
        connection.execute("SET LOCAL hnsw.ef_search = 120")
        size = bench.model.dimension
        for count in (BEST, 100):
            near = (
                f"SELECT record_id FROM {row[0]} "  # noqa: S608 - the catalog's name
                f"ORDER BY embedding::halfvec({size}) <=> %s::halfvec({size}) LIMIT {count}"
            )
            times = []
            for vector in bench.clusters.vectors(questions + 8):
                started = time.perf_counter()
                connection.execute(near, (literal(vector),)).fetchall()
                times.append((time.perf_counter() - started) * 1000)
            told[f"raw_{count}_ms"] = spread(times[8:])
    return told


async def shares(bench: Bench, given: Namespace) -> tuple[Json, UUID]:
    """Tenants with a share of the rows each, and the largest of them."""
    tenants = {name: bench.tenant(int(share * given.rows)) for name, share in SHARES.items()}
    built = {name: await bench.index(tenant_id) for name, tenant_id in tenants.items()}
    bench.run("VACUUM ANALYZE")
    told = {}
    for name, tenant_id in tenants.items():
        found = {"memories": int(SHARES[name] * given.rows), **(built[name] or {"index": "none"})}
        told[name] = found | await compare(bench, tenant_id, given.questions) | raw(bench, tenant_id, given.questions)
        print(name, told[name], flush=True)
    return told, tenants["89 %"]


async def growth(bench: Bench, given: Namespace) -> list[Json]:
    """Tenants of growing sizes among all the others."""
    told = []
    for size in given.sizes:
        tenant_id = bench.tenant(size)
        built = await bench.index(tenant_id)
        bench.run("VACUUM ANALYZE")
        found = {"memories": size, **(built or {"index": "none"})}
        told.append(found | await compare(bench, tenant_id, given.questions) | raw(bench, tenant_id, given.questions))
        print(told[-1], flush=True)
    return told


async def private(bench: Bench, tenant_id: UUID, given: Namespace) -> Json:
    """A reader with fifty memories of their own among as many private ones of others as a tenth of the tenant's."""
    bench.add(tenant_id, 50, user=USER)
    for number in range(10):
        bench.add(tenant_id, int(0.01 * given.rows), user=f"user {number}")
    bench.run("VACUUM ANALYZE")
    return await compare(bench, tenant_id, given.questions, user=USER)


async def tail(bench: Bench, tenant_id: UUID, given: Namespace) -> Json:
    """What a thousand memories that wait cost a search, and to move them into the index."""
    waiting = 1_000
    bench.add(tenant_id, waiting)
    told = {"waiting": waiting, **await compare(bench, tenant_id, given.questions)}
    bench.add(tenant_id, 1)  # one more, and they move
    started = time.perf_counter()
    await tend(bench.worker, tenant_id, bench.model)
    took = time.perf_counter() - started
    return told | {"move_s": round(took, 2), "moved_per_s": round((waiting + 1) / took)}


def inserts(bench: Bench, tenant_id: UUID, given: Namespace) -> Json:
    """Memories a second, each with its vector in a transaction of its own, by the service's role."""
    small = bench.tenant(1_000)
    told: Json = {}
    for name, target in (("tenant_without_index", small), ("tenant_with_index", tenant_id)):
        told[name] = statistics.median(insert_rate(bench, target, given.inserts) for _ in range(3))
    bench.run("DROP INDEX memory_embeddings_tail")
    for trigger in ("vector_changed", "vectors_gone"):
        bench.run(f"DROP TRIGGER {trigger} ON memory_embeddings")
    told["without_all_of_it"] = statistics.median(insert_rate(bench, small, given.inserts) for _ in range(3))
    return told


def insert_rate(bench: Bench, tenant_id: UUID, count: int) -> int:
    """Memories a second of one connection."""
    memory = (
        "INSERT INTO memories (tenant_id, id, label, layer, text, search, embedding_model) "
        "VALUES (%s, %s, 'Attribute', 'identity', 'A note.', '', %s)"
    )
    vector = (
        "INSERT INTO memory_embeddings (tenant_id, memory_id, model, dimension, embedding, visibility) "
        "VALUES (%s, %s, %s, %s, %s, 'tenant')"
    )
    rows = [literal(one) for one in bench.clusters.vectors(count)]
    model = bench.model
    with psycopg.connect(bench.on.postgres.url("memory_os_app")) as connection:
        started = time.perf_counter()
        for row in rows:
            ident = new_id()
            connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(tenant_id),))
            connection.execute(memory, (tenant_id, ident, model.model))
            connection.execute(vector, (tenant_id, ident, model.model, model.dimension, row))
            connection.commit()
        return round(count / (time.perf_counter() - started))


def recall(found: Sequence[Ref], there: Sequence[Ref]) -> float:
    """Share of what there is that was found."""
    return len({*found} & {*there}) / len(there)


def mean(values: Sequence[float]) -> float | None:
    """The mean, None of nothing."""
    return round(statistics.mean(values), 4) if values else None


def spread(values: Sequence[float]) -> dict[str, float]:
    """The median and the 95th percentile; and the 10th, which a busy machine disturbs least."""
    return {f"p{share}": round(quantile(values, share / 100), 2) for share in (10, 50, 95)}


async def measure(on: Stores, given: Namespace) -> Json:
    """Everything, on stores that are empty at first."""
    model = EmbedderIdentity("benchmark", given.dimension)
    app = Database(on.postgres.url("memory_os_app"), pool_size=2)
    database = Database(on.postgres.url("memory_os_worker"), pool_size=2, durable=False)
    settings = Settings(_env_file=None, vector_index_from=given.from_)
    worker = SimpleNamespace(database=database, settings=settings, stopping=asyncio.Event())
    bench = Bench(on, model, Clusters(given.dimension), app, worker)
    told: Json = {"rows": given.rows, "dimension": given.dimension, "indexed_from": given.from_}
    told["shares"], largest = await shares(bench, given)
    told["growth"] = await growth(bench, given)
    told["few_private_memories"] = await private(bench, largest, given)
    told["tail"] = await tail(bench, largest, given)
    told["inserts_per_s"] = inserts(bench, largest, given)
    await app.close()
    await database.close()
    return told


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/vector_arm.py --rows 1000000 --sizes 1000 10000 100000 1000000")
    options.add_argument("--rows", type=int, default=200_000, help="memories of the tenants with a share")
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="of growing tenants")
    options.add_argument("--dimension", type=int, default=384)
    options.add_argument("--questions", type=int, default=200, help="for each tenant")
    options.add_argument("--inserts", type=int, default=500, help="for each measurement, three times")
    options.add_argument("--from", dest="from_", type=int, default=10_000, help="VECTOR_INDEX_FROM")
    given = options.parse_args()
    with stores() as on:
        report("vector_arm", asyncio.run(measure(on, given)))


if __name__ == "__main__":
    main()
