"""Processor time and memory by process: on a machine that others use too, they say more than the clock does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import psutil
from stack import Stores


def seconds(pids: Iterable[int]) -> float:
    """User and system time that living processes have had."""
    total = 0.0
    for pid in pids:
        try:
            times = psutil.Process(pid).cpu_times()
        except psutil.Error:
            continue  # it has ended; what it had is not seen, so measure before anybody ends
        total += times.user + times.system
    return total


def postgres(on: Stores) -> float:
    """Of the server and all its backends."""
    assert on.postgres.pid is not None
    server = psutil.Process(on.postgres.pid)
    return seconds([server.pid, *(process.pid for process in server.children(recursive=True))])


def falkor(on: Stores) -> float:
    """Of FalkorDB."""
    assert on.falkor.pid is not None
    return seconds([on.falkor.pid])


def peak_mb(pid: int) -> float:
    """The most resident memory that a process has had, in MB.

    From Linux' own count: `getrusage` in a child begins with what its parent had.
    """
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return round(int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024, 1)
