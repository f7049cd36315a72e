"""`memory-os backup`: a consistent dump of the whole database, while writes go on."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psycopg
from sqlalchemy import select

from memory_os.admin.audit import record
from memory_os.admin.bootstrap import check_login
from memory_os.admin.reach import ROOT
from memory_os.backup.programs import connection_of, find_program, look_at
from memory_os.domain.principal import INSTANCE_TENANT, Principal
from memory_os.errors import StartupError
from memory_os.storage import tables
from memory_os.storage.database import Database, Scope, Transaction
from memory_os.transfer.files import draft_of
from memory_os.transfer.progress import show_progress

MEGABYTE: Final = 1_000_000
_TABLE = re.compile(r'dumping contents of table "?public"?\."?([^"\s]+)"?')


def back_up(url: str, target: Path, audit_url: str | None = None) -> list[str]:
    """Dump a database into a file, in the custom format of `pg_dump`.

    What was acknowledged before the call is in it. The graph is not: it is derived.

    Args:
        url: A login that row-level security lets pass: a superuser, or a role with BYPASSRLS that reads all tables.
        target: The file; it is there once the dump is whole.
        audit_url: A login that may become `memory_os_app`, for the audit log; by default that of `url`.

    Returns:
        Lines to print.

    Raises:
        StartupError: With the mend; no file is left then.
    """
    facts = look_at(url)
    if not facts.passes_by:
        raise StartupError(
            f"row-level security keeps rows from the login {facts.login}: back up as a superuser, or as a role with "
            "BYPASSRLS and pg_read_all_data, in OWNER_DATABASE_URL"
        )
    program = find_program("pg_dump", facts.major)
    begun = datetime.now(UTC)
    with draft_of(target) as draft:
        _dump(program, url, draft)
    size = target.stat().st_size / MEGABYTE
    done = f"{target}: {size:,.1f} MB, the database as it was at {begun:%Y-%m-%dT%H:%M:%SZ}"
    try:
        asyncio.run(_note(audit_url or url, begun))
    except StartupError as error:
        return [done, f"the audit log has no word of it: {error}"]
    return [done]


def _dump(program: Path, url: str, draft: Path) -> None:
    sizes = _sizes(url)
    where, env = connection_of(url)
    command: list[str | Path] = [
        program,
        "--format=custom",
        "--verbose",
        "--lock-wait-timeout=60s",
        f"--file={draft}",
        f"--dbname={where}",
    ]
    with show_progress("backing up", sum(sizes.values()) // MEGABYTE, "MB") as advance:
        follow(command, env, _progress(sizes, advance))


def _progress(sizes: dict[str, int], advance: Callable[[int], None]) -> Callable[[str], None]:
    """Takes the lines that `pg_dump` says, and tells of each table once the next one has begun."""
    before, rest = "", 0

    def hear(line: str) -> None:
        nonlocal before, rest
        if found := _TABLE.search(line):
            whole, rest = divmod(sizes.pop(before, 0) + rest, MEGABYTE)
            advance(whole)
            before = found.group(1)

    return hear


def _sizes(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, pg_table_size(oid) FROM pg_class "
            "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        )
        return dict(rows.fetchall())


def follow(command: Sequence[str | Path], env: dict[str, str], hear: Callable[[str], None]) -> None:
    """Run a program of Postgres and hear each line that it says.

    Raises:
        StartupError: If it fails, with its last words.
    """
    said: list[str] = []
    with subprocess.Popen(  # noqa: S603 - found by us, arguments apart
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr or ():
            hear(line)
            said = [*said[-4:], line.strip()]
    if process.returncode != 0:
        faults = [line for line in said if "error" in line] or said
        raise StartupError(f"{Path(command[0]).name} failed: {'; '.join(faults)}")


async def _note(url: str, begun: datetime) -> None:
    """Tell the audit log of each tenant, so that whoever erases knows from when on a backup may still hold it."""
    database = Database(url, pool_size=1)
    try:
        await check_login(database)
        await database.run(Scope("memory_os_app", INSTANCE_TENANT, role=ROOT), lambda tx: _record(tx, begun))
    finally:
        await database.close()


async def _record(tx: Transaction, begun: datetime) -> None:
    column = tables.tenants.c.tenant_id
    who = Principal(INSTANCE_TENANT, ROOT)
    for row in await tx.rows(select(column).where(column != INSTANCE_TENANT).order_by(column)):
        tenant_id, detail = row["tenant_id"], {"at": begun.isoformat()}
        await record(tx, who, "backup", "tenant", tenant_id, detail, None, tenant_id=tenant_id)
