"""A tenant with vectors that are written by hand: directions in a plane, so that it is plain which are near."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from tests.fixtures.postgres import DatabaseUrls

from memory_os.domain.ids import new_id
from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.writing import vector_literal
from memory_os.retrieval.arms import ARM_LIMIT, Ref, Window
from memory_os.retrieval.vectors import SIMILARITY_FLOOR, search_vectors
from memory_os.storage.database import Database, Scope

MODEL = EmbedderIdentity("a-model", 8)
NOW = Window(None, history=False)
Direction = float | NDArray[np.float32]
"""Degrees in the plane of the first two axes, or any vector."""

PAST = datetime(2020, 1, 1, tzinfo=UTC)


def direction(given: Direction, dimension: int = MODEL.dimension) -> NDArray[np.float32]:
    """A vector of length 1."""
    if isinstance(given, np.ndarray):
        return np.asarray(given / np.linalg.norm(given), dtype=np.float32)
    vector = np.zeros(dimension, dtype=np.float32)
    vector[:2] = math.cos(math.radians(given)), math.sin(math.radians(given))
    return vector


@dataclass
class VectorWorld:
    """One tenant; what is stored commits at once, and acts on the tables as the service's statements do."""

    urls: DatabaseUrls
    database: Database
    tenant_id: UUID = field(default_factory=new_id)

    def __post_init__(self) -> None:
        with self.entered() as connection:
            connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'a tenant')", (self.tenant_id,))

    @contextmanager
    def entered(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction of the superuser inside the tenant."""
        with psycopg.connect(self.urls.owner_url) as connection:
            connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(self.tenant_id),))
            yield connection

    def run(self, statement: str, *values: object) -> int:
        """Run a statement and commit; the number of rows that it touched."""
        with self.entered() as connection:
            return connection.execute(statement, values).rowcount

    def memories(
        self,
        degrees: Sequence[Direction],
        *,
        model: EmbedderIdentity = MODEL,
        visibility: str = "tenant",
        **columns: object,
    ) -> list[UUID]:
        """Memories with vectors of these directions; `columns` are further ones of theirs."""
        ids = [new_id() for _ in degrees]
        row = {"visibility": visibility, **columns}
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        with self.entered() as connection, connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO memories (tenant_id, id, label, layer, text, search, {names}) "
                f"VALUES (%s, %s, 'Attribute', 'identity', 'a text', '', {marks})",
                [(self.tenant_id, ident, *row.values()) for ident in ids],
            )
            self._embed(cursor, ids, degrees, model)
        return ids

    def _embed(
        self, cursor: psycopg.Cursor[Any], ids: Sequence[UUID], degrees: Sequence[Direction], model: EmbedderIdentity
    ) -> None:
        cursor.executemany(
            "INSERT INTO memory_embeddings (tenant_id, memory_id, model, dimension, embedding, visibility, user_id, "
            "reader_users, reader_groups) SELECT tenant_id, id, %s, %s, %s::vector, visibility, user_id, reader_users, "
            "reader_groups FROM memories WHERE tenant_id = %s AND id = %s",
            [
                (model.model, model.dimension, vector_literal(direction(one, model.dimension)), self.tenant_id, ident)
                for ident, one in zip(ids, degrees, strict=True)
            ],
        )

    def embed_anew(self, ids: Sequence[UUID], degrees: Sequence[Direction], model: EmbedderIdentity) -> None:
        """Vectors of another model for memories that are there."""
        with self.entered() as connection, connection.cursor() as cursor:
            self._embed(cursor, ids, degrees, model)

    def source(self, **columns: object) -> UUID:
        """A source."""
        ident, row = new_id(), {"visibility": "tenant", **columns}
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        self.run(
            f"INSERT INTO sources (tenant_id, id, kind, title, {names}) "
            f"VALUES (%s, %s, 'document', 'a title', {marks})",
            *(self.tenant_id, ident, *row.values()),
        )
        return ident

    def passages(self, source: UUID, degrees: Sequence[Direction], *, first: int = 0) -> list[UUID]:
        """Passages of a source with vectors of these directions."""
        ids = [new_id() for _ in degrees]
        with self.entered() as connection, connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO passages (tenant_id, id, source_id, ordinal, text, search) "
                "VALUES (%s, %s, %s, %s, 'a text', '')",
                [(self.tenant_id, ident, source, number) for number, ident in enumerate(ids, start=first)],
            )
            cursor.executemany(
                "INSERT INTO passage_embeddings (tenant_id, passage_id, source_id, model, dimension, embedding) "
                "VALUES (%s, %s, %s, %s, %s, %s::vector)",
                [
                    (self.tenant_id, ident, source, MODEL.model, MODEL.dimension, vector_literal(direction(one)))
                    for ident, one in zip(ids, degrees, strict=True)
                ],
            )
        return ids

    async def search(
        self, degrees: Direction, window: Window = NOW, *, user: str | None = None, groups: tuple[str, ...] = ()
    ) -> dict[Ref, float]:
        """What a reader finds near to a direction."""
        scope = Scope("memory_os_app", self.tenant_id, "reader", user, groups)
        async with self.database.transaction(scope) as tx:
            return await search_vectors(tx, MODEL, direction(degrees), window)

    async def search_all(
        self, degrees: Direction, window: Window = NOW, *, user: str | None = None, groups: tuple[str, ...] = ()
    ) -> dict[Ref, float]:
        """The same by measuring every vector that the reader may see."""
        scope = Scope("memory_os_app", self.tenant_id, "reader", user, groups)
        given = {"tenant_id": self.tenant_id, "vector": vector_literal(direction(degrees)), "model": MODEL.model}
        given |= {"as_of": window.as_of, "history": window.history, "floor": SIMILARITY_FLOOR, "limit": ARM_LIMIT}
        async with self.database.transaction(scope) as tx:
            rows = await tx.hot("search_all_vectors", given)
        return {Ref(row["type"], row["id"]): row["similarity"] for row in rows}

    def indexed(self) -> set[tuple[str, UUID]]:
        """What lies in the tenant's partition, by kind and id."""
        with self.entered() as connection:
            rows = connection.execute(
                "SELECT kind, record_id FROM vector_index WHERE tenant_id = %s", (self.tenant_id,)
            ).fetchall()
        return {(kind, ident) for kind, ident in rows}

    def marked(self) -> set[tuple[str, UUID]]:
        """What is marked as lying there."""
        with self.entered() as connection:
            rows = connection.execute(
                "SELECT 'memory', memory_id FROM memory_embeddings WHERE tenant_id = %(t)s AND indexed UNION ALL "
                "SELECT 'passage', passage_id FROM passage_embeddings WHERE tenant_id = %(t)s AND indexed",
                {"t": self.tenant_id},
            ).fetchall()
        return {(kind, ident) for kind, ident in rows}

    def faults(self) -> list[tuple[str, UUID]]:
        """What lies in the index and must not, or not as it is: the vector is another one, or not for everybody."""
        with self.entered() as connection:
            rows = connection.execute(
                "SELECT v.kind, v.record_id FROM vector_index AS v WHERE v.tenant_id = %(t)s AND NOT EXISTS ("
                "  SELECT FROM memory_embeddings AS e JOIN vector_partitions AS p USING (tenant_id, model)"
                "  WHERE v.kind = 'memory' AND e.tenant_id = v.tenant_id AND e.memory_id = v.record_id"
                "    AND e.visibility = 'tenant' AND e.embedding::halfvec = v.embedding"
                "  UNION ALL SELECT FROM passage_embeddings AS e JOIN vector_partitions AS p USING (tenant_id, model)"
                "  WHERE v.kind = 'passage' AND e.tenant_id = v.tenant_id AND e.passage_id = v.record_id"
                "    AND e.source_id = v.source_id AND e.visibility = 'tenant' AND e.embedding::halfvec = v.embedding)",
                {"t": self.tenant_id},
            ).fetchall()
        return [(kind, ident) for kind, ident in rows]

    def partitions(self) -> list[str]:
        """The tables of partitions that there are in the database, built or half built."""
        with self.entered() as connection:
            rows = connection.execute(
                "SELECT relname FROM pg_class WHERE relname LIKE 'vector\\_index\\_%' AND relkind = 'r' ORDER BY 1"
            ).fetchall()
        return [row[0] for row in rows]
