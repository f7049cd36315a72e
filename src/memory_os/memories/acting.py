"""One step of many memories at once, as a cycle takes it: each has its act, as if it were taken alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

import msgspec

from memory_os.domain.acts import ACTS
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.labels import LABELS
from memory_os.domain.principal import Principal
from memory_os.memories.migrating import EdgeChanges
from memory_os.memories.states import Row, put_states, state_of
from memory_os.outbox.events import NewEvent
from memory_os.storage.database import Transaction


async def act_on_many(
    tx: Transaction,
    principal: Principal,
    kind: Literal["expire", "archive"],
    ids: Sequence[UUID],
    detail: Mapping[str, Any],
) -> tuple[dict[UUID, UUID], list[NewEvent]]:
    """Let memories take a step; those that are gone or may not take it any more are passed over.

    Args:
        tx: The unit of work, which sees them all.
        principal: Who acts.
        kind: Which step.
        ids: Which memories.
        detail: What their histories tell of it.

    Returns:
        The act of each memory that took the step, and the events of it.
    """
    status = ACTS[kind].status
    locked = await tx.hot("lock_memory_states", {"tenant_id": tx.tenant_id, "ids": list(ids)})
    rows = [row for row in locked if status in LABELS[row["label"]].transitions[row["status"]]]
    if not rows:
        return {}, []
    events = await put_states(tx, [state_of({**row, "status": status}) for row in rows])
    acts = {row["id"]: new_id() for row in rows}
    await tx.touched(
        "note_acts",
        {
            "tenant_id": tx.tenant_id,
            "kind": kind,
            "detail": msgspec.json.encode(detail).decode(),
            "rows": msgspec.json.encode([_act(acts[row["id"]], row) for row in rows]).decode(),
            "token_id": principal.token_id,
            "role": principal.role,
            "user_id": principal.user_id,
            "request_id": None,
        },
    )
    return acts, events


def _act(act_id: UUID, row: Row) -> dict[str, Any]:
    before = {
        "memories": [state_of(row)],
        "edges": EdgeChanges().kept(),
        "audiences": [Audience.of_columns(row)],
    }
    return {"id": act_id, "memory_id": row["id"], "before": before}
