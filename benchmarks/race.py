"""Races between processes: all of them get ready first, begin at one word, and are ended by whoever started them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from stack import wait_until

HERE = Path(__file__).parent


def script(name: str, *arguments: object, python: str | Path = sys.executable) -> list[str]:
    """The command line of a contender: a script of this folder that calls `gate.wait_for_start`."""
    return [str(python), str(HERE / name), *map(str, arguments)]


def race(
    commands: Sequence[Sequence[str]],
    finished: Callable[[], bool] | None,
    environment: Mapping[str, str] | None = None,
    limit_s: float = 600,
) -> float:
    """Seconds from the word to begin until `finished` says so; it is asked fifty times a second.

    Args:
        commands: One command line a process.
        finished: Whether everything is done, from what the processes leave in the stores; None where they end then.
        environment: Theirs; by default this process's.
        limit_s: Seconds after which the race has failed.

    Raises:
        RuntimeError: A process ended before it was ready.
        TimeoutError: The race took too long.
    """
    with lined_up(commands, environment) as (begin, ended):
        started = time.perf_counter()
        begin()
        wait_until(finished or ended, limit_s, f"{len(commands)} x {Path(commands[0][1]).name} to finish")
        return time.perf_counter() - started


@contextmanager
def lined_up(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None
) -> Iterator[tuple[Callable[[], None], Callable[[], bool]]]:
    """Processes that are ready; yields what lets them begin, and whether all have ended. They end with the block."""
    processes = [
        subprocess.Popen(
            command,
            env=dict(environment or os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for command in commands
    ]

    def begin() -> None:
        for process in processes:
            if process.stdin is not None:
                process.stdin.write("go\n")
                process.stdin.flush()

    def ended() -> bool:
        codes = [process.poll() for process in processes]
        if any(codes):
            raise RuntimeError(f"a contender failed: exit codes {codes}")
        return None not in codes

    try:
        for process in processes:
            if process.stdout is None or process.stdout.readline().strip() != "ready":
                raise RuntimeError(f"{process.args!r} was never ready")
        yield begin, ended
    finally:
        _end(processes)


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
