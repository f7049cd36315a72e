"""The shapes of a memory's provenance: where it comes from and what became of it, in one story."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct

from memory_os.memories.lifecycle_model import Who
from memory_os.memories.model import Memory
from memory_os.sources.evidence_model import Evidence

StoryKind = Literal[
    "created",
    "evidence",
    "evidence_withdrawn",
    "merged",
    "changed",
    "superseded",
    "supersedes",
    "completed",
    "abandoned",
    "expired",
    "disputed",
    "archived",
    "retracted",
    "restored",
    "undone",
    "proposed",
    "corrected",
    "rejected",
    "derived_from",
    "derivation",
]


class Recorded(Struct):
    """How a memory came here; every one has this, whether or not it has a source.

    Attributes:
        at: When it was stored.
        token_id: With which token; null for what came with an import.
        user_id: Whose it is.
        role: The token's role, where the token is still known.
        origin: What the client said about where it comes from.
    """

    at: datetime
    token_id: UUID | None
    user_id: str | None
    role: str | None
    origin: str | None


class StoryEvent(Struct, omit_defaults=True):
    """Something that happened to a memory.

    Attributes:
        kind: What it was.
        who: Who did it; null where the record of it keeps no name.
        other_id: The other memory or entity of it, where this reader may see that one.
        detail: Of a change the fields before and after, of a proposal what is right instead; else counts and reasons.
            Empty for who could not have read the memory at that time.
        undone_at: When it was taken back.
    """

    at: datetime
    kind: StoryKind
    who: Who | None = None
    other_id: UUID | None = None
    act_id: UUID | None = None
    correction_id: UUID | None = None
    evidence_id: UUID | None = None
    source_id: UUID | None = None
    edge_id: UUID | None = None
    detail: dict[str, Any] = {}
    undone_at: datetime | None = None


class ChainLink(Struct):
    """A memory of a chain of supersessions and corrections; what a correction has replaced has an empty window."""

    id: UUID
    status: str
    valid_from: datetime | None
    valid_to: datetime | None
    created_at: datetime


class Derivation(Struct):
    """The other end of an edge that says what was derived from what."""

    type: Literal["memory", "entity"]
    id: UUID
    edge_id: UUID
    confidence: float
    at: datetime


class Provenance(Struct):
    """All that is known of where a memory comes from and what became of it, as this reader may know it.

    Attributes:
        events: What happened, oldest first.
        sources: Its evidence, what was withdrawn too, oldest first.
        chain: What it took the place of, itself, and what took its place, oldest first.
        derived_from: What it was derived from.
        derivations: What was derived from it.
        truncated: There is more of one kind than is shown here; the history has all acts.
    """

    memory: Memory
    recorded: Recorded
    events: list[StoryEvent]
    sources: list[Evidence]
    chain: list[ChainLink]
    derived_from: list[Derivation]
    derivations: list[Derivation]
    truncated: bool
