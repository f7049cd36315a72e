"""Whether a reader may see the record that an audit entry tells of, as its readers are now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from sqlalchemy import Table, select

from memory_os.storage import provenance_tables, tables
from memory_os.storage.database import Transaction

Target = tuple[str, str]
"""Type and id, as an entry names its record."""

_TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        "memory": tables.memories,
        "entity": tables.entities,
        "observation": tables.observations,
        "procedure": tables.procedures,
        "outcome": tables.outcomes,
        "edge": tables.edges,
        "entity_link": tables.entity_links,
        "source": provenance_tables.sources,
        "evidence": provenance_tables.evidence,
        "correction": provenance_tables.corrections,
    }
)


async def hidden_targets(tx: Transaction, targets: Iterable[Target]) -> set[Target]:
    """Those of these records that are there and that this reader may not see.

    What was written at an act has the readers of that time. They may be fewer by now; of a record that is gone there
    are no others.
    """
    by_type: dict[str, set[UUID]] = defaultdict(set)
    for kind, ident in targets:
        if kind in _TABLES:
            by_type[kind].add(UUID(ident))
    hidden: set[Target] = set()
    for kind, ids in by_type.items():
        columns = _TABLES[kind].c
        statement = select(columns.id).where(columns.tenant_id == tx.tenant_id, columns.id.in_(ids))
        seen = {row["id"] for row in await tx.rows(statement)}
        if seen != ids:
            async with tx.as_steward():
                there = {row["id"] for row in await tx.rows(statement)}
            hidden |= {(kind, str(ident)) for ident in there - seen}
    return hidden
