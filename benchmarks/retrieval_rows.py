"""Rows for `retrieval.py`: the measured tenants through the API, and many others that are copies of one of them.

A copy has every derived row that its model has, made by statements that know of no column: what a table holds of the
model is inserted again with other ids. Ids keep the part that says when they were made, so that they lie in an index as
close together as real ones.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from stack import Stores, Wire, add_tenants, wait_until

BATCH = 500
"""Memories of one call."""

COPIES = 10
"""Tenants that one statement fills."""

NOT_COPIED = (
    "tenants", "tokens", "workers", "audit_log", "idempotency_keys", "outbox_events", "projection_leases",
    "graph_", "retrieval", "reinforcement", "vector_", "erasure",
)  # fmt: skip
"""Beginnings of the names of tables that say what was done, or that only tenants of a certain size have."""

TABLES = """
SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""

COLUMNS = """
SELECT attname, atttypid = 'uuid'::regtype FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
ORDER BY attnum
"""

OTHER_ID = "(left(replace({0}::text, '-', ''), 12) || substr(md5({0}::text || to_tenant.id::text), 13))::uuid"
"""The id that a record has in a copy."""


def store(address: str, token: str, texts: Iterable[str], count: int) -> None:
    """Store texts through the API, in batches, the gate off: it would merge what is alike by chance."""
    asyncio.run(_store(address, token, texts, count))


async def _store(address: str, token: str, texts: Iterable[str], count: int) -> None:
    wire, given, done, started = Wire(address, token), iter(texts), 0, time.perf_counter()
    await wire.open()
    while part := list(islice(given, BATCH)):
        items = [{"text": text, "label": "Attribute", "dedup": "off"} for text in part]
        status, answer = await wire.post("/v1/memories/batch", json.dumps({"items": items}).encode())
        assert status == 200, answer
        assert not any("error" in one for one in json.loads(answer)["results"]), answer
        done += len(part)
        if done % 10_000 == 0 or done == count:
            print(f"stored {done} of {count}, {done / (time.perf_counter() - started):.0f} a second", flush=True)
    wire.close()


def copy_tenant(on: Stores, model: UUID, copies: int) -> list[UUID]:
    """Fill so many new tenants with what one tenant has."""
    made, started = add_tenants(on, copies), time.perf_counter()
    with psycopg.connect(on.owner_url) as connection:
        # No trigger runs and no key is checked: what they would make is copied, too.
        connection.execute("SET session_replication_role = replica")
        tables = _tables(connection, model)
        for start in range(0, copies, COPIES):
            part = made[start : start + COPIES]
            for name, columns in tables.items():
                connection.execute(_copying(name, columns), {"model": model, "to": part})
            connection.commit()
            seconds = time.perf_counter() - started
            print(f"copied to {start + len(part)} of {copies} other tenants in {seconds:.0f} s", flush=True)
    return made


def _tables(connection: psycopg.Connection, model: UUID) -> dict[str, dict[str, bool]]:
    """The tables that hold rows of the tenant, with their columns, and whether each is an id."""
    found = {}
    for (name,) in connection.execute(TABLES).fetchall():
        if not name.startswith(NOT_COPIED):
            holds = sql.SQL("SELECT 1 FROM {} WHERE tenant_id = %s LIMIT 1").format(sql.Identifier(name))
            if connection.execute(holds, (model,)).fetchone():
                found[name] = dict(connection.execute(COLUMNS, (name,)).fetchall())
    return found


def _copying(name: str, columns: dict[str, bool]) -> sql.Composed:
    chosen = [
        sql.SQL("to_tenant.id")
        if column == "tenant_id"
        else sql.SQL(OTHER_ID).format(sql.Identifier("t", column))
        if is_id
        else sql.Identifier("t", column)
        for column, is_id in columns.items()
    ]
    return sql.SQL(
        "INSERT INTO {table} ({columns}) SELECT {chosen} FROM unnest(%(to)s::uuid[]) AS to_tenant (id) "
        "CROSS JOIN {table} AS t WHERE t.tenant_id = %(model)s"
    ).format(
        table=sql.Identifier(name),
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        chosen=sql.SQL(", ").join(chosen),
    )


def compare(on: Stores, model: UUID, copy: UUID) -> dict[str, int]:
    """Hold a copy against its model: every row but for its ids, which have to be as many.

    Returns:
        The rows compared, by table.

    Raises:
        AssertionError: If they differ.
    """
    compared = {}
    with psycopg.connect(on.owner_url) as connection:
        for name, columns in _tables(connection, model).items():
            others = sql.SQL(", ").join(sql.Identifier(column) for column, is_id in columns.items() if not is_id)
            ids = sql.SQL(", ").join(
                sql.SQL("count(DISTINCT {})").format(sql.Identifier(column))
                for column, is_id in columns.items()
                if is_id
            )
            told = sql.SQL(
                "SELECT count(*), {ids}, sum(hashtextextended(ROW({others})::text, 0)::numeric) FROM {table} "
                "WHERE tenant_id = %s"
            ).format(ids=ids, others=others, table=sql.Identifier(name))
            rows = [connection.execute(told, (tenant_id,)).fetchone() for tenant_id in (model, copy)]
            assert rows[0] == rows[1], f"{name} of a copy differs: {rows}"
            assert rows[0]
            compared[name] = rows[0][0]
    return compared


def wait_for_worker(on: Stores, limit_s: float, quiet_s: float = 40.0) -> None:
    """Wait until the worker has projected everything and built what it builds for large tenants.

    Args:
        on: The stores.
        limit_s: Seconds after which what is there is measured.
        quiet_s: Seconds without a change after which the worker counts as done.
    """
    wait_until(lambda: _counted(on, "outbox_events", "status <> 'done'") == 0, limit_s, "the projection", every_s=0.5)
    started, since = time.monotonic(), time.monotonic()
    last: list[int] = []
    # How large a tenant has to be for an index is the worker's to say: it has ended when nothing has changed for long.
    while time.monotonic() - started < limit_s:
        now = [_counted(on, table) for table in ("vector_index", "vector_partitions", "text_frequencies")]
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > quiet_s and not _building(on):
            return
        time.sleep(1)
    print("WARNING: the worker is still building indexes; measured as it is", flush=True)


def _counted(on: Stores, table: str, where: str = "true") -> int:
    """Rows of a table; 0 where there is no such table."""
    with psycopg.connect(on.owner_url) as connection:
        if connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() == (None,):
            return 0
        row = connection.execute(
            sql.SQL("SELECT count(*) FROM {} WHERE ").format(sql.Identifier(table)) + sql.SQL(where)  # type: ignore[arg-type]
        ).fetchone()
    return int(row[0]) if row else 0


def _building(on: Stores) -> bool:
    with psycopg.connect(on.owner_url) as connection:
        row = connection.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index) OR EXISTS (SELECT FROM pg_stat_activity "
            "WHERE usename = 'memory_os_worker' AND state = 'active' AND now() - query_start > '2 s')"
        ).fetchone()
    return row == (True,)


def counts(on: Stores, tenants: Sequence[UUID]) -> dict[str, Any]:
    """Rows of the store, and of what large tenants have: for the report."""
    tables = ("memories", "postings", "mentions", "vector_index", "text_frequencies")
    return {table: _counted(on, table) for table in tables} | {"tenants": len(tenants)}
