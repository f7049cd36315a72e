"""Finds what a new memory may repeat or contradict, and has the guard judge each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_os.domain.gate.judging import Judgement, Thresholds
from memory_os.memories.comparing import Guard, Tier, is_recent, read_aliases, same_property, same_readers, tier_of
from memory_os.memories.exact_keys import exact_key_of
from memory_os.memories.model import Memory, MemoryDraft
from memory_os.memories.reading import memory_of
from memory_os.memories.sketches import Sketches
from memory_os.memories.writing import Embedded, vector_literal
from memory_os.storage.database import Transaction

NEAREST = 24
"""Vectors that are compared in full, out of those whose sketches are nearest."""

WIDER = (NEAREST, NEAREST, 4 * NEAREST)
"""How many are looked up, one time after the other, as long as some of them turn out to be gone."""

JUDGED = 3
"""Candidates that the guard looks at, the most similar first, until one says the same."""

READ = 12
"""The most similar ones that are read: beyond `JUDGED`, those that name a value of the same property are judged, too.

Where many things are told in the same words, the former value of this one is not among the three most similar.
"""


@dataclass(frozen=True, slots=True)
class Nominee:
    """A memory that a new one was held against. `memory` may be one that the same batch stores."""

    memory: Memory
    similarity: float | None
    tier: Tier
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class _Candidate:
    memory: Memory
    similarity: float | None
    exact: bool


class Nominations:
    """The candidates of a batch of drafts, in the scope of the one who writes them.

    Args:
        drafts: What comes, in order.
        memories: How each would be stored.
        embedded: Their vectors.
        thresholds: The embedder's.
        now: The time by the database's clock.
    """

    def __init__(
        self,
        drafts: Sequence[MemoryDraft],
        memories: Sequence[Memory],
        embedded: Embedded,
        thresholds: Thresholds,
        now: datetime,
    ) -> None:
        self._drafts = drafts
        self._memories = memories
        self._embedded = embedded
        self._now = now
        self._stored: dict[int, list[_Candidate]] = {}
        self._guard = Guard(thresholds)
        self.keys = [key_of_draft(draft) for draft in drafts]

    async def read(self, tx: Transaction, scope: str, sketches: Sketches) -> None:
        """Read what is there, and the names by which texts may speak of the same."""
        vectors, model = self._embedded.vectors, self._embedded.identity.model
        for most in WIDER:
            near = [] if vectors is None else await sketches.nearest(tx, scope, model, vectors, most)
            rows = await self._read_candidates(tx, scope, near)
            short = [ids for n, ids in enumerate(near, start=1) if _count_near(rows, n) < min(READ, len(ids))]
            asked = [ident for ids in short for ident in ids]
            if not asked or not await sketches.forget_gone(tx, scope, model, asked):
                break
        for row in rows:
            one = _Candidate(memory_of(row), row["similarity"], row["exact"])
            if same_readers(one.memory, self._memories[row["n"] - 1]):
                self._stored.setdefault(row["n"] - 1, []).append(one)
        await self._read_aliases(tx)

    async def _read_candidates(
        self, tx: Transaction, scope: str, near: Sequence[Sequence[UUID]]
    ) -> list[dict[str, Any]]:
        vectors = self._embedded.vectors
        pairs = [(n, ident) for n, ids in enumerate(near, start=1) for ident in ids]
        return await tx.hot(
            "gate_candidates",
            {
                "tenant_id": tx.tenant_id,
                "scope": scope,
                "model": self._embedded.identity.model,
                "near_n": [n for n, _ in pairs],
                "near_ids": [ident for _, ident in pairs],
                "read": READ,
                "keys": [key.hex() for key in self.keys],
                "subjects": [draft.subject for draft in self._drafts],
                "properties": [draft.property for draft in self._drafts],
                "vectors": [None] * len(self._drafts)
                if vectors is None
                else [vector_literal(vector) for vector in vectors],
            },
        )

    def judge(self, index: int, earlier: Sequence[int]) -> list[Nominee]:
        """Hold one draft against what is stored, and against earlier ones of its batch that will be.

        Returns:
            The nominees that the guard does not call distinct, the most similar first.
        """
        candidates = [*self._stored.get(index, ()), *self._beside(index, earlier)]
        candidates.sort(key=lambda found: (not found.exact, -(found.similarity or 0.0)))
        new, nominees = self._memories[index], []
        others = [found for found in candidates[JUDGED:] if self._guard.of_one_property(found.memory, new)]
        for found in (*candidates[:JUDGED], *others):
            verdict = self._verdict(found, new)
            if verdict.verdict != "distinct":
                nominees.append(Nominee(found.memory, found.similarity, self._tier(found), verdict))
            if verdict.verdict == "merge":
                break
        return nominees

    def _verdict(self, found: _Candidate, new: Memory) -> Judgement:
        recent = is_recent(found.memory, self._now)
        return self._guard.judge(found.memory, new, found.similarity, exact=found.exact, recent=recent)

    def _tier(self, found: _Candidate) -> Tier:
        return tier_of(found.memory, self._now, exact=found.exact)

    def _beside(self, index: int, earlier: Sequence[int]) -> list[_Candidate]:
        """The candidates among earlier drafts of the batch."""
        found = []
        vectors = self._embedded.vectors
        similar = None if vectors is None or not earlier else _similarities(vectors, index, earlier)
        for place, other in enumerate(earlier):
            exact = self.keys[other] == self.keys[index]
            similarity = None if similar is None else float(similar[place])
            near = similarity is not None and similarity >= self._guard.thresholds.review
            nominated = exact or near or same_property(self._drafts[other], self._drafts[index])
            if nominated and same_readers(self._memories[other], self._memories[index]):
                found.append(_Candidate(self._memories[other], similarity, exact))
        return found

    async def _read_aliases(self, tx: Transaction) -> None:
        """Read the names of entities that the texts name which the guard is going to compare."""
        texts = set() if len(self._drafts) == 1 else {memory.text for memory in self._memories}
        for index, candidates in self._stored.items():
            new = self._memories[index]
            if not candidates[0].exact:
                near = [found.memory.text for found in candidates[:JUDGED] if not self._is_far(found, new)]
                texts |= {new.text, *near} if near else set()
        self._guard = Guard(self._guard.thresholds, await read_aliases(tx, texts))

    def _is_far(self, found: _Candidate, new: Memory) -> bool:
        return self._guard.is_far(found.memory, new, found.similarity)


def _count_near(rows: Sequence[dict[str, Any]], n: int) -> int:
    return sum(row["n"] == n and row["similarity"] is not None for row in rows)


def key_of_draft(draft: MemoryDraft) -> bytes:
    """The exact key that a draft will have, whose visibility is settled."""
    readers = draft.readers
    if draft.visibility is None:
        raise AssertionError("the visibility of a draft is settled before anything is done with it")
    return exact_key_of(
        draft.text,
        label=draft.label,
        visibility=draft.visibility,
        reader_users=readers.users if readers else [],
        reader_groups=readers.groups if readers else [],
        subject=draft.subject,
        property_=draft.property,
        occurred_at=draft.occurred_at,
        valid_from=draft.valid_from,
    )


def _similarities(vectors: NDArray[np.float32], index: int, earlier: Sequence[int]) -> NDArray[np.float32]:
    chosen = vectors[list(earlier)]
    lengths = np.linalg.norm(chosen, axis=1) * np.linalg.norm(vectors[index])
    similar: NDArray[np.float32] = chosen @ vectors[index] / np.maximum(lengths, np.finfo(np.float32).tiny)
    return similar
