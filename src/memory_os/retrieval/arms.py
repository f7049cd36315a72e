"""What the arms have in common: addresses, the time asked about; named entities, and how far the graph follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from memory_os.domain.naming import NamedEntity, name_groups, named_in
from memory_os.retrieval.model import RecordType
from memory_os.storage.database import Query, Transaction

ARM_LIMIT: Final = 50
"""Hits of one arm: six times the default pack, so that fusion has something to choose from."""

LAG_LIMIT: Final = 10_000
"""Events counted at most."""


_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)


class Ref(NamedTuple):
    """Address of a record that a retrieval may show."""

    type: RecordType
    id: UUID


@dataclass(frozen=True, slots=True)
class Window:
    """The time asked about (None: now, by the database's clock), and whether what is past is wanted too.

    `believed_at` asks what was believed at an earlier moment; where no other time is asked about, `as_of` is that, too.
    """

    as_of: datetime | None
    history: bool
    believed_at: datetime | None = None

    @property
    def searched(self) -> Window:
        """What the arms look through: of an earlier belief everything, since the rows of today don't tell what held."""
        return self if self.believed_at is None else Window(_END_OF_TIME, history=True)


@dataclass(frozen=True, slots=True)
class GraphPosition:
    """How far a graph follows the canonical rows.

    Attributes:
        lag: Events that it still lacks, `LAG_LIMIT` at most.
        position: Every event up to here has been projected, or parked as dead.
        incomplete: Some event is dead.
        now: The database's clock.
        doubted: The graph was lost, damaged, or on a server that was restarted, and is not known to be mended.
        epochs: What the tenant's graph may be known by; none before there is a graph.
    """

    lag: int
    position: int
    incomplete: bool
    now: datetime
    doubted: bool = False
    epochs: frozenset[str] = frozenset()


def ask_named(tx: Transaction, query: str, window: Window) -> Query | None:
    """What looks for the entities that a question names, for `named_of`; None if there is no name in it."""
    groups = name_groups(query)
    if not groups:
        return None
    return Query("find_named_entities", {"tenant_id": tx.tenant_id, "names": groups, "history": window.history})


def named_of(query: str, rows: Sequence[Mapping[str, Any]]) -> list[UUID]:
    """The entities that the question names, declared and derived, in the order of the question."""
    return named_in(query, (NamedEntity(row["id"], row["canonical_name"], row["surface"]) for row in rows))


async def read_position(tx: Transaction) -> GraphPosition:
    """How far the tenant's graph follows its canonical rows at this moment."""
    return position_of(await tx.hot(*ask_position(tx)))


def ask_position(tx: Transaction) -> Query:
    """What reads how far the graph is, for `position_of`."""
    return Query("graph_position", {"tenant_id": tx.tenant_id, "limit": LAG_LIMIT})


def position_of(rows: Sequence[Mapping[str, Any]]) -> GraphPosition:
    """How far the graph is."""
    row = rows[0]
    if row["counted"] >= LAG_LIMIT:
        position = 0  # the oldest of them was not looked for, and nothing may be promised
    elif row["oldest"] is not None:
        position = row["oldest"] - 1
    else:
        position = row["newest"] or 0
    epochs = frozenset(epoch for epoch in row["epochs"] or () if epoch is not None)
    return GraphPosition(row["lag"], position, row["incomplete"], row["now"], bool(row["doubted"]), epochs)
