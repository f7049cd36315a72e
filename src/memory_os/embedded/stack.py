"""What `memory-os up` does: starts the stores, migrates, starts the service, and keeps all of it alive."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock, Timeout

from memory_os.embedded.announce import describe
from memory_os.embedded.child import Command
from memory_os.embedded.falkor import HOST, EmbeddedFalkor
from memory_os.embedded.leftovers import RunRecord, end_processes
from memory_os.embedded.logs import LogFile
from memory_os.embedded.options import Credentials, Programs, StackOptions, StackSteps
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.embedded.private_files import make_directory, write_private
from memory_os.embedded.program import Program, answers
from memory_os.embedded.ready import ReadyFile, StackPids
from memory_os.embedded.signals import StopRequested, StopSignals
from memory_os.embedded.sockets import find_free_port, is_free
from memory_os.embedded.supervisor import Supervisor
from memory_os.errors import StartupError

__all__ = ["Credentials", "Programs", "StackOptions", "StackSteps", "run_stack"]

READY_WAIT_S = 10.0
"""Seconds that a live API may take to call itself ready. After a long absence it is behind by definition (the oldest
event is old), and catching up is no reason not to open the doors."""


def run_stack(options: StackOptions, steps: StackSteps, programs: Programs | None = None) -> None:
    """Start everything, announce it, keep it alive; return when SIGINT, SIGTERM or SIGHUP has ended it cleanly.

    For the main thread of a process that does nothing else.

    Raises:
        StartupError: If the stack can't start; whatever had started is ended.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("run_stack belongs in the main thread: its children end with the thread that starts them")
    options.check()
    _forget_libpq_settings()
    with StopSignals() as signals, ExitStack() as cleanup:
        stack = _Stack(options, steps, programs or Programs(), signals, cleanup)
        try:
            stack.start()
            stack.supervisor.watch()
            steps.say("Stopping ...")
        except StopRequested:
            steps.say("Stopping before everything had started ...")
        cleanup.close()
        steps.say("Stopped.")


