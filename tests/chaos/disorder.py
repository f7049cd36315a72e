"""What can happen to a service that runs: workers die and sleep, stores go and come back, connections are cut."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from time import monotonic

import httpx
import psycopg
import redis
from tests.chaos.deployed import DeployedFalkor, crash
from tests.chaos.observing import Observer
from tests.chaos.processes import LEASE_S, START_S, ServiceProcess
from tests.chaos.rig import Rig
from tests.fixtures.waiting import wait_for

from memory_os.embedded.postgres import EmbeddedPostgres

WORKERS = 4

GAP_S = (0.3, 1.5)
"""Least and most seconds between two blows."""

OUTAGE_S = (0.2, 2.0)
"""The same for how long a store is away."""

ENDS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
"""How Postgres ends: its fast and its immediate shutdown, and what the kernel sends when memory runs out."""

REFUSED = 2
"""Exit code of a worker that was started while Postgres was away."""


@dataclass(frozen=True, slots=True)
class Blow:
    """One thing that happened, for the report."""

    at: float
    what: str


class Disorder:
    """Deals blows to a rig, in an order that a seed determines.

    Args:
        rig: API and workers; the workers are started here.
        postgres: What the rig's database lives in.
        falkor: What the rig's graphs live in.
        tenants: Whose graphs are rebuilt and deleted.
        seed: Of the order and of each choice.
        without: Blows that are not dealt.
    """

    def __init__(
        self,
        rig: Rig,
        postgres: EmbeddedPostgres,
        falkor: DeployedFalkor,
        tenants: list[Observer],
        seed: int,
        *,
        without: frozenset[str],
    ) -> None:
        self.dealt: list[Blow] = []
        self.rebuilds: list[tuple[Observer, str]] = []
        self._rig = rig
        self._postgres = postgres
        self._falkor = falkor
        self._tenants = tenants
        self._source = random.Random(seed)
        self._begun = monotonic()
        self._tick = Event()
        self._workers = [rig.launch_worker() for _ in range(WORKERS)]
        self._asleep: dict[int, float] = {}
        """Process ids of frozen workers, and when each wakes up."""
        blows: Mapping[str, Callable[[], str]] = {
            "kill a worker": self._kill_worker,
            "freeze a worker": self._freeze_worker,
            "stop FalkorDB": self._stop_falkor,
            "kill FalkorDB": self._kill_falkor,
            "lose FalkorDB's last writes": self._lose_writes,
            "delete a graph": self._delete_graph,
            "restart Postgres": self._restart_postgres,
            "cut Postgres connections": self._cut_postgres,
            "cut FalkorDB connections": self._cut_falkor,
            "ask for a rebuild": self._ask_for_rebuild,
        }
        self._blows = {name: blow for name, blow in blows.items() if name not in without}

    def deal(self, seconds: float, go_on: Callable[[], bool]) -> None:
        """Deal one blow after the other, each kind at least once, until the time is over.

        Args:
            seconds: How long.
            go_on: Asked between two blows; false ends it.
        """
        end = monotonic() + seconds
        for name in self._order():
            if monotonic() >= end or not go_on():
                return
            self._tend()
            begun = monotonic()
            detail = self._blows[name]()
            self.dealt.append(Blow(begun - self._begun, f"{name}: {detail} ({monotonic() - begun:.2f} s)"))
            self._tick.wait(self._source.uniform(*GAP_S))

    def calm(self) -> None:
        """Let everybody wake up, and wait until all workers work."""
        self._asleep = dict.fromkeys(self._asleep, 0.0)

        def all_work() -> bool:
            self._tend()
            states = [self._tenants[0].worker(worker.pid).get("state") for worker in self._workers]
            return all(state in ("idle", "working") for state in states)

        wait_for(all_work, seconds=START_S, what="the workers")

    def report(self) -> str:
        """What happened, a line each."""
        return "\n".join(f"{blow.at:6.2f}  {blow.what}" for blow in self.dealt)

    def _order(self) -> Iterator[str]:
        names = list(self._blows)
        while True:
            self._source.shuffle(names)
            yield from names

    def _tend(self) -> None:
        """Wake those up whose time has come, and replace workers that could not start."""
        for pid, at in list(self._asleep.items()):
            if monotonic() >= at:
                del self._asleep[pid]
                os.kill(pid, signal.SIGCONT)
        for worker in list(self._workers):
            code = worker.process.poll()
            assert code in (None, REFUSED), f"a worker ended by itself ({code}):\n{worker.log.read_text()}"
            if code is not None:
                self._replace(worker)

    def _replace(self, worker: ServiceProcess) -> ServiceProcess:
        self._workers.remove(worker)
        self._asleep.pop(worker.pid, None)
        self._workers.append(self._rig.launch_worker())
        return self._workers[-1]

    # --- the blows; each tells what it did

    def _kill_worker(self) -> str:
        worker = self._source.choice(self._workers)
        worker.process.kill()
        worker.process.wait()
        return f"{worker.pid}, and {self._replace(worker).pid} in its place"

    def _freeze_worker(self) -> str:
        awake = [worker for worker in self._workers if worker.pid not in self._asleep]
        if len(awake) == 1:
            return "all others sleep"
        worker = self._source.choice(awake)
        seconds = LEASE_S + self._source.uniform(0.5, 2.0)
        worker.process.send_signal(signal.SIGSTOP)
        self._asleep[worker.pid] = monotonic() + seconds
        return f"{worker.pid} for {seconds:.1f} s"

    def _stop_falkor(self) -> str:
        self._falkor.stop()
        return self._away()

    def _kill_falkor(self) -> str:
        self._falkor.kill()
        return self._away()

    def _lose_writes(self) -> str:
        self._falkor.kill()
        lost = self._falkor.lose(self._source.uniform(0.01, 0.5))
        return f"{lost} bytes, {self._away()}"

    def _away(self) -> str:
        seconds = self._source.uniform(*OUTAGE_S)
        self._tick.wait(seconds)
        self._falkor.start()
        return f"away for {seconds:.1f} s"

    def _delete_graph(self) -> str:
        seen = self._source.choice(self._tenants)
        with self._falkor.connect() as client:
            try:
                client.execute_command("GRAPH.DELETE", f"{seen.prefix}:{{{seen.tenant_id}}}")
            except redis.ResponseError as error:
                return f"of {seen.tenant_id}: {error}"
        return f"of {seen.tenant_id}"

    def _restart_postgres(self) -> str:
        signum = self._source.choice(ENDS)
        crash(self._postgres, signum)
        return signum.name

    def _cut_postgres(self) -> str:
        role = self._source.choice(("memory_os_worker", "memory_os_app"))
        with psycopg.connect(self._rig.owner_url, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,)
            ).fetchall()
        return f"{len(rows)} of {role}"

    def _cut_falkor(self) -> str:
        with self._falkor.connect() as client:
            return str(client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))

    def _ask_for_rebuild(self) -> str:
        seen = self._source.choice(self._tenants)
        answer = None
        with suppress(httpx.TransportError):
            answer = seen.ask("POST", "/v1/graph/rebuild", {})
        if answer is not None and answer.status_code == httpx.codes.ACCEPTED:
            self.rebuilds.append((seen, answer.json()["id"]))
        return f"of {seen.tenant_id}: {answer and answer.status_code}"
