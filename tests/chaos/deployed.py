"""The stores that a test may end, configured as the product's own: an embedded FalkorDB, and a Postgres beside it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import redis
from tests.fixtures.waiting import wait_for

from memory_os.embedded.falkor import HOST, EmbeddedFalkor
from memory_os.embedded.postgres import EmbeddedPostgres


class DeployedFalkor:
    """FalkorDB with the settings of `memory-os up`: its append-only file, its sizes, its password.

    Its sizes matter. Matrices grow by the number of nodes that it allocates ahead, and some of its faults show only
    there.

    Args:
        home: Folder of its data.
    """

    host = HOST

    def __init__(self, home: Path) -> None:
        self.home = home
        self._server = EmbeddedFalkor(home)

    @property
    def port(self) -> int:
        """Its port, the same from start to start."""
        return self._server.port

    @property
    def password(self) -> str:
        """What every client must send."""
        return self._server.password

    def start(self) -> None:
        """Start it and wait until it serves."""
        port = self.port
        self._server.start()
        assert port in (0, self.port), "somebody has taken the port meanwhile"

    def stop(self) -> None:
        """Stop it as an operator does."""
        self._server.stop()

    def kill(self) -> None:
        """End it as the kernel does when memory runs out."""
        assert self._server.pid is not None
        os.kill(self._server.pid, signal.SIGKILL)
        wait_for(lambda: self._server.pid is None, what="the end of FalkorDB")
        self._server.stop()

    def lose(self, part: float) -> int:
        """Take away the end of what the ended server had written, as a power cut does; gives the bytes.

        Args:
            part: Of the file that it was writing last, 0 to 1.
        """
        newest = max((self.home / "falkor" / "appendonlydir").glob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
        size = newest.stat().st_size
        os.truncate(newest, size - int(size * part))
        return int(size * part)

    def connect(self) -> redis.Redis:
        """A plain client, for looking at the server past our own code."""
        return redis.Redis(host=self.host, port=self.port, password=self.password, decode_responses=True, protocol=2)


def crash(postgres: EmbeddedPostgres, signum: signal.Signals) -> None:
    """End Postgres with a signal to its master, and start it again."""
    assert postgres.pid is not None
    os.kill(postgres.pid, signum)
    wait_for(lambda: postgres.pid is None, seconds=30, what="the end of Postgres")
    postgres.restart()
