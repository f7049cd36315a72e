"""Projects claimed events: reads the aggregates' present state, derives, and sets the graph to it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any
from uuid import UUID

from memory_os.domain.ids import may_be_derived
from memory_os.graph.port import CoOccurrence, GraphBackend, GraphPatch
from memory_os.metrics import PROJECTION_SECONDS
from memory_os.outbox.queue import WORKER_ROLE, ClaimedEvent, Lease
from memory_os.projection.derivation import (
    Extraction,
    Names,
    extract_again,
    extract_from,
    keep_mentions,
    note_mentioned,
    read_declared_names,
    read_memories,
    read_mentions,
    read_noted,
)
from memory_os.projection.nodes import entity_node, link_edge, memory_node, mention_edge, pair_edge, typed_edge
from memory_os.projection.tombstones import hold_tenant, require_tombstones
from memory_os.storage.database import Database, Scope, Transaction


@dataclass(slots=True)
class Aggregates:
    """The aggregates that a batch names, each once however many events it has."""

    memories: set[UUID] = field(default_factory=set)
    entities: set[UUID] = field(default_factory=set)
    edges: set[UUID] = field(default_factory=set)
    links: set[UUID] = field(default_factory=set)

    @classmethod
    def of(cls, events: Iterable[ClaimedEvent]) -> Aggregates:
        """The aggregates of events."""
        found = cls()
        sets = {
            "memory": found.memories,
            "entity": found.entities,
            "edge": found.edges,
            "entity_link": found.links,
        }
        for event in events:
            sets[event.aggregate_type].add(event.aggregate_id)
        return found


@dataclass(frozen=True, slots=True)
class _Relations:
    edges: Sequence[Mapping[str, Any]]
    links: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A batch with the state of its aggregates as it was read, and what the extractor found in it.

    `noted` are entities that its memories mentioned before, and that the graph may not tell of.
    """

    events: Sequence[ClaimedEvent]
    wanted: Aggregates
    relations: _Relations
    memories: Sequence[Mapping[str, Any]]
    extractions: Sequence[Extraction]
    noted: Mapping[str, set[str]]
    in_graph: Mapping[str, frozenset[str]]


def may_overlap(before: Sequence[ClaimedEvent], after: Sequence[ClaimedEvent]) -> bool:
    """Whether a batch may be loaded before the one ahead of it is in the graph: memories only, and none in both.

    What a memory mentions in the graph decides which counts are set anew, so it must not be read while it may change.
    """
    if any(event.aggregate_type != "memory" for event in (*before, *after)):
        return False
    return {event.aggregate_id for event in before}.isdisjoint(event.aggregate_id for event in after)


