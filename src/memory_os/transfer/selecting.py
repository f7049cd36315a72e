"""The statements of an export: what of each kind belongs to a tenant, or to one user of it, in the order of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from memory_os.transfer.kinds import KINDS, LOGGED, Kind

_POINTED_AT: Final = (
    "(t.declared"
    " OR EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = t.tenant_id AND g.source_entity_id = t.id)"
    " OR EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = t.tenant_id AND g.target_entity_id = t.id)"
    " OR EXISTS (SELECT 1 FROM archived_edges AS g WHERE g.tenant_id = t.tenant_id AND g.source_entity_id = t.id)"
    " OR EXISTS (SELECT 1 FROM archived_edges AS g WHERE g.tenant_id = t.tenant_id AND g.target_entity_id = t.id)"
    " OR EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = t.tenant_id AND l.entity_id = t.id)"
    " OR EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = t.tenant_id AND l.target_entity_id = t.id)"
    " OR EXISTS (SELECT 1 FROM entity_acts AS a WHERE a.tenant_id = t.tenant_id AND a.entity_id = t.id))"
)
"""Of derived entities those that something points at; the others come back with the memories that name them."""

_OWN_MEMORIES: Final = (
    "t.memory_id IN (SELECT m.id FROM memories AS m WHERE m.tenant_id = %(tenant_id)s AND m.user_id = %(user)s)"
)
_OWN_ENTITIES: Final = (
    "t.entity_id IN (SELECT e.id FROM entities AS e WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user)s)"
)
_OWN_SOURCES: Final = (
    "t.source_id IN (SELECT s.id FROM sources AS s WHERE s.tenant_id = %(tenant_id)s AND s.user_id = %(user)s)"
)

_OF_USER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "source": "t.user_id = %(user)s",
        "passage": _OWN_SOURCES,
        "memory": "t.user_id = %(user)s",
        "entity": "t.declared AND t.user_id = %(user)s",
        "observation": "t.user_id = %(user)s",
        "procedure": "t.user_id = %(user)s",
        "outcome": "t.user_id = %(user)s",
        "evidence": f"(t.acting_user = %(user)s OR {_OWN_MEMORIES} OR {_OWN_SOURCES})",
        "memory_act": f"(t.user_id = %(user)s OR {_OWN_MEMORIES})",
        "entity_act": f"(t.user_id = %(user)s OR {_OWN_ENTITIES})",
        "correction": f"(t.proposed_user = %(user)s OR t.decided_user = %(user)s OR {_OWN_MEMORIES})",
        "retrieval": "t.user_id = %(user)s",
        "feedback": "t.user_id = %(user)s",
    }
)
"""What belongs to a user, and what is said about them: by kind, as a condition."""

_HIDDEN_FROM_USERS: Final = frozenset({"before"})
"""Rows as they were, for an undo: they may be of what others have written, and no reader is shown them."""

_DEPTHS: Final = """
WITH RECURSIVE depths (id, depth) AS (
    SELECT m.id, 1 FROM memories AS m
    JOIN memories AS n ON n.tenant_id = m.tenant_id AND n.id = m.superseded_by
    WHERE m.tenant_id = %(tenant_id)s AND m.superseded_by IS NOT NULL AND n.superseded_by IS NULL
    UNION ALL
    SELECT m.id, d.depth + 1 FROM depths AS d
    JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.superseded_by = d.id
)
"""
"""How many memories stand in the place of each one: what takes the place of another has to be there before it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of an export: all of a tenant, or what concerns one user."""

    kinds: tuple[Kind, ...]
    user: str | None = None

    def parameters(self, tenant_id: object) -> dict[str, Any]:
        """What its statements are given."""
        given = {"tenant_id": tenant_id}
        return given if self.user is None else {**given, "user": self.user}

    def count(self, kind: Kind) -> str:
        """How many rows there are of a kind."""
        return f"SELECT count(*) FROM {kind.table.name} AS t WHERE {self._condition(kind)}"  # noqa: S608 - our own names

    def rows(self, kind: Kind) -> str:
        """The rows of a kind as JSON, in the order of a file."""
        hidden = _HIDDEN_FROM_USERS if self.user is not None else frozenset[str]()
        columns = ", ".join(f't."{name}"' for name in kind.columns if name not in hidden)
        ident = "id" if "id" in kind.columns else "retrieval_id, given.record_id"
        selected = f"SELECT {columns} FROM {kind.table.name} AS t WHERE {self._condition(kind)}"  # noqa: S608 - as above
        if kind.name != "memory":
            return f"SELECT row_to_json(given)::text FROM ({selected}) AS given ORDER BY given.{ident}"  # noqa: S608 - as above
        return (
            f"{_DEPTHS}SELECT row_to_json(given)::text FROM ({selected}) AS given "  # noqa: S608 - as above
            "LEFT JOIN depths ON depths.id = given.id "
            "ORDER BY CASE WHEN given.superseded_by IS NULL THEN 0 ELSE coalesce(depth, 2147483647) END, given.id"
        )

    def _condition(self, kind: Kind) -> str:
        mine = "t.tenant_id = %(tenant_id)s"
        if self.user is not None:
            return f"{mine} AND {_OF_USER[kind.name]}"
        return f"{mine} AND {_POINTED_AT}" if kind.name == "entity" else mine


EVERYTHING: Final = Selection(tuple(KINDS.values()))
"""All that is durable of a tenant."""


def of_user(user: str) -> Selection:
    """What belongs to a user and is said about them."""
    every = (*KINDS.values(), *LOGGED)
    return Selection(tuple(kind for kind in every if kind.name in _OF_USER), user)
