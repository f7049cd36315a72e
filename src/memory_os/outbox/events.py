"""Outbox events as the writers see them: what is enqueued, in the transaction of the write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import msgspec

from memory_os.storage.database import Transaction

EventType = Literal["GRAPH_UPSERT", "GRAPH_DELETE"]
AggregateType = Literal["memory", "entity", "entity_link", "edge"]

UPSERT: EventType = "GRAPH_UPSERT"
DELETE: EventType = "GRAPH_DELETE"

STATUSES = ("pending", "leased", "done", "dead", "discarded")
MAX_ATTEMPTS = 5
"""The seed's figure: after five failed attempts an event is parked as dead."""

CHANNEL = "memory_os_outbox"
"""LISTEN/NOTIFY channel that wakes the workers."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """One pending projection of one aggregate. `version` is the aggregate's at the time of the write.

    `mentioned` are entities that a memory which goes has mentioned: nothing else would tell of them afterwards.
    """

    event_type: EventType
    aggregate_type: AggregateType
    aggregate_id: UUID
    version: int
    mentioned: Sequence[UUID] = ()

    def payload(self) -> str:
        """What the event carries beside its aggregate, as JSON."""
        return msgspec.json.encode({"mentioned": self.mentioned} if self.mentioned else {}).decode()


class Outbox:
    """Enqueues events, unless graph memory is off."""

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled

    async def enqueue(self, tx: Transaction, events: Sequence[NewEvent], request_id: str | None) -> int:
        """Enqueue events in the transaction of the write that caused them.

        Returns:
            The write's position: the id of its last event, or 0 when there was nothing to enqueue.
        """
        if not self.enabled or not events:
            return 0
        rows = await tx.hot(
            "enqueue_events",
            {
                "tenant_id": tx.tenant_id,
                "event_types": [event.event_type for event in events],
                "aggregate_types": [event.aggregate_type for event in events],
                "aggregate_ids": [event.aggregate_id for event in events],
                "versions": [event.version for event in events],
                "payloads": [event.payload() for event in events],
                "request_id": request_id,
            },
        )
        return int(rows[0]["position"])
