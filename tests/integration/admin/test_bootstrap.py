"""The first tokens of an installation, on a real Postgres, for a superuser and for a plain owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from tests.fixtures.postgres import DatabaseUrls

from memory_os.admin import commands
from memory_os.admin.bootstrap import Credentials, ensure_instance
from memory_os.admin.tokens import authenticate
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.errors import StartupError
from memory_os.storage.database import Database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def database(database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    opened = Database(database_urls.app_url, pool_size=1)
    yield opened
    await opened.close()


@pytest.fixture
def plain_owner(
    postgres_server: EmbeddedPostgres, database_urls: DatabaseUrls
) -> Iterator[tuple[str, psycopg.Connection]]:
    """URL of a login without any rights, and a superuser's connection to grant it some."""
    name = f"plain_{uuid4().hex[:8]}"
    with psycopg.connect(database_urls.owner_url, autocommit=True) as superuser:
        superuser.execute(sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(name)))
        yield postgres_server.url(name, database_urls.name), superuser
        superuser.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


async def _check(database: Database, given: Credentials) -> None:
    root = await authenticate(database, given.root_token)
    assert root is not None
    assert (root.tenant_id, root.role) == (INSTANCE_TENANT, "root")
    admin = await authenticate(database, given.token)
    assert admin is not None
    assert (admin.tenant_id, admin.role, admin.scopes) == (UUID(given.tenant_id), "admin", frozenset({"act_as"}))


def _count(urls: DatabaseUrls, table: str) -> int:
    with psycopg.connect(urls.owner_url) as connection:
        statement = sql.SQL("SELECT count(*)::int FROM {}").format(sql.Identifier(table))
        row = connection.execute(statement).fetchone()
    assert row is not None
    count: int = row[0]
    return count


async def test_a_fresh_database_gets_a_root_token_a_tenant_and_its_token(
    database_urls: DatabaseUrls, database: Database
) -> None:
    given = await ensure_instance(database_urls.owner_url, known=None)
    await _check(database, given)
    with psycopg.connect(database_urls.owner_url) as connection:
        names = connection.execute("SELECT name FROM tenants WHERE tenant_id <> %s", (INSTANCE_TENANT,)).fetchall()
    assert names == [("default",)]
    assert given.root_token not in repr(given)
    assert given.token not in repr(given)


async def test_known_credentials_that_hold_are_given_back_and_nothing_is_made(
    database_urls: DatabaseUrls,
) -> None:
    given = await ensure_instance(database_urls.owner_url, known=None)
    assert await ensure_instance(database_urls.owner_url, known=given) == given
    assert _count(database_urls, "tokens") == 2


async def test_lost_credentials_are_made_anew_for_the_same_tenant(
    database_urls: DatabaseUrls, database: Database
) -> None:
    first = await ensure_instance(database_urls.owner_url, known=None)
    second = await ensure_instance(database_urls.owner_url, known=None)
    assert second.tenant_id == first.tenant_id
    assert {second.root_token, second.token}.isdisjoint({first.root_token, first.token})
    await _check(database, second)
    await _check(database, first)
    assert _count(database_urls, "tenants") == 2


async def test_credentials_of_which_one_is_dead_are_made_anew_for_their_tenant(
    database_urls: DatabaseUrls, database: Database
) -> None:
    first = await ensure_instance(database_urls.owner_url, known=None)
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE tenants SET name = 'renamed' WHERE tenant_id = %s", (first.tenant_id,))
        connection.execute("UPDATE tokens SET revoked_at = now() WHERE role = 'admin'")
    second = await ensure_instance(database_urls.owner_url, known=first)
    assert second.tenant_id == first.tenant_id
    await _check(database, second)


