"""Which graph is a tenant's: noticing that one was lost, replaced or damaged, and having it made anew.

The fence node of every graph holds its epoch, and `graph_states` the one that it must have. A graph that was lost comes
back empty with another epoch as soon as somebody writes to it.

Operators are told what is known of a graph: whether it is in doubt, and what its newest comparison has found.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from msgspec import Struct

from memory_os.domain.ids import new_id
from memory_os.storage.database import Transaction

log = structlog.get_logger(__name__)

LOST: Final = "the graph was lost or replaced"
DAMAGED: Final = "the graph is damaged"
RESTARTED: Final = "the graph server was restarted"


class GraphCondition(Struct):
    """How far a tenant's graph can be relied on.

    `doubt` says why it can't be, since `doubted_at`. `compared_by` is the newest comparison that was done, and what
    follows it are its figures: null or 0 while there is none, and outdated once the whole graph was `rebuilt_since`.
    `rebuilding` and `comparing` are the jobs under way: a rebuild of the whole graph, and a comparison, which mends
    what it finds if it is `repairing`.
    """

    tenant_id: UUID
    doubt: str | None
    doubted_at: datetime | None
    verified_at: datetime | None
    compared_by: UUID | None
    compared_at: datetime | None
    missing: int
    extra: int
    differing: int
    repaired: int
    waiting: int
    dead: int
    damage: str | None
    rebuilt_since: bool
    rebuilding: UUID | None
    comparing: UUID | None
    repairing: bool

    @property
    def left(self) -> int:
        """Differences that the newest comparison has found and that nobody has mended."""
        return self.missing + self.extra + self.differing - self.repaired


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


async def graph_condition(tx: Transaction, tenant_id: UUID) -> GraphCondition | None:
    """How far one tenant's graph can be relied on; None where the reader sees no such tenant."""
    rows = await tx.hot("graph_conditions", {"tenant_id": tenant_id, "wanting": False, "limit": 1})
    return _condition_of(rows[0]) if rows else None


async def wanting_graphs(tx: Transaction, tenant_id: UUID | None, limit: int) -> tuple[list[GraphCondition], int]:
    """Graphs that are in doubt, damaged, or differ by their newest comparison: the first `limit`, and how many in all.

    Of one tenant, or of all for root.
    """
    rows = await tx.hot("graph_conditions", {"tenant_id": tenant_id, "wanting": True, "limit": limit})
    return [_condition_of(row) for row in rows], rows[0]["graphs"] if rows else 0


def _condition_of(row: Mapping[str, Any]) -> GraphCondition:
    return GraphCondition(**{name: row[name] for name in GraphCondition.__struct_fields__})
