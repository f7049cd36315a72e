"""The vector arm: the records whose vectors are nearest to the question's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

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


REACHES: Final = (100, 1_000, 10_000)
"""How many vectors are taken from a large tenant's index: twice the arm's limit, and more as long as too few of them
are of records in force."""

_SLACK: Final = 0.01
"""Cosine by which half precision and the loose order of the index may err: they do by 0.001."""

_BEYOND: Final = 1 - SIMILARITY_FLOOR + _SLACK
"""Distance beyond which whatever the index gives is surely below the floor."""


async def search_vectors(
    tx: Transaction, identity: EmbedderIdentity, vector: NDArray[np.float32], window: Window
) -> dict[Ref, float]:
    """The nearest memories and passages with their cosine similarity, nearest first.

    What lies in the index of a large tenant is found approximately, everything else exactly; similarities are exact.
    To be called in a transaction with generic plans: to plan this search takes as long as to run it, and Postgres would
    do so each time, since it takes all partitions of a kept plan for read, of which but one is.

    Raises:
        ValueError: If the vector is not of the model's dimension; it must not reach the database.
    """
    given = {
        **_given(tx, identity, vector),
        "user_id": tx.scope.user_id,
        "as_of": window.as_of,
        "history": window.history,
        "floor": SIMILARITY_FLOOR,
        "limit": ARM_LIMIT,
    }
    for reach in REACHES:
        rows = await tx.hot("search_vectors", {**given, "reach": reach})
        if _is_lost(rows[0]):
            break
        if _is_enough(rows[0]):
            return _hits(rows)
        if rows[0]["given"] < reach:
            break
    return _hits(await tx.hot("search_all_vectors", given))


def _given(tx: Transaction, identity: EmbedderIdentity, vector: NDArray[np.float32]) -> dict[str, Any]:
    """What every statement about a vector is given."""
    if vector.shape != (identity.dimension,):
        raise ValueError(f"a query vector of shape {vector.shape} for a model of dimension {identity.dimension}")
    return {"tenant_id": tx.tenant_id, "vector": vector_literal(vector), "model": identity.model}


def _is_enough(row: Mapping[str, Any]) -> bool:
    """Whether more from the index would change nothing: there is none, or it gave enough, or all above the floor.

    If there is one and it gave nothing, it was exchanged or dropped in this moment.
    """
    if not row["there"] or row["shown"] >= ARM_LIMIT:
        return True
    return bool(row["given"] and row["farthest"] > _BEYOND)


def _is_lost(row: Mapping[str, Any]) -> bool:
    """Whether the index gave nothing above the floor, and all have to be looked at before that is said.

    A walk through it may end among what is far from the question and never meet the few that are near. Hardly any
    question is so.
    """
    return bool(row["given"] and row["nearest"] > _BEYOND)


def _hits(rows: Sequence[Mapping[str, Any]]) -> dict[Ref, float]:
    return {Ref(row["type"], row["id"]): float(row["similarity"]) for row in rows if row["id"] is not None}
