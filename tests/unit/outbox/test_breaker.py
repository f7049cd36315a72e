"""The breaker: opens at once, waits longer each time, lets one probe decide."""

from __future__ import annotations

import random

from memory_os.outbox.breaker import FIRST_PROBE_S, LAST_PROBE_S, Breaker


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make() -> tuple[Breaker, Clock]:
    clock = Clock()
    return Breaker(clock, random.Random(3)), clock


def test_it_lets_through_until_something_fails() -> None:
    breaker, _ = make()
    assert breaker.state == "closed"
    assert breaker.seconds_to_probe() == 0.0
    breaker.fail("refused")
    assert breaker.state == "open"
    assert breaker.reason == "refused"
    assert breaker.seconds_to_probe() >= FIRST_PROBE_S / 2


def test_a_probe_goes_after_the_wait_and_closes_it() -> None:
    breaker, clock = make()
    breaker.fail("refused")
    clock.now += breaker.seconds_to_probe()
    assert breaker.state == "half_open"
    breaker.succeed()
    assert breaker.state == "closed"
    assert breaker.reason is None


def test_failed_probes_wait_longer_but_not_for_ever() -> None:
    breaker, clock = make()
    waits = []
    for _ in range(40):
        breaker.fail("refused")
        waits.append(breaker.seconds_to_probe())
        clock.now += waits[-1]
    assert max(waits[:2]) < max(waits[8:])
    assert max(waits) <= LAST_PROBE_S + FIRST_PROBE_S
