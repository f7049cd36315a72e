"""Full jitter under an exponential bound."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from memory_os.outbox.backoff import backoff_bound, full_jitter


def test_the_bound_doubles_up_to_its_cap() -> None:
    assert [backoff_bound(n, 2.0, 300.0) for n in range(1, 6)] == [2.0, 4.0, 8.0, 16.0, 32.0]
    assert backoff_bound(30, 2.0, 300.0) == 300.0
    assert backoff_bound(5000, 2.0, 300.0) == 300.0


@given(st.integers(1, 40), st.integers())
def test_a_wait_lies_below_the_bound(attempts: int, seed: int) -> None:
    wait = full_jitter(attempts, 2.0, 300.0, random.Random(seed))
    assert 0.0 <= wait <= backoff_bound(attempts, 2.0, 300.0)


def test_events_that_failed_together_do_not_come_back_together() -> None:
    source = random.Random(1)
    waits = [full_jitter(4, 2.0, 300.0, source) for _ in range(1000)]
    assert min(waits) < 1.0
    assert max(waits) > 15.0
