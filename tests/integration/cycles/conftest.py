"""Cycles run by hand: a tenant's rows put to earlier times, and runs made batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.api.services import Services
from memory_os.cycles.running import advance
from memory_os.cycles.scheduling import enter_run
from memory_os.cycles.undoing import LAST, undo_action, undo_some
from memory_os.cycles.planning import Undoing
from memory_os.domain.cycles.rules import CycleName
from memory_os.domain.principal import Principal
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.settings import Settings
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext

NOW = datetime(2026, 3, 2, 2, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """Vectors that cost nothing: cycles look at what is there."""
    return service_settings.model_copy(
        update={"embedding_provider": "deterministic-for-tests", "memory_os_allow_test_embedder": True}
    )


@dataclass(frozen=True)
class Cycling:
    """A tenant, its rows, and its cycles."""

    client: httpx.AsyncClient
    services: Services
    urls: DatabaseUrls
    tenant: TestTenant
    worker: WorkerContext

    @property
    def outbox(self) -> Outbox:
        return Outbox(enabled=True)

    @property
    def scope(self) -> Scope:
        return Scope(WORKER_ROLE, self.tenant.tenant_id)

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.client.post(path, json=body, headers=self.tenant.headers("admin"))
        assert answer.is_success, answer.text
        return dict(answer.json())

    async def memory(self, text: str, label: str = "Attribute", **fields: Any) -> str:
        made = await self.post("/v1/memories", text=text, label=label, dedup="off", **fields)
        return str(made["memory"]["id"])

    async def edge(self, source: str, target: str, type_: str = "SUPPORTS", **values: Any) -> str:
        """An edge; `values` are columns that it gets past everything."""
        made = await self.post("/v1/edges", type=type_, **{"from": {"memory": source}, "to": {"memory": target}})
        ident = str(made["edge"]["id"])
        if values:
            self.put("edges", ident, **values)
        return ident

    async def declare_retired(self) -> tuple[str, str, str]:
        """A retired system, a memory that is about it, and a protected one that is, too."""
        made = await self.post("/v1/memory/entities", name="Kettle", entity_type="system")
        entity = str(made["entity"]["id"])
        self.put("entities", entity, status="retired")
        about = [await self.memory(f"Kettle note {label}.", label) for label in ("Attribute", "Preference")]
        for ident in about:
            await self.post("/v1/edges", type="ABOUT", **{"from": {"memory": ident}, "to": {"entity": entity}})
        return entity, about[0], about[1]

    def put(self, table: str, ident: str, **values: Any) -> None:
        """Set columns of a row past everything, triggers included."""
        columns = ", ".join(f"{name} = %s" for name in values)
        with psycopg.connect(self.urls.owner_url) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(f"UPDATE {table} SET {columns} WHERE id = %s", [*values.values(), ident])

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.urls.owner_url, row_factory=dict_row) as connection:
            return list(connection.execute(query, values))

    def state(self) -> dict[str, list[dict[str, Any]]]:
        """All rows that cycles change, but for what counts writes."""
        return {
            table: [
                {name: value for name, value in row.items() if name not in ("version", "updated_at", "archived_at")}
                for row in self.rows(f"SELECT * FROM {table} WHERE tenant_id = %s ORDER BY id", self.tenant.tenant_id)
            ]
            for table in ("memories", "entities", "edges", "archived_edges")
        }

    async def enter(self, cycle: CycleName, moment: datetime = NOW, *, dry_run: bool = False) -> UUID:
        run = await self.worker.database.run(
            self.scope, lambda tx: enter_run(tx, cycle, moment, dry_run=dry_run, role="admin")
        )
        assert run is not None
        return run

    async def run(self, cycle: CycleName, moment: datetime = NOW, *, dry_run: bool = False) -> UUID:
        """A run from its beginning to its end."""
        run = await self.enter(cycle, moment, dry_run=dry_run)
        while (await self.step()) is not None:
            pass
        return run

    async def step(self) -> Any:
        """One batch of whatever run is open."""
        return await self.worker.database.run(self.scope, lambda tx: advance(tx, self.outbox))

    def actions(self, run: UUID) -> list[dict[str, Any]]:
        """What a run did, but for what differs from run to run."""
        rows = self.rows("SELECT * FROM cycle_actions WHERE run_id = %s ORDER BY number", run)
        kept = ("number", "rule", "target_kind", "target_id", "other_id", "before", "after")
        return [{name: row[name] for name in kept} for row in rows]

    async def undo(self, run: UUID) -> list[UUID]:
        """Take back a whole run; gives the actions that stay."""
        undoing = Undoing(Principal(self.tenant.tenant_id, "admin"), self.outbox)
        below, kept = LAST, list[UUID]()
        while below:
            batch = await self.worker.database.run(
                self.scope, lambda tx, below=below: undo_some(tx, undoing, run, below)
            )
            below, kept = batch.below, kept + [action for action, _ in batch.kept]
        return kept

    async def undo_one(self, action: UUID) -> None:
        undoing = Undoing(Principal(self.tenant.tenant_id, "admin"), self.outbox)
        await self.worker.database.run(self.scope, lambda tx: undo_action(tx, undoing, action))


@pytest.fixture
def cycling(
    client: httpx.AsyncClient,
    services: Services,
    database_urls: DatabaseUrls,
    tenant: TestTenant,
    worker: WorkerContext,
) -> Cycling:
    return Cycling(client, services, database_urls, tenant, worker)
