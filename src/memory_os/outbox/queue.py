"""The queue that workers claim from. Each call is one short transaction; none is open during the work itself."""

from __future__ import annotations

import hashlib
import random
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import structlog

from memory_os.outbox.backoff import full_jitter
from memory_os.storage.database import Database, Scope, Transaction

log = structlog.get_logger(__name__)

WORKER_ROLE = "memory_os_worker"
INFRASTRUCTURE_CAP_S = 24 * 3600.0
"""An event that the infrastructure has kept from being projected for a day is dead with that reason."""

_MESSAGE_CHARS = 500
_TRACE_LINES = 12


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's hold on a tenant: its graph's only writer, until the lease runs out."""

    tenant_id: UUID
    token: UUID


@dataclass(frozen=True, slots=True)
class ClaimedEvent:
    """An event that this worker holds."""

    id: int
    event_type: str
    aggregate_type: str
    aggregate_id: UUID
    version: int
    attempts: int
    request_id: str | None
    suspect: bool = False
    """A worker that had it before never came back: it may be what killed that one."""


class Queue:
    """Claims and settles outbox events for one worker.

    Args:
        database: With the worker's role.
        worker_id: Who claims.
        lease_s: How long a claim holds without renewal.
        backoff: First and last bound of the wait after a failure, in seconds.
        source: Randomness of the jitter.
    """

    def __init__(
        self,
        database: Database,
        worker_id: UUID,
        *,
        lease_s: float,
        backoff: tuple[float, float],
        source: random.Random,
    ) -> None:
        self._database = database
        self._worker_id = worker_id
        self._lease_s = lease_s
        self._backoff = backoff
        self._source = source

    async def due_tenants(self, after: UUID, limit: int) -> list[UUID]:
        """Tenants with work that nobody holds, in order of their ids, beyond `after`."""
        rows = await self._hot("due_tenants", {"after": after, "tenants": limit})
        return [row["tenant_id"] for row in rows]

    async def abandoned_tenants(self, limit: int) -> list[UUID]:
        """Tenants with events that a worker never came back from, which may be what killed it."""
        rows = await self._hot("abandoned_tenants", {"tenants": limit})
        return [row["tenant_id"] for row in rows]

    async def lease(self, tenant_id: UUID) -> Lease | None:
        """Become the tenant's only writer; None when somebody else is."""
        lease = Lease(tenant_id, uuid4())
        rows = await self._hot("lease_tenant", {**self._lease(lease), "worker_id": self._worker_id})
        return lease if rows else None

    async def renew(self, lease: Lease) -> bool:
        """Hold on to the tenant and its claimed events; False when they are somebody else's by now."""
        return bool(await self._hot("renew_lease", self._lease(lease)))

    async def release(self, lease: Lease) -> None:
        """Let the next worker have the tenant."""
        await self._hot("release_tenant", self._lease(lease))

    async def claim(self, lease: Lease, batch: int) -> list[ClaimedEvent]:
        """Claim due events, oldest first; before them, and in ever smaller batches, those that nobody came back from.

        Those that five workers never came back from are parked as dead.
        """
        rows = await self._hot("claim_events", {**self._lease(lease), "batch": batch})
        for row in rows:
            if row["status"] == "dead":
                event = {"event_id": row["id"], "event_type": row["event_type"]}
                log.error("event_never_came_back", tenant_id=str(lease.tenant_id), **event)
        return [
            ClaimedEvent(
                row["id"],
                row["event_type"],
                row["aggregate_type"],
                row["aggregate_id"],
                row["version"],
                row["attempts"],
                row["request_id"],
                row["suspect"],
            )
            for row in sorted(rows, key=lambda row: row["id"])
            if row["status"] == "leased"
        ]

    async def finish(self, lease: Lease, ids: Sequence[int]) -> int:
        """Mark events done. Returns how many were still this worker's."""
        rows = await self._hot("finish_events", {**self._lease(lease), "ids": list(ids)})
        return int(rows[0]["finished"])

    async def fail(self, lease: Lease, event: ClaimedEvent, error: BaseException) -> str | None:
        """Record a failed attempt of the event itself.

        Of what is gone by now only the kind of the error is kept: the message may hold what was to be forgotten.

        Returns:
            The event's new status, or None when it is not this worker's any more.
        """
        given = {
            **self._lease(lease),
            "id": event.id,
            "wait_s": full_jitter(event.attempts, *self._backoff, self._source),
        }
        for ending, entry in (
            ("", describe_error(error, self._worker_id)),
            ("_of_gone", describe_error(error, self._worker_id, message="the record is gone")),
        ):
            given[f"summary{ending}"] = f"{entry['class']}: {entry['message']}"
            given[f"error{ending}"] = msgspec.json.encode([entry]).decode()

        async def work(tx: Transaction) -> list[dict[str, Any]]:
            # Whoever is erasing the event's record holds the event: what is there is read when that is over.
            await tx.hot("hold_event", given)
            return await tx.hot("fail_event", given)

        rows = await self._database.run(Scope(WORKER_ROLE, lease.tenant_id), work)
        return rows[0]["status"] if rows else None

    async def refund(self, lease: Lease, ids: Sequence[int], reason: str | None, wait_s: float) -> None:
        """Give events back without an attempt spent: the infrastructure failed, or they were not begun (no reason)."""
        await self._hot(
            "refund_events",
            {
                **self._lease(lease),
                "ids": list(ids),
                "wait_s": wait_s,
                "cap_s": INFRASTRUCTURE_CAP_S,
                "summary": reason[:_MESSAGE_CHARS] if reason else None,
            },
        )

    def _lease(self, lease: Lease) -> dict[str, Any]:
        return {"tenant_id": lease.tenant_id, "token": lease.token, "lease_s": self._lease_s}

    async def _hot(self, name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return await self._database.run(Scope(WORKER_ROLE), lambda tx: tx.hot(name, parameters))


def describe_error(error: BaseException, worker_id: UUID, *, message: str | None = None) -> dict[str, Any]:
    """An attempt's error as operators see it: class, message, a fingerprint to group by, a shortened traceback.

    With a `message` that one is told instead of the error's own, and no traceback, which repeats it.
    """
    name = type(error).__name__
    silent = message is not None
    message = " ".join(str(error).split()).replace("\x00", "")[:_MESSAGE_CHARS] if message is None else message
    # Numbers, ids and quoted values differ from event to event; the kind of fault does not.
    normal = re.sub(r"'[^']*'|\"[^\"]*\"|[0-9a-fA-F-]{8,}|\d+", "*", message)
    fingerprint = hashlib.sha256(f"{name}:{normal}".encode("utf-8", "replace")).hexdigest()[:12]
    lines = [] if silent else "".join(traceback.format_exception(error)).splitlines()[-_TRACE_LINES:]
    return {
        "at": datetime.now(UTC).isoformat(),
        "class": name,
        "message": message,
        "fingerprint": fingerprint,
        "worker": str(worker_id),
        "traceback": "\n".join(line[:200] for line in lines).replace("\x00", ""),
    }
