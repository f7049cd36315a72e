"""Raw SQL as the API's role, by principals who may not read what one user of their tenant hides.

All of it is generated from the catalog: a table or column that is new is pried into from its first day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID, uuid4

import psycopg
from psycopg import errors, sql

Row = dict[str, Any]
Connection = psycopg.Connection[Any]

KNOWN: Mapping[str, str] = {
    "outbox_events.aggregate_id": "the queue is its operators'; ids and versions, no words",
    "graph_tombstones.aggregate_id": "what is gone from the graph, by id",
    "audit_log.target_id": "who did what to which id, for admins; what was written stands in audit_contents",
    "audit_log.detail": "the same: ids, states and counts",
    "audit_contents.target_id": "beside the content, which has readers of its own",
    "memories.superseded_by": "the column of a row is shown whole; answers look the successor up under the policies",
    "idempotency_keys.record_ids": "whose answers an erasure takes with it; the answers themselves are sealed",
    "corrections.source_id": "who may read the memory sees what is said of it; answers look the source up",
    "retrieval_items.record_id": "operators see by id what was handed out to whom",
    "retrieval_items.path": "the same",
    "retrieval_items.retrieval_id": "the same",
    "retrieval_edges.edge_id": "the same",
    "retrieval_edges.record_id": "the same",
    "retrieval_edges.retrieval_id": "the same",
    "retrieval_edges.reason": "the same, in the service's own words",
    "retrieval_feedback.record_id": "the same",
    "retrieval_feedback.retrieval_id": "the same",
    "edge_reinforcements.edge_id": "the same",
    "edge_reinforcements.retrieval_id": "the same",
    "edge_reinforcements.period": "the same: it names the conversation",
    "retrievals.id": "operators see what was asked",
    "memory_acts.other_id": "who sees one of two memories sees the act; answers look the other up",
    "memory_acts.before": "what an undo puts back, which no answer shows: ids and states",
    "entity_acts.before": "the same",
    "cycle_actions.target_id": "reviewers, operators and admins see by id what cycles did; states, no words",
    "cycle_actions.other_id": "the same",
}
"""Columns that may hold ids of what is hidden, in rows that may be seen, and no words of it; and why."""

SHOWN_TO_OVERSEERS: Mapping[str, str] = {
    "retrievals.query": "operators see what was asked, whoever asked it",
    "retrieval_edges.reason": "why a walk did not count",
    "edge_reinforcements.period": "it names the conversation in which a walk counted",
}
"""Columns of which operators and admins may be shown words, too; and why."""

OVERSEERS = ("operator", "admin")


@dataclass(frozen=True)
class Principal:
    """Somebody inside the tenant who may not read what is hidden."""

    name: str
    role: str
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """What a statement of a stranger's told about something hidden."""

    principal: Principal
    table: str
    command: str
    what: str


def strangers(user: str) -> list[Principal]:
    """Principals of every kind and role, with names that are near to that of the user who hides."""
    others = {
        "nobody": ("", ()),
        "somebody": ("somebody", ("another group",)),
        "the beginning of the name": (user[:-1], (f"group {user[5:-1]}",)),
        "more than the name": (f"{user}x", (f"group {user[5:]}x", user)),
        "another case": (user.upper(), (f"GROUP {user[5:]}",)),
        "wildcards": ("%", ("%", "group %", "_" * len(user))),
    }
    roles = ("reader", "writer", "reviewer", *OVERSEERS)
    return [Principal("nobody", role) for role in roles] + [
        Principal(name, "writer", who, tuple(groups)) for name, (who, groups) in others.items() if who
    ]


