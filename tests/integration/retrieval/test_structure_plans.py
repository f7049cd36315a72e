"""Plans of the statements that answer structural questions, and those about earlier beliefs: by key, within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls, clone_database
from tests.integration.retrieval.test_retrieval_plans import explain, fill, touched

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.ids import new_id
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.storage.database import _ENTER, Scope

OWN, OTHERS, TENANTS = 300, 100, 8
TIED, PAGE = 20, 11
NOW = {"as_of": None, "history": False}
FIRST = {"before": None, "before_id": None, "limit": PAGE}
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)

Scans = list[dict[str, Any]]
Filled = tuple[psycopg.Connection[Any], UUID, UUID, list[UUID]]


def tie(owner: psycopg.Connection[Any], tenant_id: UUID, ids: list[UUID]) -> UUID:
    """An entity with an edge from and to each of the first `TIED` memories, and an act on each of the tenant's."""
    entity = new_id()
    owner.execute(
        "INSERT INTO entities (tenant_id, id, declared, name, entity_type) VALUES (%s, %s, true, %s, 'project')",
        (tenant_id, entity, f"Project {entity}"),
    )
    with owner.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO edges (tenant_id, id, type, source_memory_id, target_entity_id) "
            "VALUES (%s, %s, 'ABOUT', %s, %s)",
            [(tenant_id, new_id(), ident, entity) for ident in ids[:TIED]],
        )
        cursor.executemany(
            "INSERT INTO edges (tenant_id, id, type, source_entity_id, target_memory_id) "
            "VALUES (%s, %s, 'COMMITTED_TO', %s, %s)",
            [(tenant_id, new_id(), entity, ident) for ident in ids[:TIED]],
        )
        cursor.executemany(
            "INSERT INTO memory_acts (tenant_id, id, memory_id, kind, role) VALUES (%s, %s, %s, 'change', 'writer')",
            [(tenant_id, new_id(), ident) for ident in ids],
        )
    return entity


@pytest.fixture(scope="module")
def project(
    postgres_server: EmbeddedPostgres, template_database: str
) -> Iterator[tuple[DatabaseUrls, UUID, UUID, list[UUID]]]:
    """Tenants with statistics; of one of them an entity with its ties, and its memories. Nothing here changes them."""
    for urls in clone_database(postgres_server, template_database):
        tenant_id = new_id()
        with psycopg.connect(urls.owner_url, autocommit=True) as owner:
            ids = fill(owner, tenant_id, OWN)
            entity = tie(owner, tenant_id, ids)
            for _ in range(TENANTS - 1):
                other = new_id()
                tie(owner, other, fill(owner, other, OTHERS))
            owner.execute("VACUUM ANALYZE")
        yield urls, tenant_id, entity, ids


@pytest.fixture
def tied(project: tuple[DatabaseUrls, UUID, UUID, list[UUID]]) -> Iterator[Filled]:
    """A connection inside the tenant as the application, the tenant, its entity and its memories."""
    urls, tenant_id, entity, ids = project
    with psycopg.connect(urls.app_url) as connection:
        connection.execute(_ENTER, Scope("memory_os_app", tenant_id, "reader", "ada").parameters())
        yield connection, tenant_id, entity, ids


def assert_by_key(scans: Scans, most: dict[str, int]) -> None:
    """Every table that holds anything is read by an index; of those named, some rows, and no more than given."""
    read = [node for node in scans if touched(node)]
    assert all("Index" in node["Node Type"] or "Bitmap" in node["Node Type"] for node in read), read
    for table, limit in most.items():
        looked_at = [node for node in scans if node["Relation Name"] == table]
        assert 0 < sum(map(touched, looked_at)) <= limit, (table, looked_at)


