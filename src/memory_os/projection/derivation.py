"""Derived rows: what the extractor finds in memories, as mentions of entities, kept exact in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_os.domain.extraction import EXTRACTOR, EXTRACTOR_VERSION, DeclaredNames, ExtractedMention, extract
from memory_os.domain.ids import derived_entity_id
from memory_os.storage.database import Transaction

EXTRACTED_BY = {"extractor": EXTRACTOR, "extractor_version": EXTRACTOR_VERSION}


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found in one memory's text, as it was at a version. `again` tells that older mentions may be there."""

    memory_id: UUID
    version: int
    seen: datetime
    again: bool
    mentions: tuple[ExtractedMention, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written: the memories whose mentions were replaced, and the mentions as `read_mentions` gives them."""

    memory_ids: frozenset[UUID] = frozenset()
    mentions: Sequence[Mapping[str, Any]] = ()


async def read_memories(tx: Transaction, ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """The present state of memories; `text` only where it has still to be extracted from."""
    if not ids:
        return []
    return await tx.hot("projected_memories", {"tenant_id": tx.tenant_id, "ids": list(ids), **EXTRACTED_BY})


async def read_declared_names(tx: Transaction) -> DeclaredNames:
    """Every declared name and alias of the tenant, ready for matching."""
    rows = await tx.hot("declared_names", {"tenant_id": tx.tenant_id})
    return DeclaredNames((row["canonical_name"], row["surface"]) for row in rows)


def extract_from(rows: Sequence[Mapping[str, Any]], names: DeclaredNames) -> list[Extraction]:
    """Run the extractor over the memories whose text was read. No I/O, so that it may run outside any transaction."""
    return [
        Extraction(row["id"], row["version"], row["seen"], row["marked"], extract(row["text"], names))
        for row in rows
        if row["text"] is not None
    ]


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
    if again := [found.memory_id for found in kept if found.again]:
        await tx.touched("delete_mentions", {**tenant, "ids": again})
    entity_of = await _resolve(tx, kept)
    rows = [(found.memory_id, found.seen, mention) for found in kept for mention in found.mentions]
    if rows:
        await tx.touched(
            "insert_mentions",
            {
                **tenant,
                **EXTRACTED_BY,
                "memory_ids": [memory_id for memory_id, _, _ in rows],
                "canonical_names": [mention.key for _, _, mention in rows],
                "entity_ids": [entity_of[mention.key] for _, _, mention in rows],
                "names": [mention.name for _, _, mention in rows],
                "occurrences": [mention.occurrences for _, _, mention in rows],
                "confidences": [mention.confidence for _, _, mention in rows],
                "spans": [_array(mention.spans) for _, _, mention in rows],
                "seen": [seen for _, seen, _ in rows],
            },
        )
    await tx.touched("mark_extracted", {**tenant, **EXTRACTED_BY, "ids": ids})
    summed = _sum_up((memory_id, entity_of[mention.key], mention) for memory_id, _, mention in rows)
    return Kept(frozenset(ids), summed)


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


async def _resolve(tx: Transaction, kept: Sequence[Extraction]) -> dict[str, UUID]:
    """The entity that each name stands for: the one declared under it, else one derived from the name itself."""
    surfaces: dict[str, str] = {}
    for found in kept:
        for mention in found.mentions:
            surfaces.setdefault(mention.key, mention.name)
    if not surfaces:
        return {}
    rows = await tx.hot("resolve_names", {"tenant_id": tx.tenant_id, "names": list(surfaces)})
    declared: dict[str, UUID] = {row["canonical_name"]: row["entity_id"] for row in rows}
    derived = {key: derived_entity_id(tx.tenant_id, key) for key in surfaces if key not in declared}
    if derived:
        await tx.touched(
            "insert_derived_entities",
            {
                "tenant_id": tx.tenant_id,
                "ids": list(derived.values()),
                "names": [surfaces[key] for key in derived],
            },
        )
    return declared | derived


def _array(spans: Sequence[tuple[int, int]]) -> str:
    return "{" + ",".join(f"{start},{end}" for start, end in spans) + "}"
