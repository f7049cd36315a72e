"""The shapes of entities and their links, as requests bring them and answers show them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from memory_os.domain.shapes import NO_NUL, Confidence, Moment, Name, Payload, UserId, one_of
from memory_os.memories.model import Readers, Visibility

ENTITY_STATUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "active": "In use.",
        "retired": "No longer in force; what refers to it goes stale.",
        "archived": "Out of the way, not gone.",
    }
)

LINK_LAYERS: Final = ("entity", "memory", "observation", "procedure", "outcome", "source")
"""The kinds of record that a link can lead to."""

MAX_ALIASES: Final = 100

EntityType = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        pattern=NO_NUL,
        description="Free text, such as person, vendor or system.",
        examples=["person"],
    ),
]
Aliases = Annotated[list[Name], Meta(max_length=MAX_ALIASES, description="Other names; spellings alike count once.")]
Summary = Annotated[str, Meta(max_length=32_768, pattern=NO_NUL)]
EntityStatus = Annotated[str, one_of(ENTITY_STATUSES)]
LinkLayer = Annotated[str, one_of(LINK_LAYERS)]
Relationship = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=NO_NUL,
        description="Free text, from the entity to the target.",
        examples=["works at"],
    ),
]


class EntityDraft(Struct, forbid_unknown_fields=True):
    """An entity as a client declares it."""

    name: Name
    entity_type: EntityType
    aliases: Aliases = []
    id: UUID | None = None
    user_id: UserId | None = None
    summary: Summary | None = None
    payload: Payload = {}
    confidence: Confidence = 1.0
    visibility: Visibility = "tenant"
    readers: Readers | None = None


class EntityPatch(Struct, forbid_unknown_fields=True):
    """What to change of an entity; fields left out stay as they are, null empties the summary."""

    name: Name | UnsetType = UNSET
    entity_type: EntityType | UnsetType = UNSET
    aliases: Aliases | UnsetType = UNSET
    summary: Summary | UnsetType | None = UNSET
    payload: Payload | UnsetType = UNSET
    confidence: Confidence | UnsetType = UNSET
    status: EntityStatus | UnsetType = UNSET
    visibility: Visibility | UnsetType = UNSET
    readers: Readers | UnsetType = UNSET


class Entity(Struct):
    """An entity as a reader sees it.

    `mention_count`, `first_seen` and `last_seen` are of the memories that name it and that this reader may see: counts
    do not betray hidden ones.
    """

    id: UUID
    name: str
    canonical_name: str
    entity_type: str
    aliases: list[str]
    summary: str | None
    payload: dict[str, Any]
    confidence: float
    status: str
    visibility: str
    user_id: str | None
    readers: Readers
    declared: bool
    first_seen: datetime | None
    last_seen: datetime | None
    mention_count: int
    created_at: datetime
    updated_at: datetime
    version: int


class StoredEntity(Struct):
    """An entity after a write; `position` is what to wait for to see it in the graph, 0 when nothing changed."""

    entity: Entity
    position: int


DryRun = Annotated[bool, Meta(description="Answer what would be done, and change nothing.")]


class EntityMerge(Struct, forbid_unknown_fields=True):
    """Which entity becomes part of which: `from` goes, `into` stays.

    Names whose digits differ are those of different things, unless `despite_digits` says otherwise.
    """

    source: UUID = field(name="from")
    into: UUID
    user_id: UserId | None = None
    despite_digits: bool = False
    dry_run: DryRun = False


class EntitySplit(Struct, forbid_unknown_fields=True):
    """Which aliases of an entity are another one's; `name` is by default the first of them, the type the old one's."""

    entity: UUID
    aliases: Annotated[
        list[Name], Meta(min_length=1, max_length=MAX_ALIASES, description="In any spelling; those alike count once.")
    ]
    name: Name | None = None
    entity_type: EntityType | None = None
    id: UUID | None = None
    user_id: UserId | None = None
    dry_run: DryRun = False


class LinkDraft(Struct, forbid_unknown_fields=True):
    """A link as a client declares it, from the entity of the address to a record."""

    layer: LinkLayer
    target_id: UUID
    relationship: Relationship
    id: UUID | None = None
    user_id: UserId | None = None
    confidence: Confidence = 1.0
    valid_from: Moment | None = None
    valid_to: Moment | None = None


class ClosingLink(Struct, forbid_unknown_fields=True):
    """When a link ends; by default now."""

    valid_to: Moment | None = None
    user_id: UserId | None = None


class Link(Struct):
    """A declared relationship from an entity to a record, valid in [valid_from, valid_to); null is open."""

    id: UUID
    entity_id: UUID
    layer: str
    target_id: UUID
    relationship: str
    confidence: float
    valid_from: datetime | None
    valid_to: datetime | None
    created_at: datetime
    updated_at: datetime
    version: int


class StoredLink(Struct):
    """A link after a write; `position` is what to wait for to see it in the graph, 0 when nothing changed."""

    link: Link
    position: int


class LinkedRecord(Struct):
    """The record at the other end of a link; `title` is its name or title, or how its text begins."""

    layer: str
    id: UUID
    title: str
    status: str


class ContextLink(Struct):
    """A link that touches the entity, and what it leads to or comes from."""

    id: UUID
    relationship: str
    direction: Literal["out", "in"]
    other: LinkedRecord
    confidence: float
    valid_from: datetime | None
    valid_to: datetime | None


class ContextMemory(Struct):
    """A memory in an entity's context; `date` is when it occurred, or else when it was stored."""

    id: UUID
    label: str
    text: str
    status: str
    date: datetime


class ContextEdge(Struct):
    """A typed edge that touches the entity, with the memory at its other end."""

    id: UUID
    type: str
    direction: Literal["out", "in"]
    confidence: float
    memory: ContextMemory


class MoreContext(Struct):
    """Which groups of a context hold more than was answered."""

    links: bool
    edges: bool
    memories: bool


class EntityContext(Struct):
    """What is known about an entity at a moment, from the canonical records alone."""

    entity: Entity
    as_of: datetime
    links: list[ContextLink]
    edges: list[ContextEdge]
    memories: list[ContextMemory]
    more: MoreContext
