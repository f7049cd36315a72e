"""Brings the schema to a revision, and makes the three roles where they are missing."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from memory_os.errors import StartupError
from memory_os.storage.database import driver_url
from memory_os.storage.revision import LEAST_SERVER_VERSION

OWNER, APP, WORKER = "memory_os_owner", "memory_os_app", "memory_os_worker"
_LOCK = 0x4D454D4F
"""Advisory lock that keeps two migrations of one database apart ("MEMO")."""


def script_location() -> Path:
    """Folder of the revisions: inside the installed package, or at the top of a source checkout.

    Raises:
        StartupError: If neither is there.
    """
    packaged = Path(str(files("memory_os"))) / "_alembic"
    checkout = Path(str(files("memory_os"))).parents[1] / "alembic"
    for place in (packaged, checkout):
        if (place / "env.py").is_file():
            return place
    raise StartupError("the migrations are not in this installation: install memory-os anew")


def alembic_config() -> Config:
    """Alembic's configuration, without an ini file."""
    config = Config()
    location = str(script_location()).replace("%", "%%")
    config.set_main_option("script_location", location)
    config.set_main_option("prepend_sys_path", location)  # the revisions import rls.py, which lies there
    config.set_main_option("path_separator", "os")
    return config


def upgrade(owner_url: str, revision: str = "head") -> None:
    """Make the roles and bring the schema to `revision`; doing it twice changes nothing.

    Args:
        owner_url: A role that may create tables, and roles where they are missing.
        revision: An Alembic revision; `head` is what the code needs.

    Raises:
        StartupError: If the server is too old, or a role is missing and can't be made.
    """
    _run(owner_url, lambda config: command.upgrade(config, revision))


def prepare(owner_url: str) -> None:
    """Make the roles and the extension and no table: for an empty database that a dump is about to fill.

    Raises:
        StartupError: As `upgrade`.
    """
    _run(owner_url, None)


def downgrade(owner_url: str, revision: str) -> None:
    """Take the schema back to `revision`. This drops what later revisions made, data included."""
    _run(owner_url, lambda config: command.downgrade(config, revision))


def _run(owner_url: str, step: object) -> None:
    config = alembic_config()
    engine = create_engine(driver_url(owner_url), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            _check_server(connection)
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            _ensure_roles(connection)
            connection.execute(text("SET lock_timeout = '5s'"))
            connection.commit()
            config.attributes["connection"] = connection
            if callable(step):
                step(config)
            connection.commit()
    finally:
        engine.dispose()


def current_revision(connection: Connection) -> str | None:
    """The revision that the database is at; None for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def _check_server(connection: Connection) -> None:
    number = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if number < LEAST_SERVER_VERSION:
        raise StartupError(f"Postgres {number // 10000} is too old: Memory OS needs Postgres 18 with pgvector 0.8")


def _ensure_roles(connection: Connection) -> None:
    for role, options in ((OWNER, "NOLOGIN"), (APP, "LOGIN"), (WORKER, "LOGIN")):
        known = connection.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}).scalar()
        if known is None:
            try:
                connection.execute(text(f"CREATE ROLE {role} {options} NOSUPERUSER NOBYPASSRLS"))
            except DBAPIError as error:
                raise StartupError(
                    f"role {role} is missing and this login may not create it: run `memory-os migrate` once with a "
                    f"login that has CREATEROLE, or have an administrator run CREATE ROLE {role} {options}"
                ) from error
    # The owner's functions must be made by a member of the owner; a superuser is one anyway.
    # Since Postgres 16 whoever creates a role is a member of it, but may neither become it nor use its rights.
    may = text("SELECT pg_has_role(current_user, :role, 'SET') AND pg_has_role(current_user, :role, 'USAGE')")
    if not connection.execute(may, {"role": OWNER}).scalar():
        try:
            connection.execute(text(f"GRANT {OWNER} TO CURRENT_USER WITH SET TRUE, INHERIT TRUE"))
        except DBAPIError as error:
            login = connection.engine.url.username or "this login"
            raise StartupError(
                f"{login} is no member of {OWNER} and may not become one: have an administrator run "
                f"GRANT {OWNER} TO {login}"
            ) from error
    _ensure_extension(connection)
    connection.execute(text(f"GRANT USAGE ON SCHEMA public TO {OWNER}, {APP}, {WORKER}"))
    connection.execute(text(f"GRANT CREATE ON SCHEMA public TO {OWNER}"))


def _ensure_extension(connection: Connection) -> None:
    if connection.execute(text("SELECT 1 FROM pg_extension WHERE extname = 'vector'")).scalar():
        return
    try:
        connection.execute(text("CREATE EXTENSION vector"))
    except DBAPIError as error:
        raise StartupError(
            "the extension vector (pgvector 0.8) is missing and this login can't make it: install pgvector on the "
            "server, and have a superuser run CREATE EXTENSION vector in this database"
        ) from error
