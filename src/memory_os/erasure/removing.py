"""Removing what an erasure has found from every table: rows, what was made of them, and what others tell of them."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from uuid import UUID

from sqlalchemy import update

from memory_os.erasure.finding import Doomed, derived_among
from memory_os.erasure.scrubbing import names_any, without_records
from memory_os.storage import provenance_tables, tables
from memory_os.storage.arrays import array_literal
from memory_os.storage.database import Transaction

PLACES: Final = (
    *("memories", "memory_embeddings", "memory_sketches", "mentions", "extractions", "entities", "entity_names"),
    *("edges", "entity_links", "evidence", "memory_acts", "entity_acts", "memory_reviews", "corrections"),
    *("sources", "passages", "passage_embeddings", "token_vectors"),
    *("observations", "procedures", "outcomes"),
    *("audit_contents", "audit_log", "retrievals", "retrieval_items", "retrieval_edges", "retrieval_feedback"),
    *("idempotency_keys", "outbox_events", "graph_verifications", "archived_edges", "cycle_actions"),
    *("insight_candidates", "insight_members"),
)
"""Where there can be something of a record, table by table."""

_ACTS: Final = {"memory_acts": tables.memory_acts, "entity_acts": provenance_tables.entity_acts}


async def remove(tx: Transaction, doomed: Doomed) -> Counter[str]:
    """Delete what was found with every copy of it; rows that speak of it and stay are emptied of that.

    First the rows, then what tells of them: whoever wrote of them just now held them, and is waited for.

    Returns:
        How many rows each place had.
    """
    rows = Counter[str](dict.fromkeys(PLACES, 0))
    given = doomed.given(tx.tenant_id)
    about = await _remove_rows(tx, given, rows)
    names = await _remove_derived_entities(tx, doomed, rows)
    given["about"] = array_literal([*doomed.record_ids, *doomed.edges, *doomed.links, *about])
    await _remove_from_acts(tx, doomed, given, rows)
    rows["audit_contents"] += await tx.touched("erase_audit_contents", given)
    rows.update((await tx.hot("erase_retrieved", given))[0])
    rows["idempotency_keys"] += await tx.touched("erase_answers", given)
    await _remove_from_queue(tx, given, rows)
    words = {str(ident) for ident in (*doomed.record_ids, *doomed.edges, *doomed.links)} | names
    rows["graph_verifications"] += await remove_from_samples(tx, words)
    return rows


async def _remove_rows(tx: Transaction, given: dict[str, Any], rows: Counter[str]) -> list[UUID]:
    """Delete the records with what was made of them; the ids of evidence and corrections that went or were emptied."""
    rows.update((await tx.hot("erase_cycle_actions", given))[0])  # before the archived edges go with their ends
    rows.update((await tx.hot("erase_insights", given))[0])
    rows["memory_sketches"] += await tx.touched("erase_sketches", given)  # before each vector looks for its own
    rows.update((await tx.hot("erase_made_of_memories", given))[0])
    evidence = [row["id"] for row in await tx.hot("erase_evidence", given)]
    corrections = [row["id"] for row in await tx.hot("erase_corrections", given)]
    corrections += [row["id"] for row in await tx.hot("erase_proposals", given)]
    rows.update(evidence=len(evidence), corrections=len(corrections))
    rows["memories"] += await tx.touched("erase_memories", given)
    await tx.touched("erase_traces_of_moves", given)
    rows.update((await tx.hot("erase_passages", given))[0])
    rows.update((await tx.hot("erase_records", given))[0])
    return [*evidence, *corrections]


async def _remove_derived_entities(tx: Transaction, doomed: Doomed, rows: Counter[str]) -> set[str]:
    """Delete derived entities that nothing else names; their names."""
    if not (ids := derived_among(doomed.mentioned)):
        return set()
    held = await tx.hot("lock_unnamed_entities", {"tenant_id": tx.tenant_id, "ids": ids})
    given = {"tenant_id": tx.tenant_id, "ids": [row["id"] for row in held]}
    gone = await tx.hot("erase_derived_entities", given) if held else []
    rows["entities"] += len(gone)
    return {row["name"] for row in gone} | {str(row["id"]) for row in gone}


async def _remove_from_acts(tx: Transaction, doomed: Doomed, given: dict[str, Any], rows: Counter[str]) -> None:
    """Take what goes out of acts on records that stay: the edges and links that they moved, as these were before."""
    gone = set(map(str, doomed.record_ids))
    for row in await tx.hot("erase_acts_that_name", given):
        table = _ACTS[row["place"]]
        kept = {name: without_records(row[name], gone) for name in ("detail", "before")}
        await tx.run(update(table).where(table.c.tenant_id == tx.tenant_id, table.c.id == row["id"]).values(kept))
        rows[row["place"]] += 1


async def _remove_from_queue(tx: Transaction, given: dict[str, Any], rows: Counter[str]) -> None:
    events = await tx.hot("erase_events", given)
    rows["outbox_events"] += len(events)
    given = {**given, "events": [row["id"] for row in events]}
    rows["audit_log"] += await tx.touched("erase_discards", given)


async def remove_from_samples(tx: Transaction, words: set[str]) -> int:
    """Leave out of comparisons the differences that name one of these ids or names; the number of comparisons.

    One that is under way begins again, since it has read what goes.
    """
    await tx.touched("erase_running_comparisons", {"tenant_id": tx.tenant_id})
    table, changed = tables.graph_verifications, 0
    for row in await tx.hot("erase_samples", {"tenant_id": tx.tenant_id}):
        kept = [one for one in row["sample"] if not names_any(one, words)]
        if len(kept) < len(row["sample"]):
            mine = (table.c.tenant_id == tx.tenant_id) & (table.c.id == row["id"])
            await tx.run(update(table).where(mine).values(sample=kept))
            changed += 1
    return changed
