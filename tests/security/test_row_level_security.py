"""Tenants are apart in the database itself: what the catalog promises, what every command on every table does, and what
is left on a pooled connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg import errors, sql
from sqlalchemy import text
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.security.catalog import ACROSS_TENANTS, WITHOUT_TENANT, faults_of
from tests.security.conftest import MakeWorld
from tests.security.reaching import EVERYWHERE, inside, leaks
from tests.security.worlds import STEPPING, World, tenant_tables

from memory_os.app import create_app, open_services
from memory_os.settings import Settings
from memory_os.storage.database import Database, Scope

pytestmark = pytest.mark.anyio

EVERY = {"SELECT", "INSERT", "UPDATE", "DELETE"}
HIDING = {
    "memory": "memories",
    "entity": "entities",
    "observation": "observations",
    "procedure": "procedures",
    "outcome": "outcomes",
    "act": "memory_acts",
    "entity_act": "entity_acts",
    "review": "memory_reviews",
    **dict.fromkeys(("source", "spare_source"), "sources"),
    "passage": "passages",
    "evidence": "evidence",
    **dict.fromkeys(("correction", "doubted", "rejected"), "corrections"),
    **dict.fromkeys(("candidate", "spare_candidate"), "insight_candidates"),
    **dict.fromkeys(STEPPING, "memories"),
}
"""Tables with readers of their own, or those of their memory, by kind of record."""
GENERATED_FROM = {("entity_links", "target"): "target_id", ("evidence", "living"): "source_id"}
"""What columns with a foreign key are generated from, by the table and the first word of their names."""

SAID_TWICE = dict.fromkeys((("insight_members", "memory_id"), ("insight_members", "entity_id")), ("member_id",))
"""Columns beside which another has to say the same."""


@pytest.fixture
async def worlds(make_world: MakeWorld) -> tuple[World, World]:
    """Two tenants that have something in every table."""
    made = await make_world("zcanarya"), await make_world("zcanaryb")
    with psycopg.connect(made[0].tenant.owner_url) as connection:
        for world in made:
            connection.execute(
                "INSERT INTO projection_leases (tenant_id, token, worker_id, lease_until) VALUES (%s, %s, %s, now()) "
                "ON CONFLICT DO NOTHING",
                (world.tenant.tenant_id, uuid4(), uuid4()),
            )
    return made


def test_the_catalog_keeps_tenants_apart(database_urls: DatabaseUrls) -> None:
    with psycopg.connect(database_urls.owner_url) as connection:
        assert faults_of(connection) == {}
        policies = {row[0] for row in connection.execute("SELECT polname FROM pg_policy")}
        tables = {row[0] for row in connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r'")}
        assert len(tenant_tables(connection)) >= 18
    assert ACROSS_TENANTS.keys() <= policies  # no exception outlives its reason
    assert WITHOUT_TENANT.keys() <= tables


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("DROP POLICY memories_app ON memories", "exactly one policy"),
        ("CREATE POLICY wide ON edges TO memory_os_app USING (true) WITH CHECK (true)", "exactly one policy"),
        ("CREATE POLICY wide ON edges USING (true) WITH CHECK (true)", "for everybody"),
        ("ALTER POLICY edges_worker ON edges USING (true)", "does not read the tenant"),
        ("ALTER TABLE mentions NO FORCE ROW LEVEL SECURITY", "enable and force"),
        ("ALTER TABLE memory_embeddings_07 DISABLE ROW LEVEL SECURITY", "enable and force"),
        ("GRANT SELECT ON memory_embeddings_07 TO memory_os_app", "past its parent"),
        ("CREATE TABLE notes (tenant_id uuid, id int)", "enable and force"),
        ("CREATE TABLE notes (id int)", "on no list"),
        (
            "DROP POLICY edges_app ON edges; CREATE POLICY edges_app ON edges FOR SELECT TO memory_os_app USING (true)",
            "for every command",
        ),
        ("CREATE UNIQUE INDEX ON memories (title)", "key that does not begin"),
        (
            "ALTER TABLE edges ADD FOREIGN KEY (source_memory_id, tenant_id) REFERENCES memories (id, tenant_id)",
            "foreign key that does not begin",
        ),
        ("ALTER ROLE memory_os_app BYPASSRLS", "policies don't bind"),
        ("ALTER ROLE memory_os_worker SUPERUSER", "policies don't bind"),
        ("GRANT memory_os_owner TO memory_os_app", "may become another"),
        ("ALTER TABLE edges OWNER TO memory_os_app", "belongs to a service role"),
        ("GRANT ALL ON edges TO memory_os_worker", "truncated"),
        ("GRANT SELECT ON tokens TO PUBLIC", "granted to everybody"),
        ("GRANT CREATE ON SCHEMA public TO memory_os_app", "may create"),
        ("ALTER FUNCTION authenticate(text, bytea) RESET search_path", "pinned search_path"),
        ("GRANT EXECUTE ON FUNCTION outbox_gauges() TO PUBLIC", "its owner for everybody"),
        ("CREATE VIEW all_memories AS SELECT * FROM memories", "is a view"),
    ],
)
def test_the_rules_notice_what_breaks_them(database_urls: DatabaseUrls, change: str, rule: str) -> None:
    with psycopg.connect(database_urls.owner_url) as connection:
        if "(id, tenant_id)" in change:
            connection.execute("CREATE UNIQUE INDEX ON memories (id, tenant_id)")  # or it could not be made at all
        connection.execute(change)
        found = faults_of(connection)
        connection.rollback()
        assert any(rule in name for name in found), found
        assert faults_of(connection) == {}


async def test_no_command_reaches_another_tenants_row(worlds: tuple[World, World], database_urls: DatabaseUrls) -> None:
    first, second = worlds
    assert leaks(database_urls, first, second) == []
    assert leaks(database_urls, second, first) == []


@pytest.mark.parametrize(
    ("change", "reached"),
    [
        (
            "ALTER POLICY memories_app ON memories USING (true) WITH CHECK (true)",
            EVERY,
        ),
        ("ALTER POLICY memories_app ON memories USING (true)", {"SELECT"}),
        ("ALTER TABLE edges DISABLE ROW LEVEL SECURITY", EVERY),
    ],
)
async def test_the_matrix_notices_a_hole(
    worlds: tuple[World, World], database_urls: DatabaseUrls, change: str, reached: set[str]
) -> None:
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute(change)
    found = leaks(database_urls, *worlds)
    assert {reach.table for reach in found} <= {"memories", "edges", "mentions", "entities"}
    assert {reach.command for reach in found} >= reached


async def test_each_role_sees_its_tenants_rows_and_without_a_tenant_none(
    worlds: tuple[World, World], database_urls: DatabaseUrls
) -> None:
    mine = worlds[0]
    counts = mine.row_counts()
    for role, url in (("memory_os_app", database_urls.app_url), ("memory_os_worker", database_urls.worker_url)):
        for table, expected in counts.items():
            everywhere = table in EVERYWHERE[role]
            own = _seen(url, table, mine)
            assert own is None or (0 < own <= expected or everywhere), (role, table)
            assert everywhere or _seen(url, table, None) in (0, None), (role, table)


def _seen(url: str, table: str, world: World | None) -> int | None:
    """How many rows a role sees; None where it may not look at all."""
    with inside(url, world.tenant.tenant_id if world else None) as connection:
        try:
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
        except errors.InsufficientPrivilege:
            return None
        assert row
        return int(row[0])


async def test_a_row_can_not_be_moved_into_another_tenant(
    worlds: tuple[World, World], database_urls: DatabaseUrls
) -> None:
    mine, other = worlds
    for url in (database_urls.app_url, database_urls.worker_url):
        for table in mine.row_counts():
            with inside(url, mine.tenant.tenant_id) as connection:
                statement = sql.SQL("UPDATE {} SET tenant_id = %s WHERE tenant_id = %s").format(sql.Identifier(table))
                if "worker" in url and table in EVERYWHERE["memory_os_worker"]:
                    continue
                with pytest.raises(errors.InsufficientPrivilege):
                    connection.execute(statement, (other.tenant.tenant_id, mine.tenant.tenant_id))


async def test_a_malformed_tenant_is_an_error_and_not_everything(
    worlds: tuple[World, World], database_urls: DatabaseUrls
) -> None:
    assert worlds
    with psycopg.connect(database_urls.app_url) as connection:
        connection.execute("SELECT set_config('memory_os.tenant_id', '*', true)")
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.execute("SELECT count(*) FROM memories")


async def test_a_foreign_key_can_not_point_into_another_tenant(worlds: tuple[World, World]) -> None:
    """Foreign keys are checked past every policy, so each has to hold the tenant itself."""
    mine, other = worlds
    tried = 0
    with psycopg.connect(mine.tenant.owner_url) as connection:
        for table, column, target, key in _foreign_keys(connection):
            theirs = _value(connection, target, key, other)
            held = _value(connection, table, column, mine)
            if theirs is None or held is None:
                continue
            changed = GENERATED_FROM.get((table, column.split("_")[0]), column)
            names = (changed, *SAID_TWICE.get((table, column), ()))
            sets = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in names)
            statement = sql.SQL("UPDATE {} SET {} WHERE tenant_id = %s AND {} = %s").format(
                sql.Identifier(table), sets, sql.Identifier(column)
            )
            with pytest.raises(errors.ForeignKeyViolation), connection.transaction():
                connection.execute(statement, (*[theirs] * len(names), mine.tenant.tenant_id, held))
            tried += 1
    assert tried >= 7


def _foreign_keys(connection: psycopg.Connection[Any]) -> Sequence[tuple[str, str, str, str]]:
    """Table and column of each key of two columns, and the table and column that it points at."""
    return connection.execute(
        "SELECT k.conrelid::regclass::text, a.attname, k.confrelid::regclass::text, f.attname FROM pg_constraint k "
        "JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[2] "
        "JOIN pg_attribute f ON f.attrelid = k.confrelid AND f.attnum = k.confkey[2] "
        "JOIN pg_class c ON c.oid = k.conrelid AND NOT c.relispartition WHERE k.contype = 'f' AND k.conparentid = 0"
    ).fetchall()


def _value(connection: psycopg.Connection[Any], table: str, column: str, world: World) -> object:
    """One value of a tenant's in that column; None where it has none."""
    name = sql.Identifier(column)
    statement = sql.SQL("SELECT {} FROM {} WHERE tenant_id = %s AND {} IS NOT NULL LIMIT 1").format(
        name, sql.Identifier(table), name
    )
    row = connection.execute(statement, (world.tenant.tenant_id,)).fetchone()
    return row[0] if row else None