class Projector:
    """Makes one tenant's graph agree with the canonical rows of the aggregates that events name.

    It is state-based: whatever the events say, the rows are read as they are now, so that doubled, late and reordered
    events all end in the same graph.
    """

    def __init__(self, database: Database, backend: GraphBackend) -> None:
        self._database = database
        self._backend = backend
        self._names: dict[UUID, tuple[UUID, Names]] = {}

    async def project(self, lease: Lease, events: Sequence[ClaimedEvent]) -> None:
        """Project a batch of one tenant's events: load, derive and write, one after the other.

        Raises:
            GraphUnavailableError: The graph does not answer; nothing is wrong with the events.
            FenceLostError: The tenant is somebody else's by now; nothing was written.
            GraphDataError: Something in the batch can't be held by the graph.
            UnseenRowError: Something in the batch is neither there nor deleted.
            Exception: Something in the batch can't be read or derived.
        """
        await self.write(lease, await self.derive(lease, await self.load(lease, events)))

    async def load(self, lease: Lease, events: Sequence[ClaimedEvent]) -> Loaded:
        """Read the present state of the aggregates that events name, and extract from what is new. Changes nothing.

        A batch may be loaded before the one ahead of it is derived and written if `may_overlap` says so.
        """
        wanted = Aggregates.of(events)
        scope = Scope(WORKER_ROLE, lease.tenant_id)
        if wanted.entities:
            await self._extract_again(lease, sorted(wanted.entities), events[0].request_id)
        started = time.perf_counter()

        async def read(tx: Transaction) -> tuple[_Relations, list[dict[str, Any]], dict[str, set[str]]]:
            await hold_tenant(tx, lease)
            relations = await _read_relations(tx, wanted)
            _add_endpoints(wanted, relations)
            memories = await read_memories(tx, sorted(wanted.memories))
            await require_tombstones(tx, await _missing(tx, wanted, relations, memories))
            return relations, memories, await read_noted(tx, sorted(wanted.memories))

        relations, memories, noted = await self._database.run(scope, read)
        extractions = extract_from(memories, await self._declared_names(lease, wanted, memories))
        started = _measure("read", started)
        in_graph = await self._backend.mentioned_entities(
            lease.tenant_id, [str(memory_id) for memory_id in sorted(wanted.memories)]
        )
        _measure("graph_read", started)
        return Loaded(events, wanted, relations, memories, extractions, noted, in_graph)

    async def derive(self, lease: Lease, loaded: Loaded) -> GraphPatch:
        """Put what follows from the aggregates into Postgres, and say what the graph has to be set to.

        Patches must be written in the order in which they were derived.
        """
        started = time.perf_counter()

        async def work(tx: Transaction) -> GraphPatch:
            await hold_tenant(tx, lease)
            kept = await keep_mentions(tx, loaded.extractions)
            await note_mentioned(tx, kept.former)
            others = [row["id"] for row in loaded.memories if row["id"] not in kept.memory_ids]
            return await _patch(tx, loaded, kept.former, [*kept.mentions, *await read_mentions(tx, others)])

        patch = await self._database.run(Scope(WORKER_ROLE, lease.tenant_id), work)
        _measure("derive", started)
        return patch

    async def write(self, lease: Lease, patch: GraphPatch) -> None:
        """Set the graph to what a patch says."""
        started = time.perf_counter()
        await self._backend.apply(lease.tenant_id, str(lease.token), patch)
        _measure("graph_write", started)

    async def derive_only(self, lease: Lease, memory_ids: Sequence[UUID]) -> None:
        """Extract from memories without touching the graph, for a rebuild that is going to read the derived rows."""
        scope = Scope(WORKER_ROLE, lease.tenant_id)

        async def read(tx: Transaction) -> tuple[list[dict[str, Any]], Names]:
            await hold_tenant(tx, lease)
            return await read_memories(tx, memory_ids), await read_declared_names(tx)

        memories, names = await self._database.run(scope, read)
        extractions = extract_from(memories, names)

        async def keep(tx: Transaction) -> None:
            await hold_tenant(tx, lease)
            kept = await keep_mentions(tx, extractions)
            await note_mentioned(tx, kept.former)  # the rebuild may end here, and the live graph stay

        await self._database.run(scope, keep)

    async def _extract_again(self, lease: Lease, entity_ids: Sequence[UUID], request_id: str | None) -> None:
        async def work(tx: Transaction) -> None:
            await hold_tenant(tx, lease)
            await extract_again(tx, entity_ids, request_id)

        await self._database.run(Scope(WORKER_ROLE, lease.tenant_id), work)

    async def _declared_names(self, lease: Lease, wanted: Aggregates, memories: Sequence[Mapping[str, Any]]) -> Names:
        """The tenant's declared names: read once a lease, and again after an entity was in a batch.

        A name that is declared while an older set is in use is not missed: its own event, which comes through this
        same lease later, has the memories with that name extracted again, by the names as they are then.
        """
        if wanted.entities:
            self.forget(lease.tenant_id)
        if all(row["text"] is None for row in memories):
            return Names()

        async def read(tx: Transaction) -> Names:
            await hold_tenant(tx, lease)
            return await read_declared_names(tx)

        known = self._names.get(lease.tenant_id)
        if known is None or known[0] != lease.token:
            names = await self._database.run(Scope(WORKER_ROLE, lease.tenant_id), read)
            self._names[lease.tenant_id] = known = (lease.token, names)
        return known[1]

    def forget(self, tenant_id: UUID) -> None:
        """Drop what was cached: the lease has ended, or names have changed."""
        self._names.pop(tenant_id, None)


def _measure(part: str, started: float) -> float:
    now = time.perf_counter()
    PROJECTION_SECONDS.labels(part).observe(now - started)
    return now


async def _read_relations(tx: Transaction, wanted: Aggregates) -> _Relations:
    edges = links = list[dict[str, Any]]()
    if wanted.edges:
        edges = await tx.hot("projected_edges", {"tenant_id": tx.tenant_id, "ids": sorted(wanted.edges)})
    if wanted.links:
        links = await tx.hot("projected_links", {"tenant_id": tx.tenant_id, "ids": sorted(wanted.links)})
    return _Relations(edges, links)


