"""The Postgres of a home, for commands beside `memory-os up`: the running one, or one for as long as it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memory_os.embedded.leftovers import RunRecord
from memory_os.embedded.placement import find_server_user
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.embedded.sockets import choose_socket_directory
from memory_os.errors import StartupError

RUNS_BY_ITSELF: Final = frozenset({"logs", "socket"})
"""Folders of a home that hold nothing that can't be lost."""


@contextmanager
def open_home(home: Path) -> Iterator[EmbeddedPostgres]:
    """The Postgres of a home that has data.

    Where `memory-os up` runs on the home its server is used, else one is started and stopped at the end of the block.

    Raises:
        StartupError: If the home has no data, or they can't be used.
    """
    home = home.resolve()
    data = home / "postgres"
    if not data.exists():
        raise StartupError(f"{home} holds no data: name the folder that `memory-os up` was given as --home")
    postgres = EmbeddedPostgres(home)
    if any(entry.name == postgres.name for entry, _ in RunRecord(home / "run.json").living()):
        postgres.join(choose_socket_directory(home, find_server_user()))
        yield postgres
        return
    try:
        postgres.start()
        yield postgres
    finally:
        postgres.stop()


@contextmanager
def new_home(home: Path) -> Iterator[EmbeddedPostgres]:
    """A fresh Postgres in a home that has no data; stopped at the end of the block.

    Raises:
        StartupError: If the home has data: nothing is ever put over them.
    """
    home = home.resolve()
    if home.exists() and (found := sorted({entry.name for entry in home.iterdir()} - RUNS_BY_ITSELF)):
        raise StartupError(f"{home} has data ({', '.join(found[:5])}): choose an empty or new --home")
    postgres = EmbeddedPostgres(home)
    try:
        postgres.start()
        yield postgres
    finally:
        postgres.stop()
