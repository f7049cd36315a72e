"""Each week a new version of each profile, where something has changed: of the tenant, and of each of its users.

A version holds ids alone, of memories and entities. Who reads it sees of them what they may read at that time
(`reading_profiles`), so nothing in it has to follow when a memory is edited, hidden or deleted. Ids of what was deleted
or erased stay in older versions; they tell nothing. With a user all of their profiles are erased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import delete, exists, select

from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Undoing, Work
from memory_os.domain.cycles.profiles import LONGEST, Diff, Section, differ, sections_by_label, version_id
from memory_os.errors import ConflictError
from memory_os.outbox.events import NewEvent
from memory_os.storage import cycle_tables
from memory_os.storage.database import Transaction

BATCH: Final = 50
"""Users of a batch, each of whom may have thousands of memories."""

_FIRST: Final = UUID(int=0)
_TABLE: Final = cycle_tables.profiles


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    """The tenant by itself first, then its users in the order of their digests."""
    if cursor is None:
        return Plan(await _changes(tx, run, [None]), {"after": str(_FIRST)})
    given = {"tenant_id": tx.tenant_id, "after": cursor["after"], "batch": BATCH}
    users = await tx.hot("profile_users", given)
    changes = await _changes(tx, run, [row["user_id"] for row in users]) if users else []
    return Plan(changes, {"after": str(users[-1]["digest"])} if len(users) == BATCH else None)


async def _changes(tx: Transaction, run: Run, users: list[str | None]) -> list[Planned]:
    contents = await _contents(tx, run, users)
    standings = await tx.hot("profile_standings", {"tenant_id": tx.tenant_id, "users": users})
    changes = []
    for user, content, standing in zip(users, contents, standings, strict=True):
        diff = differ(standing["content"] or {}, content)
        origin = standing["id"] or (tx.tenant_id if user is None else standing["first_memory"])
        if diff and origin is not None:
            version = (standing["version"] or 0) + 1
            ident = version_id(origin, version, run.moment)
            row = {
                "id": ident,
                "previous": standing["id"],
                "user_id": user,
                "version": version,
                "content": content,
                "diff": diff,
            }
            before, after = {"version": version - 1}, {"version": version, **_sizes(diff)}
            changes.append(Planned("profile", ident, before, after, other=standing["id"], work=row))
    return changes


async def _contents(tx: Transaction, run: Run, users: list[str | None]) -> list[dict[Section, list[str]]]:
    """What the profile of each of these audiences holds at the moment of the run."""
    sections = sections_by_label()
    given = {"labels": list(sections), "sections": list(sections.values()), "longest": LONGEST, "users": users}
    contents: list[dict[Section, list[str]]] = [{} for _ in users]
    for row in await tx.hot("profile_contents", {"tenant_id": tx.tenant_id, "moment": run.moment, **given}):
        contents[row["place"] - 1].setdefault(row["section"], []).append(str(row["id"]))
    return contents


def _sizes(diff: Diff) -> dict[str, int]:
    return {side: sum(len(change[side]) for change in diff.values()) for side in ("added", "removed")}


async def _write(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    # An erasure that has begun is waited for; what is written after it must not tell of whom it erased.
    await tx.hot("beside_erasures", {"tenant_id": tx.tenant_id})
    rows = msgspec.json.encode([one.work for one in planned]).decode()
    given = {"tenant_id": tx.tenant_id, "run_id": run.id, "moment": run.moment, "rows": rows}
    written = {row["id"] for row in await tx.hot("write_profiles", given)}
    return Made([one for one in planned if one.target in written])


async def _remove(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    """Remove a version again: only the newest, since a later one tells what has changed since."""
    del undoing
    mine = (_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == action["target_id"])
    row = await tx.row(select(_TABLE.c.user_id, _TABLE.c.version).where(*mine).with_for_update())
    if row is None:
        raise ConflictError("this version of the profile is gone by now")
    later = select(_TABLE.c.id).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.version > row["version"])
    later = later.where(_TABLE.c.user_id.is_not_distinct_from(row["user_id"]))
    if (await tx.run(select(exists(later)))).scalar_one():
        raise ConflictError("there is a later version of this profile: undo that first")
    await tx.run(delete(_TABLE).where(*mine))
    return []


PROFILES: Final = Work(_plan, _write, _remove)