class _Stack:
    """One run. Every resource is handed to `cleanup` the moment it exists."""

    def __init__(
        self, options: StackOptions, steps: StackSteps, programs: Programs, signals: StopSignals, cleanup: ExitStack
    ) -> None:
        self.options = options
        self.steps = steps
        self.programs = programs
        self.signals = signals
        self.cleanup = cleanup
        self.begun = time.monotonic()
        # Root's servers run as another user, who has to pass through the home: 0711 lets pass and nobody read.
        self.home = options.home.resolve()
        try:
            make_directory(self.home, 0o711 if os.geteuid() == 0 else 0o700)
        except OSError as error:
            raise StartupError(f"{self.home} can't be made ({error.strerror}); choose another --home") from error
        self.record = RunRecord(self.home / "run.json")
        self._lock_home()
        self._end_leftovers()
        self.port = self._choose_port()
        self.postgres = EmbeddedPostgres(self.home)
        self.falkor = EmbeddedFalkor(self.home) if options.graph == "falkor" else None
        self.supervisor = Supervisor(signals, self.record, say=steps.say, on_change=self._write_ready_file)
        self.api: Program | None = None
        self.workers: list[Program] = []
        self.credentials: Credentials | None = None

    def start(self) -> None:
        """Bring the stack up, step by step.

        Raises:
            StartupError: If a step fails.
            StopRequested: If a signal came on the way.
        """
        self._start_stores()
        with self.signals.interruptible():
            self.steps.say("Bringing the schema up to date ...")
            self.steps.migrate(self.postgres.owner_url)
            self.credentials = self._bootstrap()
        self._start_service()
        self._wait_until_ready()
        with self.signals.interruptible():
            self._load_sample(self.credentials)
        self._write_ready_file()
        ready = self._describe()
        seconds = time.monotonic() - self.begun
        for line in describe(ready, seconds=seconds, credentials=str(self._credentials_path)):
            self.steps.say(line)

    # --- steps

    def _start_stores(self) -> None:
        names = "Postgres and FalkorDB" if self.falkor else "Postgres"
        self.steps.say(f"Starting {names} in {self.home} ...")
        stores: list[EmbeddedPostgres | EmbeddedFalkor] = [self.postgres, *([self.falkor] if self.falkor else [])]
        for store in stores:
            self.cleanup.callback(store.release)
            with self.signals.interruptible():
                store.prepare()
        self.cleanup.callback(self.supervisor.stop)
        self.supervisor.start(*stores)

    def _bootstrap(self) -> Credentials:
        previous = None if self.postgres.created else self._read_credentials()
        credentials = self.steps.bootstrap(self.postgres.owner_url, previous)
        if credentials != previous:
            write_private(self._credentials_path, json.dumps(asdict(credentials), indent=2) + "\n")
        return credentials

    def _start_service(self) -> None:
        with_worker = self.falkor is None
        self.steps.say("Starting the API and its worker ..." if with_worker else "Starting the API and the workers ...")
        arguments = ("--port", str(self.port), *(("--with-worker",) if with_worker else ()))
        env = self._environment()
        self.api = Program(
            "api",
            stage=2,
            command=Command((*self.programs.api, *arguments), env, cwd=Path.cwd()),
            log=self._log("api"),
            port=self.port,
            path=self.programs.live_path,
        )
        self.workers = [
            Program(name, stage=3, command=Command(self.programs.worker, env, cwd=Path.cwd()), log=self._log(name))
            for name in (f"worker-{number + 1}" for number in range(0 if with_worker else self.options.workers))
        ]
        self.supervisor.start(self.api, *self.workers)
        self.cleanup.callback(self._remove_ready_file)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_WAIT_S
        while not answers(self.port, self.programs.ready_path):
            if self.signals.requested:
                raise StopRequested
            if time.monotonic() > deadline:
                self.steps.say(f"The API runs but is not ready yet; {self._url}{self.programs.ready_path} says why")
                return
            self.signals.wait(0.05)

    def _load_sample(self, credentials: Credentials) -> None:
        """Load the sample once for each tenant that bootstrap makes."""
        marker = self.home / "sample-loaded"
        if marker.exists() and marker.read_text(encoding="utf-8") == credentials.tenant_id:
            return
        self.steps.say("Loading the sample ...")
        try:
            self.steps.sample(self._url, credentials.token)
        except Exception as error:  # noqa: BLE001 - whatever it is: a service without its sample is better than none
            self.steps.say(f"The sample could not be loaded ({error}); the next start tries again")
        else:
            write_private(marker, credentials.tenant_id)

    # --- files

    @property
    def _credentials_path(self) -> Path:
        return self.home / "credentials.json"

    def _read_credentials(self) -> Credentials | None:
        try:
            return Credentials(**json.loads(self._credentials_path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            self.steps.say(f"{self._credentials_path} can't be read; making new tokens")
            return None

    def _write_ready_file(self) -> None:
        if self.options.ready_file is not None and self.credentials is not None:
            self._describe().write(self.options.ready_file)

    def _remove_ready_file(self) -> None:
        if self.options.ready_file is not None:
            self.options.ready_file.unlink(missing_ok=True)

    def _describe(self) -> ReadyFile:
        if self.credentials is None or self.api is None:
            raise RuntimeError("there is nothing to describe before the start")
        pids = StackPids(
            supervisor=os.getpid(),
            postgres=self.postgres.pid,
            falkor=self.falkor.pid if self.falkor else None,
            api=self.api.child.pid,
            workers=tuple(pid for worker in self.workers if (pid := worker.child.pid) is not None),
        )
        return ReadyFile(
            api=self._url,
            console=f"{self._url}/console",
            root_token=self.credentials.root_token,
            tenant_id=self.credentials.tenant_id,
            token=self.credentials.token,
            database_url=self.postgres.urls.app,
            graph_url=self.falkor.url if self.falkor else f"networkx:{self.home / 'graph'}",
            pids=pids,
        )

    def _log(self, name: str) -> LogFile:
        log = LogFile(make_directory(self.home / "logs") / f"{name}.log")
        log.rotate()
        return log

    # --- before the start

    def _lock_home(self) -> None:
        lock = FileLock(self.home / "up.lock", blocking=False)
        try:
            lock.acquire()
        except Timeout:
            running = [str(entry.pid) for entry in self.record.read() if entry.name == "supervisor"]
            raise StartupError(
                f"a stack runs on {self.home} already (process {', '.join(running) or 'unknown'}); "
                "stop it with Ctrl-C or SIGTERM, or choose another --home"
            ) from None
        self.cleanup.callback(lock.release)
        self._remove_ready_file()  # a crashed run's: nothing is ready now

    def _end_leftovers(self) -> None:
        """End the service's processes of a crashed run; the stores end their own, they know how."""
        left = [
            (entry, process)
            for entry, process in reversed(self.record.living())
            if entry.name == "api" or entry.name.startswith("worker")
        ]
        if left:
            names = ", ".join(f"{entry.name} ({entry.pid})" for entry, _ in left)
            self.steps.say(f"The last run has crashed; ending what it left: {names}")
            end_processes([process for _, process in left])

    def _choose_port(self) -> int:
        port = self.options.port or find_free_port()
        if not is_free(port):
            raise StartupError(f"port {port} is taken; stop what listens there, or choose another with --port (0: any)")
        return port

    @property
    def _url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def _environment(self) -> dict[str, str]:
        """The service's environment: ours, with everything that says where the stores are replaced."""
        urls = self.postgres.urls
        replaced = ("OWNER_DATABASE_URL", "FALKOR_HOST", "FALKOR_PORT", "FALKOR_PASSWORD", "GRAPH_DIR", "HOST", "PORT")
        graph = {"GRAPH_BACKEND": "networkx", "GRAPH_DIR": str(self.home / "graph")}
        if self.falkor is not None:
            graph = {
                "GRAPH_BACKEND": "falkor",
                "FALKOR_HOST": HOST,
                "FALKOR_PORT": str(self.falkor.port),
                "FALKOR_PASSWORD": self.falkor.password,
            }
        return {
            **{name: value for name, value in os.environ.items() if name not in replaced},
            "DATABASE_URL": urls.app,
            "WORKER_DATABASE_URL": urls.worker,
            "ENABLE_GRAPH_MEMORY": "true",
            "MEMORY_OS_HOME": str(self.home),
            "HOST": HOST,
            **graph,
        }


def _forget_libpq_settings() -> None:
    """Drop what would redirect connections of this process and its children: a PGPORT is enough to miss the socket."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
