"""Workers that die where a test wants, and a tenant that no worker touches until the test lets go of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
from tests.chaos import dying_worker
from tests.chaos.dying_worker import Trap, mark_of
from tests.chaos.observing import Observer
from tests.chaos.processes import ServiceProcess
from tests.chaos.rig import Rig
from tests.fixtures.waiting import wait_for

from memory_os.outbox.events import CHANNEL

LEASE_S = 1.5
"""Seconds for which a dead worker holds what it had in hand."""

BATCH = 4
"""Events that a worker claims at once."""

CONSTANTS: Mapping[str, Any] = {
    "memory_os.projection.rebuilder.PAGE": 3,
    "memory_os_workers.rebuilder.EVERY_S": 0.05,
}
"""Small pages, so that there is a middle to die in."""


class TrappedWorkers:
    """Workers of a rig that share one trap.

    Args:
        rig: What they work for.
        directory: Of the trap's files.
    """

    def __init__(self, rig: Rig, directory: Path) -> None:
        self.rig = rig
        self._trap_file = directory / "trap.json"
        self._running: list[ServiceProcess] = []

    def launch(self, constants: Mapping[str, Any] = CONSTANTS, **settings: str) -> ServiceProcess:
        """Start a worker, which may run into the trap at once."""
        given = self._settings(constants, settings)
        self._running.append(self.rig.launch_worker((dying_worker.__file__,), **given))
        return self._running[-1]

    def start(self, constants: Mapping[str, Any] = CONSTANTS, **settings: str) -> ServiceProcess:
        """Start a worker and wait until it works."""
        given = self._settings(constants, settings)
        self._running.append(self.rig.start_worker((dying_worker.__file__,), **given))
        return self._running[-1]

    def alone(self) -> ServiceProcess:
        """The one worker that runs: that of the test before, if it is still there."""
        self._trap_file.unlink(missing_ok=True)
        self._running = [worker for worker in self._running if worker.process.poll() is None]
        assert len(self._running) <= 1
        return self._running[0] if self._running else self.start()

    def end(self) -> None:
        """End every worker."""
        for worker in self._running:
            if worker.process.poll() is None:
                worker.process.send_signal(signal.SIGCONT)
                worker.stop()
        self._running = []

    def arm(self, trap: Trap) -> None:
        """Set the trap: the next worker that gets to the point runs into it."""
        mark_of(self._trap_file).unlink(missing_ok=True)
        written = self._trap_file.with_suffix(".new")
        written.write_text(json.dumps(asdict(trap)))
        written.rename(self._trap_file)

    def wait_for_death(self, worker: ServiceProcess, point: str) -> None:
        """Wait until a worker has died by SIGKILL at the point, and nowhere else."""
        assert worker.process.wait(30) == -signal.SIGKILL, worker.log.read_text()
        assert mark_of(self._trap_file).read_text() == point

    def wait_for_sleep(self, worker: ServiceProcess, point: str) -> None:
        """Wait until a worker has frozen at the point."""
        wait_for(
            lambda: psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED, what=f"a worker frozen at {point}"
        )
        assert mark_of(self._trap_file).read_text() == point

    def _settings(self, constants: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
        return {
            "TRAP_FILE": str(self._trap_file),
            "TRAP_CONSTANTS": json.dumps(dict(constants)),
            "WORKER_LEASE_S": str(LEASE_S),
            "WORKER_BATCH_SIZE": str(BATCH),
            **settings,
        }


@contextmanager
def held(seen: Observer) -> Iterator[None]:
    """Hold a tenant as another worker would, so that what the block writes is in the queue as one."""
    take = (
        "INSERT INTO projection_leases AS l (tenant_id, token, worker_id, lease_until) "
        "VALUES (%(tenant)s, gen_random_uuid(), gen_random_uuid(), clock_timestamp() + interval '1 hour') "
        "ON CONFLICT (tenant_id) DO UPDATE SET token = excluded.token, worker_id = excluded.worker_id, "
        "lease_until = excluded.lease_until WHERE l.lease_until < clock_timestamp() RETURNING token"
    )
    wait_for(lambda: seen.rows(take), what="the tenant's lease")
    try:
        yield
    finally:
        let_go(seen)


def let_go(seen: Observer) -> None:
    """End whatever lease the tenant is under, with those of its events, and wake the workers."""
    past = "clock_timestamp() - interval '1 second'"
    mine = "WHERE tenant_id = %(tenant)s"
    seen.rows(f"UPDATE projection_leases SET lease_until = {past} {mine} RETURNING 1")
    seen.rows(f"UPDATE outbox_events SET lease_until = {past} {mine} AND status = 'leased' RETURNING 1")
    seen.rows("SELECT pg_notify(%(channel)s, '')", channel=CHANNEL)
