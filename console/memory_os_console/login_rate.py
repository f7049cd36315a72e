"""How often somebody may try to log in."""

from __future__ import annotations

import time
from typing import Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from memory_os.errors import RateLimitedError

ATTEMPTS_A_MINUTE: Final = 10
"""From one address. Guessing 256 random bits is hopeless at any rate; this keeps the attempts from costing queries."""


class LoginRate:
    """A moving count of login attempts from each address over a minute, kept in this process."""

    def __init__(self, per_minute: int = ATTEMPTS_A_MINUTE) -> None:
        self._item = RateLimitItemPerMinute(per_minute)
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def check(self, address: str) -> None:
        """Count an attempt.

        Raises:
            RateLimitedError: With `Retry-After` in seconds, if there were too many.
        """
        if not await self._limiter.hit(self._item, address):
            stats = await self._limiter.get_window_stats(self._item, address)
            wait = max(1, int(stats.reset_time - time.time()) + 1)
            raise RateLimitedError(
                f"more than {self._item.amount} login attempts within a minute: wait {wait} seconds",
                headers={"Retry-After": str(wait)},
            )
