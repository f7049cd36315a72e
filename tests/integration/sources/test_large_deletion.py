"""A source that ten thousand memories were taken from, in a database that nobody has analysed yet."""

from __future__ import annotations

import time

import psycopg
import pytest
from tests.fixtures.citing import SOURCES, Citer
from tests.fixtures.postgres import DatabaseUrls

pytestmark = pytest.mark.anyio

MANY, DERIVED = 10_000, 2_000


def fill(urls: DatabaseUrls, citer: Citer, source: str) -> None:
    """Memories with evidence from the source, and fewer that were derived from the first of these."""
    tenant = citer.tenant.tenant_id
    with psycopg.connect(urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, status, text, confidence, visibility, tags, metadata, "
            "search) SELECT %s, gen_random_uuid(), 'Attribute', 'identity', 'active', 'M ' || n, 1, 'tenant', '{}', "
            "'{}', '' FROM generate_series(1, %s) AS n",
            (tenant, MANY + DERIVED),
        )
        connection.execute(
            "INSERT INTO evidence (tenant_id, id, memory_id, source_id, support, role) "
            "SELECT tenant_id, gen_random_uuid(), id, %s, 'states', 'writer' FROM memories ORDER BY id LIMIT %s",
            (source, MANY),
        )
        connection.execute(
            "INSERT INTO edges (tenant_id, id, type, target_memory_id, source_memory_id, confidence) "
            "SELECT tenant_id, gen_random_uuid(), 'EXTRACTED_FROM', id, other, 1 FROM ("
            "SELECT tenant_id, id, lead(id, %s) OVER (ORDER BY id) AS other FROM memories) AS pairs "
            "ORDER BY id LIMIT %s",
            (MANY, DERIVED),
        )


@pytest.mark.parametrize(("policy", "gone"), [("orphan-archive", MANY), ("cascade", MANY + DERIVED)])
async def test_listing_and_deleting_take_seconds(
    citer: Citer, database_urls: DatabaseUrls, policy: str, gone: int
) -> None:
    source = await citer.source("We ship.")
    fill(database_urls, citer, source)
    begun = time.perf_counter()
    page = await citer.get(f"{SOURCES}/{source}/records", limit=200)
    listed = time.perf_counter() - begun
    assert len(page["items"]) == 200
    assert listed < 5, f"{listed:.1f} s"  # measured: 0.5 s, and 10 s by the index that begins with the type
    begun = time.perf_counter()
    done = (await citer.delete(f"{SOURCES}/{source}", policy=policy)).json()
    deleted = time.perf_counter() - begun
    assert len({*done["archived"], *done["retracted"]}) == gone
    assert done["evidence_withdrawn"] == MANY
    assert deleted < 25, f"{deleted:.1f} s"  # measured: 6 s on a machine with four times the work that it can do
    with psycopg.connect(database_urls.owner_url) as connection:
        found = connection.execute("SELECT count(*) FROM memories WHERE status <> 'active'").fetchone()
        acts = connection.execute("SELECT count(*) FROM memory_acts").fetchone()
        events = connection.execute("SELECT count(*) FROM outbox_events").fetchone()
    assert (found, acts, events) == ((gone,), (gone,), (gone,))
