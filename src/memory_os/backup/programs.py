"""Postgres' programs for dumps: those of the installation, or whatever the machine has that is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memory_os.errors import StartupError

_DEBIAN: Final = Path("/usr/lib/postgresql")
_MAJOR: Final = 10_000
"""What a server's version number is divided by."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a command needs to know of a server and its login."""

    major: int
    login: str
    superuser: bool
    passes_by: bool
    """Whether row-level security lets the login see every row."""
    tables: int


def look_at(url: str) -> ServerFacts:
    """Ask a server.

    Raises:
        StartupError: If it does not answer.
    """
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            row = connection.execute(
                "SELECT current_setting('server_version_num')::int, r.rolname, r.rolsuper, "
                "r.rolsuper OR r.rolbypassrls, (SELECT count(*) FROM pg_class "
                "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')) "
                "FROM pg_roles AS r WHERE r.rolname = session_user"
            ).fetchone()
    except psycopg.Error as error:
        raise StartupError(f"the database can't be reached: {str(error).splitlines()[0]}") from None
    if row is None:
        raise StartupError("the database does not know its own login")
    return ServerFacts(row[0] // _MAJOR, row[1], row[2], row[3], row[4])


def find_program(name: str, major: int) -> Path:
    """A program of Postgres that is not older than a server: `pg_dump` refuses newer ones.

    Raises:
        StartupError: If there is none.
    """
    seen = []
    for program in _candidates(name):
        found = _version(program)
        if found is not None and found >= major:
            return program
        seen.append(f"{program} is of version {found}")
    raise StartupError(
        f"there is no {name} of Postgres {major} or newer{' (' + '; '.join(seen) + ')' if seen else ''}: install "
        f"postgresql-client-{major}, or pip install 'memory-os[embedded]'"
    )


def _candidates(name: str) -> Iterator[Path]:
    with suppress(StartupError, ImportError):
        from memory_os.embedded.cluster import find_installation  # noqa: PLC0415 - the embedded stores are an extra

        yield find_installation() / "bin" / name
    if on_path := shutil.which(name):
        yield Path(on_path)
    yield from sorted(_DEBIAN.glob(f"*/bin/{name}"), reverse=True)


def _version(program: Path) -> int | None:
    try:
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    except OSError:
        return None
    found = re.search(r"\(PostgreSQL\) (\d+)", shown.stdout)
    return int(found.group(1)) if found else None


def connection_of(url: str) -> tuple[str, dict[str, str]]:
    """How a program is told where to connect: an argument without the password, and the environment that has it."""
    parts = conninfo_to_dict(url)
    password = parts.pop("password", None)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG") or name == "PGPASSFILE"}
    env = {**kept, "LC_ALL": "C"}
    if password is not None:
        env["PGPASSWORD"] = str(password)
    return make_conninfo("", **parts), env
