"""Derived rows: what the extractor finds in memories, as mentions of entities, kept exact in Postgres."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_os.domain.audiences import Audience
from memory_os.domain.extraction import EXTRACTOR, EXTRACTOR_VERSION, DeclaredNames, ExtractedMention, extract
from memory_os.domain.ids import derived_entity_id
from memory_os.domain.search_text import search_for_name
from memory_os.domain.stop_words import COMMON_WORDS
from memory_os.storage.database import Transaction

MOST_READERSHIPS = 256
"""Indexes of names that are kept at a time: one for each set of readers that memories of a tenant have."""

EXTRACTED_BY = {"extractor": EXTRACTOR, "extractor_version": EXTRACTOR_VERSION}


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found in one memory, as it was at a version. `again` tells that older mentions may be there."""

    memory_id: UUID
    version: int
    seen: datetime
    again: bool
    mentions: tuple[ExtractedMention, ...]
    declared: Mapping[str, UUID]
    """The declared entities that names of these mentions stand for."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Declared names ready for matching, and whom each stands for; one that two entities have stands for neither.

    Both are used together: what was found by names of one moment must not be given to entities by those of a later one,
    since the event of the change in between looks for mentions that point at the wrong entity.
    """

    names: DeclaredNames = field(default_factory=DeclaredNames)
    meant: Mapping[str, UUID] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Matching:
        """The names in rows of `declared_names.sql`."""
        owners: dict[str, list[UUID]] = defaultdict(list)
        for row in rows:
            owners[row["canonical_name"]].append(row["entity_id"])
        return cls(
            DeclaredNames((row["canonical_name"], row["surface"]) for row in rows),
            {name: entities[0] for name, entities in owners.items() if len(entities) == 1},
        )


class Names:
    """The tenant's declared names as they were at one moment, for the readers of each memory.

    A memory names a declared entity only if all its readers may know that one. Otherwise somebody's private entity
    would take a public name away from all others, who would see the name vanish.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._rows = [(Audience.of_columns(row), row) for row in rows]
        self._matching: dict[Audience, Matching] = {}

    def for_readers(self, readers: Audience) -> Matching:
        """The names of those entities that all of the readers may know."""
        known = self._matching.get(readers)
        if known is None:
            known = Matching.of([row for audience, row in self._rows if audience.covers(readers)])
            if len(self._matching) >= MOST_READERSHIPS:
                self._matching.clear()
            self._matching[readers] = known
        return known


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written: the memories whose mentions were replaced, and the mentions as `read_mentions` gives them.

    `former` are the entities that a memory mentioned before and may not mention any more.
    """

    memory_ids: frozenset[UUID] = frozenset()
    mentions: Sequence[Mapping[str, Any]] = ()
    former: Mapping[str, set[str]] = field(default_factory=dict)


