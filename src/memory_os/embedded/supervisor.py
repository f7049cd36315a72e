"""Keeps the stack's processes alive and ends them in order.

One loop in the main thread tends all of them, so there is nothing to lock and the kernel's tie between a child and the
thread that started it (see `child`) holds for our whole life.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import psutil

from memory_os.embedded.child import ESCALATION_S, Child
from memory_os.embedded.leftovers import RecordedProcess, RunRecord
from memory_os.embedded.signals import StopRequested, StopSignals
from memory_os.errors import StartupError

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 30.0
STEADY_S = 60.0
"""A service that has run this long has recovered: the next end is a first one again."""

STOP_GRACE_S = 10.0
"""Seconds that each stage may take to stop by itself; the promise of the workers."""

_STARTING_POLL_S = 0.02
_RUNNING_POLL_S = 1.0


class Service(Protocol):
    """What can be supervised."""

    @property
    def name(self) -> str:
        """For messages and the log file."""

    @property
    def stage(self) -> int:
        """Lower stages end after higher ones, because those need them."""

    @property
    def patience(self) -> float | None:
        """Seconds without a sign of life after which it is killed and started anew; None: only its end counts."""

    @property
    def start_attempts(self) -> int:
        """How often it may end before it is ready when the stack starts; after that the start has failed."""

    @property
    def child(self) -> Child:
        """Its process."""

    def spawn(self) -> None:
        """Start the process, without waiting for it."""

    def ready(self) -> bool:
        """Whether it does its work now. Bounded in time: it is asked from the loop."""

    def responsive(self) -> bool:
        """Whether it shows a sign of life. Bounded in time."""

    def explain_end(self) -> str:
        """Why it has ended before it was ready."""


class _State(Enum):
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"


@dataclass(slots=True)
class _Tended:
    service: Service
    state: _State
    since: float
    heard: float
    """When it last showed a sign of life."""
    ends: int = 0
    """How often it has ended since it was last steady."""


class Supervisor:
    """Starts, watches and ends services.

    Args:
        signals: Ends `watch` and cuts `start` short.
        record: Where the processes are noted, for the run after a crash.
        say: Takes one line of progress at a time.
        on_change: Called when a service runs again under a new process id.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        signals: StopSignals,
        record: RunRecord,
        *,
        say: Callable[[str], None],
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._signals = signals
        self._record = record
        self._say = say
        self._on_change = on_change
        self._clock = clock
        self._tended: list[_Tended] = []
        self._trimmed = clock()

    def start(self, *services: Service, timeout: float = 60.0) -> None:
        """Start services at the same time and wait until all of them are ready.

        Args:
            services: What to start; they are watched from now on.
            timeout: Seconds for all of them.

        Raises:
            StartupError: If one ends, or is not ready in time; whatever was started is ended by `stop`.
            StopRequested: If a signal asked for it.
        """
        deadline = self._clock() + timeout
        new = []
        for service in services:
            tended = _Tended(service, _State.STARTING, self._clock(), self._clock())
            self._tended.append(tended)
            new.append(tended)
            self._spawn(tended)
        while not all(self._has_started(tended) for tended in new):
            if self._signals.requested:
                raise StopRequested
            if self._clock() > deadline:
                late = ", ".join(tended.service.name for tended in new if tended.state is not _State.RUNNING)
                raise StartupError(f"not ready after {timeout:.0f} s: {late}; their logs say more")
            self._signals.wait(_STARTING_POLL_S)

    def watch(self) -> None:
        """Restart what ends or falls silent, until a signal asks to stop."""
        while not self._signals.requested:
            for tended in self._tended:
                self._tend(tended)
            self._trim_logs()
            self._signals.wait(self._next_look())

    def stop(self) -> None:
        """End everything, the last stage first, within a bounded time. Never raises."""
        for stage in sorted({tended.service.stage for tended in self._tended}, reverse=True):
            self._end_stage([tended.service.child for tended in self._tended if tended.service.stage == stage])
        self._tended.clear()
        self._record.remove()

    # --- starting and restarting

    def _spawn(self, tended: _Tended) -> None:
        tended.service.spawn()
        tended.state, tended.since, tended.heard = _State.STARTING, self._clock(), self._clock()
        self._note_processes()

    def _has_started(self, tended: _Tended) -> bool:
        service = tended.service
        if tended.state is _State.RUNNING:
            return True
        if not service.child.running():
            tended.ends += 1
            if tended.ends >= service.start_attempts:
                raise StartupError(service.explain_end())
            self._spawn(tended)
        elif service.ready():
            tended.state, tended.ends = _State.RUNNING, 0
        return tended.state is _State.RUNNING

    def _tend(self, tended: _Tended) -> None:
        if tended.state is _State.WAITING:
            if self._clock() >= tended.since + self._delay(tended):
                self._respawn(tended)
        elif not tended.service.child.running():
            self._after_end(tended, f"ended with exit code {tended.service.child.exit_code}")
        elif tended.state is _State.STARTING and tended.service.ready():
            tended.state = _State.RUNNING
            self._say(f"{tended.service.name} runs again as process {tended.service.child.pid}")
            self._on_change()
        else:
            self._listen(tended)

    def _respawn(self, tended: _Tended) -> None:
        try:
            self._spawn(tended)
        except (StartupError, OSError) as error:
            self._after_end(tended, f"can't be started ({error})")

    def _after_end(self, tended: _Tended, what: str) -> None:
        now = self._clock()
        if tended.state is _State.RUNNING and now - tended.since >= STEADY_S:
            tended.ends = 0
        tended.ends += 1
        tended.state, tended.since = _State.WAITING, now
        log = tended.service.child.log.path
        self._say(f"{tended.service.name} {what}; restarting it in {self._delay(tended):.1f} s (log: {log})")

    def _listen(self, tended: _Tended) -> None:
        """The watchdog: a server that is alive and answers nothing helps nobody."""
        patience = tended.service.patience
        if patience is None:
            return
        if tended.service.responsive():
            tended.heard = self._clock()
        elif self._clock() - tended.heard > patience:
            tended.service.child.kill()
            self._after_end(tended, f"did not answer for {patience:.0f} s and was killed")

    def _delay(self, tended: _Tended) -> float:
        return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(tended.ends - 1, 16))

    def _next_look(self) -> float:
        """Seconds until a service needs attention, if no signal comes before."""
        now = self._clock()
        looks = [_RUNNING_POLL_S]
        for tended in self._tended:
            if tended.state is _State.STARTING:
                looks.append(_STARTING_POLL_S)
            elif tended.state is _State.WAITING:
                looks.append(tended.since + self._delay(tended) - now)
        return min(looks)

    # --- book-keeping

    def _note_processes(self) -> None:
        us = psutil.Process()
        noted = [RecordedProcess("supervisor", os.getpid(), us.create_time())]
        for tended in self._tended:
            child = tended.service.child
            if child.pid is not None and child.started is not None:
                noted.append(RecordedProcess(tended.service.name, child.pid, child.started))
        self._record.write(noted)

    def _trim_logs(self) -> None:
        if self._clock() - self._trimmed >= 10 * _RUNNING_POLL_S:
            self._trimmed = self._clock()
            for tended in self._tended:
                tended.service.child.log.trim()

    # --- ending

    def _end_stage(self, children: Sequence[Child]) -> None:
        """End the children of a stage side by side: a grace for all of them together, then each the hard way."""
        before = self._signals.requests
        for child in children:
            if child.running():
                child.send(child.command.stop_signals[0])
        deadline = self._clock() + STOP_GRACE_S
        # Another Ctrl-C while we wait means: now.
        while self._clock() < deadline and self._signals.requests == before:
            if not any(child.running() for child in children):
                return
            self._signals.wait(0.05)
        for child in children:
            self._end_sternly(child)

    @staticmethod
    def _end_sternly(child: Child) -> None:
        for signum in child.command.stop_signals[1:]:
            child.send(signum)
            if child.wait(ESCALATION_S):
                return
        child.kill()
