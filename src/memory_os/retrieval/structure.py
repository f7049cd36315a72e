"""Structural questions: what ties say, and not what texts resemble.

The decisions of a project, its open tasks and who has bound themselves to them, what speaks for a claim and what
against it, everything about somebody. Each is answered from canonical rows: typed edges, links of entities and
mentions, from one entity or memory outward, by key and under the reader's row-level security.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.entities.link_targets import read_linked
from memory_os.entities.reading import check_entity
from memory_os.memories.reading import get_memory
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.citing import cite
from memory_os.retrieval.model import PackSource
from memory_os.retrieval.structure_model import Backing, Owner, Stance, Task, Tie, TiedRecord
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, decode_uuid_cursor, encode_cursor

ALL_TYPES: Final = tuple(EDGE_TYPES)
CONCERNING: Final = tuple(
    name for name, row in EDGE_TYPES.items() if row.category not in ("knowledge", "lifecycle", "provenance")
)
"""Types of edges by which a decision or task belongs to something: it is a part of it, about it, needed by it ..."""

DECISIONS: Final = ("Decision",)
TASKS: Final = ("Goal", "Commitment")
"""The labels of what is to be done: `until_done`, without projects, which tasks belong to, and decisions."""

OPEN: Final = ("active", "disputed", "superseded", "expired")
"""Statuses of what is not done: what was superseded or has expired counts only where it held at the asked time."""

CLOSED: Final = ("completed", "abandoned")
STANDING: Final = (*OPEN, "completed")
"""Statuses of decisions that apply: one that was carried out applies as before, one that was given up does not."""

STANCES: Final[Mapping[Stance, str]] = {"supports": "SUPPORTS", "contradicts": "CONTRADICTS"}

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Node:
    """What is asked about: an entity or a memory, one of the two."""

    entity: UUID | None = None
    memory: UUID | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The time asked about (None: now), whether what is past is wanted too, and which page."""

    as_of: datetime | None = None
    history: bool = False
    cursor: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class _Ties:
    """Which ties count, and of which records: edges that lead away or here, links, mentions; labels and statuses."""

    out: Sequence[str] = ()
    into: Sequence[str] = ()
    links: bool = False
    mentions: bool = False
    labels: Sequence[str] | None = None
    statuses: Sequence[str] | None = None


async def everything_about(tx: Transaction, entity_id: UUID, asked: Asked) -> Page[TiedRecord]:
    """All that concerns an entity, newest first: memories that name it or have an edge to it, and what it is linked to.

    Raises:
        NotFoundError: If this reader sees no such entity.
    """
    every = _Ties(ALL_TYPES, ALL_TYPES, links=True, mentions=True)
    rows, next_cursor = await _page(tx, Node(entity=entity_id), every, asked)
    sources = await _sources(tx, rows)
    return Page([TiedRecord(**_shown(row, sources)) for row in rows], next_cursor)


async def decisions_of(tx: Transaction, node: Node, asked: Asked) -> Page[TiedRecord]:
    """The decisions that belong to a project or anything else, newest first; current ones unless history is asked for.

    Raises:
        NotFoundError: If this reader sees no such entity or memory.
    """
    wanted = replace(_CONCERNING, labels=DECISIONS, statuses=None if asked.history else STANDING)
    rows, next_cursor = await _page(tx, node, wanted, asked)
    sources = await _sources(tx, rows)
    return Page([TiedRecord(**_shown(row, sources)) for row in rows], next_cursor)


async def tasks_of(tx: Transaction, node: Node, statuses: Sequence[str] | None, asked: Asked) -> Page[Task]:
    """Goals and commitments that belong to something, or that somebody is bound to, with their owners, newest first.

    Args:
        tx: The unit of work, in the reader's scope.
        node: What they belong to.
        statuses: `OPEN`, `CLOSED`, or None for both.
        asked: When, and which page.

    Raises:
        NotFoundError: If this reader sees no such entity or memory.
    """
    rows, next_cursor = await _page(tx, node, replace(_CONCERNING, labels=TASKS, statuses=statuses), asked)
    sources, owners = await _sources(tx, rows), await _owners(tx, [row["id"] for row in rows])
    tasks = [Task(**_shown(row, sources), owners=owners.get(row["id"], []), user_id=row["user_id"]) for row in rows]
    return Page(tasks, next_cursor)


