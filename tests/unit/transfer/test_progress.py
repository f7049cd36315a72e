"""How far a command is: a bar where somebody watches, else a line now and then; never on standard output."""

from __future__ import annotations

import io
import sys

import pytest

from memory_os.transfer import progress


class Terminal(io.StringIO):
    """Standard error that somebody watches."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_shown_a_bar_with_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress.show_progress("exporting", 1000, "records") as advance:
        advance(250)
        advance(250)
    assert "exporting" in terminal.getvalue()
    assert "500/1000" in terminal.getvalue()


def test_others_get_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 1.0, 10.0, 12.0, 20.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.show_progress("exporting", 100_000, "records") as advance:
        for _ in range(4):
            advance(5_000)
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "exporting: 10,000 of 100,000 records, 1,000 a second",
        "exporting: 20,000 of 100,000 records, 1,000 a second",
    ]
    assert told.out == ""
