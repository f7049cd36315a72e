"""How often somebody may try to log in."""

from __future__ import annotations

import time
from typing import Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from memory_os.errors import RateLimitedError

FAILURES_A_MINUTE: Final = 10
"""From one address. Guessing 256 random bits is hopeless at any rate; this keeps the attempts from costing queries.

Logins that succeed don't count: behind a proxy all operators may come from one address.
"""


class LoginRate:
    """A moving count of failed logins from each address over a minute, kept in this process."""

    def __init__(self, per_minute: int = FAILURES_A_MINUTE) -> None:
        self._item = RateLimitItemPerMinute(per_minute)
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def check(self, address: str) -> None:
        """Whether this address may try again.

        Raises:
            RateLimitedError: With `Retry-After` in seconds, if too many of its logins have failed.
        """
        if not await self._limiter.test(self._item, address):
            stats = await self._limiter.get_window_stats(self._item, address)
            wait = max(1, int(stats.reset_time - time.time()) + 1)
            raise RateLimitedError(
                f"{self._item.amount} logins from your address have failed within a minute: wait {wait} seconds",
                headers={"Retry-After": str(wait)},
            )

    async def count_failure(self, address: str) -> None:
        """Count a login that failed."""
        await self._limiter.hit(self._item, address)
