"""Deciding about a correction: it is applied or rejected, once, by a reviewer."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import func, update
from sqlalchemy.engine import RowMapping

from memory_os.admin.audit import record
from memory_os.corrections.applying import Applied, apply_proposal
from memory_os.corrections.model import Application, AppliedCorrection, Correction, Rejection
from memory_os.corrections.reading import get_correction, lock_correction
from memory_os.domain.audiences import Audience
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError
from memory_os.memories.reading import get_memory
from memory_os.memories.writing import Prepared
from memory_os.outbox.events import Outbox
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction

_TABLE = provenance_tables.corrections


async def apply_correction(
    tx: Transaction,
    outbox: Outbox,
    principal: Principal,
    correction_id: UUID,
    application: Application,
    prepared: Prepared,
    request_id: str | None,
) -> AppliedCorrection:
    """Do what a correction asks for; see `apply_proposal`.

    Args:
        tx: The unit of work.
        outbox: Where the projections are enqueued.
        principal: Who applies it.
        correction_id: Which correction.
        application: Why, and whether readers may be widened.
        prepared: The vector of the new text, made before the unit of work.
        request_id: The request, for the log.

    Raises:
        NotFoundError: If there is no such correction for this reader.
        ConflictError: If it is decided already, or the memory has changed so that it makes no sense any more.
    """
    row = await lock_correction(tx, correction_id)
    _check_open(row)
    applied = await apply_proposal(tx, outbox, principal, row, prepared, widen=application.widen, request_id=request_id)
    values = {"status": "applied", "act_id": applied.act_id, "result_id": applied.result_id}
    await _decide(tx, principal, row, application.reason, values)
    await _note(tx, principal, row, "apply", application.reason, applied, request_id)
    result = None if applied.result_id is None else await get_memory(tx, applied.result_id)
    return AppliedCorrection(
        await get_correction(tx, principal, correction_id),
        await get_memory(tx, row["memory_id"]),
        result,
        applied.act_id,
        applied.position,
    )


async def reject_correction(
    tx: Transaction, principal: Principal, correction_id: UUID, rejection: Rejection, request_id: str | None
) -> Correction:
    """Decide that a correction is none.

    Raises:
        NotFoundError: If there is no such correction for this reader.
        ConflictError: If it is decided already.
    """
    row = await lock_correction(tx, correction_id)
    _check_open(row)
    await _decide(tx, principal, row, rejection.reason, {"status": "rejected"})
    await _note(tx, principal, row, "reject", rejection.reason, None, request_id)
    return await get_correction(tx, principal, correction_id)


def _check_open(row: RowMapping) -> None:
    if row["status"] != "open":
        raise ConflictError(
            f"the correction is decided already: it was {row['status']} at {row['decided_at'].isoformat()}"
        )


async def _decide(
    tx: Transaction, principal: Principal, row: RowMapping, reason: str | None, values: dict[str, Any]
) -> None:
    decided = {
        "decided_at": func.clock_timestamp(),
        "decided_by": principal.token_id,
        "decided_role": principal.role,
        "decided_user": principal.user_id,
        "decision_reason": reason,
    }
    mine = (_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == row["id"])
    await tx.run(update(_TABLE).where(*mine).values(**decided, **values))


async def _note(
    tx: Transaction,
    principal: Principal,
    row: RowMapping,
    verb: str,
    reason: str | None,
    applied: Applied | None,
    request_id: str | None,
) -> None:
    done = {} if applied is None else {"act_id": applied.act_id, "result_id": applied.result_id}
    await record(
        tx,
        principal,
        f"correction.{verb}",
        "correction",
        row["id"],
        {"memory": row["memory_id"], "kind": row["kind"], **done},
        request_id,
        content={} if reason is None else {"reason": reason},
        readers=[Audience.of(await get_memory(tx, row["memory_id"]))],
    )
