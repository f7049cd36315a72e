"""A simulated year with its cycles, beside the same year without: what is forgotten, what is kept, and what is found.

A history of a person and a team is lived day by day through the API by two tenants. One of them has its nightly, weekly
and monthly cycles, each at its simulated time, the other has none. Half-way the same questions are asked a thousand
times, twice. At the end both are asked a fixed set of questions. The plot shows how much there was in either.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import plots
import psycopg
from cycles_tables import lives_table
from stack import Stores, add_tenants, add_token, parser, report, stores
from year.checking import check, check_loop, check_recall, recall
from year.clock import Clock
from year.history import History, date_of, make_history
from year.living import MORNING, NIGHT, Life, live_all
from year.looping import loop
from year.reviewing import review

from memory_os.app import create_app, open_services
from memory_os.cycles.works import WORKS
from memory_os.domain.cycles.rules import RULES
from memory_os.embedding import bundled, deterministic
from memory_os.logging import configure_logging
from memory_os.settings import Settings
from memory_os_workers.process import open_worker

WITH, WITHOUT = "with cycles", "without"
EMBEDDERS = {"bundled": "bundled", "words": "deterministic-for-tests"}

Json = dict[str, Any]


@asynccontextmanager
async def lives(on: Stores, settings: Settings) -> AsyncIterator[list[Life]]:
    """Two lives on the stores, with and without cycles, in one process that is API and worker."""
    async with open_services(settings) as services:
        assert services.graph is not None
        transport = httpx.ASGITransport(app=create_app(services))  # type: ignore[arg-type] # Litestar's own types
        async with (
            open_worker(settings, services.embedder, services.graph.backend) as worker,
            httpx.AsyncClient(transport=transport, base_url="http://memory-os", timeout=60) as client,
        ):
            made = []
            for name, tenant_id in zip((WITH, WITHOUT), add_tenants(on, 2), strict=True):
                headers = {"Authorization": f"Bearer {_token(on, tenant_id)}"}
                clock = Clock(on.owner_url, tenant_id)
                made.append(Life(name, client, headers, services, worker, clock, cycles=name == WITH))
            yield made
            for life in made:
                life.clock.close()


def _token(on: Stores, tenant_id: UUID) -> str:
    with psycopg.connect(on.owner_url) as connection:
        return add_token(connection, tenant_id)


async def live(on: Stores, settings: Settings, history: History, times: int) -> Json:
    """Live the history twice, and give what came of it."""
    started, looped = time.perf_counter(), dict[str, Json]()

    async def midway(life: Life, moment: datetime) -> None:
        looped[life.name] = await loop(life, history, moment, times)
        print(f"{life.name}: {looped[life.name]}", flush=True)

    async with lives(on, settings) as both:
        await live_all(both, history, after_night=review, midway=midway, tell=lambda line: print(line, flush=True))
        evening, night = (date_of(len(history.days) - 1) + hour for hour in (MORNING, NIGHT))
        found = {life.name: await recall(life, history, evening) for life in both}
        checks = await check(both[0], history, night)
        check_loop(checks, looped[WITH])
        check_recall(checks, found[WITH], found[WITHOUT])
        return {
            "days": len(history.days),
            "rules_absent": sorted(set(RULES) - set(WORKS)),
            "lives": {
                life.name: {
                    "counts": life.counts,
                    "runs": dict(life.runs),
                    "made": dict(life.made),
                    "accepted": life.accepted,
                    "asked": life.asked,
                    "night_ms": round(life.night_s * 1000 / len(history.days), 1),
                    "recall": found[life.name],
                }
                for life in both
            },
            "checks": checks.found,
            "failed": checks.failed,
            "lines": checks.lines(),
            "seconds": round(time.perf_counter() - started),
        }


def prepare(on: Stores, embedder: str) -> Settings:
    """The settings of the service in this process, with an embedder that keeps what it has made."""
    from embedders import VECTORS, KeptVectors, ProjectedWords  # noqa: PLC0415 - loads the model's library

    deterministic.DeterministicEmbedder = ProjectedWords  # type: ignore[misc]
    bundled.BundledEmbedder = KeptVectors  # type: ignore[misc]
    kept = {VECTORS: str(on.postgres.home / "vectors.sqlite")}
    os.environ.update(on.environment(EMBEDDING_PROVIDER=EMBEDDERS[embedder], **kept))
    settings = Settings(_env_file=None)
    configure_logging(settings)
    return settings


def main() -> None:
    """Run it."""
    options = parser(
        __doc__ or "", "python benchmarks/year.py --days 84 --notes 1 --loop 50 --embedder words --name tiny_year"
    )
    options.add_argument("--days", type=int, default=365, help="how long the year is; its plot is put into them")
    options.add_argument("--seed", type=int, default=7, help="of all chance in it")
    options.add_argument("--notes", type=float, default=2.0, help="daily notes of a topic on a working day")
    options.add_argument("--loop", type=int, default=1_000, help="questions asked over and over, twice")
    options.add_argument("--embedder", choices=sorted(EMBEDDERS), default="bundled", help="what makes the vectors")
    options.add_argument("--home", type=Path, help="folder where the stores are kept for a look afterwards")
    options.add_argument("--name", default="year", help="name of the JSON file and the plot")
    given = options.parse_args()
    history = make_history(given.days, seed=given.seed, notes=given.notes)
    with stores(given.home) as on:
        made = asyncio.run(live(on, prepare(on, given.embedder), history, given.loop))
    lines = made.pop("lines")
    report(given.name, {"seed": given.seed, "notes": given.notes, "embedder": given.embedder, **made})
    for rule in made["rules_absent"]:
        print(f"NOTE: the rule {rule} is absent, and what it does was not checked")
    print("\n".join([*lines, "", *lives_table(made)]))
    print(f"plot: {plots.draw('year', made, given.name)}")
    if made["failed"]:
        raise SystemExit(f"does not hold: {', '.join(made['failed'])}")


if __name__ == "__main__":
    main()