@pytest.mark.parametrize(
    "change",
    [
        {"root_token": "mos_x"},
        {"token": ""},
        {"tenant_id": "no uuid"},
        {"tenant_id": str(uuid4())},
    ],
)
async def test_credentials_of_another_database_or_none_at_all_do_not_count(
    database_urls: DatabaseUrls, database: Database, change: dict[str, str]
) -> None:
    first = await ensure_instance(database_urls.owner_url, known=None)
    second = await ensure_instance(database_urls.owner_url, known=replace(first, **change))
    assert second.tenant_id == first.tenant_id
    assert second.token != first.token
    await _check(database, second)


async def test_a_suspended_tenant_keeps_its_credentials(database_urls: DatabaseUrls) -> None:
    given = await ensure_instance(database_urls.owner_url, known=None)
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE tenants SET status = 'suspended' WHERE tenant_id = %s", (given.tenant_id,))
    assert await ensure_instance(database_urls.owner_url, known=given) == given


async def test_two_first_starts_at_once_make_one_tenant(database_urls: DatabaseUrls) -> None:
    one, two = await asyncio.gather(*(ensure_instance(database_urls.owner_url, known=None) for _ in range(2)))
    assert one.tenant_id == two.tenant_id
    assert _count(database_urls, "tenants") == 2


async def test_a_plain_login_does_once_it_may_become_the_role(
    plain_owner: tuple[str, psycopg.Connection], database: Database
) -> None:
    url, superuser = plain_owner
    with pytest.raises(StartupError, match="GRANT memory_os_app TO plain_"):
        await ensure_instance(url, known=None)
    name = sql.Identifier(url.partition("://")[2].partition("@")[0])
    superuser.execute(sql.SQL("GRANT memory_os_app TO {}").format(name))
    await _check(database, await ensure_instance(url, known=None))


async def test_an_empty_or_absent_database_is_refused_with_the_mend(postgres_server: EmbeddedPostgres) -> None:
    with pytest.raises(StartupError, match="memory-os migrate"):
        await ensure_instance(postgres_server.url("postgres", "postgres"), known=None)
    with pytest.raises(StartupError, match="OWNER_DATABASE_URL"):
        await ensure_instance(postgres_server.url("postgres", "nowhere"), known=None)


async def test_what_bootstrap_does_is_in_the_audit_log(database_urls: DatabaseUrls) -> None:
    given = await ensure_instance(database_urls.owner_url, known=None)
    with psycopg.connect(database_urls.owner_url) as connection:
        rows = connection.execute("SELECT tenant_id, role, action FROM audit_log ORDER BY action, tenant_id").fetchall()
    tenant_id = UUID(given.tenant_id)
    assert rows == [
        (tenant_id, "root", "tenant.create"),
        (INSTANCE_TENANT, "root", "token.create"),
        (tenant_id, "root", "token.create"),
    ]


def test_the_command_line_makes_root_tokens_and_tenants(database_urls: DatabaseUrls) -> None:
    (root_token,) = commands.create_root_token(database_urls.owner_url)
    first, second = commands.create_tenant(database_urls.owner_url, "Acme", "Europe/Vienna")
    tenant_id, token = UUID(first.split()[1]), second.split()[1]

    async def authenticated() -> list[tuple[UUID, str]]:
        database = Database(database_urls.app_url, pool_size=1)
        found = [await authenticate(database, given) for given in (root_token, token)]
        await database.close()
        return [(principal.tenant_id, principal.role) for principal in found if principal is not None]

    assert asyncio.run(authenticated()) == [(INSTANCE_TENANT, "root"), (tenant_id, "admin")]


@pytest.mark.parametrize(
    ("name", "time_zone", "words"),
    [("", "UTC", "length"), (" ", "UTC", "blank"), ("x" * 201, "UTC", "length"), ("x", "Nowhere", "time zone")],
)
def test_the_command_line_refuses_in_one_line(
    database_urls: DatabaseUrls, name: str, time_zone: str, words: str
) -> None:
    with pytest.raises(StartupError, match=words) as refusal:
        commands.create_tenant(database_urls.owner_url, name, time_zone)
    assert "\n" not in str(refusal.value)
