"""A backup restored into an empty database of one's own server: rows, rights, and graphs that are not relied on."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql
from tests.fixtures.acting import Actor
from tests.fixtures.postgres import DatabaseUrls, run_sql
from tests.fixtures.service import TenantFactory, TestTenant, application
from tests.fixtures.worker import drain, dump, rebuild

from memory_os.app import open_services
from memory_os.backup.dumping import back_up
from memory_os.backup.programs import find_program
from memory_os.backup.restoring import restore_url
from memory_os.embedded.postgres import APP_ROLE, WORKER_ROLE, EmbeddedPostgres
from memory_os.errors import StartupError
from memory_os.projection.verifier import Verifier
from memory_os.settings import Settings
from memory_os.storage.migrate import downgrade
from memory_os_workers import watcher
from memory_os_workers.context import WorkerContext
from memory_os_workers.process import open_worker

pytestmark = pytest.mark.anyio


@pytest.fixture
def empty_database(postgres_server: EmbeddedPostgres, database_urls: DatabaseUrls) -> Iterator[DatabaseUrls]:
    """A database with nothing in it."""
    name = f"{database_urls.name}_restored"
    run_sql(postgres_server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    url = postgres_server.url
    yield DatabaseUrls(name, url("postgres", name), url(APP_ROLE, name), url(WORKER_ROLE, name))
    run_sql(postgres_server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def settings_on(settings: Settings, urls: DatabaseUrls, graph_dir: Path) -> Settings:
    changed = {"database_url": urls.app_url, "worker_database_url": urls.worker_url, "graph_dir": graph_dir}
    return Settings.model_validate({**settings.model_dump(), **changed, "owner_database_url": urls.owner_url})


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[tuple[httpx.AsyncClient, WorkerContext]]:
    """A client and a worker of a service with these settings."""
    async with open_services(settings) as services:
        assert services.graph is not None
        transport = httpx.ASGITransport(app=application(services))  # type: ignore[arg-type] # Litestar's own ASGI types
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client,
            open_worker(settings, services.embedder, services.graph.backend) as worker,
        ):
            yield client, worker


async def graph_state(client: httpx.AsyncClient, tenant: TestTenant) -> str:
    body = {"query": "What about Mill Lane?"}
    answer = await client.post("/v1/retrieve", json=body, headers=tenant.headers("reader"))
    assert answer.status_code == 200, answer.text
    return str(answer.json()["graph"]["state"])


async def move(source: DatabaseUrls, target: DatabaseUrls, path: Path) -> list[str]:
    await asyncio.to_thread(back_up, source.owner_url, path)
    return await asyncio.to_thread(restore_url, target.owner_url, path)


def ask(url: str, query: str) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
        return row and row[0]


@pytest.mark.parametrize("graph", ["an empty graph", "a graph of another time"])
async def test_graphs_are_not_relied_on_before_they_are_made_anew(
    graph: str,
    service_settings: Settings,
    database_urls: DatabaseUrls,
    empty_database: DatabaseUrls,
    tenant_factory: TenantFactory,
    tmp_path: Path,
) -> None:
    tenant = tenant_factory()
    async with served(service_settings) as (client, worker):
        writer = Actor(client, tenant)
        await writer.remember("The flour comes from Mill Lane.")
        await drain(worker)
        await watcher.look(worker, every_s=0)
        assert await graph_state(client, tenant) == "current"
        waiting = await writer.remember("Mill Lane was told on Monday.")
        await worker.queue.lease(tenant.tenant_id)  # and never comes back
        told = await move(database_urls, empty_database, tmp_path / "all.dump")
    assert f"  memory-os graph rebuild --tenant {tenant.tenant_id}" in told
    if graph == "a graph of another time":
        with psycopg.connect(database_urls.owner_url) as connection:
            connection.execute("DELETE FROM projection_leases")
        async with served(service_settings) as (client, worker):
            await Actor(client, tenant).remember("What Harbour Line did came later.")
            await drain(worker)
    again = settings_on(service_settings, empty_database, tmp_path / ("graph" if "another" in graph else "none"))
    async with served(again) as (client, worker):
        assert await graph_state(client, tenant) == "degraded"
        stats = await client.get("/v1/graph/stats", headers=tenant.headers("operator"))
        assert stats.json()["doubt"] == "the database was restored from a backup"
        await drain(worker)
        assert await graph_state(client, tenant) == "degraded"
        answer = await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))
        assert answer.status_code in (202, 409), answer.text
        await rebuild(worker)
        await drain(worker)
        await watcher.look(worker, every_s=0)
        await rebuild(worker)
        outcome = await Verifier(worker.database, worker.backend).verify(tenant.tenant_id, _quietly)
        assert (outcome.left, outcome.dead, outcome.damage, outcome.waiting) == (0, 0, None, 0)
        assert waiting["id"] in (await dump(worker, tenant.tenant_id)).memories
        assert await graph_state(client, tenant) == "current"


async def _quietly(*_: object) -> None:
    """Hears of the progress."""


async def test_rights_and_policies_come_back(
    database_urls: DatabaseUrls, empty_database: DatabaseUrls, tenant: TestTenant, tmp_path: Path
) -> None:
    told = await move(database_urls, empty_database, tmp_path / "all.dump")
    assert told[0] == f"the database holds what {tmp_path / 'all.dump'} does"
    assert not any("graph rebuild" in line for line in told), "a tenant without a graph needs none"
    policies = "SELECT md5(string_agg(p::text, '' ORDER BY tablename, policyname)) FROM pg_policies AS p"
    grants = (
        "SELECT md5(string_agg(concat_ws(' ', relname, relowner::regrole, relacl, relforcerowsecurity), E'\\n' "
        "ORDER BY relname)) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    )
    for query in (policies, grants):
        assert ask(empty_database.owner_url, query) == ask(database_urls.owner_url, query)
    assert ask(empty_database.owner_url, "SELECT count(*) FROM tokens") == 5
    assert ask(empty_database.app_url, "SELECT count(*) FROM tokens") == 0
    audit = f"SELECT detail->>'at' FROM audit_log WHERE action = 'backup' AND tenant_id = '{tenant.tenant_id}'"
    assert ask(empty_database.owner_url, audit) is None
    assert ask(database_urls.owner_url, audit) is not None


async def test_an_older_backup_is_brought_up_to_date(
    database_urls: DatabaseUrls, empty_database: DatabaseUrls, tmp_path: Path
) -> None:
    await asyncio.to_thread(downgrade, database_urls.owner_url, "0007")
    await move(database_urls, empty_database, tmp_path / "old.dump")
    assert ask(database_urls.owner_url, "SELECT version_num FROM alembic_version") == "0007"
    assert ask(empty_database.owner_url, "SELECT version_num FROM alembic_version") != "0007"


async def test_what_can_not_be_restored_is_refused_with_the_mend(
    database_urls: DatabaseUrls, empty_database: DatabaseUrls, tmp_path: Path
) -> None:
    path = tmp_path / "all.dump"
    await asyncio.to_thread(back_up, database_urls.owner_url, path)
    with pytest.raises(StartupError, match="the database is not empty: make a new one"):
        restore_url(database_urls.owner_url, path)
    with pytest.raises(StartupError, match="memory_os_app is no superuser"):
        restore_url(empty_database.app_url, path)
    with pytest.raises(StartupError, match=r"can't be read"):
        restore_url(empty_database.owner_url, tmp_path / "absent.dump")
    other = tmp_path / "other"
    other.write_text("hello")
    with pytest.raises(StartupError, match="is no backup: name a file"):
        restore_url(empty_database.owner_url, other)
    torn = tmp_path / "torn.dump"
    torn.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(StartupError, match="can't be read as a backup: pg_restore: error"):
        restore_url(empty_database.owner_url, torn)
    torn.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(StartupError, match="pg_restore failed: pg_restore: error"):
        restore_url(empty_database.owner_url, torn)
    assert ask(empty_database.owner_url, "SELECT count(*) FROM pg_class WHERE relname = 'memories'") == 0
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    newer = tmp_path / "newer.dump"
    await asyncio.to_thread(back_up, database_urls.owner_url, newer)
    with pytest.raises(StartupError, match="of schema 9999, this version knows"):
        restore_url(empty_database.owner_url, newer)


def test_a_backup_is_private_and_whole_or_not_there(database_urls: DatabaseUrls, tmp_path: Path) -> None:
    path = tmp_path / "all.dump"
    (line,) = back_up(database_urls.owner_url, path)
    assert line.startswith(f"{path}: ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(StartupError, match=r"row-level security keeps rows from the login memory_os_app: .* BYPASSRLS"):
        back_up(database_urls.app_url, tmp_path / "none.dump")
    with pytest.raises(StartupError, match=r"can't be written .* name a file in a folder of yours"):
        back_up(database_urls.owner_url, tmp_path / "absent" / "none.dump")
    with pytest.raises(StartupError, match="the database can't be reached"):
        back_up(database_urls.owner_url.replace(database_urls.name, "absent"), tmp_path / "none.dump")
    assert [entry.name for entry in tmp_path.iterdir() if "dump" in entry.name] == ["all.dump"]


def test_a_login_for_backups_alone_is_enough(
    postgres_server: EmbeddedPostgres, database_urls: DatabaseUrls, tenant: TestTenant, tmp_path: Path
) -> None:
    run_sql(postgres_server, sql.SQL("CREATE ROLE keeper LOGIN BYPASSRLS"))
    try:
        run_sql(postgres_server, sql.SQL("GRANT pg_read_all_data TO keeper"))
        url = postgres_server.url("keeper", database_urls.name)
        told = back_up(url, tmp_path / "one.dump")
        assert told[1].startswith(
            "the audit log has no word of it: the login keeper may not become memory_os_app: run GRANT"
        )
        assert len(back_up(url, tmp_path / "two.dump", database_urls.app_url)) == 1
        audit = f"SELECT count(*) FROM audit_log WHERE action = 'backup' AND tenant_id = '{tenant.tenant_id}'"
        assert ask(database_urls.owner_url, audit) == 1
    finally:
        run_sql(postgres_server, sql.SQL("REVOKE pg_read_all_data FROM keeper"))
        run_sql(postgres_server, sql.SQL("DROP ROLE keeper"))


def test_programs_older_than_the_server_are_passed_over() -> None:
    assert find_program("pg_dump", 18).name == "pg_dump"
    with pytest.raises(StartupError, match=r"no pg_dump of Postgres 99 or newer \(.*: install postgresql-client-99"):
        find_program("pg_dump", 99)
