"""What dry runs tell beside the names: relations and memories that this reader sees, and names that others have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import distinct, func, select

from memory_os.domain.names import canonical_name
from memory_os.entities.act_model import Doubt, Planned, PlannedRelations
from memory_os.entities.moving import Moves, Row
from memory_os.storage import tables
from memory_os.storage.database import Transaction

MOST_IDS: Final = 100
"""Ids told of each fate; the counts are of all."""


def planned_relations(moves: Moves) -> PlannedRelations:
    """A plan as it is told; it was made of what the reader sees."""
    collapsed = [row for collapse in moves.collapsed for row in collapse.gone]
    return PlannedRelations(_planned(moves.moved), _planned(collapsed), _planned(moves.looped))


def _planned(rows: Sequence[Row]) -> Planned:
    return Planned(len(rows), [row["id"] for row in rows[:MOST_IDS]])


async def count_mentioning(tx: Transaction, entity_ids: Sequence[UUID], names: Sequence[str] | None = None) -> int:
    """The memories of this reader that mention one of these entities, by one of these names where some are given."""
    mentions = tables.mentions.c
    statement = select(func.count(distinct(mentions.memory_id))).where(
        mentions.tenant_id == tx.tenant_id, mentions.entity_id.in_(entity_ids)
    )
    if names is not None:
        statement = statement.where(mentions.canonical_name.in_([canonical_name(name) for name in names]))
    return int((await tx.run(statement)).scalar_one())


async def shared_names(
    tx: Transaction, names: Sequence[str], besides: Sequence[UUID], *, beside: Sequence[str] = ()
) -> list[Doubt]:
    """Which of these names would stand for nobody, since another entity that this reader sees has them, too.

    Args:
        tx: The unit of work.
        names: The names that an entity would have.
        besides: Entities that are part of the plan.
        beside: The names that another entity of the plan would have.
    """
    wanted = {canonical_name(name): name for name in reversed(names)}
    columns = tables.entity_names.c
    rows = await tx.rows(
        select(columns.canonical_name)
        .distinct()
        .where(
            columns.tenant_id == tx.tenant_id,
            columns.canonical_name.in_(list(wanted)),
            columns.entity_id.not_in(besides),
        )
    )
    shared = {row["canonical_name"] for row in rows} | {canonical_name(name) for name in beside}
    return [
        Doubt("name_shared", f"another entity is called {name}, too: the name would stand for neither of them")
        for form, name in reversed(wanted.items())
        if form in shared
    ]
