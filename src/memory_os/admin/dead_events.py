"""Retrying all dead events that a filter means, as an operator has confirmed them."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

from memory_os.admin.audit import record
from memory_os.domain.principal import Principal
from memory_os.outbox.operations import EventFilter, revive_dead
from memory_os.storage.database import Transaction


async def retry_matching(
    tx: Transaction, principal: Principal, wanted: EventFilter, confirmed: int, request_id: str | None
) -> int:
    """Make dead events pending again, oldest first, with one audit entry in the log of each tenant that had some.

    Args:
        tx: The unit of work.
        principal: Who acts.
        wanted: Which dead events; its tenant is one that the principal reaches.
        confirmed: How many the operator saw and agreed to: no more than these are retried.
        request_id: The request, for the log.

    Returns:
        How many are pending again: fewer than confirmed where some were retried, discarded or healed meanwhile.
    """
    by_tenant: dict[UUID, list[int]] = defaultdict(list)
    for owner, event_id in await revive_dead(tx, wanted, None, confirmed):
        by_tenant[owner].append(event_id)
    for owner, ids in by_tenant.items():
        detail = {
            "events": ids,
            "event_type": wanted.event_type,
            "aggregate_type": wanted.aggregate_type,
            "aggregate_id": wanted.aggregate_id,
            "error": wanted.error,
        }
        await record(
            tx,
            principal,
            "outbox.retry_many",
            "outbox_event",
            f"{len(ids)} events",
            detail,
            request_id,
            tenant_id=owner,
        )
    return sum(len(ids) for ids in by_tenant.values())
