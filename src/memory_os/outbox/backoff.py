"""How long a failed event waits: full jitter under an exponential bound."""

from __future__ import annotations

import random

_MOST_DOUBLINGS = 64
"""Past any cap in use, and short of where a float overflows."""


def backoff_bound(attempts: int, base_s: float, cap_s: float) -> float:
    """The longest wait, in seconds, after `attempts` failed attempts: `min(cap, base * 2 ** (attempts - 1))`."""
    return float(min(cap_s, base_s * 2.0 ** min(max(0, attempts - 1), _MOST_DOUBLINGS)))


def full_jitter(attempts: int, base_s: float, cap_s: float, source: random.Random) -> float:
    """A wait in seconds, uniform below the bound, so that events that failed together don't come back together."""
    return source.uniform(0.0, backoff_bound(attempts, base_s, cap_s))
