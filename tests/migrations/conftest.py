"""Databases without a schema, on the shared cluster and on one of the test's own, whose roles are made by it alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count

import pytest
from psycopg import sql
from tests.fixtures.postgres import make_open_directory, run_sql

from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.embedded.postgres_settings import THROWAWAY

_numbers = count(1)


@pytest.fixture
def empty_database(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """The superuser's URL of a database without anything in it."""
    name = f"bare_{next(_numbers)}"
    run_sql(postgres_server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield postgres_server.url("postgres", name)
    run_sql(postgres_server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def fresh_cluster() -> Iterator[EmbeddedPostgres]:
    """A cluster of the test's own: roles belong to a cluster and not to a database."""
    directory = make_open_directory("memory-os-migrations-")
    server = EmbeddedPostgres(directory / "home", settings=THROWAWAY)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)
