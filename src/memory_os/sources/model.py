"""The shapes of sources and passages, as requests bring them and answers show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from memory_os.domain.shapes import NO_NUL, Key, Moment, Payload, Title, UserId, one_of
from memory_os.domain.sources import SOURCE_KINDS
from memory_os.memories.model import Readers, Visibility

MAX_PASSAGES: Final = 500
"""Passages that one call stores; their texts are embedded in one go."""

LOCATOR_BYTES: Final = 4_096

KindName = Annotated[str, one_of(SOURCE_KINDS)]
Uri = Annotated[str, Meta(min_length=1, max_length=2_000, pattern=NO_NUL)]
PassageText = Annotated[str, Meta(min_length=1, pattern=NO_NUL, description="As it stands in the source; not blank.")]
SourceMoment = Annotated[Moment, Meta(description="When it was said or written; `created_at` is when it was recorded.")]


class PassageDraft(Struct, forbid_unknown_fields=True):
    """A piece of a source; `locator` says where in it, for example by page, message_id, commit or lines."""

    text: PassageText
    id: UUID | None = None
    locator: Payload = {}


Passages = Annotated[list[PassageDraft], Meta(max_length=MAX_PASSAGES)]


class SourceDraft(Struct, forbid_unknown_fields=True):
    """A source as a client brings it."""

    kind: KindName
    title: Title
    id: UUID | None = None
    user_id: UserId | None = None
    uri: Uri | None = None
    author: Key | None = None
    source_date: SourceMoment | None = None
    metadata: Payload = {}
    visibility: Visibility = "tenant"
    readers: Readers | None = None
    passages: Passages = []


class SourcePatch(Struct, forbid_unknown_fields=True):
    """What to change of a source; fields left out stay as they are, null empties an optional one."""

    title: Title | UnsetType = UNSET
    uri: Uri | UnsetType | None = UNSET
    author: Key | UnsetType | None = UNSET
    source_date: SourceMoment | UnsetType | None = UNSET
    metadata: Payload | UnsetType = UNSET
    visibility: Visibility | UnsetType = UNSET
    readers: Readers | UnsetType = UNSET


class PassageAddition(Struct, forbid_unknown_fields=True):
    """Passages that come after those which a source has."""

    passages: Annotated[list[PassageDraft], Meta(min_length=1, max_length=MAX_PASSAGES)]
    user_id: UserId | None = None


class Source(Struct):
    """A source as a reader sees it. Passages and evidence have its readers."""

    id: UUID
    kind: str
    title: str
    uri: str | None
    author: str | None
    source_date: datetime | None
    metadata: dict[str, Any]
    visibility: str
    user_id: str | None
    readers: Readers
    created_at: datetime
    updated_at: datetime
    version: int


class PassagePlace(Struct):
    """Where a passage stands in its source, counted from 0."""

    id: UUID
    ordinal: int


class Passage(Struct):
    """A passage as a reader of its source sees it."""

    id: UUID
    source_id: UUID
    ordinal: int
    text: str
    locator: dict[str, Any]
    created_at: datetime


class StoredSource(Struct):
    """A source after a write, with the passages that came with it."""

    source: Source
    passages: list[PassagePlace]


class ChangedSource(Struct):
    """A source after a change."""

    source: Source


class AddedPassages(Struct):
    """Where the passages of a call stand, in the order in which they came."""

    passages: list[PassagePlace]


class DeletedSource(Struct):
    """What became of the records of a deleted source, as far as the caller may see them.

    `position` is what to wait for until the graph has followed.
    """

    deleted: int
    policy: str
    evidence_withdrawn: int
    archived: list[UUID]
    retracted: list[UUID]
    position: int


class SourceRecord(Struct, omit_defaults=True):
    """A record that was taken from a source, was derived from such a one, or is linked to the source.

    Attributes:
        type: `memory`, or `entity` for one that is linked.
        label: A memory's label, an entity's type.
        text: A memory's text, an entity's name.
        via: `evidence`, `derived` (by edges of type EXTRACTED_FROM), or `link`.
        support: The strongest support of the evidence.
        link_id: The link that leads to the source.
        relationship: What it says.
    """

    type: Literal["memory", "entity"]
    id: UUID
    label: str
    text: str
    status: str
    via: Literal["evidence", "derived", "link"]
    at: datetime
    support: str | None = None
    link_id: UUID | None = None
    relationship: str | None = None
