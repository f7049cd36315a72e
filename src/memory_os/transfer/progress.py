"""How far a long command is, on standard error: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

EVERY_S: Final = 10.0
"""Seconds between two lines where nobody watches."""


@contextmanager
def show_progress(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Gives a function that is told how much more is done.

    Args:
        what: What is being done, in a word.
        total: How much there is to do.
        unit: Of what: `records`, `MB`.
    """
    if sys.stderr.isatty():
        with _bar(what, total, unit) as advance:
            yield advance
    else:
        yield _lines(what, total, unit)


@contextmanager
def _bar(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    from rich.console import Console  # noqa: PLC0415 - not needed where nobody watches
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total or None, rate="")

        def advance(count: int) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, advance=count, rate=f"{speed:,.0f} {unit}/s" if speed else "")

        yield advance


def _lines(what: str, total: int, unit: str) -> Callable[[int], None]:
    started = told = time.monotonic()
    done = 0

    def advance(count: int) -> None:
        nonlocal told, done
        done += count
        now = time.monotonic()
        if now - told >= EVERY_S:
            told = now
            rate = done / max(now - started, 0.001)
            print(f"{what}: {done:,} of {total:,} {unit}, {rate:,.0f} a second", file=sys.stderr, flush=True)  # noqa: T201 - the terminal's side of a command

    return advance
