"""Plans of the hot statements, as the application's role with row-level security on.

Each is run once for real: what a plan says it will do is not what is asked here, but which rows it touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls

from memory_os.domain.ids import new_id
from memory_os.memories.writing import vector_literal
from memory_os.storage.database import _ENTER, Scope, hot_statement

OWN, OTHERS, TENANTS, DIMENSION = 300, 200, 12, 16
MODEL = "some-model"
WINDOW = {"as_of": None, "history": False}
Filled = tuple[psycopg.Connection[Any], UUID, list[UUID]]
TABLES = ("memories", "memory_embeddings", "entities", "entity_names", "mentions", "outbox_events", "edges")


def fill(connection: psycopg.Connection[Any], tenant_id: UUID, count: int) -> list[UUID]:
    """Rows of one tenant: memories, for each a vector, a mention of a derived entity, a declared one, a done event."""
    ids = [new_id() for _ in range(count)]
    connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'a tenant')", (tenant_id,))
    vectors = np.random.default_rng(len(ids)).normal(size=(count, DIMENSION)).astype(np.float32)
    rows = [(tenant_id, ident, f"The gearbox {number} needs oil.") for number, ident in enumerate(ids)]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search) VALUES (%s, %s, 'Attribute', 'identity', "
            "%s, to_tsvector('english', %s))",
            [(*row, row[2]) for row in rows],
        )
        cursor.executemany(
            "INSERT INTO memory_embeddings (tenant_id, memory_id, model, dimension, embedding) "
            "VALUES (%s, %s, %s, %s, %s::vector)",
            [
                (tenant_id, ident, MODEL, DIMENSION, vector_literal(vector))
                for ident, vector in zip(ids, vectors, strict=True)
            ],
        )
        cursor.executemany(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type) VALUES (%s, %s, true, %s, 'system')",
            [(tenant_id, new_id(), f"Gearbox {number}") for number in range(count)],
        )
        derived = [(tenant_id, new_id(), f"Bearing {number}") for number in range(count)]
        cursor.executemany(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type) VALUES (%s, %s, false, %s, 'unknown')",
            derived,
        )
        cursor.executemany(
            "INSERT INTO mentions (tenant_id, memory_id, canonical_name, entity_id, name, occurrences, confidence, "
            "spans, seen, extractor, extractor_version) "
            "VALUES (%s, %s, %s, %s, %s, 1, 0.7, '{0,1}', now(), 'heuristic', 1)",
            [(*row[:1], ident, row[2].lower(), *row[1:]) for ident, row in zip(ids, derived, strict=True)],
        )
        cursor.executemany(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
            "finished_at) VALUES (%s, 'GRAPH_UPSERT', 'memory', %s, 1, 'done', now())",
            [(tenant_id, ident) for ident in ids],
        )
    return ids


@pytest.fixture
def filled(database_urls: DatabaseUrls) -> Iterator[Filled]:
    """Twelve tenants with statistics, a connection inside one of them as the application, and its memories."""
    tenant_id = new_id()
    with psycopg.connect(database_urls.owner_url, autocommit=True) as owner:
        ids = fill(owner, tenant_id, OWN)
        for _ in range(TENANTS - 1):
            fill(owner, new_id(), OTHERS)
        owner.execute("VACUUM ANALYZE")
    with psycopg.connect(database_urls.app_url) as connection:
        connection.execute(_ENTER, Scope("memory_os_app", tenant_id, "reader", "ada").parameters())
        yield connection, tenant_id, ids


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def explain(connection: psycopg.Connection[Any], name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of the statement's plan, run for real, that read a table."""
    (role, bypass, forced) = connection.execute(
        "SELECT current_user::text, (SELECT rolbypassrls OR rolsuper FROM pg_roles WHERE rolname = current_user), "
        "(SELECT bool_and(relforcerowsecurity) FROM pg_class WHERE relname = ANY (%s))",
        (list(TABLES),),
    ).fetchone()  # type: ignore[misc] # a SELECT without FROM has a row
    assert (role, bypass, forced) == ("memory_os_app", False, True)
    statement = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + hot_statement(name)
    (plan,) = connection.execute(statement, parameters).fetchone()  # type: ignore[misc] # as above
    return [node for node in nodes(plan[0]["Plan"]) if "Relation Name" in node and node["Actual Loops"]]


