"""Whatever texts, times and numbers a tenant holds come back exactly as they were."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb
from tests.fixtures.postgres import DatabaseUrls

from memory_os.outbox.events import Outbox
from memory_os.storage.database import Database, Scope
from memory_os.transfer.exporting import export_lines
from memory_os.transfer.importing import Imported, import_records
from memory_os.transfer.reading import FileReader
from memory_os.transfer.selecting import EVERYTHING

HOSTILE = [
    "\n",
    "\r\n",
    "\u2028",
    "\x85",
    '"',
    "\\",
    "\\u0000",
    "'",
    "\t",
    "\x01",
    "{",
    "}",
    "\u202e",
    "e\u0301",
    "💣",
    "\ufeff",
]
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
hostile = st.lists(st.sampled_from(HOSTILE) | texts, min_size=1, max_size=5).map("".join).filter(bool)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | hostile,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile, inner, max_size=3),
    max_leaves=12,
)
deep = st.integers(1, 32).map(lambda depth: json.loads("[" * depth + "]" * depth))
payloads = st.dictionaries(hostile, values | deep, max_size=3)
moments = st.none() | st.datetimes().map(lambda moment: moment.isoformat() + "Z") | st.just("infinity")
users = st.none() | hostile

memories = st.fixed_dictionaries(
    {
        "text": hostile,
        "title": st.none() | hostile,
        "confidence": st.floats(0, 1),
        "user_id": users,
        "reader_users": st.lists(hostile, max_size=3),
        "subject": users,
        "tags": st.lists(hostile, max_size=3),
        "metadata": payloads,
        "occurred_at": moments,
        "version": st.integers(1, 2**63 - 1),
        "exact_key": st.none() | st.binary(min_size=16, max_size=16),
    }
)


def store(connection: psycopg.Connection[Any], tenant_id: UUID, rows: list[dict[str, Any]]) -> None:
    """Rows as they are, each superseded by the next one."""
    ids = [uuid4() for _ in rows]
    for number in reversed(range(len(rows))):
        row = {**rows[number], "metadata": Jsonb(rows[number]["metadata"]), "id": ids[number], "tenant_id": tenant_id}
        row |= {"label": "Belief", "layer": "identity", "visibility": "restricted", "search": ""}
        last = number + 1 == len(rows)
        row |= {"status": "active" if last else "superseded", "superseded_by": None if last else ids[number + 1]}
        names = ", ".join(row)
        marks = ", ".join(f"%({name})s" for name in row)
        connection.execute(f"INSERT INTO memories ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING", row)


async def move(url: str, source: UUID, target: UUID) -> tuple[bytes, bytes, Imported]:
    """Export a tenant, import it as another, and export that one: both files, without the lines that tell times."""
    database = Database(url, pool_size=1)
    try:
        first = [part async for part in export_lines(database, Scope("memory_os_app", source), EVERYTHING)]
        async with database.transaction(Scope("memory_os_app", target)) as tx:
            reader = FileReader(io.BytesIO(b"".join(first)), target)
            done = await import_records(tx, Outbox(enabled=False), reader)
        second = [part async for part in export_lines(database, Scope("memory_os_app", target), EVERYTHING)]
    finally:
        await database.close()
    return b"".join(first[1:-1]), b"".join(second[1:-1]), done


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=st.lists(memories, min_size=1, max_size=6))
def test_hostile_rows_come_back_exactly(database_urls: DatabaseUrls, rows: list[dict[str, Any]]) -> None:
    source, target = uuid4(), uuid4()
    with psycopg.connect(database_urls.owner_url) as connection:
        for tenant_id in (source, target):
            connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'x')", (tenant_id,))
        store(connection, source, rows)
    first, second, done = asyncio.run(move(database_urls.owner_url, source, target))
    assert second == first
    with psycopg.connect(database_urls.owner_url) as connection:
        columns = "to_jsonb(m) - 'tenant_id' - 'search' - 'embedding_model'"
        query = f"SELECT {columns} FROM memories AS m WHERE tenant_id = %s ORDER BY id"
        both = [connection.execute(query, (tenant_id,)).fetchall() for tenant_id in (source, target)]
    assert both[0] == both[1]
    assert len(both[0]) == done.made["memory"]


def test_a_login_with_other_settings_writes_the_same(database_urls: DatabaseUrls) -> None:
    source, target = uuid4(), uuid4()
    row = {"text": "x", "title": None, "confidence": 0.1 + 0.2, "user_id": None, "reader_users": [], "subject": None}
    row |= {"tags": [], "metadata": {}, "occurred_at": "2026-01-01T00:00:00Z", "version": 1, "exact_key": b"0" * 16}
    with psycopg.connect(database_urls.owner_url, autocommit=True) as connection:
        for tenant_id in (source, target):
            connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'x')", (tenant_id,))
        store(connection, source, [row])
        for name, value in (("timezone", "'Asia/Tokyo'"), ("bytea_output", "escape"), ("extra_float_digits", "-3")):
            connection.execute(f'ALTER DATABASE "{database_urls.name}" SET {name} = {value}')
    first, second, _ = asyncio.run(move(database_urls.owner_url, source, target))
    assert second == first
    record = json.loads(first)["record"]
    assert record["confidence"] == 0.1 + 0.2
    assert record["occurred_at"] == "2026-01-01T00:00:00+00:00"
    assert record["exact_key"] == "\\x" + "30" * 16


@pytest.mark.parametrize("count", [1, 499, 500, 501])
def test_pages_and_batches_lose_nothing_at_their_ends(database_urls: DatabaseUrls, count: int) -> None:
    source, target = uuid4(), uuid4()
    with psycopg.connect(database_urls.owner_url) as connection:
        for tenant_id in (source, target):
            connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'x')", (tenant_id,))
        connection.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search) "
            "SELECT %s, gen_random_uuid(), 'Event', 'world', 'Number ' || n, '' FROM generate_series(1, %s) AS n",
            (source, count),
        )
    first, second, done = asyncio.run(move(database_urls.owner_url, source, target))
    assert second == first
    assert done.made["memory"] == count == first.count(b"\n")
