"""Processes of the service itself, as the supervisor sees them: the API, and the workers."""

from __future__ import annotations

import http.client
from typing import Final

from memory_os.embedded.child import Child, Command
from memory_os.embedded.logs import LogFile

_PROBE_TIMEOUT_S = 0.5


class Program:
    """One process of the service.

    Args:
        name: For messages and the log file.
        stage: See `supervisor.Service`.
        command: What to run.
        log: Its log.
        port: Loopback port that must answer `path` before it counts as ready; None: it is ready once it runs.
        path: What is asked for.
    """

    patience: Final = None
    start_attempts: Final = 1

    def __init__(
        self, name: str, *, stage: int, command: Command, log: LogFile, port: int | None = None, path: str = "/livez"
    ) -> None:
        self.name = name
        self.stage = stage
        self.child = Child(name, command, log)
        self._port = port
        self._path = path

    def spawn(self) -> None:
        """Start the process."""
        self.child.spawn()

    def ready(self) -> bool:
        """Whether it answers with a 200."""
        return self.child.running() and (self._port is None or answers(self._port, self._path))

    def responsive(self) -> bool:
        """Always true: only its end counts."""
        return True

    def explain_end(self) -> str:
        """Its exit code and the end of its log."""
        tail = self.child.log.tail(since=self.child.log_start)
        code = self.child.exit_code
        return f"{self.name} ended with exit code {code} before it was ready; the end of {self.child.log.path}:\n{tail}"


def answers(port: int, path: str) -> bool:
    """Whether a GET on the loopback address is answered with a 200 within half a second."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PROBE_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
