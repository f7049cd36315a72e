"""What a reader is shown as the name of an entity."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, FromClause, case, func, select

from memory_os.storage import tables


def shown_name(entities: FromClause) -> ColumnElement[Any]:
    """The name of an entity: the one that was declared, or else what a memory that this reader sees calls it.

    The row of a derived entity has its name from the first memory that named it, which may be a hidden one, and so its
    way of writing. `hydrate_records.sql` and `find_named_entities.sql` have the same rule.
    """
    mentions = tables.mentions.c
    called = (
        select(mentions.name)
        .where(mentions.tenant_id == entities.c.tenant_id, mentions.entity_id == entities.c.id)
        .order_by(mentions.confidence.desc())
        .limit(1)
        .scalar_subquery()
    )
    return case((entities.c.declared, entities.c.name), else_=func.coalesce(called, entities.c.canonical_name))
