"""The real processes: the embedded stack and single parts of the service, started as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import psycopg
from tests.chaos.observing import Holder, Observer
from tests.fixtures.falkor import find_free_port
from tests.fixtures.waiting import wait_for

from memory_os.embedded.ready import ReadyFile

START_S = 60.0
"""Seconds that a stack may take to start: 5 on an idle machine, 15 where others work too."""

LEASE_S = 3.0

COMMAND = ("-m", "memory_os")
"""What Python runs."""

SETTINGS = {
    "EMBEDDING_PROVIDER": "deterministic-for-tests",
    "MEMORY_OS_ALLOW_TEST_EMBEDDER": "1",
    "WORKER_LEASE_S": str(LEASE_S),
    "WORKER_POLL_S": "0.5",
    "OUTBOX_BACKOFF_BASE_S": "0.2",
    "OUTBOX_BACKOFF_CAP_S": "2",
}
"""A model that needs no start, and waits that fit into a test."""


class ServiceProcess:
    """One `memory-os` command, or another program around it, as a process.

    Args:
        directory: Where it runs and its log goes; no `.env` lies there.
        name: Of the log.
        arguments: Of the command.
        program: What Python runs; by default the command itself.
        settings: Environment beside `SETTINGS`.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        arguments: Iterable[str],
        *,
        program: Sequence[str] = COMMAND,
        **settings: str,
    ) -> None:
        self.log = directory / f"{name}.log"
        kept = {
            key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                cwd=directory,
                env={**kept, **SETTINGS, **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def stop(self, signum: signal.Signals = signal.SIGTERM, *, seconds: float = 15.0) -> int:
        """Send a signal, and give the exit code."""
        self.process.send_signal(signum)
        return self.process.wait(seconds)


def end_all(processes: Sequence[ServiceProcess]) -> None:
    """End processes side by side, whatever state they are in."""
    for each in processes:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGCONT)
            each.process.terminate()
    for each in processes:
        try:
            each.process.wait(15)
        except subprocess.TimeoutExpired:
            each.process.kill()
            each.process.wait()


class UpStack:
    """`memory-os up` on one home, started as often as the tests end it. The port stays the same."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "home"
        self.ready_path = directory / "ready.json"
        self.port = find_free_port()
        self.up: ServiceProcess | None = None
        self._starts = 0
        self._errors: set[str] = set()
        self._observers: list[Observer] = []

    def start(self) -> ReadyFile:
        """Start it with two workers and wait until all of it answers."""
        self._starts += 1
        arguments = ("up", "--home", str(self.home), "--port", str(self.port), "--workers", "2")
        self.up = ServiceProcess(
            self.directory, f"up-{self._starts}", (*arguments, "--ready-file", str(self.ready_path))
        )
        return self.ready()

    def ensure(self) -> None:
        """Start it unless it runs, and wait until its workers are at work."""
        if self.up is None or self.up.process.poll() is not None:
            self.start()
        self.ready(_are_working)

    def ready(self, accept: Callable[[ReadyFile], bool] = lambda _: True) -> ReadyFile:
        """Wait until every process of the stack runs and the ready file says what `accept` wants."""

        def probe() -> ReadyFile | None:
            assert self.up is not None
            assert self.up.process.poll() is None, self.up.log.read_text()
            if not self.ready_path.exists():
                return None
            found = ReadyFile.read(self.ready_path)
            if found.pids.supervisor != self.up.pid or len(found.pids.workers) != 2:
                return None
            return found if not any(gone(pid) for pid in pids_of(found)) and accept(found) else None

        return wait_for(probe, seconds=START_S, what="the whole stack")

    def family(self) -> list[psutil.Process]:
        """The supervisor and every process below it, servers' own children among them."""
        assert self.up is not None
        supervisor = psutil.Process(self.up.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def settle(self) -> None:
        """After a test: close what looked at it, and let go on whatever was left stopped."""
        while self._observers:
            self._observers.pop().close()
        if self.up is not None and self.up.process.poll() is None:
            for process in self.family():
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)

    def tenant(self, name: str) -> Observer:
        """A new tenant, and all that is needed to look at it."""
        ready = self.ready()
        headers = {"Authorization": f"Bearer {ready.root_token}"}
        made = httpx.post(f"{ready.api}/v1/tenants", json={"name": name}, headers=headers, timeout=30)
        assert made.status_code == 201, made.text
        token, tenant_id = made.json()["token"]["token"], made.json()["tenant"]["id"]
        self._observers.append(Observer(ready.api, token, tenant_id, owner_url(ready), ready.graph_url))
        return self._observers[-1]

    def new_errors(self) -> list[str]:
        """What the service's own processes have logged as errors since the last call."""
        logs = self.home / "logs"
        found = errors_in([*logs.glob("worker-*.log*"), *logs.glob("api.log*")])
        known, self._errors = self._errors, set(found)
        return [line for line in found if line not in known]


def owner_url(ready: ReadyFile) -> str:
    """The stack's database as its superuser."""
    return ready.database_url.replace("memory_os_app@", "postgres@")


def _are_working(ready: ReadyFile) -> bool:
    try:
        with psycopg.connect(owner_url(ready)) as connection:
            rows = connection.execute("SELECT pid FROM workers WHERE state IN ('idle', 'working')").fetchall()
    except psycopg.OperationalError:
        return False
    return {pid for (pid,) in rows} >= {*ready.pids.workers}


def pids_of(ready: ReadyFile) -> list[int]:
    """The processes that a ready file names; 0 for one that is missing."""
    pids = ready.pids
    return [pids.supervisor, pids.postgres or 0, pids.falkor or 0, pids.api or 0, *pids.workers]


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return pid == 0 or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def errors_in(logs: Iterable[Path]) -> list[str]:
    """Lines in which the service tells of what it did not foresee: nothing that is done to it from outside should."""
    lines = (line for log in logs for line in log.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if _is_error(line)]


def _is_error(line: str) -> bool:
    if line.startswith("{"):
        return json.loads(line).get("level") in ("error", "critical")
    return line.startswith(("Traceback", "Task exception was never retrieved", "Exception in"))


def freeze_in_mid_batch(observer: Observer, accept: Callable[[], bool] = lambda: True) -> Holder:
    """Stop the worker that holds the tenant, at a moment when it has events in hand, and leave it stopped.

    Args:
        observer: The tenant.
        accept: Says, while the worker is stopped, whether it is the moment that the test wants.
    """

    def probe() -> Holder | None:
        held = observer.holder()
        if held is None or gone(held.pid):  # a dead worker holds on until its lease runs out
            return None
        os.kill(held.pid, signal.SIGSTOP)
        wait_for(lambda: psutil.Process(held.pid).status() == psutil.STATUS_STOPPED, what="the worker's stop")
        # What it had sent before is still carried out; look again when Postgres is done with it.
        wait_for(lambda: not observer.backends("state = 'active'"), what="quiet backends")
        if observer.holder() == held and accept():
            return held
        os.kill(held.pid, signal.SIGCONT)
        return None

    return wait_for(probe, seconds=30, what="a worker in mid-batch")
