"""What a run has to do to a world, worked out from its rows by the rules of the domain in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from memory_os.domain.audiences import Audience
from memory_os.domain.cycles.forgetting import (
    STEP,
    UsedEdge,
    faded_confidence,
    goes_with_retired,
    is_expired,
    is_prunable,
    is_stale,
)
from memory_os.domain.extraction import EXTRACTOR_VERSION

Row = Mapping[str, Any]
Rows = Mapping[str, list[dict[str, Any]]]
_APART: Final = ("EVOLVED_INTO", "SUPERSEDES", "DUPLICATES", "EXTRACTED_FROM")


class Oracle:
    """What is due in a tenant.

    Args:
        rows: By table.
        moment: When.
    """

    def __init__(self, rows: Rows, moment: datetime) -> None:
        self._rows = rows
        self._moment = moment
        self._memories = {row["id"]: row for row in rows["memories"]}
        self._entities = {row["id"]: row for row in rows["entities"]}

    def due(self, cycle: str) -> dict[str, set[UUID]]:
        """What each forgetting rule of a cycle does something to; a rule passes over what one before it took."""
        found, taken = dict[str, set[UUID]](), set[UUID]()
        for rule, work in _RULES[cycle].items():
            found[rule] = work(self) - taken
            taken |= found[rule]
        return found

    def edge(self, row: Row) -> UsedEdge:
        """An edge as the rules see it."""
        ends = [self._memories[end] for end in (row["source_memory_id"], row["target_memory_id"]) if end]
        committed = any(end["label"] == "Commitment" for end in ends)
        figures = (row["confidence"], row["co_reference_count"], row["used_at"], row["faded_at"])
        return UsedEdge(row["type"], *figures, committed)

    def faded(self) -> set[UUID]:
        """Edges that have lost a step."""
        found = set[UUID]()
        for row in self._rows["edges"]:
            after = faded_confidence(self.edge(row), self._moment)
            if row["confidence"] > after <= row["confidence"] * (1 - STEP):
                found.add(row["id"])
        return found

    def pruned(self) -> set[UUID]:
        """Edges that are put away."""
        return {row["id"] for row in self._rows["edges"] if is_prunable(self.edge(row), self._moment)}

    def unheld(self) -> set[UUID]:
        """Derived entities that nothing names or holds."""
        tied = {
            end
            for table, ends in (
                ("edges", ("source_entity_id", "target_entity_id")),
                ("archived_edges", ("source_entity_id", "target_entity_id")),
                ("entity_links", ("entity_id", "target_entity_id")),
                ("mentions", ("entity_id",)),
            )
            for row in self._rows[table]
            for end in (row[name] for name in ends)
        }
        mine = self._rows["entities"]
        return {row["id"] for row in mine if not row["declared"] and row["created_at"] <= self._moment} - tied

    def expired(self) -> set[UUID]:
        """Memories that have come to their date."""
        return {row["id"] for row in self._active() if is_expired(row["label"], row["valid_to"], self._moment)}

    def staled(self) -> set[UUID]:
        """Memories whose mark has to change."""
        found = set[UUID]()
        for row in self._active():
            used = max(row["created_at"], row["updated_at"], row["used_at"] or row["created_at"])
            perishable = row["label"] in ("Reference", "Resource")
            if perishable and is_stale(row["label"], used, self._moment) != (row["stale_at"] is not None):
                found.add(row["id"])
        return found

    def unread(self) -> set[UUID]:
        """Memories that another extractor read."""
        by_now = {
            row["memory_id"] for row in self._rows["extractions"] if row["extractor_version"] == EXTRACTOR_VERSION
        }
        mine = self._rows["memories"]
        return {row["id"] for row in mine if row["created_at"] <= self._moment} - by_now

    def retired(self) -> set[UUID]:
        """Memories that go with what they refer to."""
        return {
            row["id"]
            for row in self._active()
            if goes_with_retired(row["label"]) and row["created_at"] <= self._moment and self._goes(row)
        }

    def _active(self) -> list[dict[str, Any]]:
        return [row for row in self._rows["memories"] if row["status"] == "active"]

    def _goes(self, memory: Row) -> bool:
        out, into = set[UUID](), set[UUID]()
        for row in self._rows["edges"]:
            if row["type"] not in _APART:
                if row["source_memory_id"] == memory["id"] and row["target_entity_id"]:
                    out.add(row["target_entity_id"])
                if row["target_memory_id"] == memory["id"] and row["source_entity_id"]:
                    into.add(row["source_entity_id"])
        links = [row for row in self._rows["entity_links"] if row["target_id"] == memory["id"]]
        ended = {row["entity_id"] for row in links if row["valid_to"] and row["valid_to"] <= self._moment}
        lasting = {row["entity_id"] for row in links if not row["valid_to"] or row["valid_to"] > self._moment}
        named = {row["entity_id"] for row in self._rows["mentions"] if row["memory_id"] == memory["id"]}
        named = {ident for ident in named if self._entities[ident]["declared"]}
        firm = self._of(memory, out | lasting | ended, "retired") | self._of(memory, ended)
        alive = self._of(memory, out | into | lasting, "active")
        if firm:
            return not alive
        loose = self._of(memory, named, "retired")
        return bool(loose) and not alive and not self._of(memory, named, "active")

    def _of(self, memory: Row, ids: set[UUID], status: str | None = None) -> set[UUID]:
        """Those entities that all readers of a memory may know, in a status."""
        readers = Audience.of_columns(memory)
        rows = [self._entities[ident] for ident in ids]
        return {
            row["id"] for row in rows if status in (None, row["status"]) and Audience.of_columns(row).covers(readers)
        }


_RULES: Final[dict[str, dict[str, Callable[[Oracle], set[UUID]]]]] = {
    "nightly": {
        "drop_entities": Oracle.unheld,
        "decay_edges": Oracle.faded,
        "expire_opportunities": Oracle.expired,
        "mark_stale": Oracle.staled,
        "extract_again": Oracle.unread,
    },
    "monthly": {"prune_edges": Oracle.pruned, "archive_retired": Oracle.retired},
}
