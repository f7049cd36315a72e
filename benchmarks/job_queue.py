"""Jobs claimed and finished a second with nothing done between, beside bare SQL and two job queues on one Postgres.

Everybody gets the same number of jobs, worker processes that have connected before the clock starts, and a freshly
filled, vacuumed and analysed table. Commits wait for the disk for all or for none (`--commits`): the project's worker
does not let them wait, since whatever it writes can be written again, so that none is the comparison of settings.
"""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import psycopg
from peers import ensure_peers, versions
from queue_bare import LEAN
from race import race, script
from stack import Stores, add_tenants, parser, report, stores

from memory_os.domain.ids import new_id

WORKERS = (1, 2, 4)
TENANTS = 8
PGQUEUER = list(product(("asyncpg", "asyncpg_pool", "psycopg"), (100, 200, 500, 1000)))
"""Its settings that matter here: the driver, and how many jobs one query takes and one query logs."""


@dataclass(frozen=True, slots=True)
class Contender:
    """Who races: how its table is filled, what one of its workers is, and what is left and done in SQL."""

    fill: Callable[[int], object]
    command: Sequence[str]
    table: str
    left: str
    done: str


class Ground:
    """One Postgres for all of them."""

    def __init__(self, on: Stores, python: str, *, durable: bool) -> None:
        self.on = on
        self._python = python
        self._durable = durable
        self._tenants = [on.tenant_id, *add_tenants(on, TENANTS - 1)]
        self._connection = psycopg.connect(on.owner_url, autocommit=True)
        self._connection.execute(LEAN)
        setting = "on" if durable else "off"
        self._connection.execute(f"ALTER DATABASE memory_os SET synchronous_commit = {setting}")

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def ours(self) -> Contender:
        """The projector actor with everything but the queue taken out."""
        return Contender(
            self._fill_outbox,
            script("queue_ours.py", *(["--durable"] if self._durable else [])),
            "outbox_events",
            "SELECT EXISTS (SELECT FROM outbox_events WHERE status = 'pending') "
            "OR EXISTS (SELECT FROM outbox_events WHERE status = 'leased')",
            "SELECT count(*) FROM outbox_events WHERE status = 'done'",
        )

    def bare_outbox(self, batch: int) -> Contender:
        """Two bare statements on our table."""
        ours = self.ours()
        command = script("queue_bare.py", "--table", "outbox", "--batch", batch)
        return Contender(ours.fill, command, ours.table, ours.left, ours.done)

    def bare_lean(self, batch: int) -> Contender:
        """Two bare statements on the smallest table."""
        return Contender(
            lambda jobs: self._connection.execute(
                "INSERT INTO bare_jobs (status) SELECT 'pending' FROM generate_series(1, %s)", (jobs,)
            ),
            script("queue_bare.py", "--table", "lean", "--batch", batch),
            "bare_jobs",
            "SELECT EXISTS (SELECT FROM bare_jobs WHERE status = 'pending') "
            "OR (SELECT count(*) FROM bare_jobs WHERE status = 'leased') > 0",
            "SELECT count(*) FROM bare_jobs WHERE status = 'done'",
        )

    def pgqueuer(self, driver: str, batch: int) -> Contender:
        """PgQueuer; it moves a finished job from its table to its log."""
        return Contender(
            lambda jobs: self._fill_peer("pgqueuer", jobs),
            self._peer("pgqueuer", "work", "--driver", driver, "--batch", batch),
            "pgqueuer, pgqueuer_log",
            "SELECT EXISTS (SELECT FROM pgqueuer)",
            "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'",
        )

    def procrastinate(self, concurrency: int) -> Contender:
        """Procrastinate; it claims and finishes jobs one by one, so many at a time."""
        return Contender(
            lambda jobs: self._fill_peer("procrastinate", jobs),
            self._peer("procrastinate", "work", "--concurrency", concurrency),
            "procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers",
            "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
            "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'",
        )

    def rate(self, contender: Contender, workers: int, jobs: int) -> float:
        """Jobs a second of one race."""
        # Before the jobs and not after them: a queue's pages are young, and seldom older than the last checkpoint.
        self._connection.execute("CHECKPOINT")
        contender.fill(jobs)
        self._connection.execute(f"VACUUM (ANALYZE) {contender.table}")
        environment = {**self.on.environment(), "BENCH_URL": self.on.owner_url}
        seconds = race([contender.command] * workers, lambda: not self._ask(contender.left), environment)
        done = self._ask(contender.done)
        assert done == jobs, f"{contender.command}: {done} of {jobs} were done"
        self._connection.execute(f"TRUNCATE {contender.table}")
        return jobs / seconds

    def _ask(self, question: str) -> Any:  # noqa: ANN401 - one value of whatever kind
        row = self._connection.execute(question).fetchone()
        return row[0] if row else None

    def _fill_outbox(self, jobs: int) -> None:
        with (
            self._connection.cursor() as cursor,
            cursor.copy(
                "COPY outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) FROM STDIN"
            ) as copy,
        ):
            for number in range(jobs):
                copy.write_row((self._tenants[number % TENANTS], "GRAPH_UPSERT", "memory", new_id(), 1))

    def _fill_peer(self, project: str, jobs: int) -> None:
        environment = {"BENCH_URL": self.on.owner_url, "PATH": ""}
        subprocess.run(self._peer(project, "fill", "--jobs", jobs), env=environment, check=True)

    def _peer(self, project: str, step: str, *arguments: object) -> list[str]:
        return script("queue_peers.py", project, step, *arguments, python=self._python)


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/job_queue.py --jobs 40000 --rounds 5")
    options.add_argument("--jobs", type=int, default=40_000)
    options.add_argument(
        "--rounds", type=int, default=5, help="of ours, bare SQL and PgQueuer's best; the median counts"
    )
    options.add_argument("--batch", type=int, default=200, help="of bare SQL; the worker's own default is the same")
    options.add_argument("--concurrency", type=int, default=20, help="jobs at a time of a procrastinate worker")
    options.add_argument(
        "--commits", choices=["all", "wait", "go-on"], default="all", help="whether they wait for disk"
    )
    options.add_argument("--no-peers", action="store_true", help="leave PgQueuer and procrastinate out")
    given = options.parse_args()
    python = "" if given.no_peers else str(ensure_peers())
    figures: dict[str, Any] = {
        "jobs": given.jobs,
        "rounds": given.rounds,
        "batch": given.batch,
        "tenants": TENANTS,
        "peers": {} if given.no_peers else versions("pgqueuer", "procrastinate", "asyncpg", "psycopg"),
    }
    for commits, durable in (("go-on", False), ("wait", True)):
        if given.commits in (commits, "all"):
            with stores() as on:
                ground = Ground(on, python, durable=durable)
                try:
                    figures[f"commits_{commits.replace('-', '_')}"] = measure(ground, given)
                finally:
                    ground.close()
    report("job_queue", figures)


