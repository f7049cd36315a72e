"""Which graph is a tenant's: noticing that one was lost, replaced or damaged, and having it made anew.

The fence node of every graph holds its epoch, and `graph_states` the one that it must have. A graph that was lost comes
back empty with another epoch as soon as somebody writes to it.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog

from memory_os.domain.ids import new_id
from memory_os.storage.database import Transaction

log = structlog.get_logger(__name__)

LOST: Final = "the graph was lost or replaced"
DAMAGED: Final = "the graph is damaged"
RESTARTED: Final = "the graph server was restarted"


async def recognise(tx: Transaction, tenant_id: UUID, epoch: str) -> bool:
    """Whether a graph with this epoch is the tenant's; one that is not is replaced by a rebuilt one."""
    rows = await tx.hot("recognise_graph", {"tenant_id": tenant_id, "epoch": epoch})
    if rows[0]["known"]:
        return True
    await replace(tx, tenant_id, LOST)
    return False


async def replace(tx: Transaction, tenant_id: UUID, reason: str) -> None:
    """Tell readers that a graph is not to be relied on, and ask for a rebuild."""
    asked = await tx.hot("replace_lost_graph", {"tenant_id": tenant_id, "reason": reason, "id": new_id()})
    if asked:
        log.error("graph_not_reliable", tenant_id=str(tenant_id), reason=reason, rebuild_id=str(asked[0]["id"]))


async def expect(tx: Transaction, tenant_id: UUID, epoch: str) -> None:
    """Make known the epoch of a rebuilt graph that is about to be swapped in."""
    await tx.touched("expect_graph", {"tenant_id": tenant_id, "epoch": epoch})
