"""The vector arm: the records whose vectors are nearest to the question's."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.writing import vector_literal
from memory_os.retrieval.arms import ARM_LIMIT, Ref, Window
from memory_os.storage.database import Transaction

SIMILARITY_FLOOR: Final = 0.20
"""Cosine below which a vector is no hit.

Measured with the bundled MiniLM: "mug cake recipe" meets cooking facts at 0.20-0.32 and nothing else above 0.14; 98 %
of LoCoMo's evidence turns lie above it (one development conversation); a question about something else altogether finds
nothing in 82 % of the cases among 20 records, 61 % among 50, 24 % among 419. At 0.25 these would be 94, 84 and 61 %,
but the cooking facts would be lost. For models whose cosines are all high it is no floor, and takes nothing away.
"""


async def search_vectors(
    tx: Transaction, identity: EmbedderIdentity, vector: NDArray[np.float32], window: Window
) -> dict[Ref, float]:
    """The nearest memories and passages with their cosine similarity, nearest first.

    Raises:
        ValueError: If the vector is not of the model's dimension; it must not reach the database.
    """
    if vector.shape != (identity.dimension,):
        raise ValueError(f"a query vector of shape {vector.shape} for a model of dimension {identity.dimension}")
    rows = await tx.hot(
        "search_vectors",
        {
            "tenant_id": tx.tenant_id,
            "vector": vector_literal(vector),
            "model": identity.model,
            "as_of": window.as_of,
            "history": window.history,
            "floor": SIMILARITY_FLOOR,
            "limit": ARM_LIMIT,
        },
    )
    return {Ref(row["type"], row["id"]): float(row["similarity"]) for row in rows}
