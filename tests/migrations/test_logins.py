"""Who may migrate: a superuser, or a plain login that owns the database; everybody else is told the mend."""

from __future__ import annotations

import psycopg
import pytest

from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.errors import StartupError
from memory_os.storage.checks import check_database
from memory_os.storage.database import Database
from memory_os.storage.migrate import upgrade

pytestmark = pytest.mark.anyio


def _run(server: EmbeddedPostgres, database: str, *statements: str) -> None:
    with psycopg.connect(server.url("postgres", database), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


async def test_a_plain_login_that_may_make_roles_can_migrate_once_the_extension_is_there(
    fresh_cluster: EmbeddedPostgres,
) -> None:
    server = fresh_cluster
    _run(server, "postgres", "CREATE ROLE deployer LOGIN CREATEROLE CREATEDB NOSUPERUSER")
    with psycopg.connect(server.url("deployer", "postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE memory")
    url = server.url("deployer", "memory")
    with pytest.raises(StartupError, match="have a superuser run CREATE EXTENSION vector"):
        upgrade(url)
    _run(server, "memory", "CREATE EXTENSION vector")
    upgrade(url)
    upgrade(url)
    for role in ("memory_os_app", "memory_os_worker"):
        database = Database(server.url(role, "memory"), pool_size=1)
        try:
            await check_database(database, role)
        finally:
            await database.close()


async def test_a_login_that_may_make_no_roles_is_told_who_can(fresh_cluster: EmbeddedPostgres) -> None:
    server = fresh_cluster
    _run(
        server,
        "postgres",
        "CREATE ROLE deployer LOGIN NOCREATEROLE NOSUPERUSER",
        "CREATE DATABASE memory OWNER deployer",
    )
    _run(server, "memory", "CREATE EXTENSION vector")
    url = server.url("deployer", "memory")
    with pytest.raises(StartupError, match="CREATE ROLE memory_os_owner NOLOGIN"):
        upgrade(url)
    # The administrator does as the refusals say, one after the other.
    _run(
        server,
        "memory",
        "CREATE ROLE memory_os_owner NOLOGIN",
        "CREATE ROLE memory_os_app LOGIN",
        "CREATE ROLE memory_os_worker LOGIN",
    )
    with pytest.raises(StartupError, match="GRANT memory_os_owner TO deployer"):
        upgrade(url)
    _run(server, "memory", "GRANT memory_os_owner TO deployer")
    upgrade(url)
    database = Database(server.url("memory_os_app", "memory"), pool_size=1)
    try:
        await check_database(database, "memory_os_app")
    finally:
        await database.close()
