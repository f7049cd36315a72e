"""What is in the stores, looked at past the service: rows, queue, leases, and the graph as the projection left it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import psycopg
from psycopg.rows import dict_row
from tests.chaos.writing import Written
from tests.fixtures.service import bearer
from tests.fixtures.waiting import wait_for

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.port import GraphDump

DRAIN_S = 60.0
"""Seconds in which a queue must drain: a breaker's longest wait, a lease, a restart, and the work itself."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A worker that holds a tenant with events in hand."""

    pid: int
    token: UUID
    events: int


class Observer:
    """One tenant of a running service, seen from outside. Close it in the end.

    Args:
        api: Address of the API.
        token: An admin's of the tenant.
        tenant_id: The tenant.
        owner_url: The database as its superuser.
        graph_url: `redis://:PASSWORD@HOST:PORT`.
        prefix: Of the graph's keys.
    """

    def __init__(
        self, api: str, token: str, tenant_id: UUID, owner_url: str, graph_url: str, *, prefix: str = "memory_os"
    ) -> None:
        self.api = api
        self.token = token
        self.tenant_id = tenant_id
        self.graph_url = graph_url
        self.prefix = prefix
        self._owner_url = owner_url
        # Both are kept, since a test looks fifty times a second.
        self._http = httpx.Client(base_url=api, headers=bearer(token), timeout=30)
        self._connection: psycopg.Connection[dict[str, Any]] | None = None

    def close(self) -> None:
        """Let go of all connections."""
        self._http.close()
        self._disconnect()

    # --- Postgres

    def rows(self, statement: str, **given: Any) -> list[dict[str, Any]]:
        """Rows of a statement; `%(tenant)s` is the tenant."""
        parameters = {"tenant": self.tenant_id, **given}
        if self._connection is not None:
            try:
                return self._connection.execute(statement, parameters).fetchall()
            except psycopg.OperationalError:  # Postgres has been restarted since
                self._disconnect()
        self._connection = psycopg.connect(self._owner_url, row_factory=dict_row, autocommit=True)
        return self._connection.execute(statement, parameters).fetchall()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def queue(self) -> dict[str, int]:
        """Events of the tenant by status."""
        found = self.rows(
            "SELECT status, count(*) AS n FROM outbox_events WHERE tenant_id = %(tenant)s GROUP BY status"
        )
        return {row["status"]: row["n"] for row in found}

    def attempts(self, status: str) -> set[int]:
        """The different numbers of attempts of the events in a status."""
        found = self.rows(
            "SELECT DISTINCT attempts FROM outbox_events WHERE tenant_id = %(tenant)s AND status = %(status)s",
            status=status,
        )
        return {row["attempts"] for row in found}

    def texts(self) -> list[tuple[str, str]]:
        """Id and text of every memory."""
        found = self.rows("SELECT id::text, text FROM memories WHERE tenant_id = %(tenant)s")
        return sorted((row["id"], row["text"]) for row in found)

    def holder(self) -> Holder | None:
        """The worker that has events of the tenant in hand just now."""
        found = self.rows(
            "SELECT w.pid, l.token, (SELECT count(*) FROM outbox_events AS o WHERE o.tenant_id = l.tenant_id "
            "AND o.status = 'leased' AND o.lease_token = l.token) AS events "
            "FROM projection_leases AS l JOIN workers AS w ON w.id = l.worker_id "
            "WHERE l.tenant_id = %(tenant)s AND l.lease_until > clock_timestamp()"
        )
        return Holder(**found[0]) if found and found[0]["events"] else None

    def worker(self, pid: int) -> dict[str, Any]:
        """The row of a worker, by its process id; empty before its first heartbeat."""
        found = self.rows("SELECT * FROM workers WHERE pid = %(pid)s ORDER BY started_at DESC LIMIT 1", pid=pid)
        return found[0] if found else {}

    def is_idle(self, pid: int, *, since: datetime) -> bool:
        """Whether a worker has said after a moment that it has nothing in hand."""
        row = self.worker(pid)
        return bool(row["state"] == "idle" and row["last_seen"] > since)

    def now(self) -> datetime:
        """The time by the database's clock."""
        moment: datetime = self.rows("SELECT clock_timestamp() AS now")[0]["now"]
        return moment

    def backends(self, condition: str) -> int:
        """How many of the workers' connections to this database meet a condition on `pg_stat_activity`."""
        found = self.rows(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() "
            f"AND usename = 'memory_os_worker' AND {condition}"
        )
        return int(found[0]["n"])

    def holds_rows(self) -> bool:
        """Whether a worker has changed rows in a transaction that it has neither ended nor gone on with."""
        return self.backends("state = 'idle in transaction' AND backend_xid IS NOT NULL") > 0

    def derived_alone(self) -> set[str]:
        """Memories whose mentions are in Postgres already, and which the graph does not know yet."""
        found = self.rows("SELECT memory_id::text AS id FROM extractions WHERE tenant_id = %(tenant)s")
        return {row["id"] for row in found} - set(self.dump().memories)

    # --- API

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """One request as the tenant's admin."""
        return self._http.request(method, path, json=body)

    def retrieve(self, query: str) -> dict[str, Any]:
        """A retrieval, which must be answered."""
        answer = self.ask("POST", "/v1/retrieve", {"query": query})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def wait_until_drained(self) -> None:
        """Wait until nothing is left to project; nothing may have died."""

        def drained() -> bool:
            waiting = self.queue()
            return not waiting.get("pending") and not waiting.get("leased")

        wait_for(drained, seconds=DRAIN_S, what="an empty queue")
        stats = self.ask("GET", "/v1/outbox/stats").json()
        assert {name: stats[name] for name in ("pending", "leased", "dead")} == dict.fromkeys(
            ("pending", "leased", "dead"), 0
        )

    def rebuild(self) -> None:
        """Rebuild the graph through the API."""
        job = self.ask("POST", "/v1/graph/rebuild", {})
        assert job.status_code == 202, job.text
        path = f"/v1/graph/rebuilds/{job.json()['id']}"

        def ended() -> dict[str, Any] | None:
            found = self.ask("GET", path).json()
            return found if found["status"] in ("done", "failed") else None

        status = wait_for(ended, seconds=DRAIN_S, what="the rebuild")
        assert status["status"] == "done", status

    # --- graph

    def dump(self) -> GraphDump:
        """The tenant's whole graph."""
        return asyncio.run(self._dump())

    async def _dump(self) -> GraphDump:
        parts = urlsplit(self.graph_url)
        address = FalkorAddress(parts.hostname or "", parts.port or 0, password=parts.password)
        backend = FalkorBackend(address, prefix=self.prefix, edge_types=frozenset(EDGE_TYPES))
        try:
            return await backend.dump(self.tenant_id)
        finally:
            await backend.close()

    # --- the invariant

    def check_nothing_lost(self, written: Written) -> None:
        """Wait for the queue, then hold Postgres, the grown graph and a rebuilt one against what was acknowledged."""
        assert self.texts() == sorted(written.texts.items())  # nothing lost, nothing stored twice, nothing come back
        self.wait_until_drained()
        grown = self.dump()
        check_graph(grown, written)
        self.rebuild()
        assert differences(grown, self.dump()) == []


