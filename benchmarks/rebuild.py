"""A whole-tenant rebuild and a whole-tenant comparison, beside a raw bulk load of the same graph rows in the same run.

The rebuild is timed from the request to the swap, on derived rows that are there already. The comparison (`verify`)
runs in a process of its own, whose memory has to stay the same however large the graph is.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import time
from typing import Any

import httpx
import psutil
from cpu import peak_mb
from graph_raw import load_once
from projection import dump, project, put_memories
from race import script
from stack import Stores, parser, report, service, stores, wait_until


def rebuild(on: Stores, limit_s: float) -> dict[str, Any]:
    """Ask for one rebuild and follow it; gives its seconds and rows, and the peak memory of the worker that did it."""
    with (
        service(on, workers=1) as address,
        httpx.Client(base_url=address, headers={"Authorization": f"Bearer {on.token}"}) as client,
    ):
        started = time.perf_counter()
        job = client.post("/v1/graph/rebuild", json={}).raise_for_status().json()["id"]
        last: dict[str, Any] = {}

        def done() -> bool:
            last.update(client.get(f"/v1/graph/rebuilds/{job}").raise_for_status().json())
            return last["status"] in {"done", "failed"}

        wait_until(done, limit_s, "the rebuild", every_s=0.1)
        seconds = time.perf_counter() - started
        peak = max(peak_mb(process.pid) for process in psutil.Process().children() if "worker" in process.cmdline())
    assert last["status"] == "done", json.dumps(last)
    return {"seconds": seconds, "rows": last["total"], "worker_peak_mb": peak}


def verify(on: Stores) -> dict[str, Any]:
    """Compare once."""
    command = script("verify_once.py", on.tenant_id)
    ended = subprocess.run(command, env=on.environment(), check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(ended.stdout)
    assert not found["differences"], f"the graph differs: {found}"
    assert found["damage"] is None, f"the graph can't be compared: {found}"
    return found


def measure(memories: int, rounds: int) -> dict[str, Any]:
    """All of it for one size."""
    with stores() as on:
        put_memories(on, memories)
        projected_s, _ = project(on, 1)
        rebuilt = [rebuild(on, 1800) for _ in range(rounds)]
        verified = [verify(on) for _ in range(rounds)]
        graph = asyncio.run(dump(on))[0]
        raw_s = statistics.median(load_once(on, graph, f"raw{number}") for number in range(rounds))
    rebuild_s = statistics.median(taken["seconds"] for taken in rebuilt)
    verify_s = statistics.median(taken["seconds"] for taken in verified)
    return {
        "graph_rows": len(graph.memories) + len(graph.entities) + len(graph.mentions) + len(graph.co_occurrences),
        "rebuild_memories_per_s": round(memories / rebuild_s),
        "raw_memories_per_s": round(memories / raw_s),
        "rebuild_share_of_raw": round(raw_s / rebuild_s, 3),
        "rebuild_worker_peak_mb": max(taken["worker_peak_mb"] for taken in rebuilt),
        "verify_memories_per_s": round(memories / verify_s),
        "verify_rows": verified[0]["rows"],
        "verify_times_rebuild": round(rebuild_s / verify_s, 2),
        "verify_rss_mb_before": verified[0]["rss_mb_before"],
        "verify_rss_mb_peak": max(taken["rss_mb_peak"] for taken in verified),
        "first_projection_memories_per_s": round(memories / projected_s),
    }


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/rebuild.py --memories 10000 100000 --rounds 3")
    options.add_argument("--memories", type=int, nargs="+", default=[10_000, 100_000])
    options.add_argument("--rounds", type=int, default=3, help="of each; the median counts, and the largest memory")
    given = options.parse_args()
    figures: dict[str, Any] = {"rounds": given.rounds}
    for memories in given.memories:
        figures[str(memories)] = measure(memories, given.rounds)
        print(memories, figures[str(memories)], flush=True)
    report("rebuild", figures)


if __name__ == "__main__":
    main()
