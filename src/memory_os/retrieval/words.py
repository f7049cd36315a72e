"""The text arm: the records that share words with the question."""

from __future__ import annotations

from typing import Final

from memory_os.domain.search_text import search_text
from memory_os.retrieval.arms import ARM_LIMIT, Ref, Window
from memory_os.storage.database import Transaction

MAX_LEXEMES: Final = 256
"""Lexemes of one question: about 200 content words, each stemmed and as it is. The first ones are taken."""

CHANCE_WORDS: Final = 5
"""From so many content words on, a hit must share two: one of five or more is met by chance."""


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
