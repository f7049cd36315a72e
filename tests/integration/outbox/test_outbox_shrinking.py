"""Indexes that a load has left nearly empty are made small again; a busy table is left for later."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls

EVENTS = 400_000


@pytest.fixture
def swollen(database_urls: DatabaseUrls) -> Iterator[psycopg.Connection]:
    """A queue through which many events have gone, of which few are left."""
    with psycopg.connect(database_urls.owner_url, autocommit=True) as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (gen_random_uuid(), 't')")
        connection.execute(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) "
            "SELECT tenant_id, 'GRAPH_UPSERT', 'memory', gen_random_uuid(), 1 FROM tenants, generate_series(1, %s)",
            (EVENTS,),
        )
        connection.execute("DELETE FROM outbox_events WHERE id %% 1000 <> 0", ())
        connection.execute("VACUUM outbox_events")
        yield connection


def shrink(urls: DatabaseUrls) -> int:
    with psycopg.connect(urls.worker_url) as worker:
        row = worker.execute("SELECT shrink_outbox()").fetchone()
        assert row is not None
        return int(row[0])


def size(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT pg_indexes_size('outbox_events')").fetchone()
    assert row is not None
    return int(row[0])


def test_nearly_empty_indexes_become_small_once(swollen: psycopg.Connection, database_urls: DatabaseUrls) -> None:
    before = size(swollen)
    assert shrink(database_urls) >= 1
    assert size(swollen) < before / 2
    assert shrink(database_urls) == 0


def test_a_busy_table_is_left_for_later(swollen: psycopg.Connection, database_urls: DatabaseUrls) -> None:
    before = size(swollen)
    with psycopg.connect(database_urls.owner_url) as writer:
        writer.execute("UPDATE outbox_events SET version = 2")
        assert shrink(database_urls) == 0
    assert size(swollen) >= before
