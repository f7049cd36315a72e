"""What the histories of one test process share: an event loop, one database, and a backend that can be reopened."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import uvloop
from psycopg.rows import dict_row
from tests.fixtures.postgres import DatabaseUrls

from memory_os.graph.port import GraphBackend, GraphDump
from memory_os.storage.database import Database

Result = TypeVar("Result")


class Stage:
    """One process's stores, opened once: a database for each history would cost more than the history.

    Args:
        urls: A migrated database.
        make_backend: Makes the graph backend, anew after each `reopen`.
    """

    def __init__(self, urls: DatabaseUrls, make_backend: Callable[[], GraphBackend]) -> None:
        self.loop = uvloop.new_event_loop()
        self.app = Database(urls.app_url, pool_size=4)
        self.worker = Database(urls.worker_url, pool_size=8, durable=False)
        self.owner = psycopg.connect(urls.owner_url, autocommit=True, row_factory=dict_row)
        self._make_backend = make_backend
        self.backend = make_backend()
        self.run(self.backend.open())

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end; what was left waiting by earlier ones may go on meanwhile."""
        return self.loop.run_until_complete(work)

    def rows(self, statement: str, **given: Any) -> list[dict[str, Any]]:
        """Rows of a statement as the superuser, past all policies; none for one that gives none."""
        cursor = self.owner.execute(statement, given)
        return cursor.fetchall() if cursor.description else []

    def dump(self, tenant_id: UUID) -> GraphDump:
        """A tenant's whole graph."""
        return self.run(self.backend.dump(tenant_id))

    def reopen(self) -> None:
        """Close the backend and open another one on the same data, as when its process stops and starts."""
        self.run(self.backend.close())
        self.backend = self._make_backend()
        self.run(self.backend.open())

    def close(self) -> None:
        """Let go of everything."""
        self.run(self.backend.close())
        self.run(self.app.close())
        self.run(self.worker.close())
        self.owner.close()
        self.run(self.loop.shutdown_asyncgens())
        self.run(self.loop.shutdown_default_executor())
        self.loop.close()


@contextmanager
def open_stage(urls: DatabaseUrls, make_backend: Callable[[], GraphBackend]) -> Iterator[Stage]:
    """A stage, closed at the end of the block."""
    stage = Stage(urls, make_backend)
    try:
        yield stage
    finally:
        stage.close()