@contextmanager
def acting(url: str, tenant_id: UUID, principal: Principal) -> Iterator[Connection]:
    """A transaction of the API's role as a principal; rolled back at the end."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT set_config('memory_os.tenant_id', %s, true), set_config('memory_os.role', %s, true), "
            "set_config('memory_os.user_id', %s, true), set_config('memory_os.groups', %s, true)",
            (str(tenant_id), principal.role, principal.user, "\x1f".join(principal.groups)),
        )
        yield connection
        connection.rollback()


def is_granted(connection: Connection, table: str, command: str) -> bool:
    """Whether the role may run the command on the table at all."""
    row = connection.execute("SELECT has_table_privilege(%s, %s)", (table, command)).fetchone()
    return bool(row and row[0])


class Prying:
    """Tries to learn something about what is hidden.

    Args:
        connection: A transaction as a stranger.
        principal: Who that is.
        word: Stands in every text of it.
        ids: Its ids.
    """

    def __init__(self, connection: Connection, principal: Principal, word: str, ids: Sequence[str]) -> None:
        self._connection, self._word = connection, word
        self._principal = principal
        self._hidden = re.compile("|".join((word, *ids)))

    def pry(self, table: str) -> Iterator[Told]:
        """Everything that reading, changing and deleting in a table tells."""
        name = sql.Identifier(table)
        returned = sql.SQL("RETURNING to_jsonb({})").format(name)
        statements: dict[LiteralString, sql.Composed] = {
            "SELECT": sql.SQL("SELECT to_jsonb(t) FROM {} t").format(name),
            "UPDATE": sql.SQL("UPDATE {} SET tenant_id = tenant_id {}").format(name, returned),
            "DELETE": sql.SQL("DELETE FROM {} {}").format(name, returned),
        }
        for command, statement in statements.items():
            if is_granted(self._connection, table, command):
                for row in self._rows(statement):
                    yield from self._told(table, command, row)
        if is_granted(self._connection, table, "SELECT"):
            yield from self._copied(table)
            yield from self._divided(table)

    def _rows(self, statement: sql.Composed) -> list[Row]:
        try:
            with self._connection.transaction(force_rollback=True):
                return [row[0] for row in self._connection.execute(statement).fetchall()]
        except (errors.ForeignKeyViolation, errors.InsufficientPrivilege):
            return []  # something else holds these rows, or some of them may not be written

    def _told(self, table: str, command: str, row: Row) -> Iterator[Told]:
        for column, value in row.items():
            if self._tells(f"{table}.{column}", json.dumps(value, default=str).lower()):
                yield Told(self._principal, table, command, f"{column}: {value}")

    def _tells(self, column: str, value: str) -> bool:
        if column in SHOWN_TO_OVERSEERS and self._principal.role in OVERSEERS:
            return False
        return self._word in value if column in KNOWN else bool(self._hidden.search(value))

    def _copied(self, table: str) -> Iterator[Told]:
        """A copy of the table holds the rows that a query would show, and no more; none can be copied into it."""
        name = sql.Identifier(table)
        with self._connection.cursor() as cursor:
            cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(name))
            counted = cursor.fetchone()
            with cursor.copy(sql.SQL("COPY (TABLE {}) TO STDOUT").format(name)) as copy:
                copied = sum(bytes(part).count(b"\n") for part in copy)
        if counted != (copied,):
            yield Told(self._principal, table, "COPY TO", f"{copied} rows instead of {counted}")
        try:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(name)):
                    pass
                yield Told(self._principal, table, "COPY FROM", "is not refused")
        except (errors.FeatureNotSupported, errors.InsufficientPrivilege):
            pass

    def _divided(self, table: str) -> Iterator[Told]:
        """A condition that fails on a hidden row must not be asked of it before the policy is."""
        known = [name.partition(".")[2] for name in (*KNOWN, *SHOWN_TO_OVERSEERS) if name.startswith(f"{table}.")]
        statement = sql.SQL(
            "SELECT count(*) FROM {} t "
            "WHERE 1 / (CASE WHEN lower((to_jsonb(t) - %s::text[])::text) ~ %s THEN 0 ELSE 1 END) = 1"
        ).format(sql.Identifier(table))
        try:
            with self._connection.transaction():
                self._connection.execute(statement, (known, self._hidden.pattern))
        except errors.DivisionByZero:
            yield Told(self._principal, table, "SELECT", "a condition was asked of a hidden row")


@dataclass(frozen=True)
class Reference:
    """A column of ids, and what makes a row of its table that points elsewhere."""

    table: str
    column: str
    is_key: bool


def references(owner: Connection) -> list[Reference]:
    """Every column of ids of every table with tenants; a generated one by what it is generated from."""
    rows = owner.execute(
        "SELECT c.relname, a.attname, EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = c.oid "
        "AND k.contype = 'f' AND a.attnum = ANY (k.conkey[2:])) FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.atttypid = 'uuid'::regtype AND NOT a.attisdropped "
        "AND a.attgenerated = '' AND a.attname NOT IN ('tenant_id', 'id') "
        "JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id' "
        "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace "
        "ORDER BY 1, 2"
    ).fetchall()
    generated = {("entity_links", "target_id"), ("evidence", "source_id")}
    return [Reference(table, column, key or (table, column) in generated) for table, column, key in rows]


class Pointing:
    """Rows of one table that point elsewhere with one column, made of a row that its principal sees.

    Args:
        connection: A transaction as the principal.
        reference: Table and column.
        row: What such a row holds.
    """

    def __init__(self, connection: Connection, reference: Reference, row: Row) -> None:
        self._connection = connection
        self._table = sql.Identifier(reference.table)
        self._row = row
        computed = {
            found[0]
            for found in connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''",
                (reference.table,),
            )
        }
        self._stored = {name: value for name, value in row.items() if name not in computed}

    def answer_to(self, command: str, given: Row) -> tuple[str, ...]:
        """What the database says to that: how it refuses, apart from ids, or that it does not."""
        if "model" in self._row:
            given = {**given, "model": "another"}  # so that no key is taken
        try:
            with self._connection.transaction(force_rollback=True):
                if command == "INSERT":
                    self._insert(given)
                else:
                    self._update(given)
                return ("stored",)
        except errors.Error as error:
            said = (error.diag.message_primary, error.diag.message_detail, error.diag.constraint_name)
            return (str(error.sqlstate), *(_without_ids(part) for part in said))

    def _insert(self, given: Row) -> None:
        made = self._stored | given
        if "id" in made:
            made["id"] = _fresh(made["id"])
        columns = sql.SQL(", ").join(map(sql.Identifier, made))
        statement = sql.SQL(
            "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM jsonb_populate_record(NULL::{}, %s)"
        ).format(self._table, columns, columns, self._table)
        self._connection.execute(statement, (json.dumps(made),))

    def _update(self, given: Row) -> None:
        sets = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in given)
        statement = sql.SQL("UPDATE {} t SET {} WHERE to_jsonb(t) = %s").format(self._table, sets)
        self._connection.execute(statement, (*given.values(), json.dumps(self._row)))


def _fresh(old: object) -> object:
    return str(uuid4()) if isinstance(old, str) else 2**40


def _without_ids(text: str | None) -> str:
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "an id", text or "")
