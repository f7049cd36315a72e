"""A stack in a process of its own, and homes that its servers can reach."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.fixtures.postgres import make_open_directory
from tests.fixtures.waiting import wait_for

from memory_os.embedded.ready import ReadyFile

RUNNER = Path(__file__).parent / "run_stack.py"


class RunningStack:
    """A `run_stack.py` process on a home."""

    def __init__(self, directory: Path, **given: Any) -> None:
        self.home = directory / "home"
        self.ready_path = directory / "ready.json"
        self.output = directory / f"output-{len(list(directory.glob('output-*')))}"
        given = {"home": str(self.home), "ready_file": str(self.ready_path), **given}
        hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup, and inherited as that
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(RUNNER), json.dumps(given)],
                stdout=output,
                stderr=output,
                # A stray libpq setting of the caller must not matter.
                env={**os.environ, "PGPORT": "1", "PGHOST": "nowhere.invalid"},
                start_new_session=True,
            )
        signal.signal(signal.SIGHUP, hangup)

    def ready(self, *, unlike: ReadyFile | None = None) -> ReadyFile:
        """Wait for the ready file, or for one with other process ids than `unlike`."""

        def probe() -> ReadyFile | None:
            assert self.process.poll() is None, self.text()
            if not self.ready_path.exists():
                return None
            found = ReadyFile.read(self.ready_path)
            if found.pids.supervisor != self.process.pid:  # of a killed run, not yet removed by this one
                return None
            complete = found.pids.postgres and found.pids.api
            return found if complete and (unlike is None or found.pids != unlike.pids) else None

        return wait_for(probe, seconds=30, what="the ready file")

    def text(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def says(self, words: str) -> None:
        wait_for(lambda: words in self.text(), what=words)

    def stop(self, signum: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(signum)
        return self.process.wait(30)

    def kill(self) -> None:
        """As a power cut for the supervisor alone."""
        self.process.kill()
        self.process.wait()


def all_pids(ready: ReadyFile) -> list[int]:
    pids = ready.pids
    return [pid for pid in (pids.supervisor, pids.postgres, pids.falkor, pids.api, *pids.workers) if pid is not None]


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder that the servers' user can pass through, gone after the test."""
    path = make_open_directory("memory-os-test-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def run(directory: Path) -> Iterator[Callable[..., RunningStack]]:
    """Starts stacks on one home; whatever still runs at the end is ended."""
    stacks: list[RunningStack] = []

    def start(**given: Any) -> RunningStack:
        stacks.append(RunningStack(directory, **given))
        return stacks[-1]

    yield start
    for stack in stacks:
        if stack.process.poll() is None:
            stack.stop(signal.SIGTERM)
