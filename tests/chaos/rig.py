"""Single parts of the service as processes, on stores of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.chaos.deployed import DeployedFalkor
from tests.chaos.observing import Observer
from tests.chaos.processes import COMMAND, START_S, ServiceProcess, end_all, errors_in
from tests.fixtures.falkor import FalkorProcess, find_free_port
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import add_token
from tests.fixtures.waiting import wait_for

from memory_os.domain.ids import new_id
from memory_os.domain.roles import SCOPES
from memory_os.embedded.program import answers

WORKER = (*COMMAND, "worker")


class Rig:
    """API and workers as processes of their own, on a Postgres and a FalkorDB that nobody restarts."""

    def __init__(self, directory: Path, database: DatabaseUrls, falkor: FalkorProcess | DeployedFalkor) -> None:
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
        self._graph_url = f"redis://{falkor.host}:{falkor.port}"
        if isinstance(falkor, DeployedFalkor):
            self._settings["FALKOR_PASSWORD"] = falkor.password
            self._graph_url = f"redis://:{falkor.password}@{falkor.host}:{falkor.port}"
        self._port = find_free_port()
        self.owner_url = database.owner_url
        self._observers: list[Observer] = []
        self.seen = self.new_tenant()

    def new_tenant(self) -> Observer:
        """Make a tenant, and all that is needed to look at it."""
        tenant_id = new_id()
        token = add_token(self.owner_url, tenant_id, "admin", scopes=SCOPES)
        api = f"http://127.0.0.1:{self._port}"
        self._observers.append(Observer(api, token, tenant_id, self.owner_url, self._graph_url))
        return self._observers[-1]

    def start_api(self) -> None:
        """Start the API and wait until it is ready."""
        api = self._start("api", (*COMMAND, "api", "--port", str(self._port)))

        def ready() -> bool:
            assert api.process.poll() is None, api.log.read_text()
            return answers(self._port, "/readyz")

        wait_for(ready, seconds=START_S, what="the API")

    def launch_worker(self, command: Sequence[str] = WORKER, **settings: str) -> ServiceProcess:
        """Start a worker, which need not live for long.

        Args:
            command: What Python runs.
            settings: Environment of this one.
        """
        return self._start("worker", command, **settings)

    def start_worker(self, command: Sequence[str] = WORKER, **settings: str) -> ServiceProcess:
        """Start a worker and wait until it works."""
        worker = self.launch_worker(command, **settings)

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

    def close(self) -> None:
        """Let go of all connections, and end all processes."""
        for observer in self._observers:
            observer.close()
        end_all(self.processes)

    def _start(self, name: str, command: Sequence[str], **settings: str) -> ServiceProcess:
        name = f"{name}-{len(self.processes)}"
        given = {**self._settings, **settings}
        self.processes.append(ServiceProcess(self._directory, name, (), program=command, **given))
        return self.processes[-1]
