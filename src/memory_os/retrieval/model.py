"""The shapes of retrieval, as requests bring them and answers show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from memory_os.domain.reinforcement import Verdict
from memory_os.domain.shapes import NO_NUL, Key, Moment, UserId
from memory_os.domain.sources import Support
from memory_os.outbox.waiting import WAIT_MS

QUERY_CHARS = 4_000
"""Longest query: some 700 words. What is longer is a document, and belongs into a memory."""

MOST_RECORDS = 50
"""Records in one pack at most."""

RecordType = Literal["memory", "observation", "procedure", "outcome", "entity", "passage", "source"]
ArmName = Literal["vector", "text", "graph", "rerank"]
Format = Literal["json", "markdown"]
Fusion = Literal["relevance", "min_max", "ranks"]
GraphStateName = Literal["current", "lagging", "degraded", "off"]

Query = Annotated[
    str,
    Meta(
        max_length=QUERY_CHARS,
        pattern=NO_NUL,
        description="The question in plain words; nothing in it is syntax. Without any word in it nothing is searched.",
    ),
]

Position = Annotated[
    int, Meta(ge=0, le=2**63 - 1, description="The position of a write that the graph should have reached.")
]


class Limits(Struct, forbid_unknown_fields=True, frozen=True):
    """Bounds of one retrieval; 0 switches that part off."""

    hops: Annotated[int, Meta(ge=0, le=3, description="Steps that the graph is walked from what was found.")] = 2
    paths: Annotated[int, Meta(ge=0, le=50, description="Paths that the graph may contribute.")] = 12
    memories: Annotated[int, Meta(ge=0, le=MOST_RECORDS, description="Records in the pack, of any type.")] = 8


class Arms(Struct, forbid_unknown_fields=True, frozen=True):
    """Which ways of finding are used."""

    vector: bool = True
    text: bool = True
    graph: bool = True


class RetrievalRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A question to memory."""

    query: Query
    user_id: UserId | None = None
    as_of: Annotated[
        Moment | None, Meta(description="What held then; by default now, or `believed_at` where that is given.")
    ] = None
    believed_at: Annotated[
        Moment | None,
        Meta(
            description="What memory held to be true then: the records as they stood at that moment; not a future one."
        ),
    ] = None
    include: Annotated[
        list[Literal["history"]],
        Meta(max_length=1, description="`history` brings superseded, expired, archived and retracted ones too."),
    ] = []
    limits: Limits = Limits()
    budget_tokens: Annotated[
        int,
        Meta(
            ge=1,
            le=32_000,
            description="Most tokens of the serialized pack; the default holds eight memories with their paths.",
        ),
    ] = 4_000
    arms: Arms = Arms()
    fusion: Annotated[
        Fusion,
        Meta(
            description="How one order is made: by what words, vector and surroundings say of each candidate; or by "
            "the hits of the arms alone, by their scores within the question (`min_max`) or their ranks (RRF)."
        ),
    ] = "relevance"
    rerank: Annotated[
        bool | None,
        Meta(
            description="Whether the best records are ranked anew; by default wherever the service offers it (RERANK)."
        ),
    ] = None
    conversation_id: Key | None = None
    wait_for: Position | None = None
    timeout_ms: Annotated[int, Meta(ge=0, le=WAIT_MS, description="How long to wait for it.")] = 0
    format: Format = "json"