async def test_private_records_are_hidden_by_the_database_itself(
    worlds: tuple[World, World], database_urls: DatabaseUrls
) -> None:
    mine = worlds[0]
    for kind, hidden in mine.hidden.items():
        statement = sql.SQL("SELECT count(*) FROM {} WHERE id = %s").format(sql.Identifier(HIDING[kind]))
        for user, groups, expected in (
            ("somebody", "", 0),
            (mine.user, "", 1),
            ("somebody", f"other\x1fgroup {mine.mark}", 1),
            ("", "", 0),
            ("%", "%", 0),
        ):
            with inside(database_urls.app_url, mine.tenant.tenant_id) as connection:
                connection.execute(
                    "SELECT set_config('memory_os.user_id', %s, true), set_config('memory_os.groups', %s, true)",
                    (user, groups),
                )
                assert connection.execute(statement, (hidden,)).fetchone() == (expected,), (kind, user, groups)


async def test_root_sees_what_it_administers_and_no_records(
    worlds: tuple[World, World], database_urls: DatabaseUrls
) -> None:
    seen = set()
    with inside(database_urls.app_url, None, "root") as connection:
        connection.execute("SELECT set_config('memory_os.role', 'root', true)")
        for table in worlds[0].row_counts():
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
            if row != (0,):
                seen.add(table)
    administered = {"tenants", "tokens", "outbox_events", "graph_rebuilds", "audit_log"}
    assert seen == administered | {"graph_states", "graph_verifications"}


