"""What one arm found, weighed by the other too; and the turns of a conversation, weighed together with those around."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_os.domain.conversations import asking_share, asks_when, names_speaker, names_time
from memory_os.domain.ranking import order
from memory_os.domain.relevance import WINDOW, Turn, score_relevance
from memory_os.domain.text_ranking import impact
from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.writing import vector_literal
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.words import Words
from memory_os.storage.database import Query, Transaction

SURROUNDED: Final = 30
"""Passages whose surroundings are read: the best by words and vector. 50 or 100 find no more on the development set."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The question as the arms have it: its words with their rarity, its vector; None for what was not wanted."""

    query: str
    words: Words | None = None
    identity: EmbedderIdentity | None = None
    vector: NDArray[np.float32] | None = None

    def parameters(self) -> dict[str, Any]:
        """As the statements take it."""
        return {
            "lexemes": [read.lexeme for read in self.words.reads] if self.words else [],
            "vector": None if self.vector is None else vector_literal(self.vector),
            "model": self.identity.model if self.identity else "",
        }

    def weigh(self, counts: Mapping[str, int] | None, length: int) -> float:
        """What the question's words weigh in a text (BM25)."""
        if not counts or self.words is None:
            return 0.0
        return sum(
            read.rarity * impact(counts[read.lexeme], length) for read in self.words.reads if read.lexeme in counts
        )


@dataclass(slots=True)
class Weights:
    """What the candidates are worth: by words, by vector, and as turns of a conversation."""

    words: dict[Ref, float]
    similarities: dict[Ref, float]
    turns: dict[Ref, Turn[Ref]] = field(default_factory=dict)

    def relevance(self) -> dict[Ref, float]:
        """How well each candidate answers, best first."""
        return dict(order(score_relevance(self.words, self.similarities, self.turns)))


async def weigh(
    tx: Transaction,
    asked: Asked,
    words: Mapping[Ref, float],
    similarities: Mapping[Ref, float],
    further: Collection[Ref],
) -> Weights:
    """Weigh by both arms what either found, and what the graph led to.

    Args:
        tx: The unit of work, in the reader's scope.
        asked: The question.
        words: What the text arm found.
        similarities: What the vector arm found.
        further: What else is a candidate.
    """
    weights = Weights(dict(words), dict(similarities))
    both = words.keys() & similarities.keys()
    lacking = [one.id for one in (words.keys() | similarities.keys() | set(further)) - both if one.type == "memory"]
    passages = _best_passages(words, similarities)
    given = {"tenant_id": tx.tenant_id, **asked.parameters()}
    rows, around = await tx.together(
        Query("weigh_candidates", {**given, "memories": lacking}) if lacking else None,
        Query("surroundings", {**given, "passages": passages, "reach": 2 * WINDOW}) if passages else None,
    )
    for row in rows:
        ref = Ref("memory", row["id"])
        weights.words.setdefault(ref, asked.weigh(row["counts"], row["length"]))
        if row["similarity"] is not None:
            weights.similarities.setdefault(ref, row["similarity"])
    if passages:
        surrounded = set(passages)
        _take_surroundings(weights, asked, around, surrounded)
        if asked.vector is not None:
            # A passage beyond the best has a vector, whatever its cosine is: it must not count by its words twice.
            for ref in words:
                if ref.type == "passage" and ref.id not in surrounded:
                    weights.similarities.setdefault(ref, 0.0)
    return weights


def _best_passages(words: Mapping[Ref, float], similarities: Mapping[Ref, float]) -> list[UUID]:
    """The passages whose surroundings matter: the best by the sum of their shares of each arm's best."""
    most_words, most_similar = max(words.values(), default=0.0), max(similarities.values(), default=0.0)
    shares = {
        one: words.get(one, 0.0) / (most_words or 1.0) + similarities.get(one, 0.0) / (most_similar or 1.0)
        for one in words.keys() | similarities.keys()
        if one.type == "passage"
    }
    return [one.id for one in sorted(shares, key=lambda one: (-shares[one], str(one.id)))[:SURROUNDED]]


def _take_surroundings(weights: Weights, asked: Asked, rows: Sequence[Mapping[str, Any]], hits: set[UUID]) -> None:
    """Make turns of the passages of conversations: the hits, and those within a window of one."""
    places = {(row["source_id"], row["ordinal"]): row for row in rows}
    timely = asks_when(asked.query)
    near = {
        (row["source_id"], row["ordinal"] + step)
        for row in rows
        if row["id"] in hits
        for step in (range(-WINDOW, WINDOW + 1) if row["turn"] else (0,))
    }
    refs = {place: Ref("passage", row["id"]) for place, row in places.items() if place in near}
    for place, ref in refs.items():
        row = places[place]
        weights.words[ref] = asked.weigh(row["counts"], row["length"])
        if row["similarity"] is not None:
            weights.similarities[ref] = row["similarity"]
    asking = {place: asking_share(places[place]["text"]) for place in refs if places[place]["turn"]}
    for (source, ordinal), share in asking.items():
        ref, row = refs[source, ordinal], places[source, ordinal]
        window = [places[at] for step in range(-WINDOW, WINDOW + 1) if (at := (source, ordinal + step)) in places]
        before = (source, ordinal - 1)
        weights.turns[ref] = Turn(
            session=source,
            words_around=_weigh_together(asked, window),
            similarity_around=sum(one["similarity"] or 0.0 for one in window) / len(window),
            length=row["length"],
            asking=share,
            before=(refs[before], asking[before]) if before in asking else None,
            names_speaker=names_speaker(asked.query, row["text"]),
            timely=timely and names_time(row["text"]),
        )


def _weigh_together(asked: Asked, window: Sequence[Mapping[str, Any]]) -> float:
    """What the question's words weigh in a window: its counts added, its length by the turn."""
    counts: dict[str, int] = {}
    for row in window:
        for lexeme, times in (row["counts"] or {}).items():
            counts[lexeme] = counts.get(lexeme, 0) + times
    return asked.weigh(counts, round(sum(row["length"] for row in window) / len(window)))
