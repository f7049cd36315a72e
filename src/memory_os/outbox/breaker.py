"""The circuit breaker before the graph: while it is open nothing is claimed, and a probe asks whether to go on."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from memory_os.outbox.backoff import full_jitter

State = Literal["closed", "open", "half_open"]

FIRST_PROBE_S = 0.5
LAST_PROBE_S = 10.0


class Breaker:
    """Opens at the first infrastructure failure, since each further try would cost a time-out, and closes at a success.

    Args:
        clock: Monotonic seconds.
        source: Randomness of the probe's jitter.
    """

    def __init__(self, clock: Callable[[], float], source: random.Random) -> None:
        self._clock = clock
        self._source = source
        self._failures = 0
        self._probe_at = 0.0
        self.reason: str | None = None

    @property
    def state(self) -> State:
        """`closed` lets through, `open` does not, `half_open` lets a probe through."""
        if self._failures == 0:
            return "closed"
        return "half_open" if self._clock() >= self._probe_at else "open"

    def seconds_to_probe(self) -> float:
        """How long until a probe may go; 0 when the breaker is not open."""
        return max(0.0, self._probe_at - self._clock()) if self._failures else 0.0

    def fail(self, reason: str) -> None:
        """An infrastructure failure: open, and wait longer each time."""
        self._failures += 1
        self.reason = reason
        # Half of the wait is fixed: a probe at once would find what has just failed.
        bound = full_jitter(self._failures, FIRST_PROBE_S, LAST_PROBE_S, self._source)
        self._probe_at = self._clock() + FIRST_PROBE_S / 2 + bound

    def succeed(self) -> None:
        """The infrastructure answers: close."""
        self._failures = 0
        self.reason = None
