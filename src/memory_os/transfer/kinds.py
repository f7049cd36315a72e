"""Which rows an export holds, in which order, and which of their columns.

The order satisfies the foreign keys. Columns are those of the tables but for what is derived from others: vectors,
search vectors, generated columns, counts of mentions, and the readers that a passage has from its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from sqlalchemy import Table

from memory_os.outbox.events import AggregateType
from memory_os.storage import cycle_tables, provenance_tables, retrieval_tables, tables

READERS: Final = ("visibility", "user_id", "reader_users", "reader_groups")


@dataclass(frozen=True)
class Kind:
    """One type of record in an export.

    Attributes:
        name: As the lines call it.
        table: Where its rows are.
        derived: Columns that are made anew.
        searched: Columns whose texts the search vector is made of, in this order.
        aggregate: What the graph calls it; None for what has no place there.
        names_entities: Its rows may hold ids of derived entities, which are another tenant's own.
    """

    name: str
    table: Table
    derived: frozenset[str] = frozenset()
    searched: tuple[str, ...] = ()
    aggregate: AggregateType | None = None
    names_entities: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a line, in the order of the table."""
        return tuple(c.name for c in self.table.c if c.name != "tenant_id" and c.name not in self.derived)


def _record(name: str) -> Kind:
    return Kind(name, tables.RECORD_TABLES[name], frozenset({"search"}), ("title", "summary"))


_TARGETS = frozenset(
    f"target_{layer}_id" for layer in ("entity", "memory", "observation", "procedure", "outcome", "source")
)
_COUNTED = frozenset({"first_seen", "last_seen", "mention_records", "mention_occurrences", "mention_confidence"})

_ROWS: Final = (
    Kind("source", provenance_tables.sources),
    Kind("passage", provenance_tables.passages, frozenset({*READERS, "search", "embedding_model"}), ("text",)),
    Kind("memory", tables.memories, frozenset({"search", "embedding_model"}), ("title", "text"), "memory"),
    Kind(
        "entity",
        tables.entities,
        _COUNTED | {"canonical_name", "embedding", "embedding_model", "search"},
        aggregate="entity",
        names_entities=True,
    ),
    _record("observation"),
    _record("procedure"),
    _record("outcome"),
    Kind("entity_link", tables.entity_links, _TARGETS, aggregate="entity_link", names_entities=True),
    Kind("edge", tables.edges, aggregate="edge", names_entities=True),
    Kind("archived_edge", cycle_tables.archived_edges, names_entities=True),
    Kind("evidence", provenance_tables.evidence, frozenset({"living_source_id"})),
    Kind("memory_act", tables.memory_acts, names_entities=True),
    Kind("entity_act", provenance_tables.entity_acts, names_entities=True),
    Kind("memory_review", tables.memory_reviews),
    Kind("correction", provenance_tables.corrections, names_entities=True),
    Kind("cycle_schedule", cycle_tables.cycle_schedules),
)

KINDS: Final[Mapping[str, Kind]] = MappingProxyType({kind.name: kind for kind in _ROWS})
"""The types of records by name, in the order of a file."""

LOGGED: Final = (Kind("retrieval", retrieval_tables.retrievals), Kind("feedback", retrieval_tables.retrieval_feedback))
"""What the export of a user holds beside these: what they asked, and what they said of the answers."""
