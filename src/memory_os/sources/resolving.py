"""Where evidence leads: the sources that the writer sees, their readers, and the span of each quote in its passage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select

from memory_os.checking import check_word
from memory_os.domain.audiences import Audience
from memory_os.domain.shapes import check_text
from memory_os.domain.sources import SUPPORTS
from memory_os.errors import FieldError
from memory_os.sources.evidence_model import EvidenceDraft
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction

_SOURCES = provenance_tables.sources
NO_SOURCE = "there is no such source"


@dataclass(frozen=True, slots=True)
class Support:
    """Evidence on its way into the database: it leads to a source, and a quote is a span of its passage."""

    source_id: UUID
    passage_id: UUID | None
    support: str
    confidence: float
    quote_start: int | None = None
    quote_end: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What stands once for a memory."""
        return self.source_id, self.passage_id, self.support, self.quote_start, self.quote_end


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where the evidence of some drafts leads.

    Attributes:
        supports: The evidence of each draft, in order.
        faults: What is wrong with it, by the place of the draft, with pointers that begin at its evidence.
        readers: The readers of each source.
    """

    supports: Sequence[Sequence[Support]]
    faults: Mapping[int, Sequence[FieldError]]
    readers: Mapping[UUID, Audience]


def evidence_faults(drafts: Sequence[EvidenceDraft], pointer: str = "/evidence/{}") -> list[FieldError]:
    """What is wrong with evidence, as far as that can be told without looking it up.

    Args:
        drafts: What comes.
        pointer: Where each of them stands in the body; its place is put in.

    Raises:
        UnknownTermError: If a support is none of the four.
    """
    faults = []
    for index, draft in enumerate(drafts):
        here = pointer.format(index)
        check_word(f"{here}/support", draft.support, SUPPORTS, noun="kind of support")
        if draft.quote is not None:
            if fault := check_text(draft.quote):
                faults.append(FieldError(f"{here}/quote", fault))
            elif not draft.quote.strip():
                faults.append(FieldError(f"{here}/quote", "must not be blank"))
    return faults


async def resolve(
    tx: Transaction, drafts: Sequence[Sequence[EvidenceDraft]], pointer: str = "/evidence/{}"
) -> Resolved:
    """Look up where evidence leads, and hold its sources as they are until the end of the transaction.

    To be called before memories are locked, as by who deletes a source.

    Args:
        tx: The unit of work.
        drafts: The checked evidence of each memory.
        pointer: Where each piece stands in the body; its place is put in.
    """
    given = [(index, place, one) for index, some in enumerate(drafts) for place, one in enumerate(some)]
    readers = await _hold(tx, {one.source_id for _, _, one in given})
    seen = [each for each in given if each[2].source_id in readers]
    found = await _find(tx, [one for _, _, one in seen])
    supports: list[list[Support]] = [[] for _ in drafts]
    faults: dict[int, list[FieldError]] = {}
    for index, place, one in given:
        if one.source_id not in readers:
            fault = FieldError(f"{pointer.format(place)}/source_id", NO_SOURCE)
            faults.setdefault(index, []).append(fault)
    for (index, place, one), row in zip(seen, found, strict=True):
        made = _support(one, row, pointer.format(place))
        if isinstance(made, FieldError):
            faults.setdefault(index, []).append(made)
        else:
            supports[index].append(made)
    return Resolved(supports, faults, readers)


async def _hold(tx: Transaction, ids: Iterable[UUID]) -> dict[UUID, Audience]:
    """The readers of those sources that this reader sees."""
    wanted = set(ids)
    if not wanted:
        return {}
    columns = _SOURCES.c
    rows = await tx.rows(
        select(columns.id, columns.visibility, columns.user_id, columns.reader_users, columns.reader_groups)
        .where(columns.tenant_id == tx.tenant_id, columns.id.in_(wanted))
        .order_by(columns.id)
        .with_for_update(read=True)
    )
    return {row["id"]: Audience.of_columns(row) for row in rows}


async def _find(tx: Transaction, drafts: Sequence[EvidenceDraft]) -> list[dict[str, Any]]:
    """A row for each piece of evidence; nothing is looked up for those that name a source alone."""
    rows: list[dict[str, Any]] = [{"passage_id": None, "place": None, "there": True} for _ in drafts]
    wanted = [n for n, one in enumerate(drafts) if one.passage_id is not None or one.quote is not None]
    if not wanted:
        return rows
    found = await tx.hot(
        "find_passages",
        {
            "tenant_id": tx.tenant_id,
            "n": wanted,
            "source_ids": [drafts[n].source_id for n in wanted],
            "passage_ids": [drafts[n].passage_id for n in wanted],
            "quotes": [drafts[n].quote for n in wanted],
        },
    )
    for row in found:
        rows[row["n"]] = row
    return rows


def _support(draft: EvidenceDraft, row: Mapping[str, Any], here: str) -> Support | FieldError:
    if draft.passage_id is not None and not row["there"]:
        return FieldError(f"{here}/passage_id", "the source has no such passage")
    if draft.quote is None:
        return Support(draft.source_id, draft.passage_id, draft.support, draft.confidence)
    if row["passage_id"] is None:
        where = "the passage does not say it" if draft.passage_id is not None else "no passage of the source says it"
        return FieldError(f"{here}/quote", f"{where} word for word")
    start: int = row["place"]
    end = start + len(draft.quote)
    return Support(draft.source_id, row["passage_id"], draft.support, draft.confidence, start, end)