async def read_memories(tx: Transaction, ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """The present state of memories; `text` and `title` only where it has still to be extracted from."""
    if not ids:
        return []
    return await tx.hot("projected_memories", {"tenant_id": tx.tenant_id, "ids": list(ids), **EXTRACTED_BY})


async def read_declared_names(tx: Transaction) -> Names:
    """Every declared name and alias of the tenant."""
    return Names(await tx.hot("declared_names", {"tenant_id": tx.tenant_id}))


def extract_from(rows: Sequence[Mapping[str, Any]], names: Names) -> list[Extraction]:
    """Run the extractor over the memories whose text was read. No I/O, so that it may run outside any transaction."""
    extractions = []
    for row in rows:
        if row["text"] is not None:
            known = names.for_readers(Audience.of_columns(row))
            mentions = extract(row["text"], known.names, row["title"])
            declared = {mention.key: known.meant[mention.key] for mention in mentions if mention.key in known.meant}
            extractions.append(Extraction(row["id"], row["version"], row["seen"], row["marked"], mentions, declared))
    return extractions


async def keep_mentions(tx: Transaction, extractions: Sequence[Extraction]) -> Kept:
    """Replace the mentions of memories by what was found in them, and mark them as extracted.

    A memory that went away or changed since its text was read is passed over: its own event is still to come.
    The counts that weights come from follow by trigger, in this same transaction.
    """
    if not extractions:
        return Kept()
    tenant = {"tenant_id": tx.tenant_id}
    unchanged = await tx.hot(
        "lock_unchanged_memories",
        {
            **tenant,
            "ids": [found.memory_id for found in extractions],
            "versions": [found.version for found in extractions],
        },
    )
    there = {row["id"] for row in unchanged}
    kept = [found for found in extractions if found.memory_id in there]
    if not kept:
        return Kept()
    ids = [found.memory_id for found in kept]
    former: dict[str, set[str]] = defaultdict(set)
    if again := [found.memory_id for found in kept if found.again]:
        for row in await tx.hot("delete_mentions", {**tenant, "ids": again}):
            former[str(row["memory_id"])].add(str(row["entity_id"]))
    derived = await _derive(tx, kept)
    entity_of = {
        (found.memory_id, mention.key): found.declared.get(mention.key) or derived[mention.key]
        for found in kept
        for mention in found.mentions
    }
    rows = [(found.memory_id, found.seen, mention) for found in kept for mention in found.mentions]
    if rows:
        await tx.touched(
            "insert_mentions",
            {
                **tenant,
                **EXTRACTED_BY,
                "memory_ids": [memory_id for memory_id, _, _ in rows],
                "canonical_names": [mention.key for _, _, mention in rows],
                "entity_ids": [entity_of[memory_id, mention.key] for memory_id, _, mention in rows],
                "names": [mention.name for _, _, mention in rows],
                "occurrences": [mention.occurrences for _, _, mention in rows],
                "confidences": [mention.confidence for _, _, mention in rows],
                "spans": [_array(mention.spans) for _, _, mention in rows],
                "seen": [seen for _, seen, _ in rows],
            },
        )
    await tx.touched("mark_extracted", {**tenant, **EXTRACTED_BY, "ids": ids})
    summed = _sum_up((memory_id, entity_of[memory_id, mention.key], mention) for memory_id, _, mention in rows)
    return Kept(frozenset(ids), summed, former)


async def note_mentioned(tx: Transaction, former: Mapping[str, Collection[str]]) -> None:
    """Keep with a memory's events which entities it mentioned, until they are projected.

    The graph need not tell. A memory is counted as soon as it is derived, and others that name the same entities carry
    its count into the graph, even if it never gets there itself; or a patch ended half-way, behind the mentions that it
    removed. The counts of these entities must be set anew all the same.
    """
    pairs = [(UUID(memory_id), UUID(entity_id)) for memory_id, some in former.items() for entity_id in sorted(some)]
    if pairs:
        await tx.touched(
            "note_mentioned",
            {
                "tenant_id": tx.tenant_id,
                "memory_ids": [memory_id for memory_id, _ in pairs],
                "entity_ids": [entity_id for _, entity_id in pairs],
            },
        )


async def read_noted(tx: Transaction, ids: Sequence[UUID]) -> dict[str, set[str]]:
    """What was noted with the events of memories that are not projected yet."""
    noted: dict[str, set[str]] = defaultdict(set)
    if ids:
        for row in await tx.hot("noted_mentioned", {"tenant_id": tx.tenant_id, "ids": list(ids)}):
            noted[str(row["memory_id"])].add(row["entity_id"])
    return noted


async def extract_again(tx: Transaction, entity_ids: Sequence[UUID], request_id: str | None) -> None:
    """Have memories extracted anew whose mentions no longer say what the names of these entities say."""
    given = {"tenant_id": tx.tenant_id, "ids": list(entity_ids)}
    names = await tx.hot("names_of_entities", given)
    await tx.touched(
        "extract_again",
        {
            **given,
            "entity_ids": [row["entity_id"] for row in names],
            "names": [row["canonical_name"] for row in names],
            "queries": [search_for_name(row["canonical_name"]) for row in names],
            # Of these the spelling counts (Will, will), and how they were spelt before is not known any more.
            "whole": [int(row["canonical_name"] in COMMON_WORDS) for row in names],
            "request_id": request_id,
        },
    )


async def read_mentions(tx: Transaction, ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """The mentions of memories, summed for each entity: memory_id, entity_id, occurrences and best confidence."""
    return await tx.hot("mentions_of_memories", {"tenant_id": tx.tenant_id, "ids": list(ids)}) if ids else []


def _sum_up(rows: Iterable[tuple[UUID, UUID, ExtractedMention]]) -> list[dict[str, Any]]:
    summed: dict[tuple[UUID, UUID], dict[str, Any]] = {}
    for memory_id, entity_id, mention in rows:
        row = summed.setdefault(
            (memory_id, entity_id),
            {"memory_id": memory_id, "entity_id": entity_id, "occurrences": 0, "confidence": 0.0},
        )
        row["occurrences"] += mention.occurrences
        row["confidence"] = max(row["confidence"], mention.confidence)
    return list(summed.values())


async def _derive(tx: Transaction, kept: Sequence[Extraction]) -> dict[str, UUID]:
    """The entities that are derived from names which stand for no declared one.

    Those that are there are held: an erasure deletes entities that nothing names, and these are about to be named.
    """
    surfaces: dict[str, str] = {}
    for found in kept:
        for mention in found.mentions:
            if mention.key not in found.declared:
                surfaces.setdefault(mention.key, mention.name)
    derived = {key: derived_entity_id(tx.tenant_id, key) for key in surfaces}
    if derived:
        held = await tx.hot("hold_entities", {"tenant_id": tx.tenant_id, "ids": list(derived.values())})
        there = {row["id"] for row in held}
        missing = {key: ident for key, ident in derived.items() if ident not in there}
        if missing:
            await tx.touched(
                "insert_derived_entities",
                {
                    "tenant_id": tx.tenant_id,
                    "ids": list(missing.values()),
                    "names": [surfaces[key] for key in missing],
                },
            )
    return derived


def _array(spans: Sequence[tuple[int, int]]) -> str:
    return "{" + ",".join(f"{start},{end}" for start, end in spans) + "}"