def touched(node: dict[str, Any]) -> float:
    """Rows that a scan looked at, over all of its loops."""
    return float((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])


def test_the_vector_scan_stays_in_the_tenants_partition(filled: Filled) -> None:
    connection, tenant_id, _ = filled
    vector = vector_literal(np.ones(DIMENSION, dtype=np.float32))
    scans = explain(
        connection,
        "search_vectors",
        {"tenant_id": tenant_id, "vector": vector, "model": MODEL, "floor": -1.0, "limit": 50, **WINDOW},
    )
    vectors = [node for node in scans if node["Relation Name"].startswith("memory_embeddings")]
    assert len({node["Relation Name"] for node in vectors}) == 1
    (partition,) = connection.execute(
        "SELECT tableoid::regclass::text FROM memory_embeddings WHERE tenant_id = %s LIMIT 1", (tenant_id,)
    ).fetchone()  # type: ignore[misc] # the tenant has vectors
    assert vectors[0]["Relation Name"] == partition
    assert sum(touched(node) for node in scans if node["Relation Name"] == "memories") <= OWN


def test_the_text_scan_reads_the_tenants_rows_by_their_key(filled: Filled) -> None:
    connection, tenant_id, _ = filled
    scans = explain(
        connection,
        "search_text",
        {"tenant_id": tenant_id, "text": "gearbox 7 oil", "max_lexemes": 256, "limit": 50, **WINDOW},
    )
    assert "mentions" not in {node["Relation Name"] for node in scans}  # asking of each derived entity is costly
    for table, most in (("memories", OWN), ("entities", 2 * OWN)):
        looked_at = [node for node in scans if node["Relation Name"] == table]
        assert looked_at
        assert all("Index" in node["Node Type"] or "Bitmap" in node["Node Type"] for node in looked_at), looked_at
        assert sum(touched(node) for node in looked_at) <= most


def test_a_text_without_words_scans_nothing(filled: Filled) -> None:
    connection, tenant_id, _ = filled
    parameters = {"tenant_id": tenant_id, "max_lexemes": 256, "limit": 50, **WINDOW}
    scans = explain(connection, "search_text", {**parameters, "text": "the"})
    assert sum(touched(node) for node in scans) == 0


def test_names_are_looked_up_by_equality(filled: Filled) -> None:
    connection, tenant_id, _ = filled
    scans = explain(
        connection,
        "find_named_entities",
        {"tenant_id": tenant_id, "names": ["gearbox 7", "bearing 8", "oil", "gearbox"], "history": False},
    )
    assert {node["Relation Name"] for node in scans} == {"entity_names", "entities", "mentions", "memories"}
    assert all("Index" in node["Node Type"] for node in scans), scans
    # Two entities, and for the derived one a mention with its memory. All mentions would be 300.
    assert sum(touched(node) for node in scans) <= 10


def test_the_position_does_not_read_what_is_done(filled: Filled) -> None:
    connection, tenant_id, _ = filled
    every = explain(connection, "graph_position", {"tenant_id": tenant_id, "limit": 10_000})
    scans = [node for node in every if node["Relation Name"] != "graph_states"]  # one row a tenant
    assert all("Index" in node["Node Type"] or "Bitmap" in node["Node Type"] for node in scans), scans
    assert sum(touched(node) for node in scans) <= 1


def test_records_and_steps_are_looked_up_by_key(filled: Filled) -> None:
    connection, tenant_id, ids = filled
    nothing: dict[str, list[UUID]] = {"records": [], "entities": [], "links": [], "pairs_a": [], "pairs_b": []}
    wanted = {**nothing, "memories": ids[:60], "edges": ids[:20], "tenant_id": tenant_id, **WINDOW}
    for name in ("hydrate_records", "check_steps"):
        scans = explain(connection, name, wanted)
        memories = [node for node in scans if node["Relation Name"] == "memories"]
        assert all("Index" in node["Node Type"] for node in memories), memories
        assert sum(touched(node) for node in memories) <= len(ids[:60])