def test_what_is_tied_to_an_entity_is_looked_up_by_key(tied: Filled) -> None:
    connection, tenant_id, entity, _ = tied
    every = list(EDGE_TYPES)
    node = {"tenant_id": tenant_id, "entity": entity, "memory": None, "types_out": every, "types_in": every}
    wanted = {"links": True, "mentions": True, "labels": None, "statuses": None}
    scans = explain(connection, "tied_records", {**node, **wanted, **NOW, **FIRST})
    # Each edge asks for its two ends, of which one is the entity, and each memory is read once for itself.
    assert_by_key(scans, {"edges": 2 * TIED, "memories": 4 * TIED, "entities": 2 * TIED})


def test_what_is_tied_to_a_memory_is_looked_up_by_key(tied: Filled) -> None:
    connection, tenant_id, _, ids = tied
    node = {"tenant_id": tenant_id, "entity": None, "memory": ids[1], "types_out": ["CAUSED_BY"]}
    wanted = {"types_in": ["CAUSED_BY"], "links": True, "mentions": True, "labels": None, "statuses": None}
    scans = explain(connection, "tied_records", {**node, **wanted, **NOW, **FIRST})
    # Both edges of it, and for each branch that might have others a look at the memory's key.
    assert_by_key(scans, {"edges": 4, "memories": 8})


def test_owners_are_looked_up_by_their_tasks(tied: Filled) -> None:
    connection, tenant_id, _, ids = tied
    scans = explain(connection, "owners_of", {"tenant_id": tenant_id, "memories": ids[:5]})
    assert_by_key(scans, {"edges": 20})


def test_the_sources_behind_a_claim_are_looked_up_by_key(tied: Filled) -> None:
    connection, tenant_id, _, ids = tied
    scans = explain(connection, "sources_behind", {"tenant_id": tenant_id, "memory": ids[1], **FIRST})
    assert_by_key(scans, {"evidence": 2, "memories": 8, "sources": 4})


def test_a_page_of_changes_reads_no_more_than_a_page_of_each_kind(tied: Filled) -> None:
    connection, tenant_id, _, _ = tied
    given = {"tenant_id": tenant_id, "after": BEGIN, "after_id": new_id(), "limit": PAGE}
    scans = explain(connection, "changes_since", given)
    # The page, the memory of each, and for each act whether its memory may be seen.
    assert_by_key(scans, {"memory_acts": 2 * PAGE, "memories": 5 * PAGE})


def test_changes_about_an_entity_are_looked_up_by_its_memories(tied: Filled) -> None:
    connection, tenant_id, entity, _ = tied
    given = {"tenant_id": tenant_id, "entity": entity, "after": BEGIN, "after_id": new_id(), "limit": PAGE}
    scans = explain(connection, "changes_about", given)
    assert_by_key(scans, {"memory_acts": TIED, "edges": 2 * TIED})


def test_earlier_states_are_looked_up_by_key(tied: Filled) -> None:
    connection, tenant_id, entity, ids = tied
    some = ids[:TIED]
    moment = {"tenant_id": tenant_id, "believed_at": datetime.now(UTC), "as_of": datetime.now(UTC), "history": False}
    kinds = {"memories": some, "entities": [entity], "records": some}
    assert_by_key(explain(connection, "believed_records", {**moment, **kinds}), {"memories": TIED, "passages": TIED})
    nothing: dict[str, list[UUID]] = {"links": [], "pairs_a": [], "pairs_b": []}
    rows = connection.execute("SELECT id FROM edges WHERE type = 'ABOUT' AND tenant_id = %s", (tenant_id,)).fetchall()
    steps = {**moment, **nothing, **kinds, "edges": [row[0] for row in rows]}
    # The edges that are asked for, and those between the memories, which may contradict each other.
    assert_by_key(explain(connection, "believed_steps", steps), {"edges": 5 * TIED})


def test_acts_since_a_moment_are_looked_up_by_their_memories(tied: Filled) -> None:
    connection, tenant_id, entity, ids = tied
    given = {"tenant_id": tenant_id, "believed_at": BEGIN, "memories": ids[:TIED], "entities": [entity]}
    connection.execute("SELECT set_config('memory_os.role', 'steward', true)")
    assert_by_key(explain(connection, "acts_since", given), {"memory_acts": 2 * TIED})
