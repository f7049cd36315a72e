from __future__ import annotations

import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls, clone_database

from memory_os.embedded.postgres import EmbeddedPostgres


def test_each_role_has_its_url_and_neither_is_mighty(database_urls: DatabaseUrls) -> None:
    for url, role in (
        (database_urls.app_url, "memory_os_app"),
        (database_urls.worker_url, "memory_os_worker"),
    ):
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT current_user, current_database()").fetchone() == (
                role,
                database_urls.name,
            )
            query = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
            assert connection.execute(query).fetchone() == (False,)


def test_a_clone_is_migrated_and_gone_afterwards_whoever_is_connected(
    postgres_server: EmbeddedPostgres, template_database: str
) -> None:
    clones = clone_database(postgres_server, template_database)
    urls = next(clones)
    lingering = psycopg.connect(urls.owner_url, autocommit=True)
    assert lingering.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone() == (True,)
    lingering.execute("CREATE TABLE only_here ()")

    with pytest.raises(StopIteration):
        next(clones)

    with pytest.raises(psycopg.OperationalError):
        lingering.execute("SELECT 1")
    lingering.close()
    with psycopg.connect(postgres_server.url("postgres", "postgres")) as connection:
        query = "SELECT count(*) FROM pg_database WHERE datname = %s"
        assert connection.execute(query, [urls.name]).fetchone() == (0,)
    with psycopg.connect(postgres_server.url("postgres", template_database)) as connection:
        assert connection.execute("SELECT to_regclass('only_here')").fetchone() == (None,)
