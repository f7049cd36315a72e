"""Processes that a crashed run left behind: how they are recognised, and how they are ended."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from memory_os.embedded.private_files import write_private

START_TOLERANCE_S = 2.0
"""How far a recorded start time may be off: it is computed from the boot time, which the clock's corrections move."""


@dataclass(frozen=True, slots=True)
class RecordedProcess:
    """A process of a run.

    `started` is the kernel's start time in seconds since the epoch: a process id is used again, the pair is not.
    """

    name: str
    pid: int
    started: float


class RunRecord:
    """`HOME/run.json`: the processes of the present or the last run, in the order in which they were started.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, processes: Iterable[RecordedProcess]) -> None:
        """Replace the record."""
        write_private(self._path, json.dumps([asdict(process) for process in processes], indent=2) + "\n")

    def read(self) -> list[RecordedProcess]:
        """What is recorded; nothing if there is no record or it can't be understood."""
        try:
            return [RecordedProcess(**entry) for entry in json.loads(self._path.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError):
            return []

    def remove(self) -> None:
        """Forget the run: everything in it has ended."""
        self._path.unlink(missing_ok=True)

    def living(self) -> list[tuple[RecordedProcess, psutil.Process]]:
        """The recorded processes that still live, without us."""
        found = []
        for entry in self.read():
            with suppress(psutil.Error):
                process = psutil.Process(entry.pid)
                same = abs(process.create_time() - entry.started) <= START_TOLERANCE_S
                if same and entry.pid != os.getpid() and _lives(process):
                    found.append((entry, process))
        return found


def end_processes(
    processes: Iterable[psutil.Process],
    *,
    stop_signals: Iterable[signal.Signals] = (signal.SIGTERM,),
    grace: float = 5.0,
) -> None:
    """End processes that are not our children: each signal to all of them and `grace` seconds, then SIGKILL.

    Args:
        processes: Known to be ours by the caller.
        stop_signals: The gentlest first.
        grace: Seconds for each signal.
    """
    living = list(processes)
    for signum in (*stop_signals, signal.SIGKILL):
        for process in living:
            with suppress(psutil.Error):
                process.send_signal(signum)
                # A stopped process acts on nothing but SIGKILL until it is continued.
                process.send_signal(signal.SIGCONT)
        living = _wait_for_end(living, grace)
        if not living:
            return


def _wait_for_end(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until they have ended, and return those that have not.

    A zombie has ended: in a container whose first process reaps nobody it stays in the table for good.
    """
    deadline = time.monotonic() + seconds
    while processes := [process for process in processes if _lives(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return processes


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def find_servers(directory: Path, belongs: Callable[[str], bool]) -> list[psutil.Process]:
    """Processes that work in a data folder: database servers make it their working folder.

    Args:
        directory: The data folder, which the caller has locked, so whoever works in it is left over.
        belongs: Says of a process name whether it is such a server's.
    """
    place = str(directory.resolve())
    found = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            if belongs(process.info["name"] or "") and process.cwd() == place:
                found.append(process)
    return found
