"""Which of some memories say the same.

Pairs are judged one after the other, and what has merged is followed to where it went.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from memory_os.cycles.planning import Planned
from memory_os.domain.gate.judging import Judgement
from memory_os.domain.labels import LIVE
from memory_os.memories.absorbing import Grounds
from memory_os.memories.comparing import Guard, Tier, key_of, same_readers, tier_of
from memory_os.memories.model import Memory
from memory_os.storage.database import Transaction

_NO_CONFLICT: Final = ("merge", "review")
"""What the guard may say of two memories that a third one shows to be the same: that nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories that may say the same, and the similarity of their vectors, if both have one of the same model."""

    one: UUID
    other: UUID
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Merging:
    """What making a planned merge takes.

    Attributes:
        gone: The memory that is merged away.
        stays: The one into which it merges.
        versions: Of all memories that the judgement rests on.
        grounds: The judgement.
    """

    gone: Memory
    stays: Memory
    versions: Mapping[UUID, int]
    grounds: Grounds


class Pairing:
    """Takes pairs in turn, and plans a merge for each that says the same. What it gives does not depend on batches.

    A memory that has merged stands for the one into which it has merged. So of several that say the same one by one,
    one is left, unless something between two of them speaks against it.

    Args:
        tx: The unit of work; nothing is written.
        guard: Judges, with the names that the texts hold.
        model: Of the vectors.
        memories: All that the pairs name, and those into which the run has merged some of these.
        into: Into what the run has merged some of these so far.
        apart: Pairs that were decided to be two; without another one, what has merged once and was brought back.
    """

    def __init__(
        self,
        tx: Transaction,
        guard: Guard,
        model: str,
        memories: Mapping[UUID, Memory],
        into: Mapping[UUID, UUID],
        apart: Iterable[tuple[UUID, UUID | None]],
    ) -> None:
        self._tx = tx
        self._guard = guard
        self._model = model
        self._memories = memories
        self._into = dict(into)
        self._apart = {frozenset(pair) for pair in apart}
        self.changes: list[Planned] = []

    def standing(self, ident: UUID) -> UUID:
        """The memory that stands for one by now."""
        return self._path(ident)[-1]

    def of_one_property(self, one: UUID, other: UUID) -> bool:
        """Whether two texts name a value of the same property."""
        return self._guard.of_one_property(self._memories[one], self._memories[other])

    async def take(self, pair: Pair) -> None:
        """Plan that the younger of those that stand for a pair merges into the older, if the two say the same."""
        paths = self._path(pair.one), self._path(pair.other)
        involved = {*paths[0], *paths[1]}
        if paths[0][-1] == paths[1][-1] or self._were_parted(*paths) or not involved <= self._memories.keys():
            return
        stays, gone = sorted((self._memories[path[-1]] for path in paths), key=_age)
        if frozenset((gone.id, None)) in self._apart or not may_merge(gone, stays):
            return
        judgement, tier = self._judge(pair.one, pair.other, pair.similarity)
        if judgement.verdict != "merge":
            return
        if {pair.one, pair.other} != {gone.id, stays.id}:
            similarity = await similarities(self._tx, self._model, [(gone.id, stays.id)])
            if self._judge(gone.id, stays.id, similarity.get((gone.id, stays.id)))[0].verdict not in _NO_CONFLICT:
                return
        self._into[gone.id] = stays.id
        versions = {ident: self._memories[ident].version for ident in involved}
        grounds = Grounds(pair.similarity, tier, judgement.rule, judgement.guard)
        self.changes.append(_planned(Merging(gone, stays, versions, grounds)))

    def _judge(self, one: UUID, other: UUID, similarity: float | None) -> tuple[Judgement, Tier]:
        """What the gate would have said of the younger when it came, had it been asked, and by which tier."""
        older, newer = sorted((self._memories[one], self._memories[other]), key=_age)
        exact = key_of(older) == key_of(newer)
        tier = tier_of(older, newer.created_at, exact=exact)
        return self._guard.judge(older, newer, similarity, exact=exact, recent=tier == "recent"), tier

    def _path(self, ident: UUID) -> list[UUID]:
        path = [ident]
        while (further := self._into.get(path[-1])) is not None:
            path.append(further)
        return path

    def _were_parted(self, some: Collection[UUID], others: Collection[UUID]) -> bool:
        return any(frozenset((one, other)) in self._apart for one in some for other in others)


def may_merge(gone: Memory, stays: Memory) -> bool:
    """Whether a memory may merge into another one at all, whatever they say.

    What is disputed is not put away: its dispute is not over. A Commitment merges into a Commitment only, since no
    cycle archives one. And two that hold at different times are two.
    """
    return (
        gone.status == "active"
        and stays.status in LIVE
        and gone.user_id == stays.user_id
        and same_readers(gone, stays)
        and (gone.label == stays.label or gone.label != "Commitment")
        and not _ends_before(gone, stays)
        and not _ends_before(stays, gone)
    )


async def similarities(
    tx: Transaction, model: str, pairs: Sequence[tuple[UUID, UUID]]
) -> dict[tuple[UUID, UUID], float]:
    """How similar the vectors of pairs are, where both have one of the model."""
    if not pairs:
        return {}
    given = {"model": model, "ones": [one for one, _ in pairs], "others": [other for _, other in pairs]}
    rows = await tx.hot("similarities", {"tenant_id": tx.tenant_id, **given})
    return {(row["one"], row["other"]): row["similarity"] for row in rows}


def _planned(merging: Merging) -> Planned:
    gone, stays, grounds = merging.gone, merging.stays, merging.grounds
    before = {"status": gone.status, "other_status": stays.status, "updated_at": gone.updated_at}
    after = {
        "status": "archived",
        "rule": grounds.rule,
        "tier": grounds.tier,
        "similarity": grounds.similarity,
    }
    return Planned("memory", gone.id, before, after, other=stays.id, work=merging)


def _ends_before(one: Memory, other: Memory) -> bool:
    return one.valid_to is not None and other.valid_from is not None and one.valid_to <= other.valid_from


def _age(memory: Memory) -> tuple[datetime, UUID]:
    return memory.created_at, memory.id
