"""The hot statements use the queue's indexes, as the worker's role with row-level security on, on a long queue."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.fixtures.postgres import DatabaseUrls

from memory_os.storage.database import hot_statement

TENANT = UUID(int=1)
PARAMETERS: dict[str, Any] = {
    "tenant_id": TENANT,
    "token": uuid4(),
    "worker_id": uuid4(),
    "lease_s": 30.0,
    "batch": 100,
    "after": UUID(int=0),
    "tenants": 4,
    "ids": [1, 2, 3],
    "limit": 1000,
    "id": 1,
    "wait_s": 1.0,
    "cap_s": 86400.0,
    "summary": "x",
    "error": Jsonb([]),
    "summary_of_gone": "x",
    "error_of_gone": Jsonb([]),
    "seconds": 3600.0,
}


@pytest.fixture
def long_queue(database_urls: DatabaseUrls) -> str:
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO tenants (tenant_id, name) "
            "SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 't' FROM generate_series(1, 20) n"
        )
        connection.execute(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
            "finished_at, lease_token, lease_until) "
            "SELECT ('00000000-0000-0000-0000-' || lpad((1 + n % 20)::text, 12, '0'))::uuid, 'GRAPH_UPSERT', 'memory', "
            "gen_random_uuid(), 1, s, CASE WHEN s IN ('done', 'dead') THEN now() - n * interval '1 second' END, "
            "CASE WHEN s = 'leased' THEN gen_random_uuid() END, CASE WHEN s = 'leased' THEN now() END "
            "FROM generate_series(1, 60000) n, "
            "LATERAL (SELECT (ARRAY['done','done','done','pending','done','dead','done','leased'])[1 + n % 8]) AS x (s)"
        )
        connection.execute("ANALYZE outbox_events, projection_leases")
    return database_urls.worker_url


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    found = [plan]
    for child in plan.get("Plans", []):
        found += nodes(child)
    return found


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("due_tenants", "outbox_due"),
        ("claim_events", "outbox_due"),
        ("claim_events", "outbox_lease_expiry"),
        ("finish_events", "outbox_live_per_aggregate"),
        ("finish_events", "outbox_events_pkey"),
        ("fail_event", "outbox_events_pkey"),
        ("refund_events", "outbox_events_pkey"),
        ("prune_events", "outbox_done"),
        ("abandoned_tenants", "outbox_lease_expiry"),
        ("live_events_of", "outbox_live_per_aggregate"),
    ],
)
def test_a_hot_statement_reads_by_index(long_queue: str, name: str, index: str) -> None:
    given = {**PARAMETERS, "ids": [uuid4()]} if name == "live_events_of" else PARAMETERS
    with psycopg.connect(long_queue) as connection:
        connection.execute("SELECT set_config('role', 'memory_os_worker', true)")
        row = connection.execute(b"EXPLAIN (FORMAT JSON) " + hot_statement(name), given).fetchone()
    assert row is not None
    plan = row[0] if isinstance(row[0], list) else json.loads(row[0])
    scans = [node for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == "outbox_events"]
    assert index in {node.get("Index Name") for node in nodes(plan[0]["Plan"])}, json.dumps(plan, indent=1)
    assert not [node for node in scans if node["Node Type"] == "Seq Scan"]
