"""Rows of tenants with vectors, put there by COPY, past the triggers: for benchmarks of the vector arm alone.

The vectors lie in clusters that tenants have nothing to do with: where each tenant has clusters of its own, a filter by
tenant costs no recall, and a trap stays hidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray

from memory_os.domain.ids import new_id
from memory_os.embedding.port import EmbedderIdentity

CLUSTERS = 500
SPREAD = 0.9
"""Of a vector around its centre, as a share of the centre's own: vectors of one cluster have a cosine of about 0.55."""

PAGE = 2_000

MEMORIES = "COPY memories (tenant_id, id, label, layer, text, search, embedding_model, visibility, user_id) FROM STDIN"
VECTORS = "COPY memory_embeddings (tenant_id, memory_id, model, dimension, embedding, visibility, user_id) FROM STDIN"


class Clusters:
    """Random vectors of length 1 in random clusters; the same for the same seed."""

    def __init__(self, dimension: int, seed: int = 7) -> None:
        self._draw = np.random.default_rng(seed)
        self._centres = self._draw.normal(size=(CLUSTERS, dimension)).astype(np.float32)

    def vectors(self, count: int) -> NDArray[np.float32]:
        """So many vectors, one a row."""
        centres = self._centres[self._draw.integers(0, CLUSTERS, size=count)]
        made = centres + SPREAD * self._draw.normal(size=centres.shape).astype(np.float32)
        return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def add_rows(
    connection: psycopg.Connection[Any],
    tenant_id: UUID,
    count: int,
    clusters: Clusters,
    model: EmbedderIdentity,
    *,
    user: str | None = None,
) -> None:
    """So many memories with vectors, of a user alone if one is named, as one transaction."""
    visibility = "private" if user else "tenant"
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # no triggers: no sketches, no look-ups
        for size in pages(count):
            ids = [new_id() for _ in range(size)]
            with cursor.copy(MEMORIES) as copy:
                for ident in ids:
                    row = (tenant_id, ident, "Attribute", "identity", "A note.", "", model.model, visibility, user)
                    copy.write_row(row)
            with cursor.copy(VECTORS) as copy:
                for ident, vector in zip(ids, clusters.vectors(size), strict=True):
                    copy.write_row((tenant_id, ident, model.model, model.dimension, literal(vector), visibility, user))


def pages(count: int) -> Iterator[int]:
    """Sizes of pages that are so many rows together."""
    for start in range(0, count, PAGE):
        yield min(PAGE, count - start)


def literal(vector: NDArray[np.float32]) -> str:
    """A vector as pgvector reads it, with as many digits as the service writes."""
    return "[" + ",".join(f"{number:.6f}" for number in vector) + "]"