def check_graph(graph: GraphDump, written: Written) -> None:
    """Hold a graph against what the clients know: memories, who is named in them, pairs, edges and declarations."""
    check_names(graph, written)
    assert {(edge.source.id, edge.target.id) for edge in graph.edges.values()} == written.living_edges()


def check_names(graph: GraphDump, written: Written) -> None:
    """Hold all of a graph but its typed edges against what the clients know."""
    assert set(graph.memories) == set(written.texts)
    names = {ident: node.name for ident, node in graph.entities.items()}
    mentioned: dict[str, set[str]] = {ident: set() for ident in graph.memories}
    for memory, entity in graph.mentions:
        mentioned[memory].add(names[entity])
    assert differences(mentioned, {ident: set(found) for ident, found in written.names.items()}) == []
    known = set().union(*written.names.values()) | written.declared
    assert differences(Counter(names.values()), Counter(known)) == []  # no entity twice, none that nothing names
    pairs = {tuple(sorted((names[a], names[b]))): count for (a, b), (_, count) in graph.co_occurrences.items()}
    assert differences(pairs, written.pairs()) == []
    assert {node.name for node in graph.entities.values() if node.declared} == written.declared


def differences(left: object, right: object, *, most: int = 10) -> list[str]:
    """Where two graphs or mappings differ, the first few: a comparison of the whole would be pages long."""
    if isinstance(left, GraphDump) and isinstance(right, GraphDump):
        parts = ((part.name, getattr(left, part.name), getattr(right, part.name)) for part in fields(left))
        return [line for name, old, new in parts for line in _compare(name, old, new)][:most]
    return list(_compare("", left, right))[:most]


def _compare(name: str, left: Any, right: Any) -> Iterable[str]:
    if not isinstance(left, Mapping):
        return [f"{name}: {left ^ right}"] if left != right else []
    absent = object()
    keys = sorted(left.keys() | right.keys(), key=str)
    pairs = ((key, left.get(key, absent), right.get(key, absent)) for key in keys)
    return [
        f"{name}[{key}]: {'absent' if old is absent else old} -> {'absent' if new is absent else new}"
        for key, old, new in pairs
        if old != new
    ]
