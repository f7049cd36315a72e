"""What askers say of an answer: which records were used, irrelevant or wrong, and what that makes of its edges."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from memory_os.domain.principal import Principal
from memory_os.domain.reinforcement import NOT_DRAWN, Verdict
from memory_os.errors import FieldError, InvalidInputError
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.hydrating import hydrate
from memory_os.retrieval.log import EVER, find_retrieval, is_own
from memory_os.retrieval.model import Feedback, RecordVerdict, StoredFeedback
from memory_os.storage import retrieval_tables
from memory_os.storage.database import Transaction

_ITEMS, _EDGES, _FEEDBACK = (
    retrieval_tables.retrieval_items,
    retrieval_tables.retrieval_edges,
    retrieval_tables.retrieval_feedback,
)
_UNDECIDED = (NOT_DRAWN, "irrelevant", "wrong")
"""Reasons to skip a walk that a later verdict may take back; a walk that has counted stays counted."""


async def give_feedback(
    tx: Transaction, principal: Principal, retrieval_id: UUID, feedback: Feedback
) -> StoredFeedback:
    """Keep verdicts on records of a pack; the last one on a record counts, and the same one again changes nothing.

    A record that was used has its edges reinforced in full; one that was irrelevant or wrong has those that still wait
    left as they are.

    Raises:
        InvalidInputError: If nothing is said, two things are said of one record, or a record is not in the pack.
        NotFoundError: If there is no such retrieval that this reader may see.
    """
    verdicts = _verdicts_of(feedback)
    row = await find_retrieval(tx, principal, retrieval_id)
    await _check_records(tx, retrieval_id, feedback, own=is_own(principal, row))
    before = await _stored(tx, retrieval_id)
    changed = {ident: verdict for ident, verdict in verdicts.items() if before.get(ident) != verdict}
    if changed:
        await _keep(tx, principal, retrieval_id, changed)
        await _bear_on_edges(tx, retrieval_id, changed)
    return StoredFeedback(retrieval_id, [RecordVerdict(*pair) for pair in sorted({**before, **changed}.items())])


def _verdicts_of(feedback: Feedback) -> dict[UUID, Verdict]:
    verdicts: dict[UUID, Verdict] = dict.fromkeys(feedback.used, "used")
    faults = []
    for place, record in enumerate(feedback.records):
        if verdicts.setdefault(record.id, record.verdict) != record.verdict:
            faults.append(FieldError(f"/records/{place}/verdict", f"{record.id} has another verdict before"))
    if not verdicts:
        faults.append(FieldError("/used", "name at least one record, here or under records"))
    if faults:
        raise InvalidInputError("the feedback says nothing, or two things of one record", errors=faults)
    return verdicts


async def _check_records(tx: Transaction, retrieval_id: UUID, feedback: Feedback, *, own: bool) -> None:
    """Make sure that the pack has each record; in somebody else's, what this reader may not see is not in it."""
    items = await tx.rows(
        select(_ITEMS.c.record_type, _ITEMS.c.record_id).where(
            _ITEMS.c.tenant_id == tx.tenant_id, _ITEMS.c.retrieval_id == retrieval_id, _ITEMS.c.in_pack
        )
    )
    refs = {Ref(item["record_type"], item["record_id"]) for item in items}
    if not own:
        hydrated = await hydrate(tx, refs, (), EVER)
        refs = {ref for ref in refs if hydrated.record(ref) is not None}
    inside = {ref.id for ref in refs}
    pointers = [(f"/used/{place}", ident) for place, ident in enumerate(feedback.used)]
    pointers += [(f"/records/{place}/id", record.id) for place, record in enumerate(feedback.records)]
    faults = [FieldError(pointer, f"{ident} is not in the pack") for pointer, ident in pointers if ident not in inside]
    if faults:
        raise InvalidInputError("feedback is about records of the pack that the retrieval gave", errors=faults)


async def _stored(tx: Transaction, retrieval_id: UUID) -> dict[UUID, Verdict]:
    columns = _FEEDBACK.c
    rows = await tx.rows(
        select(columns.record_id, columns.verdict).where(
            columns.tenant_id == tx.tenant_id, columns.retrieval_id == retrieval_id
        )
    )
    return {row["record_id"]: row["verdict"] for row in rows}


async def _keep(tx: Transaction, principal: Principal, retrieval_id: UUID, verdicts: Mapping[UUID, Verdict]) -> None:
    statement = insert(_FEEDBACK).values(
        [
            {
                "tenant_id": tx.tenant_id,
                "retrieval_id": retrieval_id,
                "record_id": ident,
                "verdict": verdict,
                "token_id": principal.token_id,
                "user_id": principal.user_id,
            }
            for ident, verdict in sorted(verdicts.items())
        ]
    )
    names = ("verdict", "token_id", "user_id")
    said = {name: statement.excluded[name] for name in names} | {"at": func.clock_timestamp()}
    await tx.run(statement.on_conflict_do_update(index_elements=list(_FEEDBACK.primary_key.columns), set_=said))


async def _bear_on_edges(tx: Transaction, retrieval_id: UUID, verdicts: Mapping[UUID, Verdict]) -> None:
    columns = _EDGES.c
    open_ = or_(columns.state == "waiting", columns.reason.in_(_UNDECIDED))
    for verdict in sorted(set(verdicts.values())):
        used = verdict == "used"
        values = {"confirmed": used, "state": "waiting" if used else "skipped", "reason": None if used else verdict}
        await tx.run(
            update(_EDGES)
            .where(
                columns.tenant_id == tx.tenant_id,
                columns.retrieval_id == retrieval_id,
                columns.record_id.in_([ident for ident, said in verdicts.items() if said == verdict]),
                open_,
            )
            .values(**values)
        )
