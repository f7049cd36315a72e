"""The arms that ask Postgres: nearest vectors, shared words, named entities; and how far the graph follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_os.domain.naming import NamedEntity, name_groups, named_in
from memory_os.domain.search_text import search_text
from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.writing import vector_literal
from memory_os.retrieval.model import RecordType
from memory_os.storage.database import Transaction

ARM_LIMIT: Final = 50
"""Hits of one arm: six times the default pack, so that fusion has something to choose from."""

MAX_LEXEMES: Final = 256
"""Lexemes of one question: about 200 content words, each stemmed and as it is. The first ones are taken."""

SIMILARITY_FLOOR: Final = 0.20
"""Cosine below which a vector is no hit.

Measured with the bundled MiniLM: "mug cake recipe" meets cooking facts at 0.20-0.32 and nothing else above 0.14; 98 %
of LoCoMo's evidence turns lie above it (one development conversation); a question about something else altogether finds
nothing in 82 % of the cases among 20 records, 61 % among 50, 24 % among 419. At 0.25 these would be 94, 84 and 61 %,
but the cooking facts would be lost. For models whose cosines are all high it is no floor, and takes nothing away.
"""

CHANCE_WORDS: Final = 5
"""From so many content words on, a hit must share two: one of five or more is met by chance."""

LAG_LIMIT: Final = 10_000
"""Events counted at most."""


class Ref(NamedTuple):
    """Address of a record that a retrieval may show."""

    type: RecordType
    id: UUID


@dataclass(frozen=True, slots=True)
class Window:
    """The time asked about (None: now, by the database's clock), and whether what is past is wanted too."""

    as_of: datetime | None
    history: bool


@dataclass(frozen=True, slots=True)
class GraphPosition:
    """How far a graph follows the canonical rows.

    Attributes:
        lag: Events that it still lacks, `LAG_LIMIT` at most.
        position: Every event up to here has been projected, or parked as dead.
        incomplete: Some event is dead.
        now: The database's clock.
        doubted: The graph was lost, damaged, or on a server that was restarted, and is not known to be mended.
        epochs: What the tenant's graph may be known by; none before there is a graph.
    """

    lag: int
    position: int
    incomplete: bool
    now: datetime
    doubted: bool = False
    epochs: frozenset[str] = frozenset()


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


async def search_words(tx: Transaction, query: str, window: Window) -> dict[Ref, float]:
    """The records that share words with the question, with their text rank, best first; see `search_text.sql`.

    A hit that shares a single word with a question of `CHANCE_WORDS` or more is below the floor.
    """
    text = search_text(query)
    if not text:
        return {}
    rows = await tx.hot(
        "search_text",
        {
            "tenant_id": tx.tenant_id,
            "text": text,
            "as_of": window.as_of,
            "history": window.history,
            "max_lexemes": MAX_LEXEMES,
            "limit": ARM_LIMIT,
        },
    )
    return {
        Ref(row["type"], row["id"]): float(row["rank"])
        for row in rows
        if row["words"] < CHANCE_WORDS or row["shared"] > 1
    }


async def find_named(tx: Transaction, query: str, window: Window) -> list[UUID]:
    """The entities that the question names, declared and derived, in the order of the question."""
    groups = name_groups(query)
    if not groups:
        return []
    rows = await tx.hot("find_named_entities", {"tenant_id": tx.tenant_id, "names": groups, "history": window.history})
    return named_in(query, (NamedEntity(row["id"], row["canonical_name"], row["surface"]) for row in rows))


async def read_position(tx: Transaction) -> GraphPosition:
    """How far the tenant's graph follows its canonical rows at this moment."""
    row = (await tx.hot("graph_position", {"tenant_id": tx.tenant_id, "limit": LAG_LIMIT}))[0]
    if row["counted"] >= LAG_LIMIT:
        position = 0  # the oldest of them was not looked for, and nothing may be promised
    elif row["oldest"] is not None:
        position = row["oldest"] - 1
    else:
        position = row["newest"] or 0
    epochs = frozenset(epoch for epoch in row["epochs"] or () if epoch is not None)
    return GraphPosition(row["lag"], position, row["incomplete"], row["now"], bool(row["doubted"]), epochs)


def rank_of(hits: Sequence[Ref] | dict[Ref, float]) -> dict[Ref, int]:
    """Ranks from 1 in the order of the hits."""
    return {ref: rank for rank, ref in enumerate(hits, start=1)}
