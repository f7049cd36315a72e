"""Reading profiles: a version, the list of them, and what changed from one to another.

A version holds ids alone. What they stand for is looked up when it is read, and row-level security decides what the
reader sees of it: what was deleted or hidden since is absent, and nothing tells how much that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.engine import RowMapping

from memory_os.cycles.profile_model import (
    Profile,
    ProfileDiff,
    ProfileEntity,
    ProfileMemory,
    ProfileSections,
    ProfileVersion,
)
from memory_os.domain.cycles.profiles import SECTIONS, Content, differ
from memory_os.errors import NotFoundError
from memory_os.storage import cycle_tables, tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first
from memory_os.storage.shown_names import shown_name

_TABLE: Final = cycle_tables.profiles
_OF_VERSION: Final = (_TABLE.c.id, _TABLE.c.user_id, _TABLE.c.version, _TABLE.c.moment, _TABLE.c.created_at)


async def get_profile(tx: Transaction, user: str | None, version: int | None = None) -> Profile:
    """A version of the profile of a user, or of the tenant (None); the newest unless one is named.

    Raises:
        NotFoundError: If there is none, or this reader may not see it.
    """
    row = await _find(tx, user, version)
    (sections,) = await _look_up(tx, [row["content"]])
    return Profile(**_named(row), sections=sections)


async def list_profiles(tx: Transaction, user: str | None, cursor: str | None, limit: int) -> Page[ProfileVersion]:
    """The versions of a profile, newest first, one page at a time; none where the reader may not see it."""
    statement = newest_first(_select(tx, user, *_OF_VERSION), _TABLE.c.created_at, _TABLE.c.id, cursor, limit)
    page, next_cursor = cut(await tx.rows(statement), limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([ProfileVersion(**_named(row)) for row in page], next_cursor)


async def compare_profiles(
    tx: Transaction, user: str | None, before: int | None = None, after: int | None = None
) -> ProfileDiff:
    """What changed from one version to another.

    Args:
        tx: The unit of work.
        user: Whose profile; None is the tenant's.
        before: The version to hold it against; None is the one before, 0 none at all.
        after: The version that is held against it; None is the newest.

    Raises:
        NotFoundError: If one of them is not there, or this reader may not see it.
    """
    new = await _find(tx, user, after)
    changes = new["diff"]
    if before is not None:
        changes = differ((await _find(tx, user, before))["content"] if before else {}, new["content"])
    sides = ({section: change[side] for section, change in changes.items()} for side in ("added", "removed"))
    added, removed = await _look_up(tx, list(sides))
    since = new["version"] - 1 if before is None else before
    return ProfileDiff(user_id=user, before=since, after=new["version"], added=added, removed=removed)


def _select(tx: Transaction, user: str | None, *columns: Any) -> Select[Any]:  # noqa: ANN401 - columns of any type
    mine = _TABLE.c.user_id.is_(None) if user is None else _TABLE.c.user_id == user
    return select(*columns).where(_TABLE.c.tenant_id == tx.tenant_id, mine)


async def _find(tx: Transaction, user: str | None, version: int | None) -> RowMapping:
    statement = _select(tx, user, *_OF_VERSION, _TABLE.c.content, _TABLE.c.diff)
    if version is None:
        statement = statement.order_by(_TABLE.c.version.desc()).limit(1)
    else:
        statement = statement.where(_TABLE.c.version == version)
    row = await tx.row(statement)
    if row is None:
        raise NotFoundError("there is no such profile")
    return row


def _named(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {column.name: row[column.name] for column in _OF_VERSION}


async def _look_up(tx: Transaction, contents: Sequence[Content]) -> list[ProfileSections]:
    """Contents with the records that are there and that this reader sees, in the order of the ids."""
    ids = {section: _ids(content.get(section, ()) for content in contents) for section in SECTIONS}
    entities = await _entities(tx, ids.pop("entities"))
    memories = await _memories(tx, list(dict.fromkeys(chain(*ids.values()))))
    return [
        ProfileSections(
            evergreen=_present(memories, content.get("evergreen", ())),
            goals=_present(memories, content.get("goals", ())),
            commitments=_present(memories, content.get("commitments", ())),
            entities=_present(entities, content.get("entities", ())),
        )
        for content in contents
    ]


def _ids(lists: Iterable[Sequence[str]]) -> list[UUID]:
    return [UUID(one) for one in dict.fromkeys(chain(*lists))]


def _present(found: Mapping[UUID, Any], ids: Sequence[str]) -> list[Any]:
    return [found[ident] for ident in map(UUID, ids) if ident in found]


async def _memories(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, ProfileMemory]:
    if not ids:
        return {}
    columns = tables.memories.c
    shown = (columns.id, columns.text, columns.title, columns.label, columns.status, columns.confidence)
    rows = await tx.rows(select(*shown).where(columns.tenant_id == tx.tenant_id, columns.id.in_(ids)))
    return {row["id"]: ProfileMemory(**row) for row in rows}


async def _entities(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, ProfileEntity]:
    if not ids:
        return {}
    columns = tables.entities.c
    shown = (columns.id, shown_name(tables.entities).label("name"), columns.entity_type, columns.status)
    rows = await tx.rows(select(*shown).where(columns.tenant_id == tx.tenant_id, columns.id.in_(ids)))
    return {row["id"]: ProfileEntity(**row) for row in rows}
