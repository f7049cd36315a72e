"""Comparisons and repairs as jobs: asked for by somebody or by the schedule, done by a worker, read by who waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct
from sqlalchemy import Select, select
from sqlalchemy.dialects.postgresql import insert

from memory_os.admin.audit import record
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import NotFoundError, VerificationRunningError
from memory_os.outbox.operations import wake_workers
from memory_os.projection.canonical import is_uuid
from memory_os.projection.differences import Outcome
from memory_os.projection.reporting import visible_names
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = tables.graph_verifications
_LIVE = ("pending", "running")
_PERSONAL = {"relationship", "user_id"}


class RepairRequest(Struct, forbid_unknown_fields=True):
    """What to repair: the graph of the own tenant; `tenant` is for root, which must name one.

    Without `dry_run: false` nothing is changed, and the answer tells what would be.
    """

    tenant: UUID | None = None
    dry_run: bool = True


class PartReport(Struct):
    """Rows of one part of the graph that there should be, and how many are missing, extra or differing."""

    rows: int = 0
    missing: int = 0
    extra: int = 0
    differing: int = 0


class FoundDifference(Struct):
    """One difference: `expected` is what the canonical rows say, `found` what the graph holds; null is nothing."""

    part: str
    kind: str
    key: list[str]
    expected: Any
    found: Any


class Verification(Struct):
    """A comparison of a graph with its canonical rows.

    `equal` is null until it is done, and then tells whether nothing differs and no dead event keeps something out.
    `waiting` counts differences that events in the queue are going to settle, `dead` those whose event has died; both
    are apart from `missing`, `extra` and `differing`, of which `repaired` were mended. `differences` names the first
    hundred, without names that the reader may not see, relationships and users. `damage` is the reason why the graph
    could not be compared at all: it is being rebuilt.
    """

    id: UUID
    tenant_id: UUID
    status: str
    phase: str
    repair: bool
    equal: bool | None
    missing: int
    extra: int
    differing: int
    repaired: int
    waiting: int
    dead: int
    damage: str | None
    parts: dict[str, PartReport]
    differences: list[FoundDifference]
    checked: int
    total: int
    error: str | None
    requested_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def verification_of(row: Mapping[Any, Any]) -> Verification:
    """A row of `graph_verifications`."""
    copied = {
        name: row[name] for name in Verification.__struct_fields__ if name not in ("equal", "parts", "differences")
    }
    left = row["missing"] + row["extra"] + row["differing"] - row["repaired"]
    equal = left == 0 and row["dead"] == 0 and row["damage"] is None
    return Verification(
        **copied,
        equal=equal if row["status"] == "done" else None,
        parts=msgspec.convert(row["parts"], dict[str, PartReport]),
        differences=msgspec.convert(row["sample"], list[FoundDifference]),
    )


def outcome_values(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the columns that hold it."""
    return {
        "parts": msgspec.json.encode(outcome.parts).decode(),
        "missing": outcome.total("missing"),
        "extra": outcome.total("extra"),
        "differing": outcome.total("differing"),
        "waiting": outcome.waiting,
        "dead": outcome.dead,
        "repaired": outcome.repaired,
        "damage": outcome.damage,
        "sample": msgspec.json.encode([difference.described() for difference in outcome.sample]).decode(),
    }


async def request_verification(
    tx: Transaction, principal: Principal, tenant_id: UUID, request_id: str | None, *, repair: bool = False
) -> Verification:
    """Ask for a comparison, or join one that is under way; the workers are woken when this commits.

    Args:
        tx: The unit of work.
        principal: Who asks.
        tenant_id: Whose graph; the caller has checked that the principal may.
        request_id: The request, for the log.
        repair: Whether what differs is mended.

    Raises:
        VerificationRunningError: If a repair is asked for while a comparison runs that repairs nothing.
    """
    who = principal.user_id or (f"token {principal.token_id}" if principal.token_id else principal.role)
    row = await tx.row(
        insert(_TABLE)
        .values(tenant_id=tenant_id, id=new_id(), repair=repair, requested_by=who, request_id=request_id)
        .on_conflict_do_nothing()
        .returning(_TABLE)
    )
    if row is not None:
        if repair:
            await record(
                tx, principal, "graph.repair", "graph_verification", row["id"], {}, request_id, tenant_id=tenant_id
            )
        await wake_workers(tx)
        return verification_of(row)
    live = await tx.row(select(_TABLE).where(_TABLE.c.tenant_id == tenant_id, _TABLE.c.status.in_(_LIVE)))
    if live is None:  # it has ended between the two statements
        return await request_verification(tx, principal, tenant_id, request_id, repair=repair)
    if repair and not live["repair"]:
        raise VerificationRunningError(
            "this tenant's graph is being compared just now: wait for it", extra={"verification_id": str(live["id"])}
        )
    return verification_of(live)


async def get_verification(tx: Transaction, tenant_id: UUID | None, verification_id: UUID) -> Verification:
    """One comparison.

    Raises:
        NotFoundError: If there is none in the tenant (None is any, for root).
    """
    row = await tx.row(_of_tenant(select(_TABLE).where(_TABLE.c.id == verification_id), tenant_id))
    if row is None:
        raise NotFoundError("there is no such comparison")
    return verification_of(row)


async def shown_to_reader(tx: Transaction, found: Verification) -> Verification:
    """A comparison without what people wrote: names of entities that the reader may not see, relationships, users."""
    entities = {UUID(row.key[0]) for row in found.differences if row.part == "entities" and is_uuid(row.key[0])}
    names = await visible_names(tx, found.tenant_id, entities)
    seen = {str(ident) for ident in names}

    def shown(row: Any) -> Any:  # noqa: ANN401 - one row, several, or none, as JSON has them
        if isinstance(row, list):
            return [shown(each) for each in row]
        if not isinstance(row, dict):
            return row
        hidden = _PERSONAL if row.get("id") in seen else {*_PERSONAL, "name"}
        return {name: None if name in hidden else value for name, value in row.items()}

    differences = [
        msgspec.structs.replace(row, expected=shown(row.expected), found=shown(row.found)) for row in found.differences
    ]
    return msgspec.structs.replace(found, differences=differences)


async def list_verifications(
    tx: Transaction, tenant_id: UUID | None, cursor: str | None, limit: int
) -> Page[Verification]:
    """Comparisons of one tenant, or of all for root, newest first, one page at a time."""
    statement = newest_first(_of_tenant(select(_TABLE), tenant_id), _TABLE.c.created_at, _TABLE.c.id, cursor, limit)
    page, next_cursor = cut(await tx.rows(statement), limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([verification_of(row) for row in page], next_cursor)


def _of_tenant(statement: Select[Any], tenant_id: UUID | None) -> Select[Any]:
    return statement if tenant_id is None else statement.where(_TABLE.c.tenant_id == tenant_id)
