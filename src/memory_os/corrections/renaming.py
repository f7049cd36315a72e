"""Where a memory names an entity, and its text with another one named instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from memory_os.domain.declared_names import DeclaredNames
from memory_os.domain.names import canonical_name
from memory_os.domain.naming import name_groups
from memory_os.memories.model import Memory
from memory_os.memories.retying import edges_between, links_between
from memory_os.storage import tables
from memory_os.storage.database import Transaction

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Naming:
    """Where text and title of a memory name an entity, if it is the subject, and if edges or links tie the two."""

    text: Sequence[Span]
    title: Sequence[Span]
    subject: bool
    tied: bool

    def __bool__(self) -> bool:
        """Whether the memory has anything to do with the entity."""
        return bool(self.text or self.title or self.subject or self.tied)


async def find_naming(tx: Transaction, memory: Memory, entity_id: UUID) -> Naming:
    """How a memory names an entity that this reader sees, as far as this reader sees it."""
    text = distinct(await _mentioned(tx, memory, entity_id), await _named(tx, memory.text, entity_id))
    title = [] if memory.title is None else await _named(tx, memory.title, entity_id)
    subject = memory.subject is not None and (0, len(memory.subject)) in await _named(tx, memory.subject, entity_id)
    tied = bool(await edges_between(tx, memory.id, entity_id) or await links_between(tx, memory.id, entity_id))
    return Naming(text, title, subject, tied)


async def _mentioned(tx: Transaction, memory: Memory, entity_id: UUID) -> list[Span]:
    """Where the extractor has found the entity, as long as the text has not changed since."""
    columns = tables.mentions.c
    rows = await tx.rows(
        select(columns.canonical_name, columns.name, columns.spans).where(
            columns.tenant_id == tx.tenant_id, columns.memory_id == memory.id, columns.entity_id == entity_id
        )
    )
    found = []
    for row in rows:
        names = {row["canonical_name"], canonical_name(row["name"])}
        spans = list(zip(row["spans"][::2], row["spans"][1::2], strict=True))
        found += [span for span in spans if canonical_name(memory.text[slice(*span)]) in names]
    return found


async def _named(tx: Transaction, text: str, entity_id: UUID) -> list[Span]:
    """Where a text has a name or alias of the entity that is no part of the longer name of another one.

    As in extraction, a declared name stands also within what is only mentioned: Finch in "Meeting with Finch".
    """
    groups = name_groups(text)
    if not groups:
        return []
    rows = await tx.hot("find_named_entities", {"tenant_id": tx.tenant_id, "names": groups, "history": True})
    if any(row["declared"] for row in rows if row["id"] == entity_id):
        rows = [row for row in rows if row["declared"]]
    bearers: defaultdict[str, set[UUID]] = defaultdict(set)
    for row in rows:
        bearers[row["canonical_name"]].add(row["id"])
    names = DeclaredNames((row["canonical_name"], row["surface"]) for row in rows)
    return [(match.start, match.end) for match in names.find(text) if entity_id in bearers[match.key]]


def distinct(*found: Iterable[Span]) -> list[Span]:
    """Spans in the order of the text; of those that overlap the one that begins first, or else the longer one."""
    kept: list[Span] = []
    for start, end in sorted({span for some in found for span in some}, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def renamed(text: str, spans: Sequence[Span], name: str) -> str:
    """A text with a name in the place of each of these spans, which are in its order and don't overlap."""
    parts, done = [], 0
    for start, end in spans:
        parts += [text[done:start], name]
        done = end
    return "".join([*parts, text[done:]])
