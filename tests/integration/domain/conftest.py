"""A bare database with the domain's SQL in it: what Postgres computes must equal what Python computes."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from memory_os.domain.names import CANONICAL_NAME_SQL
from memory_os.embedded.postgres import EmbeddedPostgres

Connection = psycopg.Connection[tuple[object, ...]]

CREATE_FUNCTION = (
    "CREATE FUNCTION canonical_name(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT"
    f" RETURN {CANONICAL_NAME_SQL}"
)


@pytest.fixture(scope="module", params=["C.UTF-8", "C", "PG_UNICODE_FAST"])
def locale_database(request: pytest.FixtureRequest, postgres_server: EmbeddedPostgres) -> Iterator[Connection]:
    """A connection to a database of each built-in locale, with the function `canonical_name`."""
    yield from _database(postgres_server, f"domain_{request.param.lower().replace('.', '_')}", request.param)


@pytest.fixture(scope="module")
def database(postgres_server: EmbeddedPostgres) -> Iterator[Connection]:
    """A connection to a database of one locale, with the function `canonical_name`."""
    yield from _database(postgres_server, "domain", "C.UTF-8")


def _database(server: EmbeddedPostgres, name: str, locale: str) -> Iterator[Connection]:
    with psycopg.connect(server.url("postgres", "postgres"), autocommit=True) as maintenance:
        maintenance.execute(
            f'CREATE DATABASE "{name}" TEMPLATE template0 ENCODING UTF8'
            f" LOCALE_PROVIDER builtin BUILTIN_LOCALE '{locale}' LOCALE 'C'"
        )
        try:
            with psycopg.connect(server.url("postgres", name), autocommit=True) as connection:
                connection.execute(CREATE_FUNCTION)
                yield connection
        finally:
            maintenance.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
