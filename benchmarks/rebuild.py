"""A whole-tenant rebuild, beside a raw bulk load of the same graph rows in the same run."""

from __future__ import annotations

import asyncio
import json
import os
import time

import httpx
from projection import dump, project, put_memories, raw_write
from stack import parser, report, service, stores, wait_until


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/rebuild.py --memories 10000")
    options.add_argument("--memories", type=int, default=10_000)
    given = options.parse_args()
    os.environ.setdefault("LOG_LEVEL", "warning")
    with stores() as on:
        put_memories(on, given.memories)
        project(on, given.memories, 1)
        with (
            service(on, workers=1) as address,
            httpx.Client(base_url=address, headers={"Authorization": f"Bearer {on.token}"}) as client,
        ):
            started = time.perf_counter()
            job = client.post("/v1/graph/rebuild", json={}).raise_for_status().json()["id"]
            last: dict[str, object] = {}

            def done() -> bool:
                last.update(client.get(f"/v1/graph/rebuilds/{job}").raise_for_status().json())
                return last["status"] in {"done", "failed"}

            wait_until(done, 900, "the rebuild")
            seconds = time.perf_counter() - started
        assert last["status"] == "done", json.dumps(last)
        graph = asyncio.run(dump(on))
        raw = min(raw_write(on, graph, f"raw{number}") for number in range(2))
    report(
        "rebuild",
        {
            "memories": given.memories,
            "graph_rows": last["total"],
            "rebuild_memories_per_s": round(given.memories / seconds),
            "raw_memories_per_s": round(given.memories / raw),
            "share": round(raw / seconds, 3),
        },
    )


if __name__ == "__main__":
    main()
