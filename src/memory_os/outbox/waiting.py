"""Waiting until something that was written has reached the graph."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

WAIT_MS: Final = 5_000
"""Longest wait for the graph to reach a position."""

_POLL_S: Final = 0.02
"""Between two looks at how far the graph is; doubled each time, up to 0.16 s."""


async def wait_until(found: T, reached: Callable[[T], bool], look: Callable[[], Awaitable[T]], timeout_ms: int) -> T:
    """Look again until it is so, or the time is over.

    Args:
        found: What was seen first.
        reached: Whether that is far enough.
        look: Looks again.
        timeout_ms: How long to wait, in milliseconds.

    Returns:
        What was seen last.
    """
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + timeout_ms / 1000, _POLL_S
    while not reached(found) and (left := end - loop.time()) > 0:
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, 8 * _POLL_S)
        found = await look()
    return found
