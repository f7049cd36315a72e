"""A tenant of a history: what its users do, through the functions that the API calls, and what befalls its queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from tests.property.stages import Stage

from memory_os.domain.ids import new_id
from memory_os.domain.names import canonical_name
from memory_os.domain.principal import Principal
from memory_os.edges.checking import check_draft as check_edge
from memory_os.edges.model import EdgeDraft
from memory_os.edges.writing import delete_edge, store_edge
from memory_os.embedding.deterministic import DeterministicEmbedder
from memory_os.entities.checking import check_link, check_merge, check_split
from memory_os.entities.links import close_link, delete_link, store_link
from memory_os.entities.merging import merge_entities
from memory_os.entities.model import EntityDraft, EntityMerge, EntityPatch, EntitySplit, LinkDraft
from memory_os.entities.service import EntityService
from memory_os.entities.splitting import split_entity
from memory_os.entities.writing import delete_entity
from memory_os.errors import MemoryOSError
from memory_os.memories.disputing import dispute
from memory_os.memories.gate import Gate
from memory_os.memories.model import MemoryDraft, MemoryPatch, NodeAddress
from memory_os.memories.reading import get_memory
from memory_os.memories.service import MemoryService
from memory_os.memories.stepping import StepKind, step
from memory_os.memories.superseding import supersede
from memory_os.memories.undoing import undo_act
from memory_os.memories.writing import Embedded, Prepared
from memory_os.outbox.events import Outbox
from memory_os.outbox.operations import EventFilter, get_event, revive_dead, set_aside
from memory_os.projection.rebuilds import RebuildRequest, cancel_rebuild, request_rebuild
from memory_os.projection.verifications import request_verification
from memory_os.records.model import RecordDraft, RecordLayer
from memory_os.records.writing import delete_record, store_record
from memory_os.storage.database import Scope, Transaction

_EMBEDDER = DeterministicEmbedder(8)
_NO_VECTORS = Embedded(_EMBEDDER.identity, None)
"""As while the embedder is down: vectors are nothing to the projection, and cost a third of a write."""
_UNPREPARED = Prepared(None, _NO_VECTORS)

USERS = (None, "ann")
_DERIVED = UUID("6d656d6f-7279-5f6f-735f-656e74697479")


async def _embed(_: Sequence[str]) -> Embedded:
    return _NO_VECTORS


class Tenant:
    """A fresh tenant. Each act gives what the service answered, or None where it refused.

    Args:
        stage: The stores.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.id = new_id()
        self._outbox = Outbox(enabled=True)
        self._memories = MemoryService(_EMBEDDER, self._outbox, 32_768, Gate())
        self._entities = EntityService(stage.app, _embed, self._outbox)
        stage.rows("INSERT INTO tenants (tenant_id, name) VALUES (%(id)s, %(name)s)", id=self.id, name=str(self.id))

    def rows(self, statement: str, **given: Any) -> list[dict[str, Any]]:
        """Rows of a statement as the superuser; `%(tenant)s` is the tenant."""
        return self.stage.rows(statement, tenant=self.id, **given)

    def leave(self) -> None:
        """Leave nothing behind that a worker would take up for the next history."""
        for table in ("graph_rebuilds", "graph_verifications", "outbox_events", "projection_leases", "graph_states"):
            self.rows(f"DELETE FROM {table} WHERE tenant_id = %(tenant)s")
        self.stage.run(self.stage.backend.drop(self.id))

    def _act(
        self,
        work: Callable[[Transaction, Principal], Awaitable[Any]],
        *,
        role: str = "writer",
        user: str | None = None,
    ) -> Any:
        principal = Principal(self.id, role, user_id=user)
        try:
            return self.stage.run(self.stage.app.run(Scope.of(principal), lambda tx: work(tx, principal)))
        except MemoryOSError:
            return None

    # --- memories

    def store(self, text: str, user: str | None, ident: UUID | None = None, title: str | None = None) -> UUID | None:
        # Told twice is stored twice, for more to project.
        draft = MemoryDraft(text, "Attribute", ident, title=title, dedup="off")
        stored = self._act(lambda tx, who: self._memories.store(tx, who, draft, _NO_VECTORS, None), user=user)
        return stored.memory.id if stored else None

    def change(self, ident: UUID, patch: MemoryPatch) -> None:
        self._act(lambda tx, who: self._memories.change(tx, who, ident, patch, _UNPREPARED, None, None))

    def forget(self, ident: UUID) -> None:
        self._act(lambda tx, who: self._memories.delete(tx, who, ident, None, None))

    def supersede(self, old: UUID, new: UUID) -> None:
        async def work(tx: Transaction, who: Principal) -> object:
            one, other = await get_memory(tx, old), await get_memory(tx, new)
            return await supersede(tx, self._outbox, who, one, other, None)

        self._act(work)

    def dispute(self, ident: UUID, against: UUID) -> None:
        async def work(tx: Transaction, who: Principal) -> object:
            one, other = await get_memory(tx, ident), await get_memory(tx, against)
            return await dispute(tx, self._outbox, who, one, against=other, reason=None, request_id=None)

        self._act(work)

    def step(self, ident: UUID, kind: StepKind) -> None:
        self._act(lambda tx, who: step(tx, self._outbox, who, ident, kind))

    def undo(self, number: int) -> None:
        """Undo an act that stands, the newest first."""
        found = self.rows(
            "SELECT memory_id, id FROM memory_acts WHERE tenant_id = %(tenant)s AND undone_at IS NULL "
            "AND kind NOT IN ('change', 'undo') ORDER BY at DESC, id DESC"
        )
        if found:
            row = found[number % len(found)]
            self._act(lambda tx, who: undo_act(tx, self._outbox, who, row["memory_id"], row["id"], None))

    # --- entities

    def declare(self, name: str, aliases: list[str], ident: UUID | None = None) -> UUID | None:
        draft = EntityDraft(name, "thing", aliases, ident)
        stored = self._act(lambda tx, who: self._entities.store(tx, who, draft, _NO_VECTORS, None))
        return stored[0].entity.id if stored else None

    def redeclare(self, ident: UUID, patch: EntityPatch) -> None:
        try:
            self.stage.run(self._entities.change(Principal(self.id, "writer"), ident, patch, None, None))
        except MemoryOSError:
            return

    def undeclare(self, ident: UUID) -> bool:
        gone = self._act(lambda tx, who: delete_entity(tx, self._outbox, who, ident, if_match=None, request_id=None))
        return gone is not None

    def merge(self, source: UUID, into: UUID) -> bool:
        merge = EntityMerge(source, into)
        principal = Principal(self.id, "writer")
        try:
            check_merge(merge)
        except MemoryOSError:
            return False
        vectors = self.stage.run(self._entities.embed_merge(principal, merge))
        merged = self._act(
            lambda tx, who: merge_entities(tx, self._outbox, who, merge, vectors, if_match=None, request_id=None)
        )
        return merged is not None

    def split(self, ident: UUID, aliases: list[str]) -> UUID | None:
        split = EntitySplit(ident, aliases)
        principal = Principal(self.id, "writer")
        try:
            check_split(split)
        except MemoryOSError:
            return None
        vectors = self.stage.run(self._entities.embed_split(principal, split))
        done = self._act(
            lambda tx, who: split_entity(tx, self._outbox, who, split, vectors, if_match=None, request_id=None)
        )
        return done[0].entity.id if done else None

    def entities(self) -> list[UUID]:
        """All entities that a user can name, declared ones first, in an order that does not hang on their ids."""
        found = self.rows(
            "SELECT id FROM entities WHERE tenant_id = %(tenant)s AND (declared OR mention_records > 0) "
            "ORDER BY declared DESC, canonical_name, created_at"
        )
        return [row["id"] for row in found]

    def derived_id(self, name: str) -> UUID:
        """The id that an entity derived from a name has."""
        return uuid5(_DERIVED, f"{self.id}:{canonical_name(name)}")

    # --- links, edges, records

    def link(self, entity: UUID, layer: str, target: UUID, window: tuple[datetime | None, datetime | None]) -> None:
        draft = LinkDraft(layer, target, "knows", valid_from=window[0], valid_to=window[1])
        try:
            check_link(draft)
        except MemoryOSError:
            return
        self._act(lambda tx, who: store_link(tx, self._outbox, who, entity, draft, None))

    def links(self) -> list[tuple[UUID, UUID]]:
        found = self.rows("SELECT entity_id, id FROM entity_links WHERE tenant_id = %(tenant)s ORDER BY created_at, id")
        return [(row["entity_id"], row["id"]) for row in found]

    def close_link(self, entity: UUID, link: UUID) -> None:
        end = datetime(2030, 1, 1, tzinfo=UTC)
        self._act(lambda tx, who: close_link(tx, self._outbox, who, entity, link, end, None))

    def unlink(self, entity: UUID, link: UUID) -> None:
        self._act(lambda tx, who: delete_link(tx, self._outbox, who, entity, link, if_match=None, request_id=None))

    def tie(self, edge_type: str, source: NodeAddress, target: NodeAddress, confidence: float | None) -> None:
        draft = EdgeDraft(edge_type, source, target, confidence=confidence)
        try:
            check_edge(draft)
        except MemoryOSError:
            return
        self._act(lambda tx, who: store_edge(tx, self._outbox, who, draft, None))

    def edges(self) -> list[UUID]:
        found = self.rows("SELECT id FROM edges WHERE tenant_id = %(tenant)s ORDER BY created_at, id")
        return [row["id"] for row in found]

    def untie(self, ident: UUID) -> None:
        self._act(lambda tx, who: delete_edge(tx, self._outbox, who, ident, if_match=None, request_id=None))

    def keep(self, layer: RecordLayer) -> UUID | None:
        stored = self._act(lambda tx, who: store_record(tx, who, layer, RecordDraft("a record")))
        return stored[0].id if stored else None

    def discard_record(self, layer: RecordLayer, ident: UUID) -> None:
        self._act(lambda tx, who: delete_record(tx, self._outbox, who, layer, ident, if_match=None, request_id=None))

    # --- what an operator does

    def revive(self, *, discarded: bool = False) -> None:
        """Retry what is dead, and what was discarded unless the same aggregate was projected after it."""
        self._act(lambda tx, _: revive_dead(tx, EventFilter(tenant_id=self.id), None, 1000), role="admin")
        if discarded:
            self.rows(
                "UPDATE outbox_events AS o SET status = 'pending', attempts = 0, available_at = now(), "
                "finished_at = NULL, discard_reason = NULL, discarded_by = NULL "
                "WHERE tenant_id = %(tenant)s AND status = 'discarded' AND NOT EXISTS ("
                "SELECT 1 FROM outbox_events AS l WHERE l.tenant_id = o.tenant_id AND l.id > o.id "
                "AND l.aggregate_id = o.aggregate_id AND l.status IN ('done', 'pending', 'leased'))"
            )

    def discard(self) -> None:
        """Discard the oldest dead event."""
        found = self.rows("SELECT min(id) AS id FROM outbox_events WHERE tenant_id = %(tenant)s AND status = 'dead'")
        if (ident := found[0]["id"]) is None:
            return

        async def work(tx: Transaction, _: Principal) -> None:
            await set_aside(tx, await get_event(tx, self.id, ident, lock=True), "a test", "a test")

        self._act(work, role="admin")

    def ask_for_rebuild(self, user: str | None = None) -> bool:
        wanted = RebuildRequest(user_id=user)
        return self._act(lambda tx, who: request_rebuild(tx, who, self.id, wanted, None), role="admin") is not None

    def ask_for_repair(self) -> bool:
        asked = self._act(lambda tx, who: request_verification(tx, who, self.id, None, repair=True), role="admin")
        return asked is not None

    def call_rebuild_off(self) -> None:
        for row in self.rows(
            "SELECT id FROM graph_rebuilds WHERE tenant_id = %(tenant)s AND status IN ('pending', 'running')"
        ):
            ident = row["id"]
            self._act(lambda tx, who, ident=ident: cancel_rebuild(tx, who, self.id, ident, None), role="admin")

    # --- what befalls the queue

    def expire(self) -> None:
        """Let every lease run out, and every job's worker have been silent for long."""
        mine = "WHERE tenant_id = %(tenant)s"
        past = "clock_timestamp() - interval '1 second'"
        self.rows(f"UPDATE projection_leases SET lease_until = {past} {mine}")
        self.rows(f"UPDATE outbox_events SET lease_until = {past} {mine} AND status = 'leased'")
        for table in ("graph_rebuilds", "graph_verifications"):
            self.rows(f"UPDATE {table} SET heartbeat_at = now() - interval '1 day' {mine} AND status = 'running'")

    def make_due(self) -> None:
        """Let every backoff have passed, and the pause after a rebuild that failed."""
        mine = "WHERE tenant_id = %(tenant)s"
        self.rows(
            f"UPDATE outbox_events SET available_at = now() {mine} AND status = 'pending' AND available_at > now()"
        )
        self.rows(f"UPDATE graph_rebuilds SET finished_at = now() - interval '1 day' {mine} AND status = 'failed'")

    def wear_out(self) -> None:
        """Let whatever waits have failed four times."""
        self.rows("UPDATE outbox_events SET attempts = 4 WHERE tenant_id = %(tenant)s AND status = 'pending'")

    def deliver_again(self, number: int) -> None:
        """Make a done event pending again, as if its ack were lost."""
        done = self.rows("SELECT id FROM outbox_events WHERE tenant_id = %(tenant)s AND status = 'done' ORDER BY id")
        if done:
            self.rows(
                "UPDATE outbox_events SET status = 'pending', finished_at = NULL, superseded_by = NULL, attempts = 0, "
                "available_at = now() WHERE tenant_id = %(tenant)s AND id = %(id)s",
                id=done[number % len(done)]["id"],
            )

    def shuffle(self, seed: int) -> None:
        """Give what waits another order."""
        self.rows(
            "UPDATE outbox_events SET available_at = now() - interval '1 hour' "
            "+ (hashint8(id - (SELECT min(id) FROM outbox_events WHERE tenant_id = %(tenant)s) + %(seed)s) %% 1000) "
            "* interval '1 second' WHERE tenant_id = %(tenant)s AND status = 'pending'",
            seed=seed,
        )

    def spoil(self, ident: UUID) -> None:
        """Give a memory a moment that Python can't hold: a real fault of its data."""
        self.rows("UPDATE memories SET valid_to = 'infinity' WHERE tenant_id = %(tenant)s AND id = %(id)s", id=ident)

    def mend(self) -> None:
        """Take such moments away again."""
        self.rows("UPDATE memories SET valid_to = NULL WHERE tenant_id = %(tenant)s AND valid_to = 'infinity'")

    # --- what is going on

    def unsettled(self) -> list[str]:
        """What still has to be done: events by status, jobs that are not ended, doubt about the graph."""
        found = self.rows(
            "SELECT 'event ' || status AS what FROM outbox_events "
            "WHERE tenant_id = %(tenant)s AND status IN ('pending', 'leased', 'dead') "
            "UNION ALL SELECT 'rebuild ' || status FROM graph_rebuilds "
            "WHERE tenant_id = %(tenant)s AND status IN ('pending', 'running') "
            "UNION ALL SELECT 'comparison ' || status FROM graph_verifications "
            "WHERE tenant_id = %(tenant)s AND status IN ('pending', 'running') "
            "UNION ALL SELECT 'doubt: ' || doubt FROM graph_states "
            "WHERE tenant_id = %(tenant)s AND doubt IS NOT NULL"
        )
        return [row["what"] for row in found]

    def token(self) -> UUID | None:
        """The token of whoever took the tenant last."""
        found = self.rows("SELECT token FROM projection_leases WHERE tenant_id = %(tenant)s")
        return found[0]["token"] if found else None

    def holder(self) -> UUID | None:
        """Who took the tenant last."""
        found = self.rows("SELECT worker_id FROM projection_leases WHERE tenant_id = %(tenant)s")
        return found[0]["worker_id"] if found else None
