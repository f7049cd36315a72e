"""The start of a race, as a contender's process sees it: say that one is ready, and wait for the word.

Nothing but the standard library: other projects' workers import it too, from a virtual environment of their own.
"""

from __future__ import annotations

import sys


def wait_for_start() -> None:
    """Tell the benchmark that this process has imported and connected, and wait until it lets all of them begin."""
    print("ready", flush=True)
    sys.stdin.readline()
