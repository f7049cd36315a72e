"""A stack of real processes that tests may break, and single parts of it on stores of the test's own."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.chaos.observing import Observer
from tests.chaos.processes import START_S, ServiceProcess, UpStack, end_all, errors_in
from tests.fixtures.falkor import FalkorProcess, find_free_port, run_falkor
from tests.fixtures.postgres import DatabaseUrls, make_open_directory
from tests.fixtures.service import TestTenant
from tests.fixtures.waiting import wait_for

from memory_os.embedded.program import answers


@pytest.fixture
def seed() -> int:
    """Of everything that is chosen at random; `CHAOS_SEED` repeats a run."""
    chosen = int(os.environ.get("CHAOS_SEED", "") or random.randrange(2**32))
    print(f"CHAOS_SEED={chosen}")  # noqa: T201 - pytest shows it with a failure
    return chosen


@pytest.fixture(scope="session")
def stack_of_session() -> Iterator[UpStack]:
    """`memory-os up`, not started yet."""
    directory = make_open_directory("memory-os-chaos-")
    stack = UpStack(directory)
    yield stack
    if stack.up is not None:
        end_all([stack.up])
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def stack(stack_of_session: UpStack) -> Iterator[UpStack]:
    """`memory-os up` with two workers, all of it running. A test may end any part: the next one finds it whole."""
    stack_of_session.ensure()
    stack_of_session.new_errors()  # those of a test before are that one's
    yield stack_of_session
    stack_of_session.settle()


class Rig:
    """API and workers as processes of their own, on a Postgres and a FalkorDB that nobody restarts."""

    def __init__(self, directory: Path, database: DatabaseUrls, falkor: FalkorProcess, tenant: TestTenant) -> None:
        self.falkor = falkor
        self.processes: list[ServiceProcess] = []
        self._directory = directory
        self._settings = {
            "DATABASE_URL": database.app_url,
            "WORKER_DATABASE_URL": database.worker_url,
            "ENABLE_GRAPH_MEMORY": "true",
            "GRAPH_BACKEND": "falkor",
            "FALKOR_HOST": falkor.host,
            "FALKOR_PORT": str(falkor.port),
        }
        port = find_free_port()
        api = f"http://127.0.0.1:{port}"
        graph_url = f"redis://{falkor.host}:{falkor.port}"
        self.seen = Observer(api, tenant.tokens["admin"], tenant.tenant_id, database.owner_url, graph_url)
        self._port = port

    def start_api(self) -> None:
        """Start the API and wait until it is ready."""
        api = self._start("api", "--port", str(self._port))

        def ready() -> bool:
            assert api.process.poll() is None, api.log.read_text()
            return answers(self._port, "/readyz")

        wait_for(ready, seconds=START_S, what="the API")

    def start_worker(self) -> ServiceProcess:
        """Start a worker and wait until it works."""
        worker = self._start("worker")

        def working() -> bool:
            assert worker.process.poll() is None, worker.log.read_text()
            return self.seen.worker(worker.pid).get("state") not in (None, "starting")

        wait_for(working, seconds=START_S, what="the worker")
        return worker

    def logs(self) -> list[Path]:
        """The logs of all processes."""
        return [process.log for process in self.processes]

    def errors(self) -> list[str]:
        """What the processes have logged as errors."""
        return errors_in(self.logs())

    def _start(self, *arguments: str) -> ServiceProcess:
        name = f"{arguments[0]}-{len(self.processes)}"
        self.processes.append(ServiceProcess(self._directory, name, arguments, **self._settings))
        return self.processes[-1]


@pytest.fixture
def falkor() -> Iterator[FalkorProcess]:
    """A FalkorDB that keeps its data, as the product's own does."""
    with run_falkor("--appendonly", "yes", "--appendfsync", "always") as server:
        yield server
        with suppress(AssertionError):
            server.send_signal(signal.SIGCONT)  # a frozen one would not hear that it shall stop


@pytest.fixture
def rig(tmp_path: Path, database_urls: DatabaseUrls, falkor: FalkorProcess, tenant: TestTenant) -> Iterator[Rig]:
    """An API without workers yet."""
    made = Rig(tmp_path, database_urls, falkor, tenant)
    try:
        made.start_api()
        yield made
    finally:
        made.seen.close()
        end_all(made.processes)
