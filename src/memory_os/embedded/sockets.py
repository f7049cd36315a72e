"""Where the unix socket of a server can be, and which TCP ports are free."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import tempfile
from pathlib import Path

from memory_os.embedded.placement import ServerUser, can_reach
from memory_os.embedded.private_files import make_directory
from memory_os.errors import StartupError

LONGEST_SOCKET_PATH = 103
"""Bytes of `sun_path` on macOS without its final NUL; Linux has four more."""

_SOCKET_NAME = ".s.PGSQL.5432"
_LOOPBACK = "127.0.0.1"


def choose_socket_directory(home: Path, user: ServerUser | None) -> Path:
    """A folder for Postgres' socket that nobody but the server's user (and root) can enter.

    `HOME/socket` if its path is short and plain enough and the user can get there, else one under the system's folder
    for temporary files whose name follows from the home, so that URLs stay the same from run to run.

    Raises:
        StartupError: If there is no such place.
    """
    uid = user.uid if user else os.getuid()
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:10]
    name = f"memory-os-{uid}-{digest}"
    for candidate in (home / "socket", Path(tempfile.gettempdir()) / name, Path("/tmp") / name):  # noqa: S108 - owner and mode are checked
        if not fits(candidate) or not can_reach(user, candidate.parent):
            continue
        make_directory(candidate, 0o700)
        if user and candidate.lstat().st_uid == os.geteuid():
            user.owns(candidate)
        status = candidate.lstat()
        # In a shared folder somebody else could have made it first, or put a link there.
        if not candidate.is_symlink() and status.st_uid == uid and status.st_mode & 0o077 == 0:
            return candidate
    raise StartupError(f"no folder for Postgres' socket: choose a --home with a shorter path than {home}")


def fits(directory: Path) -> bool:
    """Whether a socket in the folder has a path that the kernel takes and that needs no quoting anywhere."""
    path = str(directory / _SOCKET_NAME)
    return len(os.fsencode(path)) <= LONGEST_SOCKET_PATH and re.fullmatch(r"[A-Za-z0-9_./+-]+", path) is not None


def find_free_port() -> int:
    """A TCP port on the loopback address that is free now."""
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now.

    Raises:
        StartupError: If the port can't be used at all, taken or not.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: old connections don't block
        try:
            probe.bind((_LOOPBACK, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise StartupError(f"port {port} can't be used ({error.strerror}); choose another with --port") from error
    return True
