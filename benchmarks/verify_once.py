"""One comparison of a graph with its canonical rows, in a process of its own so that its memory can be told apart.

Prints JSON: the seconds, whether they were equal, and the process's resident memory before it began and at its peak.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from uuid import UUID

from cpu import peak_mb

from memory_os.app import build_graph
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.projection.verifier import Verifier
from memory_os.settings import load_settings
from memory_os.storage.checks import check_database
from memory_os.storage.database import Database


async def verify(tenant_id: UUID) -> dict[str, object]:
    """Compare once, with the worker's role."""
    settings = load_settings()
    graph = build_graph(settings)
    assert graph is not None
    database = Database(settings.worker_url(), durable=False)
    await graph.backend.open()
    await check_database(database, WORKER_ROLE)
    await graph.backend.ping()

    async def ignore(_phase: str, _checked: int, _total: int) -> None:
        """Nobody follows."""

    before, started = peak_mb(os.getpid()), time.perf_counter()
    outcome = await Verifier(database, graph.backend).verify(tenant_id, ignore)
    seconds = time.perf_counter() - started
    await graph.backend.close()
    await database.close()
    return {
        "seconds": seconds,
        "rows": sum(part.rows for part in outcome.parts.values()),
        "differences": sum(outcome.total(kind) for kind in ("missing", "extra", "differing")),
        "damage": outcome.damage,
        "rss_mb_before": before,
        "rss_mb_peak": peak_mb(os.getpid()),
    }


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("tenant", type=UUID)
    print(json.dumps(asyncio.run(verify(options.parse_args().tenant))))


if __name__ == "__main__":
    main()
