"""Finding what an erasure takes: records with all that was derived from them, held so that nothing is added."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_os.domain.ids import may_be_derived
from memory_os.edges.holding import reconsider
from memory_os.outbox.events import DELETE, NewEvent
from memory_os.storage.arrays import array_literal
from memory_os.storage.database import Transaction

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Doomed:
    """What an erasure takes, all of it locked.

    Attributes:
        memories: Rows with id, version and time of creation.
        others: Rows of other records: their `kind` beside that.
        passages: Ids of what the sources among them say.
        edges: Ids of edges that go with them.
        links: Ids of links that go with them.
        mentioned: Entities that they mention, or that edges and links tie to them.
        events: What the graph has to be told.
    """

    memories: Sequence[Row]
    others: Sequence[Row] = ()
    passages: Sequence[UUID] = ()
    edges: Sequence[UUID] = ()
    links: Sequence[UUID] = ()
    mentioned: Sequence[UUID] = ()
    events: Sequence[NewEvent] = field(default_factory=list)

    @property
    def record_ids(self) -> list[UUID]:
        """The records, memories first and passages of sources last."""
        return [*(row["id"] for row in (*self.memories, *self.others)), *self.passages]

    @property
    def since(self) -> datetime | None:
        """When the oldest of them was stored; None where there is nothing."""
        return min((row["created_at"] for row in (*self.memories, *self.others)), default=None)

    def given(self, tenant_id: UUID) -> dict[str, Any]:
        """The parameters of all statements that erase: long lists are written once."""
        records = self.record_ids
        lists: dict[str, Collection[UUID]] = {
            "memories": [row["id"] for row in self.memories],
            "others": [row["id"] for row in self.others],
            "sources": [row["id"] for row in self.others if row["kind"] == "source"],
            "ids": records,
            "edges": self.edges,
            "links": self.links,
            "mentioned": self.mentioned,
            "about": [*records, *self.edges, *self.links],
        }
        return {"tenant_id": tenant_id, **{name: array_literal(list(ids)) for name, ids in lists.items()}}


async def find_doomed(tx: Transaction, memory_ids: Iterable[UUID], others: Sequence[Row] = ()) -> Doomed:
    """Find and lock what goes with these records. The caller is the steward, and has entered the erasure.

    Args:
        tx: The unit of work.
        memory_ids: Memories to erase; what was derived from them goes, too.
        others: Rows of other records, locked already. What nothing but a source of these bears out goes with it.
    """
    sources = [row["id"] for row in others if row["kind"] == "source"]
    wanted = {*memory_ids, *await _borne_out_by(tx, sources)}
    memories = await _with_derived(tx, wanted)
    ids = [row["id"] for row in memories]
    relations = await tx.hot(
        "erase_found_relations", {"tenant_id": tx.tenant_id, "ids": [*ids, *(row["id"] for row in others)]}
    )
    mentioned = {
        row["memory_id"]: row["entity_ids"]
        for row in await tx.hot("erase_found_mentioned", {"tenant_id": tx.tenant_id, "memories": ids})
    }
    ends = {row[end] for row in relations for end in ("one_end", "other_end")} - {None}
    gone = {row["id"] for row in others}
    events = [
        NewEvent(DELETE, "memory", row["id"], row["version"] + 1, mentioned.get(row["id"], ())) for row in memories
    ]
    events += [NewEvent(DELETE, "entity", row["id"], row["version"] + 1) for row in others if row["kind"] == "entity"]
    events += [NewEvent(DELETE, row["aggregate_type"], row["id"], row["version"] + 1) for row in relations]
    return Doomed(
        memories,
        others,
        await _passages_of(tx, sources),
        [row["id"] for row in relations if row["aggregate_type"] == "edge"],
        [row["id"] for row in relations if row["aggregate_type"] == "entity_link"],
        sorted({one for some in mentioned.values() for one in some} | ends),
        [*events, *reconsider(ends - gone)],
    )


async def _with_derived(tx: Transaction, wanted: Collection[UUID]) -> list[dict[str, Any]]:
    """Memories and what was derived from them, until nobody has derived one more while the others were being locked."""
    found: list[dict[str, Any]] = []
    missing = sorted(wanted)
    while missing:
        ids = [*(row["id"] for row in found), *missing]
        found = await tx.hot("erase_found_memories", {"tenant_id": tx.tenant_id, "memories": ids})
        locked = {"tenant_id": tx.tenant_id, "memories": [row["id"] for row in found]}
        missing = [row["id"] for row in await tx.hot("erase_found_derived", locked)]
    return found


async def _borne_out_by(tx: Transaction, sources: Sequence[UUID]) -> list[UUID]:
    if not sources:
        return []
    rows = await tx.hot("erase_memories_of_sources", {"tenant_id": tx.tenant_id, "sources": list(sources)})
    return [row["id"] for row in rows]


async def _passages_of(tx: Transaction, sources: Sequence[UUID]) -> list[UUID]:
    if not sources:
        return []
    rows = await tx.hot("erase_found_passages", {"tenant_id": tx.tenant_id, "sources": list(sources)})
    return [row["id"] for row in rows]


def derived_among(entity_ids: Iterable[UUID]) -> list[UUID]:
    """Those entities that may be derived ones: they go when nothing names or holds them any more."""
    return sorted(ident for ident in entity_ids if may_be_derived(ident))
