"""Two memories held against each other, as the gate holds a new one against what is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from memory_os.domain.audiences import Audience
from memory_os.domain.gate.judging import (
    Aliases,
    Judgement,
    Statement,
    Thresholds,
    judge,
    lexically_near,
    of_one_property,
)
from memory_os.domain.naming import name_groups
from memory_os.memories.exact_keys import exact_key_of
from memory_os.memories.model import Memory, MemoryDraft
from memory_os.storage.database import Transaction

Tier = Literal["exact", "recent", "older"]

RECENT: Final = timedelta(hours=1)
"""A memory younger than this is held against the lower threshold: within a conversation things are said twice."""

LONGEST: Final = 4_000
"""Characters of the longest text that the guard compares; a longer one merges only with its equal."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Judges pairs of memories.

    Attributes:
        thresholds: Of the embedder that made their vectors.
        aliases: The tenant's declared names that their texts may hold.
    """

    thresholds: Thresholds
    aliases: Aliases = field(default_factory=Aliases)

    def judge(self, existing: Memory, new: Memory, similarity: float | None, *, exact: bool, recent: bool) -> Judgement:
        """What is to become of a memory beside one that was there before it.

        Args:
            existing: The one that was there.
            new: The other one.
            similarity: Of their vectors; None where one is missing.
            exact: Whether both have the same exact key.
            recent: Whether the one was young when the other came.
        """
        if exact:
            return Judgement("merge", "exact", ())
        if same_property(existing, new) and existing.valid_from != new.valid_from and new.valid_from is not None:
            return Judgement("supersede", "same_property", ())  # though the value be the same: it has it once more
        if max(len(existing.text), len(new.text)) > LONGEST:
            return Judgement("distinct", "too_long", ())
        if self.is_far(existing, new, similarity):
            return Judgement("distinct", "far", ())
        return judge(
            statement_of(existing),
            statement_of(new),
            similarity=similarity,
            thresholds=self.thresholds,
            recent=recent,
            aliases=self.aliases,
        )

    def is_far(self, existing: Memory, new: Memory, similarity: float | None) -> bool:
        """Whether neither vectors nor words speak for a pair: reading both texts, a millisecond each, is spared."""
        far = similarity is not None and similarity < self.thresholds.review
        return far and not same_property(existing, new) and not lexically_near(existing.text, new.text)

    def of_one_property(self, existing: Memory, new: Memory) -> bool:
        """Whether both texts name a value of the same property."""
        return of_one_property(existing.text, new.text, self.aliases)


async def read_aliases(tx: Transaction, texts: Iterable[str]) -> Aliases:
    """The names of the entities that these texts name; of a text that no guard compares, none."""
    groups = {group for text in texts if len(text) <= LONGEST for group in name_groups(text)}
    if not groups:
        return Aliases()
    rows = await tx.hot("names_of_same_entities", {"tenant_id": tx.tenant_id, "names": sorted(groups)})
    return Aliases((str(row["entity_id"]), row["surface"]) for row in rows)


def tier_of(existing: Memory, then: datetime, *, exact: bool) -> Tier:
    """By which tier a memory is judged beside one that came at some time."""
    return "exact" if exact else "recent" if is_recent(existing, then) else "older"


def is_recent(existing: Memory, then: datetime) -> bool:
    """Whether a memory was young at a time."""
    return then - existing.created_at < RECENT


def key_of(memory: Memory) -> bytes:
    """The exact key that a memory has where it was stored through the gate; others have none in their row."""
    return exact_key_of(
        memory.text,
        label=memory.label,
        visibility=memory.visibility,
        reader_users=memory.readers.users,
        reader_groups=memory.readers.groups,
        subject=memory.subject,
        property_=memory.property,
        occurred_at=memory.occurred_at,
        valid_from=memory.valid_from,
    )


def statement_of(memory: Memory) -> Statement:
    """A memory as the guard sees it."""
    return Statement(memory.text, memory.label, memory.subject, memory.property, memory.occurred_at)


def same_property(one: MemoryDraft | Memory, other: MemoryDraft | Memory) -> bool:
    """Whether both name the same subject and property."""
    named = (one.subject, one.property)
    return None not in named and named == (other.subject, other.property)


def same_readers(one: Memory, other: Memory) -> bool:
    """Whether exactly the same people may read both; the user of both is the same."""
    return Audience.of(one) == Audience.of(other)
