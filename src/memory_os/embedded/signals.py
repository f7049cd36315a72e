"""Signals that ask us to stop, and a wait that a signal ends at once."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Self

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_Handler = Callable[[int, FrameType | None], Any] | int | None


class StopRequested(BaseException):
    """Somebody wants us to stop. Not an `Exception`, so that nothing on the way takes it for a failure."""


class StopSignals:
    """Within this context SIGINT, SIGTERM and SIGHUP are requests to stop. For the main thread.

    Between two statements a request is only noted, so that no process is ever started and forgotten; code that may be
    cut short anywhere runs inside `interruptible`.
    """

    def __init__(self) -> None:
        self.requests = 0
        """How many have come: the second one asks for haste."""
        self._interruptible = False
        self._previous: dict[signal.Signals, _Handler] = {}
        self._previous_wakeup = -1
        self._wakeup, self._woken = socket.socketpair()

    def __enter__(self) -> Self:
        for end in (self._wakeup, self._woken):
            end.setblocking(False)
        self._previous_wakeup = signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        for signum in _STOPPING:
            # An ignored SIGHUP is nohup's wish to survive the terminal.
            if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
                self._previous[signum] = signal.signal(signum, self._note)
        # Without a handler of any kind the end of a child would not end a wait.
        self._previous[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._previous_wakeup)
        self._wakeup.close()
        self._woken.close()

    @property
    def requested(self) -> bool:
        """Whether a request has come."""
        return self.requests > 0

    def wait(self, timeout: float) -> None:
        """Wait until a signal comes (the end of a child is one), at most `timeout` seconds."""
        select.select([self._wakeup], [], [], max(0.0, timeout))
        with suppress(BlockingIOError):
            while self._wakeup.recv(64):
                pass

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within this context a request raises StopRequested at once, wherever the code is.

        Raises:
            StopRequested: Also on entry, if a request has come before.
        """
        self._interruptible = True
        try:
            if self.requested:
                raise StopRequested
            yield
        finally:
            self._interruptible = False

    def _note(self, _signum: int, _frame: FrameType | None) -> None:
        self.requests += 1
        if self._interruptible:
            self._interruptible = False  # once: what cleans up on the way out must not be cut short in its turn
            raise StopRequested
