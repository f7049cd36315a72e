"""Storing passages with their vectors; they are appended, and never change or go but with their source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import func, select
from sqlalchemy.engine import RowMapping

from memory_os.domain.ids import new_id
from memory_os.domain.search_text import search_text
from memory_os.errors import ConflictError, NotFoundError
from memory_os.memories.writing import Embedded, vector_literal
from memory_os.sources.model import PassageDraft, PassagePlace
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction

_TABLE = provenance_tables.passages
_SOURCES = provenance_tables.sources


async def add_passages(
    tx: Transaction, source_id: UUID, drafts: Sequence[PassageDraft], embedded: Embedded
) -> tuple[list[PassagePlace], bool]:
    """Append checked passages to a source, or find those whose id was stored there with the same text before.

    Args:
        tx: The unit of work.
        source_id: Which source.
        drafts: What comes, in order.
        embedded: Their vectors; a worker embeds them later where there are none.

    Returns:
        Where they stand, in order, and whether any of them is new.

    Raises:
        NotFoundError: If this reader sees no such source.
        ConflictError: If an id is taken by another passage.
    """
    await _hold(tx, source_id)
    known = await _known(tx, [draft.id for draft in drafts if draft.id is not None])
    fresh = [index for index, draft in enumerate(drafts) if draft.id not in known]
    stored = await store_passages(tx, source_id, [drafts[index] for index in fresh], embedded.only(fresh))
    places = dict(zip(fresh, stored, strict=True))
    for index, draft in enumerate(drafts):
        if draft.id is not None and draft.id in known:
            row = known[draft.id]
            if row["source_id"] != source_id or row["text"] != draft.text:
                raise _taken(draft.id)
            places[index] = PassagePlace(draft.id, row["ordinal"])
    return [places[index] for index in range(len(drafts))], bool(fresh)


async def store_passages(
    tx: Transaction, source_id: UUID, drafts: Sequence[PassageDraft], embedded: Embedded
) -> list[PassagePlace]:
    """Store checked passages of a source that nobody else adds any to now, after those that it has.

    Raises:
        ConflictError: If an id is taken by another passage.
    """
    if not drafts:
        return []
    columns = _TABLE.c
    mine = (columns.tenant_id == tx.tenant_id, columns.source_id == source_id)
    last = (await tx.run(select(func.max(columns.ordinal)).where(*mine))).scalar_one()
    first = 0 if last is None else last + 1
    places = [PassagePlace(draft.id or new_id(), first + index) for index, draft in enumerate(drafts)]
    rows = [
        {
            "id": place.id,
            "ordinal": place.ordinal,
            "text": draft.text,
            "locator": draft.locator,
            "search_text": search_text(draft.text),
        }
        for place, draft in zip(places, drafts, strict=True)
    ]
    vectors = embedded.vectors
    model = None if vectors is None else embedded.identity.model
    given = {"tenant_id": tx.tenant_id, "source_id": source_id, "model": model}
    put = await tx.hot("store_passages", {**given, "rows": msgspec.json.encode(rows).decode()})
    there = {row["id"] for row in put}
    for place in places:
        if place.id not in there:
            raise _taken(place.id)
    if vectors is not None:
        await tx.touched(
            "store_passage_vectors",
            {
                **given,
                "dimension": embedded.identity.dimension,
                "ids": [place.id for place in places],
                "vectors": [vector_literal(vector) for vector in vectors],
            },
        )
    return places


async def same_passages(tx: Transaction, source_id: UUID, drafts: Sequence[PassageDraft]) -> list[PassagePlace] | None:
    """Where the first passages of a source stand, if they are these ones; None if they are others."""
    columns = _TABLE.c
    rows = await tx.rows(
        select(columns.id, columns.ordinal, columns.text)
        .where(columns.tenant_id == tx.tenant_id, columns.source_id == source_id)
        .order_by(columns.ordinal)
        .limit(len(drafts))
    )
    if len(rows) < len(drafts) or any(
        row["text"] != draft.text or draft.id not in (None, row["id"]) for row, draft in zip(rows, drafts, strict=True)
    ):
        return None
    return [PassagePlace(row["id"], row["ordinal"]) for row in rows]


async def _hold(tx: Transaction, source_id: UUID) -> None:
    """Keep others from adding passages; whoever cites the source is not kept."""
    columns = _SOURCES.c
    statement = select(columns.id).where(columns.tenant_id == tx.tenant_id, columns.id == source_id)
    if await tx.row(statement.with_for_update(key_share=True)) is None:
        raise NotFoundError("there is no such source")


async def _known(tx: Transaction, ids: Sequence[UUID]) -> Mapping[UUID | None, RowMapping]:
    """Those of these passages that are there and that this reader sees."""
    if not ids:
        return {}
    columns: Any = _TABLE.c
    rows = await tx.rows(
        select(columns.id, columns.source_id, columns.ordinal, columns.text).where(
            columns.tenant_id == tx.tenant_id, columns.id.in_(ids)
        )
    )
    return {row["id"]: row for row in rows}


def _taken(ident: UUID | None) -> ConflictError:
    return ConflictError(f"the id {ident} is taken by another passage: leave the id out")
