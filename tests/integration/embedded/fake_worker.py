"""Stands for a worker process: says when it is there, and ends on SIGTERM unless it is told to be stubborn."""

from __future__ import annotations

import signal
import sys
from threading import Event

stop = Event()


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def on_request(*_: object) -> None:
    if "stubborn" in sys.argv:
        say("ignoring")
    else:
        stop.set()


signal.signal(signal.SIGTERM, on_request)
say("working")
while not stop.wait(0.2):
    pass
say("done")
