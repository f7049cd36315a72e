"""`memory-os restore`: a dump into an empty home or an empty database, up to where the service can start on it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from memory_os.admin.bootstrap import DEFAULT_TENANT
from memory_os.backup.dumping import follow
from memory_os.backup.programs import connection_of, find_program, look_at
from memory_os.embedded.private_files import write_private
from memory_os.errors import StartupError
from memory_os.storage.database import hot_statement
from memory_os.storage.migrate import prepare, upgrade
from memory_os.storage.revision import SCHEMA_REVISION
from memory_os.transfer.progress import show_progress

RESTORED: Final = "the database was restored from a backup"
_ENTRY = re.compile(r"^(\d+); \d+ \d+ (.+) (\S+)$")
_ITEM: Final = ("processing item", "processing data for table", "creating ")


def restore_home(home: Path, source: Path) -> list[str]:
    """Restore a dump into a home that has no data.

    Raises:
        StartupError: With the mend; what was begun is to be deleted then.
    """
    from memory_os.backup.homes import new_home  # noqa: PLC0415 - the embedded stores are an extra

    _check_file(source)
    with new_home(home) as postgres:
        try:
            tenants = _restore(postgres.owner_url, source)
        except StartupError as error:
            raise StartupError(f"{error}; delete {home} before you try again") from None
    for tenant in tenants:
        if tenant["name"] == DEFAULT_TENANT:  # the next start would load the sample anew, over what became of it
            write_private(home / "sample-loaded", str(tenant["tenant_id"]))
            break
    return [f"{home} holds the database of {source}", *_next_steps(tenants, f"`memory-os up --home {home}`")]


def restore_url(url: str, source: Path) -> list[str]:
    """Restore a dump into an empty database of one's own server.

    Raises:
        StartupError: With the mend; what was begun is to be dropped then.
    """
    _check_file(source)
    tenants = _restore(url, source)
    return [f"the database holds what {source} does", *_next_steps(tenants, "the API and the workers")]


def _check_file(source: Path) -> None:
    try:
        with source.open("rb") as file:
            begin = file.read(5)
    except OSError as error:
        raise StartupError(f"{source} can't be read ({error.strerror})") from None
    if begin != b"PGDMP":
        raise StartupError(f"{source} is no backup: name a file that `memory-os backup` has written")


def _restore(url: str, source: Path) -> Sequence[dict[str, Any]]:
    facts = look_at(url)
    if not facts.superuser:
        raise StartupError(f"the login {facts.login} is no superuser, which a restore needs: name one in --url")
    if facts.tables:
        raise StartupError("the database is not empty: make a new one with `createdb`, and name it in --url")
    program = find_program("pg_restore", facts.major)
    prepare(url)
    entries = _entries(program, source)
    _make_owners(url, {owner for _, owner in entries})
    where, env = connection_of(url)
    command: list[str | Path] = [
        program,
        "--exit-on-error",
        "--single-transaction",
        "--verbose",
        f"--dbname={where}",
        source,
    ]
    with show_progress("restoring", len(entries), "items") as advance:
        follow(command, env, lambda line: advance(1) if any(word in line for word in _ITEM) else None)
    _check_revision(url)
    upgrade(url)
    return _settle(url)


def _entries(program: Path, source: Path) -> list[tuple[str, str]]:
    """What a dump lists: each item with its owner."""
    listed = subprocess.run([program, "--list", source], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if listed.returncode != 0:
        raise StartupError(f"{source} can't be read as a backup: {listed.stderr.strip()}")
    found = [match for line in listed.stdout.splitlines() if (match := _ENTRY.match(line))]
    return [(match.group(2), match.group(3)) for match in found]


def _make_owners(url: str, owners: set[str]) -> None:
    """Make the roles that own something in the dump and are not here, without any right to log in."""
    with psycopg.connect(url) as connection:
        known = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles")}
        for owner in sorted(owners - known - {"-"}):
            connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(owner)))


def _check_revision(url: str) -> None:
    with psycopg.connect(url) as connection:
        there = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone() == (True,)
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if there else None
    if row is None:
        raise StartupError("the backup is not one of Memory OS")
    if row[0] > SCHEMA_REVISION:
        raise StartupError(
            f"the backup is of schema {row[0]}, this version knows {SCHEMA_REVISION}: restore it with the version of "
            "Memory OS that made it"
        )


def _settle(url: str) -> list[dict[str, Any]]:
    """Part with what is of another time; gives the tenants."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        tenants = connection.execute(hot_statement("restore_states"), {"reason": RESTORED}).fetchall()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")  # a dump holds no statistics, and without them hot statements are planned badly
    return tenants


def _next_steps(tenants: Sequence[dict[str, Any]], start: str) -> list[str]:
    waiting = [f"  memory-os graph rebuild --tenant {row['tenant_id']}" for row in tenants if row["graph"]]
    lines = [
        f"{len(tenants)} tenants; tokens that were revoked since the backup are valid again: revoke them anew",
        "Next:",
    ]
    lines.append(f"  start {start}")
    if waiting:
        lines.append("  make the graphs anew (workers do it by themselves; until then answers say not to rely on them)")
        lines += waiting[:10]
        lines.append("  memory-os graph verify")
    return lines