class ContextRequest(RetrievalRequest, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A question whose answer goes into a prompt."""

    format: Format = "markdown"


class PathNode(Struct, frozen=True, omit_defaults=True):
    """One node of a path; `via` is the edge that led to it (none for the first), `against` that it points back."""

    id: UUID
    type: RecordType
    via: str | None = None
    against: bool = False


class PackSource(Struct, frozen=True, omit_defaults=True):
    """Where an item comes from, as far as its reader may know.

    Attributes:
        id: The source.
        title: Its title.
        date: When it was said or written, or else when it was recorded.
        support: How it bears on a memory: `states`, `supports`, `mentions` or `contradicts`; a passage is of it.
        quote: The words of it that do; left out where the budget is short.
    """

    id: UUID
    title: str
    date: datetime
    support: Support | None = None
    quote: str | None = None


class PackItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One record of a pack.

    Attributes:
        label: A memory's label; an entity's type; the kind of a source, for it and its passages.
        title: A memory's title; a passage's source. The text of other records begins with their title or name.
        date: When it happened or was recorded.
        score: What it was ranked by, after fusion and boosts; compares within one answer only.
        arms: By arm that found it, its rank there, from 1.
        why: The path that led to it in words, and what it shares with the question.
        path: The same path as records; left out where the budget is short.
        source: Of a memory, its strongest evidence; of a passage, where it stands. Left out where the budget is short.
        superseded_by: The memory that took its place, by supersession or correction, or of which it is a duplicate.
        shortened: The text ends before its end, at a sentence, to fit the budget.
    """

    type: RecordType
    id: UUID
    label: str | None = None
    title: str | None = None
    text: str
    date: datetime
    status: str
    valid_from: datetime | None
    valid_to: datetime | None
    confidence: float
    score: float
    arms: dict[str, int]
    why: list[str]
    path: list[PathNode] = []
    source: PackSource | None = None
    superseded_by: UUID | None = None
    shortened: bool = False


class Omission(Struct, frozen=True, omit_defaults=True):
    """What was found and is not in the pack, and why: one record by its id, or a number of them.

    The reasons are `limit`, `budget`, `relevance` of what is no answer beside the best, and `same_source` of a passage
    when a memory in the pack states the same from it.
    """

    reason: str
    id: UUID | None = None
    count: int = 1


class Conflict(Struct, frozen=True):
    """Items of the pack that contradict each other, or one that is disputed."""

    kind: Literal["contradicts", "disputed"]
    items: list[UUID]


class GraphState(Struct, frozen=True):
    """Where the graph stood: the events that it lacks, and the position up to which it has everything."""

    state: GraphStateName
    lag_events: int
    position: int


class ContextPack(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bounded, labelled answer to a question. `degraded_arms` are those that could not be asked."""

    retrieval_id: UUID
    items: list[PackItem]
    omitted: list[Omission]
    omitted_count: int
    conflicts: list[Conflict]
    graph: GraphState
    no_match: bool
    markdown: str | None = None
    degraded_arms: list[ArmName] = []
    timings_ms: dict[str, float]


class RetrievalSummary(Struct, frozen=True):
    """One logged retrieval in a list."""

    id: UUID
    query: str
    user_id: str | None
    conversation_id: str | None
    as_of: datetime | None
    created_at: datetime
    graph_state: str
    no_match: bool
    items: int
    omitted: int
    pack_tokens: int
    request_id: str | None


class LoggedItem(Struct, frozen=True):
    """One record that a retrieval found: where it stood in each arm, and whether it went into the pack or why not.

    `title` is how the record reads today; none where it is gone.
    """

    position: int
    type: str
    id: UUID
    title: str | None
    in_pack: bool
    reason: str | None
    score: float | None
    arms: dict[str, Any]
    path: list[dict[str, Any]]
    why: list[str]


class RetrievalExplanation(Struct, frozen=True):
    """A past answer, explained: what was asked of which arms within which bounds, and what became of each record."""

    retrieval: RetrievalSummary
    arms: dict[str, Any]
    bounds: dict[str, Any]
    timings_ms: dict[str, float]
    items: list[LoggedItem]


class RecordVerdict(Struct, forbid_unknown_fields=True, frozen=True):
    """What is said of one record of a pack: it was used, it was beside the point, or it is wrong."""

    id: UUID
    verdict: Verdict


class Feedback(Struct, forbid_unknown_fields=True, frozen=True):
    """What is said of an answer; `used` is short for records with that verdict."""

    used: Annotated[list[UUID], Meta(max_length=MOST_RECORDS, description="Records that were of use.")] = []
    records: Annotated[
        list[RecordVerdict], Meta(max_length=MOST_RECORDS, description="Records, each with a verdict.")
    ] = []


class StoredFeedback(Struct, frozen=True):
    """All that has been said of an answer, the last verdict on each record."""

    retrieval_id: UUID
    records: list[RecordVerdict]
