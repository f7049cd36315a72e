"""An export shows one moment, whatever is written meanwhile, and leaves no trace on its connection."""

from __future__ import annotations

import json
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import text
from tests.fixtures.postgres import DatabaseUrls

from memory_os.errors import NotFoundError
from memory_os.storage.database import Database, Scope
from memory_os.transfer.exporting import export_lines
from memory_os.transfer.selecting import EVERYTHING

pytestmark = pytest.mark.anyio

ADD = (
    "INSERT INTO memories (tenant_id, id, label, layer, text, search) "
    "SELECT %s, gen_random_uuid(), 'Event', 'world', 'Number ' || n, '' FROM generate_series(1, %s) AS n"
)


async def test_what_is_written_meanwhile_is_not_in_it(database_urls: DatabaseUrls) -> None:
    tenant_id, database = uuid4(), Database(database_urls.owner_url, pool_size=1)
    with psycopg.connect(database_urls.owner_url, autocommit=True) as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'x')", (tenant_id,))
        connection.execute(ADD, (tenant_id, 1200))
        parts = []
        async for part in export_lines(database, Scope("memory_os_app", tenant_id), EVERYTHING):
            parts.append(part)
            connection.execute(ADD, (tenant_id, 10))
            connection.execute("UPDATE memories SET text = 'Changed' WHERE tenant_id = %s", (tenant_id,))
    lines = [json.loads(line) for line in b"".join(parts).splitlines()]
    assert len(parts) > 4
    assert lines[0]["counts"]["memory"] == lines[-1]["counts"]["memory"] == len(lines) - 2 == 1200
    assert {line["record"]["text"] for line in lines[1:-1]} == {f"Number {number}" for number in range(1, 1201)}
    async with database.transaction(Scope("memory_os_app", tenant_id)) as tx:
        level = await tx.row(text("SELECT current_setting('transaction_isolation') AS now"))
    assert level == {"now": "read committed"}, "the next one to have the connection sees what others commit"
    await database.close()


async def test_a_reader_that_goes_away_lets_go_of_the_connection(database_urls: DatabaseUrls) -> None:
    tenant_id, database = uuid4(), Database(database_urls.owner_url, pool_size=1)
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'x')", (tenant_id,))
        connection.execute(ADD, (tenant_id, 1200))
    lines = export_lines(database, Scope("memory_os_app", tenant_id), EVERYTHING)
    await anext(lines)
    await anext(lines)
    await lines.aclose()  # type: ignore[attr-defined] # it is a generator
    async with database.transaction(Scope("memory_os_app", tenant_id, role="steward")) as tx:
        assert await tx.row(text("SELECT count(*) AS n FROM memories")) == {"n": 1200}
    await database.close()


async def test_a_tenant_that_is_not_there_has_no_export(database_urls: DatabaseUrls) -> None:
    database = Database(database_urls.owner_url, pool_size=1)
    with pytest.raises(NotFoundError):
        await anext(export_lines(database, Scope("memory_os_app", uuid4()), EVERYTHING))
    await database.close()
