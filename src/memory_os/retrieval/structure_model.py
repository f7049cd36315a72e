"""The shapes of structural answers: records that are found by what ties them, and not by what they resemble."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import Struct

from memory_os.memories.lifecycle_model import Who
from memory_os.retrieval.model import PackSource, RecordType

Direction = Literal["out", "in"]
TieKind = Literal["edge", "link", "mention"]
Stance = Literal["supports", "contradicts"]


class Tie(Struct, frozen=True):
    """What ties a record to the one that was asked about: the reason for which it is in the answer.

    Attributes:
        kind: A typed edge, a link that was declared of an entity, or a mention in a text.
        type: The edge's type, the link's relationship, or `MENTIONS`.
        direction: `out` leads from what was asked about to the record, `in` from the record to it.
        confidence: How sure it is, 0 to 1.
        id: The edge or link; a mention has none.
    """

    kind: TieKind
    type: str
    direction: Direction
    confidence: float
    id: UUID | None = None


class TiedRecord(Struct, frozen=True, kw_only=True):
    """A record that something ties to the one that was asked about.

    Attributes:
        label: A memory's label; an entity's type; a source's kind.
        title: A title or a name.
        date: When it happened or was recorded; of an entity, when the newest tie to it was declared.
        why: Everything that ties it.
        source: Of a memory, its strongest living evidence, where this reader may see that.
    """

    type: RecordType
    id: UUID
    label: str | None
    title: str | None
    text: str
    date: datetime
    status: str
    valid_from: datetime | None
    valid_to: datetime | None
    confidence: float
    why: list[Tie]
    source: PackSource | None = None


class Owner(Struct, frozen=True):
    """Somebody who has bound themselves to a task, and the COMMITTED_TO edge that says so."""

    id: UUID
    name: str
    edge_id: UUID


class Task(TiedRecord, frozen=True, kw_only=True):
    """A Goal or Commitment. `owners` are entities that have bound themselves to it, `user_id` is whose memory it is."""

    owners: list[Owner]
    user_id: str | None


class Backing(TiedRecord, frozen=True, kw_only=True):
    """A record that speaks for or against a claim."""

    stance: Stance


class SourceBehind(Struct, frozen=True, kw_only=True):
    """Evidence behind a claim: its own, or that of a memory which the claim was extracted from, or which supports it.

    Attributes:
        id: The evidence.
        at: When it was recorded.
        support: How the source bears on the memory: `states`, `supports`, `mentions` or `contradicts`.
        memory_id: The memory that it is evidence of; the claim itself, or the one that `why` leads to.
        why: The edge to that memory; empty where it is the claim's own.
    """

    id: UUID
    at: datetime
    support: str
    confidence: float
    memory_id: UUID
    source_id: UUID
    kind: str
    title: str
    uri: str | None
    date: datetime
    passage_id: UUID | None
    quote: str | None
    why: list[Tie]


class ChangedRecord(Struct, frozen=True):
    """A memory that something became of, as it is now."""

    id: UUID
    label: str
    title: str | None
    text: str
    status: str


class Change(Struct, frozen=True, kw_only=True):
    """What became of a memory.

    Attributes:
        id: The act, or the memory that was stored.
        kind: `create`, or the kind of act, as in the memory's history.
        other_id: The other memory of an act, where this reader may see that.
        undone_at: When the act was taken back.
    """

    id: UUID
    kind: str
    at: datetime
    who: Who
    memory: ChangedRecord
    other_id: UUID | None
    undone_at: datetime | None
