"""What is a user's beside records, and a user's name in the rows of others."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Table, delete, update

from memory_os.erasure.scrubbing import holds_record_of, without_user
from memory_os.storage import provenance_tables, tables
from memory_os.storage.database import Transaction

PLACES: Final = ("tokens", "graph_rebuilds", "erasures", "text_frequencies", "profiles")
"""Where there can be something of a user that is not of a record, table by table."""

_WITH_JSON: Final[dict[str, tuple[Table, str]]] = {
    "memory_acts": (tables.memory_acts, "id"),
    "entity_acts": (provenance_tables.entity_acts, "id"),
    "corrections": (provenance_tables.corrections, "id"),
    "audit_log": (tables.audit_log, "id"),
    "audit_contents": (provenance_tables.audit_contents, "audit_id"),
    "graph_verifications": (tables.graph_verifications, "id"),
}


_KEEPING: Final = frozenset({"memory_acts", "entity_acts", "audit_contents"})
"""Those that keep whole records as they were; one without the record that it is about would say nothing."""


async def memories_of(tx: Transaction, user: str) -> list[UUID]:
    """The ids of a user's memories."""
    rows = await tx.hot("erase_memories_of_user", {"tenant_id": tx.tenant_id, "user": user})
    return [row["id"] for row in rows]


async def others_of(tx: Transaction, user: str) -> list[dict[str, Any]]:
    """A user's other records: kind, id, version and time of each, locked."""
    return await tx.hot("erase_found_of_user", {"tenant_id": tx.tenant_id, "user": user})


async def remove_user(tx: Transaction, user: str) -> Counter[str]:
    """Delete what is a user's beside records, and take the name out of all that stays; rows of each place."""
    given = {"tenant_id": tx.tenant_id, "user": user}
    rows = Counter[str](dict.fromkeys(PLACES, 0))
    rows.update((await tx.hot("erase_user_rows", given))[0])
    rows["retrievals"] += await tx.touched("erase_user_retrievals", given)
    rows.update((await tx.hot("erase_user_readers", given))[0])
    rows.update((await tx.hot("erase_user_names", given))[0])
    for row in await tx.hot("erase_user_in_json", given):
        table, key = _WITH_JSON[row["place"]]
        mine = (table.c.tenant_id == tx.tenant_id) & (table.c[key] == row["id"])
        kept = without_user(row["told"], user)
        if row["place"] in _KEEPING and holds_record_of(row["told"], user):
            await tx.run(delete(table).where(mine))
        elif kept != row["told"]:
            await tx.run(update(table).where(mine).values(kept))
        else:
            continue
        rows[row["place"]] += 1
    return rows
