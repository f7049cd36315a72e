"""A tenant with something of everything that an export holds, and the commands as the command line runs them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain

from memory_os.app import build_embedder
from memory_os.outbox.events import Outbox
from memory_os.settings import Settings
from memory_os.storage.full_text import search_text
from memory_os.transfer import commands
from memory_os_workers import embedder
from memory_os_workers.context import WorkerContext

Row = dict[str, Any]
Export = Callable[[TestTenant, str], Awaitable[Path]]
Import = Callable[[TestTenant, Path], Awaitable[list[str]]]

BAKERY = (
    ("oven", "The wood-fired oven of Acme Bakery needs an hour of heat.", "Attribute", None),
    ("dough", "The dough rests in the cold room for two days.", "Skill", None),
    ("flour", "Acme Bakery buys its flour from Mill Lane.", "Decision", None),
    ("rye", "Rye bread is baked on Mondays alone.", "Decision", None),
    ("secret", "Ann plans a second shop near the harbour.", "Goal", "ann"),
    ("salary", "Bob asks for a higher salary in spring.", "Goal", "bob"),
)
QUESTIONS = (
    "How hot is the oven?",
    "How long does the dough rest?",
    "Where does the flour come from?",
    "What about Acme Bakery?",
    "Is there a second shop planned near the harbour?",
    "Who asks for a salary?",
    "When is rye bread baked?",
    "What do we know of Mill Lane?",
)


def lines_of(path: Path) -> list[Row]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def records_of(path: Path, kind: str | None = None) -> list[Row]:
    """The records of a file, or those of one kind."""
    return [line["record"] for line in lines_of(path)[1:-1] if kind in (None, line["type"])]


def seal(lines: list[bytes], **trailer: Any) -> bytes:
    """Lines as a file, with a trailer that fits the lines."""
    import hashlib  # noqa: PLC0415 - for this alone

    body = b"".join(lines)
    counts = json.loads(lines[0])["counts"]
    end = {"type": "end", "counts": counts, "sha256": hashlib.sha256(body).hexdigest(), **trailer}
    return body + json.dumps(end).encode() + b"\n"


@dataclass
class Bakery:
    """A tenant and the ids of what it has by name."""

    client: httpx.AsyncClient
    tenant: TestTenant
    worker: WorkerContext
    ids: dict[str, str] = field(default_factory=dict)

    async def fill(self) -> None:
        """Store everything, and let the worker catch up."""
        writer = Actor(self.client, self.tenant)
        for name, text, label, user in BAKERY:
            visibility = {"visibility": "private"} if user else {}
            memory = await writer.acting(user).remember(text, label=label, **visibility)
            self.ids[name] = memory["id"]
        group = {"visibility": "restricted", "readers": {"groups": ["bakers"], "users": ["cleo"]}}
        recipe = {"title": "Recipe", "tags": ["x", 'a"b'], "metadata": {"deep": [{"n": 2**63}, None]}}
        times = {"occurred_at": "2026-03-01T12:00:00.123456+02:00", "valid_from": "2026-01-01T00:00:00Z"}
        grouped = await writer.acting("ann").remember("The sourdough recipe has 2 % salt.", **group, **recipe, **times)
        self.ids["recipe"] = grouped["id"]
        await self._supersede(writer)
        await drain(self.worker)
        await self._relate(writer)
        await writer.do("complete", self.ids["goal"])
        await self._business()
        self._provenance()
        self._cycles()
        await catch_up(self.worker, self.tenant)

    async def _supersede(self, writer: Actor) -> None:
        first = self.ids["rye"]
        second = (await writer.do("supersede", first, {"text": "Rye bread is baked on Tuesdays alone."}))["memory"][
            "id"
        ]
        third = (await writer.do("supersede", second, {"text": "Rye bread is baked on Fridays alone."}))["memory"]["id"]
        self.ids |= {"rye 2": second, "rye 3": third}
        self.ids["goal"] = (await writer.remember("Open on Sundays.", label="Goal"))["id"]

    async def _relate(self, writer: Actor) -> None:
        with psycopg.connect(self.tenant.owner_url) as connection:
            row = connection.execute(
                "SELECT id::text FROM entities WHERE tenant_id = %s AND NOT declared AND canonical_name = 'mill lane'",
                (self.tenant.tenant_id,),
            ).fetchone()
        assert row, "the worker has derived Mill Lane"
        self.ids["mill"] = row[0]
        body = {"name": "Acme Bakery", "entity_type": "organisation", "aliases": ["Acme"], "summary": "Ours."}
        answer = await self.client.post("/v1/memory/entities", json=body, headers=writer.headers)
        self.ids["acme"] = answer.json()["entity"]["id"]
        self.ids["mill edge"] = await writer.tie("ABOUT", self.ids["flour"], {"entity": self.ids["mill"]})
        await writer.tie("ABOUT", self.ids["oven"], {"entity": self.ids["acme"]}, confidence=0.9)
        await writer.tie("SUPPORTS", self.ids["dough"], self.ids["oven"])

    async def _business(self) -> None:
        headers = self.tenant.headers()
        for kind in ("observation", "procedure", "outcome"):
            body = {"title": f"The {kind} of the mill", "summary": "Stones turn.", "payload": {"k": [1.5, "\u2028"]}}
            answer = await self.client.post(f"/v1/memory/{kind}s", json=body, headers=headers)
            self.ids[kind] = answer.json()[kind]["id"]
        for layer, target in (("memory", "oven"), ("observation", "observation"), ("entity", "mill")):
            body = {"layer": layer, "target_id": self.ids[target], "relationship": f"has\n{layer}", "confidence": 0.7}
            url = f"/v1/memory/entities/{self.ids['acme']}/links"
            answer = await self.client.post(url, json=body, headers=headers)
            assert answer.status_code == 201, answer.text

    def _provenance(self) -> None:
        """What the tables of provenance hold, straight into them."""
        ids = {name: uuid4() for name in ("source", "passage", "evidence", "withdrawn", "correction", "act", "review")}
        self.ids |= {name: str(ident) for name, ident in ids.items()}
        tenant = self.tenant.tenant_id
        with psycopg.connect(self.tenant.owner_url) as connection:
            connection.execute(
                "INSERT INTO sources (tenant_id, id, kind, title, visibility, user_id, source_date) "
                "VALUES (%s, %s, 'document', 'Notes of Ann', 'private', 'ann', '2025-12-24T18:00:00+01')",
                (tenant, ids["source"]),
            )
            words = "The oven needs an hour."
            connection.execute(
                "INSERT INTO passages (tenant_id, id, source_id, ordinal, text, locator, search) VALUES "
                "(%s, %s, %s, 0, %s, '{\"page\": 3}', memory_os_text_vector(%s))",
                (tenant, ids["passage"], ids["source"], words, search_text(words)),
            )
            for name, withdrawn in (("evidence", None), ("withdrawn", "withdrawn")):
                connection.execute(
                    "INSERT INTO evidence (tenant_id, id, memory_id, source_id, passage_id, support, quote_start, "
                    "quote_end, role, withdrawn_at, withdrawn_because, visibility, user_id, acting_user) VALUES "
                    "(%s, %s, %s, %s, %s, 'states', 0, 8, 'writer', CASE WHEN %s::text IS NOT NULL THEN now() END, %s, "
                    "'private', 'ann', 'ann')",
                    (tenant, ids[name], self.ids["oven"], ids["source"], ids["passage"], withdrawn, withdrawn),
                )
            connection.execute(
                "INSERT INTO corrections (tenant_id, id, memory_id, kind, proposal, reason, source_id, memory_version, "
                "proposed_role, proposed_user) VALUES (%s, %s, %s, 'wrong_entity', %s, 'It is the mill.', %s, 1, "
                "'reader', 'bob')",
                (tenant, ids["correction"], self.ids["oven"], json.dumps({"entity": self.ids["mill"]}), ids["source"]),
            )
            connection.execute(
                "INSERT INTO entity_acts (tenant_id, id, entity_id, other_id, kind, before, role) "
                "VALUES (%s, %s, %s, %s, 'merge', %s, 'writer')",
                (tenant, ids["act"], self.ids["acme"], uuid4(), json.dumps({"edges": {self.ids["mill"]: [1]}})),
            )
            connection.execute(
                "INSERT INTO memory_reviews (tenant_id, id, memory_id, other_id, kind, tier, rule) "
                "VALUES (%s, %s, %s, %s, 'duplicate', 'older', 'words') ON CONFLICT DO NOTHING",
                (tenant, ids["review"], self.ids["oven"], self.ids["dough"]),
            )

    def _cycles(self) -> None:
        """What cycles have put away, and when they run."""
        with psycopg.connect(self.tenant.owner_url) as connection:
            for end, ident in (("target_memory_id", self.ids["oven"]), ("target_entity_id", self.ids["mill"])):
                connection.execute(
                    f"INSERT INTO archived_edges (tenant_id, id, type, source_memory_id, {end}, confidence, "
                    "co_reference_count, claimed_confidence, created_at, updated_at, version, used_at, faded_at) "
                    "VALUES (%s, %s, 'ABOUT', %s, %s, 0.2, 1, 0.9, '2025-01-01T00:00:00.001Z', now(), 7, now(), now())",
                    (self.tenant.tenant_id, uuid4(), self.ids["rye"], ident),
                )
            connection.execute(
                "INSERT INTO cycle_schedules (tenant_id, id, cycle, cron, enabled) "
                "VALUES (%s, %s, 'weekly', '0 4 * * 6', false)",
                (self.tenant.tenant_id, uuid4()),
            )


@pytest.fixture
async def bakery(client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext) -> Bakery:
    """The tenant, filled and projected."""
    made = Bakery(client, tenant, worker)
    await made.fill()
    return made


@pytest.fixture
def export(database_urls: DatabaseUrls, tmp_path: Path) -> Export:
    """Exports a tenant to a file of that name."""

    async def run(tenant: TestTenant, name: str) -> Path:
        path = tmp_path / name
        await asyncio.to_thread(commands.export_tenant, database_urls.owner_url, tenant.tenant_id, path)
        return path

    return run


@pytest.fixture
def bring_in(database_urls: DatabaseUrls, service_settings: Settings) -> Import:
    """Imports a file into a tenant."""

    async def run(tenant: TestTenant, path: Path) -> list[str]:
        made = build_embedder(service_settings)
        url = database_urls.owner_url
        return await asyncio.to_thread(commands.import_tenant, url, tenant.tenant_id, path, made, Outbox(enabled=True))

    return run


async def catch_up(worker: WorkerContext, *tenants: TestTenant) -> None:
    """Project everything, and make the vectors that are missing."""
    for tenant in tenants:
        while await embedder.embed_some(worker, tenant.tenant_id):
            pass
    await drain(worker)


def counts(urls: DatabaseUrls, tenant_id: UUID) -> dict[str, int]:
    """How many rows a tenant has in the tables that its export is made of, and what the worker derives from them."""
    tables = ("sources", "passages", "memories", "entities", "observations", "procedures", "outcomes", "entity_links")
    tables += ("archived_edges", "cycle_schedules")
    tables += ("edges", "evidence", "memory_acts", "entity_acts", "memory_reviews", "corrections", "memory_embeddings")
    tables += ("mentions", "entity_pairs", "entity_names", "memory_sketches", "passage_embeddings", "token_vectors")
    found = {}
    with psycopg.connect(urls.owner_url) as connection:
        for table in tables:
            row = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", (tenant_id,)).fetchone()
            assert row
            found[table] = row[0]
    return found
