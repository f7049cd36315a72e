"""What a supersession and its undo read, as the application's role with row-level security on: no hub as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.fixtures.postgres import DatabaseUrls

from memory_os.storage.arrays import array_literal
from memory_os.storage.database import _ENTER, Scope, hot_statement

HUB, MOVING, MEMORIES = 4000, 40, 5000
Given = dict[str, Any]


@pytest.fixture
def filled(database_urls: DatabaseUrls) -> Iterator[tuple[psycopg.Connection[Any], Given]]:
    """A memory with thousands of edges that takes the place of one with few, and many others; statistics."""
    ids: dict[str, Any] = {"tenant_id": uuid4(), "source": uuid4(), "into": uuid4()}
    with psycopg.connect(database_urls.owner_url, autocommit=True) as owner:
        owner.execute("INSERT INTO tenants (tenant_id, name) VALUES (%(tenant_id)s, 'a tenant')", ids)
        owner.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search) SELECT %(tenant_id)s, "
            "CASE n WHEN 1 THEN %(source)s WHEN 2 THEN %(into)s ELSE gen_random_uuid() END, "
            "'Attribute', 'identity', 'x', '' FROM generate_series(1, %(memories)s) AS n",
            {**ids, "memories": MEMORIES},
        )
        owner.execute(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type) SELECT %(tenant_id)s, "
            "gen_random_uuid(), true, 'A', 'x' FROM generate_series(1, %(memories)s) AS n",
            {**ids, "memories": MEMORIES},
        )
        for memory, count in (("source", MOVING), ("into", HUB)):
            given = {**ids, "memory": ids[memory], "count": count}
            for kind, table in (("memory", "memories"), ("entity", "entities")):
                for near, far in (("source", "target"), ("target", "source")):
                    owner.execute(
                        f"INSERT INTO edges (tenant_id, id, type, {near}_memory_id, {far}_{kind}_id) "
                        f"SELECT %(tenant_id)s, gen_random_uuid(), 'SUPPORTS', %(memory)s, f.id FROM "
                        f"(SELECT id FROM {table} WHERE tenant_id = %(tenant_id)s AND id NOT IN (%(source)s, %(into)s) "
                        "ORDER BY id LIMIT %(count)s) AS f",
                        given,
                    )
        owner.execute("VACUUM ANALYZE")
    with psycopg.connect(database_urls.app_url) as connection:
        connection.execute(_ENTER, Scope("memory_os_app", ids["tenant_id"], "writer").parameters())
        yield connection, {**ids, "types": array_literal(["SUPPORTS", "ABOUT"])}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def read_of_edges(connection: psycopg.Connection[Any], name: str, given: Given) -> tuple[int, float]:
    """How many rows a statement gives, and how many edges it reads for that."""
    statement = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + hot_statement(name)
    (plan,) = connection.execute(statement, given).fetchone()  # type: ignore[misc] # EXPLAIN has a row
    scans = [node for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == "edges" and node["Actual Loops"]]
    assert scans
    looked_at = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scans
    )
    return int(plan[0]["Plan"]["Actual Rows"]), looked_at


def test_a_supersession_by_a_hub_reads_what_moves_and_its_equals(
    filled: tuple[psycopg.Connection[Any], Given],
) -> None:
    connection, given = filled
    found, looked_at = read_of_edges(connection, "edges_to_migrate", given)
    assert found == 8 * MOVING  # each of them has its equal
    assert looked_at < 8 * found


def test_what_is_in_the_way_of_an_undo_is_looked_up_by_its_key(filled: tuple[psycopg.Connection[Any], Given]) -> None:
    connection, given = filled
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(hot_statement("edges_to_migrate"), given).fetchall()
    mine = [row for row in rows if given["source"] in (row["source_memory_id"], row["target_memory_id"])]
    wanted = [
        {
            name: str(given["into"] if value == given["source"] else value)
            for name, value in row.items()
            if name == "type" or (isinstance(value, UUID) and name.endswith("_id"))
        }
        | {"id": str(row["id"])}
        for row in mine
    ]
    found, looked_at = read_of_edges(connection, "edges_in_the_way", {**given, "rows": json.dumps(wanted)})
    assert found == len(mine) == 4 * MOVING
    assert looked_at < 8 * found


def test_a_circle_is_looked_for_along_the_chain_only(filled: tuple[psycopg.Connection[Any], Given]) -> None:
    connection, given = filled
    ends = {"tenant_id": given["tenant_id"], "newer": given["into"], "older": given["source"]}
    found, looked_at = read_of_edges(connection, "supersedes_already", ends)
    assert (found, looked_at) == (1, 0)
