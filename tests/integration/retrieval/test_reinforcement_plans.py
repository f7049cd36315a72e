"""What the reinforcer asks costs as much as there is to do, as its role, on a log of 60,000 walks."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls

from memory_os.storage.database import hot_statement

TENANT = UUID(int=1)
PARAMETERS: dict[str, Any] = {
    "tenant_id": TENANT,
    "batch": 500,
    "seconds": 86_400.0,
    "retrieval_ids": "{" + str(uuid4()) + "}",
    "edge_ids": "{" + str(uuid4()) + "}",
    "record_ids": "{" + str(uuid4()) + "}",
    "states": "{counted}",
    "reasons": "{NULL}",
}


@pytest.fixture
def long_log(database_urls: DatabaseUrls) -> str:
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO tenants (tenant_id, name) "
            "SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 't' FROM generate_series(1, 20) n"
        )
        connection.execute(
            "INSERT INTO retrievals (tenant_id, id, query, arms, bounds, timings_ms, graph_state, no_match, items, "
            "omitted, pack_tokens) "
            "SELECT t.tenant_id, gen_random_uuid(), 'q', '{}', '{}', '{}', 'current', false, 1, 0, 1 "
            "FROM tenants AS t, generate_series(1, 1500) WHERE t.tenant_id <> %s",
            (UUID(int=0),),
        )
        connection.execute(
            "INSERT INTO retrieval_edges (tenant_id, retrieval_id, edge_id, record_id, record_type, state) "
            "SELECT r.tenant_id, r.id, gen_random_uuid(), gen_random_uuid(), 'memory', "
            "CASE WHEN random() < 0.002 THEN 'waiting' ELSE 'counted' END FROM retrievals AS r, generate_series(1, 2)"
        )
        connection.execute("ANALYZE retrievals, retrieval_edges, edge_reinforcements")
    return database_urls.worker_url


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("tenants_to_reinforce", "retrieval_edges_waiting"),
        ("claim_walks", "retrieval_edges_waiting"),
        ("settle_walks", "retrieval_edges_pkey"),
    ],
)
def test_the_reinforcer_reads_by_index(long_log: str, name: str, index: str) -> None:
    with psycopg.connect(long_log) as connection:
        connection.execute("SELECT set_config('role', 'memory_os_worker', true)")
        connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(TENANT),))
        row = connection.execute(b"EXPLAIN (FORMAT JSON) " + hot_statement(name), PARAMETERS).fetchone()
    assert row is not None
    found = _nodes(row[0][0]["Plan"])
    assert index in {node.get("Index Name") for node in found}, json.dumps(row[0], indent=1)
    assert not [node for node in found if node["Node Type"] == "Seq Scan"]


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in _nodes(child))]
