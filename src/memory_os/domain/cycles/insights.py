"""What is proposed as an Insight: out of which edges, from how many members on, and in which words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log1p
from typing import Final, Literal
from uuid import UUID, uuid5

from memory_os.domain.sentences import sentence_ends

SummaryKind = Literal["extractive", "model"]
"""Whose words a summary is in: its members', or those of a model."""

CandidateStatus = Literal["open", "accepted", "rejected"]

OFTEN: Final = 10
SURE: Final = 0.8
"""Schemas form over edges that were used at least so often, and are surer than this. The seed's figures."""

CLUSTER: Final = 5
"""Members from which on a community is a schema. The seed's figure."""

PATTERN: Final = 3
"""Members from which on a community is a pattern across domains: two are an edge, and say nothing new. Ours."""

MEMORIES: Final = 2
"""Memories among the members of a community at least: an Insight that is made of one says what that says. Ours."""

LARGEST: Final = 50
"""Members of a candidate at most: those that are tied most closely within their community. Ours."""

WEEK: Final = timedelta(days=7)

RECURS: Final = 5
"""How often a Behavior was seen before it is proposed as an Insight: as many as a schema has members. Ours."""

ALIKE: Final = 0.5
"""The share of all their members that two candidates may have in common before the later one says nothing new. Ours."""

HOLDING: Final = ("active", "completed")
"""Statuses of memories that candidates are made of: what holds, and what was done."""

ORIGIN: Final = "cycle"
"""The origin of Insights that cycles made. No candidate is made of them: cycles would feed on themselves."""

_CANDIDATE: Final = UUID("6d656d6f-7279-5f6f-735f-696e73696768")
"""Namespace of candidates ("memory_os_insigh" in ASCII)."""

SENTENCES: Final = 3
SHARED: Final = 5
"""Sentences and shared entities of an extractive summary, at most."""

LONGEST_SENTENCE: Final = 240
"""Characters of a sentence in a summary; a longer one is cut at a word."""

LONGEST_TITLE: Final = 80


@dataclass(frozen=True, slots=True)
class Member:
    """A memory of a community.

    Attributes:
        id: Which.
        layer: Of its label.
        text: What it says.
        title: What it is called, if it is.
        confidence: 0 to 1.
        references: How often answers used its edges within the community.
        entities: The names of the entities that it mentions.
    """

    id: UUID
    layer: str
    text: str
    title: str | None
    confidence: float
    references: int
    entities: frozenset[str]

    @property
    def strength(self) -> float:
        """What orders members: sure and often used ones first."""
        return tie_strength(self.confidence, self.references)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a candidate is called and says."""

    title: str
    text: str


def forms_schema(confidence: float, references: int) -> bool:
    """Whether an edge counts for schemas."""
    return references >= OFTEN and confidence > SURE


def strengthened(used: datetime, references: int, now: datetime) -> bool:
    """Whether an edge was used within the week before the run."""
    return references > 0 and timedelta(0) <= now - used <= WEEK


def spans_domains(layers: Collection[str], entity_types: Collection[str]) -> bool:
    """Whether a community crosses domains: two layers of memories, or two types of entities."""
    return len(set(layers)) > 1 or len(set(entity_types)) > 1


def tie_strength(confidence: float, references: int) -> float:
    """How closely an edge ties its ends: sure and often used ones most."""
    return confidence * (1 + log1p(references))


def seen_times(merges: int, sources: int) -> int:
    """How often a Behavior was seen.

    It was once when it was stored, and once more with each memory that merged into it; and as often at least as
    distinct sources bear it out. The two are not added: what merges mostly brings its source, and is one sighting.

    Args:
        merges: Memories that merged into it, those whose merging was undone left out.
        sources: Distinct sources of its evidence that all of its readers may read.
    """
    return max(1 + merges, sources)


def recurs(merges: int, sources: int) -> bool:
    """Whether a Behavior was seen so often that it is proposed as an Insight; arguments as of `seen_times`."""
    return seen_times(merges, sources) >= RECURS


def overlap(first: Collection[UUID], second: Collection[UUID]) -> float:
    """The share of all members of two candidates that both have (Jaccard), 0 to 1."""
    both, either = set(first) & set(second), set(first) | set(second)
    return len(both) / len(either) if either else 0.0


def says_nothing_new(members: Collection[UUID], known: Iterable[Collection[UUID]]) -> bool:
    """Whether a candidate of these members was proposed already, as one of the same or of mostly the same."""
    return any(overlap(members, other) > ALIKE for other in known)


def candidate_id(tenant_id: UUID, members: Collection[UUID]) -> UUID:
    """The id of the candidate that is made of these members: a trial run tells the one that the run will give."""
    return uuid5(_CANDIDATE, f"{tenant_id}:{','.join(sorted(map(str, members)))}")


def summarise(members: Sequence[Member]) -> Summary:
    """An extractive summary: the first sentences of the strongest members, and the entities that two or more share.

    The same members give the same words, in whatever order they come.
    """
    ordered = sorted(members, key=lambda one: (-one.strength, str(one.id)))
    named = Counter(name for member in members for name in member.entities)
    shared = sorted((name for name, times in named.items() if times > 1), key=lambda name: (-named[name], name))[
        :SHARED
    ]
    sentences = list(dict.fromkeys(first_sentence(member.text) for member in ordered))[:SENTENCES]
    title = ", ".join(shared[:3]) or ordered[0].title or sentences[0]
    lines = [*sentences, *([f"Shared: {', '.join(shared)}."] if shared else [])]
    return Summary(cut(title, LONGEST_TITLE), "\n".join(lines))


def first_sentence(text: str) -> str:
    """The first sentence of a text in one line, `LONGEST_SENTENCE` characters at most."""
    end = next(sentence_ends(text), len(text))
    return cut(" ".join(text[:end].split()), LONGEST_SENTENCE)


def cut(text: str, longest: int) -> str:
    """A text of at most so many characters, cut at a word where there is one."""
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[longest // 2 :] else head).rstrip() + "…"