async def test_functions_that_run_as_the_owner_can_not_be_turned(
    worlds: tuple[World, World], database_urls: DatabaseUrls
) -> None:
    """They ignore a caller's search_path and temporary tables of the same names, and give nothing for NULL."""
    world = worlds[0]
    prefix = world.tenant.tokens["admin"].split("_")[1]
    with psycopg.connect(database_urls.app_url) as connection:
        connection.execute("CREATE TEMPORARY TABLE tokens AS SELECT 1 AS prefix")
        connection.execute("CREATE TEMPORARY TABLE tenants AS SELECT 1 AS tenant_id")
        connection.execute("CREATE TEMPORARY TABLE outbox_events AS SELECT 1 AS tenant_id")
        connection.execute("SET search_path = pg_temp, public")
        for given, digest in ((prefix, b"\0" * 32), (None, b""), (prefix, None), ("' OR true --", b"")):
            assert connection.execute("SELECT * FROM authenticate(%s, %s)", (given, digest)).fetchall() == []
        gauges = connection.execute("SELECT tenant_id FROM outbox_gauges()").fetchall()
        assert (world.tenant.tenant_id,) in gauges
    with psycopg.connect(database_urls.worker_url) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM authenticate(%s, %s)", (prefix, b""))


async def test_nothing_of_a_failed_request_stays_on_its_connection(
    service_settings: Settings, tenant: TestTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = service_settings.model_copy(update={"database_pool_size": 1, "enable_graph_memory": False})
    async with open_services(settings) as services:
        transport = httpx.ASGITransport(app=create_app(services), raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own types
        async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client:
            memory = {"text": "Dough rests.", "label": "Skill"}
            assert (await client.post("/v1/memories", json=memory, headers=tenant.headers())).status_code == 201

            async def fail(*_: object, **__: object) -> None:
                raise RuntimeError("after the rows were written")

            monkeypatch.setattr("memory_os.api.calls.keep_answer", fail)
            headers = {**tenant.headers(), "Idempotency-Key": "one"}
            assert (await client.post("/v1/memories", json=memory, headers=headers)).status_code == 500
            await _assert_blank(services.database, tenant)
            monkeypatch.undo()
            answer = await client.get("/v1/memories", headers=tenant.headers("reader"))
            assert len(answer.json()["items"]) == 1


async def _assert_blank(database: Database, tenant: TestTenant) -> None:
    with psycopg.connect(tenant.owner_url) as owner:
        tables = tenant_tables(owner)
    async with database.transaction(Scope("memory_os_app")) as tx:
        for table in tables:
            rows = await tx.rows(text(f"SELECT 1 FROM {table}"))
            assert rows == [], table
    async with database.engine.connect() as connection:
        left = await connection.execute(
            text("SELECT current_user = session_user, current_setting('memory_os.tenant_id', true)")
        )
        assert left.one() in ((True, ""), (True, None))


async def test_two_hundred_requests_of_two_tenants_on_five_connections_stay_apart(
    service_settings: Settings, tenant_factory: Any
) -> None:
    tenants = [tenant_factory(), tenant_factory()]
    settings = service_settings.model_copy(update={"database_pool_size": 5, "enable_graph_memory": False})
    async with open_services(settings) as services:
        transport = httpx.ASGITransport(app=create_app(services), raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own types
        async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client:

            async def use(number: int) -> None:
                tenant = tenants[number % 2]
                body: dict[str, object] = {"text": f"of {tenant.tenant_id}", "label": "Skill", "dedup": "off"}
                if number % 5 == 0:
                    body["edges"] = [{"type": "SUPPORTS", "to": str(uuid4())}]  # refused after it was written
                await client.post("/v1/memories", json=body, headers=tenant.headers())
                answer = await client.get("/v1/memories?limit=200", headers=tenant.headers("reader"))
                assert {item["text"] for item in answer.json()["items"]} <= {f"of {tenant.tenant_id}"}

            tasks = [asyncio.create_task(use(number)) for number in range(200)]
            await asyncio.sleep(0)
            for number in range(3, 200, 7):
                tasks[number].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            failures = [error for error in done if error and not isinstance(error, asyncio.CancelledError)]
            assert not failures
            for tenant in tenants:
                answer = await client.get("/v1/memories?limit=200", headers=tenant.headers("reader"))
                texts = [item["text"] for item in answer.json()["items"]]
                assert len(texts) >= 50
                assert set(texts) == {f"of {tenant.tenant_id}"}
        assert services.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined] # of the pool that it is
