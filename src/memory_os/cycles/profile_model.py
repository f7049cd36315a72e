"""The shapes of profiles, as readers see them: of the records that a version names, those that this reader may read."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import Struct


class ProfileMemory(Struct, kw_only=True):
    """A memory of a profile, as it is now: its status may have changed since the version was written."""

    id: UUID
    text: str
    title: str | None
    label: str
    status: str
    confidence: float


class ProfileEntity(Struct, kw_only=True):
    """An entity of a profile, as it is now."""

    id: UUID
    name: str
    entity_type: str
    status: str


class ProfileSections(Struct, kw_only=True):
    """The records of each section, the strongest first. What is gone or hidden is absent, and is not counted."""

    evergreen: list[ProfileMemory]
    goals: list[ProfileMemory]
    commitments: list[ProfileMemory]
    entities: list[ProfileEntity]


class ProfileVersion(Struct, kw_only=True):
    """A version in a list. `user_id` is null for that of the tenant; everything is reckoned from `moment`."""

    id: UUID
    user_id: str | None
    version: int
    moment: datetime
    created_at: datetime


class Profile(ProfileVersion, kw_only=True):
    """A version with what it holds."""

    sections: ProfileSections


class ProfileDiff(Struct, kw_only=True):
    """What came into a profile from one version to another, and what left it; `before` is 0 where there was none."""

    user_id: str | None
    before: int
    after: int
    added: ProfileSections
    removed: ProfileSections
