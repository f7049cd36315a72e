"""What a merge reads, as the application's role with row-level security on: not all that the other entity has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls

from memory_os.storage.database import _ENTER, Scope, hot_statement

HUB, MOVING, MEMORIES = 4000, 40, 5000
Ends = dict[str, UUID]


@pytest.fixture
def filled(database_urls: DatabaseUrls) -> Iterator[tuple[psycopg.Connection[Any], Ends]]:
    """A hub of thousands of edges and links, an entity with few that shall become part of it, statistics."""
    ends = {"tenant_id": uuid4(), "source": uuid4(), "into": uuid4()}
    with psycopg.connect(database_urls.owner_url, autocommit=True) as owner:
        owner.execute("INSERT INTO tenants (tenant_id, name) VALUES (%(tenant_id)s, 'a tenant')", ends)
        owner.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search) SELECT %(tenant_id)s, "
            "gen_random_uuid(), 'Event', 'intelligence', 'x', '' FROM generate_series(1, %(memories)s)",
            {**ends, "memories": MEMORIES},
        )
        owner.execute(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type) "
            "VALUES (%(tenant_id)s, %(source)s, true, 'A', 'x'), (%(tenant_id)s, %(into)s, true, 'B', 'x')",
            ends,
        )
        for entity, count in (("source", MOVING), ("into", HUB)):
            given = {**ends, "entity": ends[entity], "count": count}
            some = "FROM (SELECT id FROM memories WHERE tenant_id = %(tenant_id)s ORDER BY id LIMIT %(count)s) AS m"
            for columns, ends_of in (
                ("source_memory_id, target_entity_id", "m.id, %(entity)s"),
                ("source_entity_id, target_memory_id", "%(entity)s, m.id"),
            ):
                owner.execute(
                    f"INSERT INTO edges (tenant_id, id, type, {columns}) "
                    f"SELECT %(tenant_id)s, gen_random_uuid(), 'ABOUT', {ends_of} {some}",
                    given,
                )
            owner.execute(
                "INSERT INTO entity_links (tenant_id, id, entity_id, layer, target_id, relationship) SELECT "
                f"%(tenant_id)s, gen_random_uuid(), %(entity)s, 'memory', m.id, 'said' {some}",
                given,
            )
        owner.execute("VACUUM ANALYZE")
    with psycopg.connect(database_urls.app_url) as connection:
        connection.execute(_ENTER, Scope("memory_os_app", ends["tenant_id"], "writer").parameters())
        yield connection, ends


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize(
    ("name", "table", "found"),
    [("edges_to_merge", "edges", 4 * MOVING), ("links_to_merge", "entity_links", 2 * MOVING)],
)
def test_a_merge_into_a_hub_reads_what_moves_and_its_equals(
    filled: tuple[psycopg.Connection[Any], Ends], name: str, table: str, found: int
) -> None:
    connection, ends = filled
    statement = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + hot_statement(name)
    (plan,) = connection.execute(statement, ends).fetchone()  # type: ignore[misc] # EXPLAIN has a row
    assert plan[0]["Plan"]["Actual Rows"] == found
    scans = [node for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == table and node["Actual Loops"]]
    assert scans
    looked_at = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scans
    )
    assert looked_at < 12 * found