def measure(ground: Ground, given: Any) -> dict[str, Any]:  # noqa: ANN401 - parsed arguments have no type of their own
    """All contenders with each number of workers."""
    tables: dict[str, Any] = {}
    for workers in WORKERS:
        contenders = {
            "ours": ground.ours(),
            "bare_outbox": ground.bare_outbox(given.batch),
            "bare_lean": ground.bare_lean(given.batch),
        }
        row: dict[str, Any] = {}
        if not given.no_peers:
            # To find its best, a quarter of the jobs will do.
            tried = {setting: ground.rate(ground.pgqueuer(*setting), workers, given.jobs // 4) for setting in PGQUEUER}
            best = max(tried, key=lambda setting: tried[setting])
            contenders["pgqueuer"] = ground.pgqueuer(*best)
            row["pgqueuer_best"] = {"driver": best[0], "batch": best[1]}
            row["pgqueuer_tried_per_s"] = {f"{driver} {batch}": round(rate) for (driver, batch), rate in tried.items()}
        # One after the other within a round, so that whatever else the machine does meets all of them alike.
        rounds = [
            {name: ground.rate(contender, workers, given.jobs) for name, contender in contenders.items()}
            for _ in range(given.rounds)
        ]
        row |= compare(rounds)
        if not given.no_peers:
            slowest = ground.rate(ground.procrastinate(given.concurrency), workers, given.jobs)
            row |= {
                "procrastinate_per_s": round(slowest),
                "times_procrastinate": round(row["ours_per_s"] / slowest, 1),
            }
        tables[f"{workers} workers"] = row
        print(workers, row, flush=True)
    return tables


def compare(rounds: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Median rates, and ours as a multiple of each other one: the median of the rounds' multiples, and all of them."""
    row: dict[str, Any] = {
        f"{name}_per_s": round(statistics.median(rates[name] for rates in rounds)) for name in rounds[0]
    }
    for name in rounds[0]:
        if name != "ours":
            multiples = [rates["ours"] / rates[name] for rates in rounds]
            row[f"times_{name}"] = round(statistics.median(multiples), 2)
            row[f"times_{name}_by_round"] = [round(multiple, 2) for multiple in multiples]
    return row


if __name__ == "__main__":
    main()
