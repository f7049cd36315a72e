"""How long each part of a retrieval takes: for the answer, the log and the metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from memory_os.metrics import RETRIEVAL_SECONDS


class Timings:
    """Milliseconds by part. Parts may overlap: arms run side by side."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure a part, however it ends."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._keep(name, time.perf_counter() - started)

    def finish(self) -> dict[str, float]:
        """All parts, and the whole since the beginning."""
        self._keep("total", time.perf_counter() - self._started)
        return self.milliseconds

    def _keep(self, name: str, seconds: float) -> None:
        RETRIEVAL_SECONDS.labels(name).observe(seconds)
        self.milliseconds[name] = round(seconds * 1000, 2)
