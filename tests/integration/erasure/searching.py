"""Searching everything that the service keeps for a word: all columns of all tables, and the graph."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from tests.fixtures.postgres import DatabaseUrls

from memory_os.graph.port import GraphBackend


def places_with(urls: DatabaseUrls, word: str) -> dict[str, int]:
    """The columns, as `table.column`, in which a word stands, with how many rows have it; capitals don't matter."""
    found: dict[str, int] = {}
    with psycopg.connect(urls.owner_url) as connection:
        columns = connection.execute(
            "SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid "
            "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped "
            "AND c.relnamespace = 'public'::regnamespace"
        ).fetchall()
        for table, column in columns:
            held = sql.SQL("strpos(lower(to_jsonb(t.{})::text), lower(%s)) > 0").format(sql.Identifier(column))
            statement = sql.SQL("SELECT count(*) FROM {} AS t WHERE {}").format(sql.Identifier(table), held)
            row = connection.execute(statement, (word,)).fetchone()
            if row and row[0]:
                found[f"{table}.{column}"] = row[0]
    return found


async def in_graph(backend: GraphBackend, tenant_id: UUID, word: str) -> bool:
    """Whether a word stands anywhere in a tenant's graph."""
    return word.lower() in repr(await backend.dump(tenant_id)).lower()


def row_of(urls: DatabaseUrls, query: str, *values: object) -> dict[str, Any] | None:
    """One row as the superuser sees it."""
    with psycopg.connect(urls.owner_url, row_factory=dict_row) as connection:
        return connection.execute(query, values).fetchone()
