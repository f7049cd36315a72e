"""Where records come from: the sources that a pack cites, as far as its reader may know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_os.retrieval.arms import Ref
from memory_os.retrieval.fusing import Candidate
from memory_os.retrieval.model import PackSource
from memory_os.storage.database import Query, Transaction


@dataclass(frozen=True, slots=True)
class Origins:
    """By memory its strongest living evidence, by passage its source, and by passage the memories that state it."""

    sources: Mapping[Ref, PackSource]
    stated: Mapping[UUID, frozenset[UUID]]

    def tell(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with where they come from."""
        return [
            replace(candidate, source=self.sources.get(ref), stated_by=self.stated.get(ref.id, frozenset()))
            for candidate in candidates
            for ref in (candidate.record.ref,)
        ]


async def cite(tx: Transaction, refs: Iterable[Ref], believed_at: datetime | None = None) -> Origins:
    """Look up where memories and passages come from, in the unit of work that read them.

    Args:
        tx: The unit of work, in the reader's scope.
        refs: Records that this reader sees, of any type.
        believed_at: When the evidence must have been on record, and not withdrawn; now by default.
    """
    ids: dict[str, list[UUID]] = {"memory": [], "passage": []}
    for ref in refs:
        if ref.type in ids:
            ids[ref.type].append(ref.id)
    return origins_of((await tx.together(ask_origins(tx, ids["memory"], ids["passage"], believed_at)))[0])


def ask_origins(
    tx: Transaction, memories: list[UUID], passages: list[UUID], believed_at: datetime | None = None
) -> Query | None:
    """What looks up where these come from, as far as this reader may know, for `origins_of`; None for nothing."""
    if not memories and not passages:
        return None
    given = {"tenant_id": tx.tenant_id, "memories": memories, "passages": passages, "believed_at": believed_at}
    return Query("cite_records", given)


def origins_of(rows: Iterable[Mapping[str, Any]]) -> Origins:
    """Where records come from, from the rows that `ask_origins` asked for."""
    sources: dict[Ref, PackSource] = {}
    stated: dict[UUID, set[UUID]] = defaultdict(set)
    for row in rows:
        if row["kind"] == "states":
            stated[row["passage_id"]].add(row["record_id"])
        else:
            sources[Ref("memory" if row["kind"] == "evidence" else "passage", row["record_id"])] = _source_of(row)
    return Origins(sources, {passage: frozenset(memories) for passage, memories in stated.items()})


def _source_of(row: Mapping[str, Any]) -> PackSource:
    return PackSource(row["source_id"], row["title"], row["date"], row["support"], row["quote"])