async def _missing(
    tx: Transaction, wanted: Aggregates, relations: _Relations, memories: Sequence[Mapping[str, Any]]
) -> set[UUID]:
    """What was asked for and is not there. A derived entity may go at any time: it is nobody's to delete."""
    there = {row["id"] for rows in (relations.edges, relations.links, memories) for row in rows}
    declared = {entity_id for entity_id in wanted.entities if not may_be_derived(entity_id)}
    if declared:
        found = await tx.hot("present_entities", {"tenant_id": tx.tenant_id, "ids": sorted(declared)})
        there |= {row["id"] for row in found}
    return (wanted.memories | wanted.edges | wanted.links | declared) - there


def _add_endpoints(wanted: Aggregates, relations: _Relations) -> None:
    """An edge needs both its nodes, and the events of those may still be waiting or dead: project them with it."""
    for edge in relations.edges:
        wanted.memories |= {edge[side] for side in ("source_memory_id", "target_memory_id") if edge[side]}
        wanted.entities |= {edge[side] for side in ("source_entity_id", "target_entity_id") if edge[side]}
    for link in relations.links:
        wanted.entities.add(link["entity_id"])
        if link["layer"] == "memory":
            wanted.memories.add(link["target_id"])
        elif link["layer"] == "entity":
            wanted.entities.add(link["target_id"])


async def _patch(
    tx: Transaction,
    loaded: Loaded,
    former: Mapping[str, Collection[str]],
    mentioned: Sequence[Mapping[str, Any]],
) -> GraphPatch:
    wanted, memories, relations = loaded.wanted, loaded.memories, loaded.relations
    tenant = {"tenant_id": tx.tenant_id}
    there = {row["id"] for row in memories}
    mentions = [mention_edge(row) for row in mentioned]
    now = {(mention.memory_id, mention.entity_id) for mention in mentions}
    # What a memory mentions now, and what it mentioned before by the graph, by what it was derived to mention, and by
    # what is noted with its events: their counts may all have changed.
    involved: dict[str, set[str]] = defaultdict(set)
    for known in (loaded.in_graph, loaded.noted, former):
        for memory_id, entity_ids in known.items():
            involved[memory_id].update(entity_ids)
    for mention in mentions:
        involved[mention.memory_id].add(mention.entity_id)
    touched = {UUID(entity_id) for group in involved.values() for entity_id in group} | wanted.entities
    ids = sorted(touched)
    if unnamed := await tx.hot("lock_unnamed_entities", {**tenant, "ids": ids}):
        await tx.touched("prune_derived_entities", {**tenant, "ids": [row["id"] for row in unnamed]})
    entities = {row["id"]: row for row in await tx.hot("projected_entities", {**tenant, "ids": ids})}
    return GraphPatch(
        entities=[entity_node(entities[ident]) for ident in ids if ident in entities],
        co_occurrences=await _pairs(tx, involved, entities),
        memories=[memory_node(row) for row in memories],
        mentions=mentions,
        edges=[typed_edge(row) for row in relations.edges],
        deleted_edges=[str(ident) for ident in sorted(wanted.edges - {row["id"] for row in relations.edges})],
        links=[link_edge(row) for row in relations.links],
        deleted_links=[str(ident) for ident in sorted(wanted.links - {row["id"] for row in relations.links})],
        deleted_memories=[str(ident) for ident in sorted(wanted.memories - there)],
        deleted_entities=[str(ident) for ident in ids if ident not in entities],
        nothing_to_prune={
            memory_id
            for memory_id in (str(row["id"]) for row in memories)
            if all((memory_id, entity_id) in now for entity_id in loaded.in_graph.get(memory_id, ()))
        },
    )


async def _pairs(tx: Transaction, involved: Mapping[str, set[str]], entities: Mapping[UUID, Any]) -> list[CoOccurrence]:
    pairs = {pair for group in involved.values() for pair in combinations(sorted(group), 2)}
    # A pair with an entity that is gone needs no edge removed: it goes with the node.
    wanted = sorted((a, b) for a, b in pairs if UUID(a) in entities and UUID(b) in entities)
    if not wanted:
        return []
    rows = await tx.hot(
        "projected_pairs", {"tenant_id": tx.tenant_id, "a": [a for a, _ in wanted], "b": [b for _, b in wanted]}
    )
    records = {(str(row["entity_a"]), str(row["entity_b"])): row["records"] for row in rows}
    return [pair_edge(a, b, records.get((a, b), 0)) for a, b in wanted]
