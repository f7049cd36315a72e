"""Tries every command on every table, from inside a tenant and from outside of any, on rows that are another's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import errors, sql
from tests.fixtures.postgres import DatabaseUrls
from tests.security.worlds import World, tenant_tables

EVERYWHERE = {
    "memory_os_app": frozenset[str](),
    # See `catalog.ACROSS_TENANTS`: the queue, its leases and jobs, the state of the graphs, which tenants there are.
    "memory_os_worker": frozenset(
        {
            *("tenants", "outbox_events", "projection_leases", "graph_rebuilds"),
            *("graph_verifications", "graph_states", "graph_tombstones", "retrieval_edges"),
        }
    ),
}
"""Tables that a role sees all of, whatever tenant it has entered."""

COMMANDS: tuple[LiteralString, ...] = ("SELECT", "INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True)
class Reach:
    """What one role can do to one table from inside a scope."""

    role: str
    table: str
    command: str
    scope: str


@contextmanager
def inside(url: str, tenant_id: UUID | None, role: str = "admin") -> Iterator[psycopg.Connection[Any]]:
    """A transaction of a service role that has entered a tenant, or none; rolled back at the end."""
    with psycopg.connect(url) as connection:
        if tenant_id is not None:
            connection.execute(
                "SELECT set_config('memory_os.tenant_id', %s, true), set_config('memory_os.role', %s, true)",
                (str(tenant_id), role),
            )
        yield connection
        connection.rollback()


def leaks(urls: DatabaseUrls, mine: World, other: World) -> list[Reach]:
    """What reaches a row of `other`, tried as both roles from inside `mine` and from outside of any tenant."""
    with psycopg.connect(urls.owner_url) as owner:
        tables = tenant_tables(owner)
        rows = {table: _row_of(owner, table, other.tenant.tenant_id) for table in tables}
    found = []
    for role, url in (("memory_os_app", urls.app_url), ("memory_os_worker", urls.worker_url)):
        for scope, tenant_id in (("another tenant", mine.tenant.tenant_id), ("no tenant", None)):
            for table in tables:
                for command in COMMANDS:
                    if table in EVERYWHERE[role]:
                        continue
                    with inside(url, tenant_id) as connection:
                        if _reaches(connection, table, command, other.tenant.tenant_id, rows[table]):
                            found.append(Reach(role, table, command, scope))
    return found


def _row_of(owner: psycopg.Connection[Any], table: str, tenant_id: UUID) -> str:
    """A row of the tenant in that table, as JSON."""
    statement = sql.SQL("SELECT to_jsonb(t) FROM {} t WHERE tenant_id = %s LIMIT 1").format(sql.Identifier(table))
    row = owner.execute(statement, (tenant_id,)).fetchone()
    assert row, f"{table} has no row to try with: fill_world must make one"
    return json.dumps(row[0])


def _reaches(
    connection: psycopg.Connection[Any], table: str, command: LiteralString, tenant_id: UUID, row: str
) -> bool:
    """Whether a command touches a row of that tenant; any other refusal than for want of rights is raised."""
    name = sql.Identifier(table)
    try:
        if command == "INSERT":
            columns = sql.SQL(", ").join(map(sql.Identifier, _stored_columns(connection, table)))
            statement = sql.SQL(
                "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM jsonb_populate_record(NULL::{}, %s)"
            ).format(name, columns, columns, name)
            connection.execute(statement, (row,))
            return True
        statement = {
            "SELECT": sql.SQL("SELECT 1 FROM {} WHERE tenant_id = %s"),
            "UPDATE": sql.SQL("UPDATE {} SET tenant_id = tenant_id WHERE tenant_id = %s"),
            "DELETE": sql.SQL("DELETE FROM {} WHERE tenant_id = %s"),
        }[command].format(name)
        return connection.execute(statement, (tenant_id,)).rowcount > 0
    except errors.InsufficientPrivilege as error:
        connection.rollback()
        if "row-level security" in str(error) or not _is_granted(connection, table, command):
            return False
        raise
    except errors.ForeignKeyViolation as error:
        # A trigger looks for the source with the eyes of who writes; the key itself would see another tenant's too.
        if error.diag.constraint_name is None:
            return False
        raise
    except errors.UniqueViolation:
        return True  # it came past the policy, as far as the key


def _is_granted(connection: psycopg.Connection[Any], table: str, command: str) -> bool:
    row = connection.execute("SELECT has_table_privilege(%s, %s)", (table, command)).fetchone()
    assert row
    return bool(row[0])


def _stored_columns(connection: psycopg.Connection[Any], table: str) -> list[str]:
    rows = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
        "AND attgenerated = '' ORDER BY attnum",
        (table,),
    )
    return [row[0] for row in rows]
