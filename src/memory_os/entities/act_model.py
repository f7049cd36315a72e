"""The shapes of acts on entities: what a merge or split would do, what it did, and what was undone."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct

from memory_os.entities.model import Entity
from memory_os.memories.lifecycle_model import Who


class MergedEntity(Struct):
    """An entity that another one became part of; `act_id` is what to undo, `position` what to wait for."""

    entity: Entity
    act_id: UUID
    position: int


class StoredSplit(Struct):
    """The new entity and the old one after a split; `act_id` is null where it was undone since, or is not known."""

    entity: Entity
    remaining: Entity
    act_id: UUID | None
    position: int


class UndoneAct(Struct):
    """An entity after an act on it was undone, and the one that came back by that, if any."""

    entity: Entity
    restored: Entity | None
    act_id: UUID
    position: int


class EntityAct(Struct):
    """One act of an entity.

    Attributes:
        kind: `merge`, `split` or `undo`.
        entity_id: The entity that it was done to: the one that stayed, or that was split.
        other_id: The one that went, or that came out. Null for who could not have read both at that time.
        detail: The names that moved. Empty for who could not have read both at that time.
        undone_at: When it was taken back.
    """

    id: UUID
    kind: str
    at: datetime
    who: Who
    entity_id: UUID
    other_id: UUID | None
    detail: dict[str, Any]
    undone_at: datetime | None


class PlannedEntity(Struct):
    """The names of an entity as they would be; a new one has no id yet, unless the request brings it."""

    id: UUID | None
    name: str
    entity_type: str
    aliases: list[str]


class Planned(Struct):
    """Edges or links of one fate: how many of those that the caller sees, and the ids of the first of them."""

    count: int
    ids: list[UUID]


class PlannedRelations(Struct):
    """What would become of edges or links of which the caller sees both ends.

    Attributes:
        moved: They would get another end.
        collapsed: They would become one with an equal one, and go.
        looped: They would lead back to where they begin, and go.
    """

    moved: Planned
    collapsed: Planned
    looped: Planned


class Doubt(Struct):
    """What speaks against it, without forbidding it."""

    code: Literal["digits_differ", "types_differ", "statuses_differ", "summary_goes", "name_shared"]
    detail: str


class MergePlan(Struct):
    """What a merge would do; nothing was changed. `memories` are those that mention either and that the caller sees."""

    entity: PlannedEntity
    goes: PlannedEntity
    edges: PlannedRelations
    links: PlannedRelations
    memories: int
    against: list[Doubt]
    dry_run: Literal[True] = True


class SplitPlan(Struct):
    """What a split would do; nothing was changed. Edges and links would all stay with `remaining`.

    `memories` are those that mention the old one and that the caller sees; `moving` those of them that do so by a name
    that it would lose.
    """

    entity: PlannedEntity
    remaining: PlannedEntity
    memories: int
    moving: int
    against: list[Doubt]
    dry_run: Literal[True] = True