async def backing_of(tx: Transaction, memory_id: UUID, stance: Stance | None, asked: Asked) -> Page[Backing]:
    """What speaks for a claim, what against it, or both, newest first. A contradiction counts in either direction.

    What both supports and contradicts it is told as contradicting, with both edges under `why`.

    Raises:
        NotFoundError: If this reader sees no such memory.
    """
    types = tuple(STANCES.values()) if stance is None else (STANCES[stance],)
    against = STANCES["contradicts"]
    wanted = _Ties(out=[against] if against in types else [], into=types)
    rows, next_cursor = await _page(tx, Node(memory=memory_id), wanted, asked)
    sources = await _sources(tx, rows)
    backing = []
    for row in rows:
        opposed = any(tie["type"] == against for tie in row["why"])
        backing.append(Backing(**_shown(row, sources), stance="contradicts" if opposed else "supports"))
    return Page(backing, next_cursor)


_CONCERNING: Final = _Ties(CONCERNING, CONCERNING, links=True, mentions=True)


async def check_node(tx: Transaction, node: Node) -> None:
    """Check that the reader sees what they ask about.

    Raises:
        NotFoundError: If they do not.
    """
    if node.entity is not None:
        await check_entity(tx, node.entity)
    if node.memory is not None:
        await get_memory(tx, node.memory)


async def _page(tx: Transaction, node: Node, ties: _Ties, asked: Asked) -> tuple[Sequence[_Row], str | None]:
    await check_node(tx, node)
    before, before_id = (None, None) if asked.cursor is None else decode_uuid_cursor(asked.cursor)
    rows = await tx.hot(
        "tied_records",
        {
            "tenant_id": tx.tenant_id,
            "entity": node.entity,
            "memory": node.memory,
            "types_out": list(ties.out),
            "types_in": list(ties.into),
            "links": ties.links,
            "mentions": ties.mentions,
            "labels": None if ties.labels is None else list(ties.labels),
            "statuses": None if ties.statuses is None else list(ties.statuses),
            "as_of": asked.as_of,
            "history": asked.history,
            "before": before,
            "before_id": before_id,
            "limit": asked.limit + 1,
        },
    )
    return cut(rows, asked.limit, lambda row: encode_cursor(row["date"], row["id"]))


async def _sources(tx: Transaction, rows: Sequence[_Row]) -> Mapping[Ref, PackSource]:
    return (await cite(tx, (Ref(row["type"], row["id"]) for row in rows))).sources


async def _owners(tx: Transaction, memories: Sequence[UUID]) -> dict[UUID, list[Owner]]:
    if not memories:
        return {}
    rows = await tx.hot("owners_of", {"tenant_id": tx.tenant_id, "memories": list(memories)})
    known = await read_linked(tx, {("entity", row["entity_id"]) for row in rows})
    owners: dict[UUID, list[Owner]] = {}
    for row in rows:
        if (who := known.get(("entity", row["entity_id"]))) is not None:
            owners.setdefault(row["memory_id"], []).append(Owner(who.id, who.title, row["edge_id"]))
    return owners


def _shown(row: _Row, sources: Mapping[Ref, PackSource]) -> dict[str, Any]:
    """The fields of a record that every structural answer shows."""
    fields = {name: row[name] for name in TiedRecord.__struct_fields__ if name not in ("why", "source")}
    why = msgspec.convert(row["why"], list[Tie])
    return {**fields, "why": why, "source": sources.get(Ref(row["type"], row["id"]))}
