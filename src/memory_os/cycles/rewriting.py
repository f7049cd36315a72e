"""Putting candidates for Insights into better words than their members' own, where a writer is configured.

A candidate is stored with an extractive summary, which is whole without any model. Afterwards a writer is asked,
outside of any transaction, and what it wrote is stored if neither the candidate nor any memory that was shown to it has
changed meanwhile: what was deleted, erased or hidden while a model was reading it must not come back in its words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import structlog
from sqlalchemy import func, select, update
from sqlalchemy.engine import RowMapping

from memory_os.domain.cycles.insights import Summary
from memory_os.storage import cycle_tables, tables
from memory_os.storage.database import Database, Scope, Transaction
from memory_os.storage.pages import cut, encode_cursor, newest_first
from memory_os.writing.port import SummaryWriter
from memory_os.writing.prompt import NOTE_CHARS

log = structlog.get_logger(__name__)

MOST: Final = 20
"""Candidates of one call, each of which may take the writer's whole time."""

FAILURES: Final = 3
"""Failures in a row after which the others are left for another time: the endpoint is down, or so it looks."""

_TABLE: Final = cycle_tables.insight_candidates
_MEMBERS: Final = cycle_tables.insight_members
_KEPT: Final = ("title", "text", "created_at")
"""What tells whether a candidate is still the one that was read."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What came of a call.

    Attributes:
        tried: Candidates that the writer was asked for.
        written: Those that have its words now.
        cursor: Where to go on with older ones; None if there are none.
    """

    tried: int
    written: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A candidate as it was read, and its memories with their versions, the surest first."""

    row: RowMapping
    notes: Sequence[str]
    versions: Mapping[UUID, int]


async def rewrite_open_candidates(
    database: Database, scope: Scope, writer: SummaryWriter, cursor: str | None = None, most: int = MOST
) -> Rewritten:
    """Ask a writer for the words of open candidates that are in their members' own, the newest first.

    Whatever fails leaves the candidate as it was. One that fails again and again stands in the way of none: go on from
    `cursor`.

    Args:
        database: Where they are.
        scope: One that sees all of the tenant: the worker's.
        writer: Who is asked.
        cursor: Where an earlier call stopped.
        most: Candidates at most.
    """
    wanted, following = await database.run(scope, lambda tx: _read(tx, cursor, most))
    tried = written = failures = 0
    for one in wanted:
        summary = await writer.write(one.notes)
        tried += 1
        if summary is None:
            failures += 1
            if failures == FAILURES:
                following = _place(one.row)
                break
            continue
        failures = 0
        written += await database.run(scope, lambda tx, one=one, summary=summary: _store(tx, one, summary))  # type: ignore[misc]  # mypy infers no lambda with defaults
    if tried:
        log.info("summaries_rewritten", tenant_id=str(scope.tenant_id), tried=tried, written=written)
    return Rewritten(tried, written, following)


async def _read(tx: Transaction, cursor: str | None, most: int) -> tuple[list[_Wanted], str | None]:
    columns = _TABLE.c
    statement = select(columns.id, *(columns[name] for name in _KEPT)).where(
        columns.tenant_id == tx.tenant_id, columns.status == "open", columns.summary == "extractive"
    )
    rows = await tx.rows(newest_first(statement, columns.created_at, columns.id, cursor, most))
    page, following = cut(rows, most, _place)
    members: defaultdict[UUID, list[RowMapping]] = defaultdict(list)
    for row in await _notes(tx, [row["id"] for row in page]):
        members[row["candidate_id"]].append(row)
    return [
        _Wanted(
            row, [one["note"] for one in members[row["id"]]], {one["id"]: one["version"] for one in members[row["id"]]}
        )
        for row in page
    ], following


async def _notes(tx: Transaction, ids: Sequence[UUID]) -> Sequence[RowMapping]:
    """The memories among the members of candidates. Entities are left out: their names stand in the memories."""
    if not ids:
        return []
    memories, members = tables.memories.c, _MEMBERS.c
    # One character more than is sent, so that what is cut can be seen to be.
    note = func.left(memories.text, NOTE_CHARS + 1).label("note")
    together = (members.tenant_id == memories.tenant_id) & (members.memory_id == memories.id)
    statement = (
        select(members.candidate_id, memories.id, memories.version, note)
        .join_from(_MEMBERS, tables.memories, together)
        .where(members.tenant_id == tx.tenant_id, members.candidate_id.in_(ids))
        .order_by(members.candidate_id, memories.confidence.desc(), memories.id)
    )
    return await tx.rows(statement)


async def _store(tx: Transaction, wanted: _Wanted, summary: Summary) -> int:
    """Keep what was written, if all that it was made of stands; memories are held first, as by whoever deletes them."""
    memories, columns = tables.memories.c, _TABLE.c
    held = select(memories.id, memories.version).where(
        memories.tenant_id == tx.tenant_id, memories.id.in_(wanted.versions)
    )
    rows = await tx.rows(held.order_by(memories.id).with_for_update(read=True))
    if {row["id"]: row["version"] for row in rows} != wanted.versions:
        return 0
    statement = update(_TABLE).where(
        columns.tenant_id == tx.tenant_id,
        columns.id == wanted.row["id"],
        columns.status == "open",
        columns.summary == "extractive",
        *(columns[name] == wanted.row[name] for name in _KEPT),
    )
    done = await tx.run(statement.values(title=summary.title, text=summary.text, summary="model"))
    return done.rowcount


def _place(row: Mapping[Any, Any]) -> str:
    return encode_cursor(row["created_at"], row["id"])
