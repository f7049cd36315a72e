"""Tenants with something of everything, each field of which holds the tenant's mark, to be looked for elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
from psycopg import sql
from tests.fixtures.service import TestTenant
from tests.security.cycle_rows import store_cycles
from tests.security.provenances import store_provenances

CLIENT_CHOSEN = ("memory", "entity", "twin", "link", "edge", "observation", "procedure", "outcome", "hidden_memory")
"""Kinds of record whose id the client may bring."""

RECORDS = ("observation", "procedure", "outcome")

STEPPING = ("goal", "plan", "spare", "archived", "mistake", "older", "doubtful", "erased")
"""Memories for the calls that take one a step further, and nothing else with it."""

COPYING = ("memory_embeddings", "passages", "passage_embeddings", "token_vectors", "evidence", "audit_contents")
"""Tables whose rows have the readers of another."""

CLOSED = frozenset(
    {
        # Closed vocabularies, which are the same for every tenant.
        *("audit_log.action", "audit_log.role", "audit_log.target_type", "edges.type", "entity_links.layer"),
        *("memory_acts.kind", "memory_acts.role", "entity_acts.kind", "entity_acts.role"),
        *("corrections.kind", "corrections.status", "corrections.proposed_role", "corrections.decided_role"),
        *("erasures.role", "erasures.subject_type", "evidence.role", "evidence.support", "evidence.withdrawn_because"),
        *("sources.kind", "audit_contents.target_type"),
        *(f"{table}.visibility" for table in ("sources", "insight_candidates", "profiles", *COPYING)),
        *("archived_edges.type", "cycle_schedules.cycle", "cycle_actions.rule", "cycle_actions.target_kind"),
        *(f"cycle_runs.{name}" for name in ("cycle", "status", "rule", "role")),
        *(f"insight_candidates.{name}" for name in ("rule", "status", "summary")),
        *("memory_reviews.kind", "memory_reviews.status", "memory_reviews.tier"),
        *("entities.status", "entities.visibility", "graph_rebuilds.status", "memories.label", "memories.layer"),
        *("graph_verifications.status", "graph_tombstones.aggregate_type", "graph_states.epoch"),
        *("memories.status", "memories.visibility", "outbox_events.aggregate_type", "outbox_events.event_type"),
        *("outbox_events.status", "retrieval_items.record_type", "retrievals.graph_state", "tenants.status"),
        *(f"{record}s.{name}" for record in RECORDS for name in ("status", "visibility")),
        *("tenants.time_zone", "tokens.role", "tokens.scopes"),
        *("retrieval_edges.record_type", "retrieval_edges.state", "retrieval_feedback.verdict"),
        # Words of the service's own.
        "graph_states.doubt",
        # A time.
        "cycle_schedules.cron",
        # Random, or ids alone.
        *("audit_log.target_id", "audit_contents.target_id", "tokens.prefix"),
        # Never set: its readers are those of several records.
        "audit_contents.user_id",
        # Names of models and extractors.
        *("entities.embedding_model", "extractions.extractor", "memories.embedding_model", "memory_embeddings.model"),
        *("memory_sketches.model", "mentions.extractor", "passage_embeddings.model", "passages.embedding_model"),
        "token_vectors.model",
        *("vector_index.kind", "vector_partitions.model"),
    }
)
"""Columns of text that hold no words of a tenant's."""


@dataclass(frozen=True)
class World:
    """A tenant and the ids of what it has, by kind; `hidden` are ids that only the user `mark` may see."""

    tenant: TestTenant
    mark: str
    ids: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)

    @property
    def user(self) -> str:
        """The user that everything was stored for."""
        return f"user {self.mark}"

    def headers(self, role: str = "writer", *, acting: bool = True) -> dict[str, str]:
        """Headers with a role's token, acting for the user; the request's id and key hold the mark too."""
        headers = self.tenant.headers(role)
        if acting:
            headers |= {"X-Memory-User": self.user, "X-Memory-Groups": f"group {self.mark}"}
        return {**headers, "X-Request-Id": f"request-{self.mark}", "Idempotency-Key": f"{self.mark}-{uuid4()}"}

    def row_counts(self) -> dict[str, int]:
        """How many rows the tenant has in each table."""
        return {table: len(rows) for table, rows in self.rows().items()}

    def rows(self) -> dict[str, list[str]]:
        """All rows of the tenant as text, by table, but for when tokens were last used."""
        found = {}
        with psycopg.connect(self.tenant.owner_url) as connection:
            for table in tenant_tables(connection):
                statement = sql.SQL("SELECT to_jsonb(t) - 'last_used_at' FROM {} t WHERE tenant_id = %s").format(
                    sql.Identifier(table)
                )
                rows = connection.execute(statement, (self.tenant.tenant_id,)).fetchall()
                found[table] = sorted(json.dumps(row[0], sort_keys=True) for row in rows)
        return found


def tenant_tables(connection: psycopg.Connection[Any]) -> list[str]:
    """Every table that has rows of tenants, partitions aside."""
    rows = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' "
        "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace ORDER BY 1"
    )
    return [row[0] for row in rows]


def unmarked_columns(world: World) -> set[str]:
    """Columns of text, as `table.column`, in which no row of the tenant holds its mark; closed ones aside."""
    with psycopg.connect(world.tenant.owner_url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
            "AND is_generated = 'NEVER' AND (data_type IN ('text', 'jsonb') OR udt_name = '_text') "
            "AND table_name = ANY (%s)",
            (tenant_tables(connection),),
        ).fetchall()
        missing = set()
        for table, column in columns:
            name = f"{table}.{column}"
            statement = sql.SQL("SELECT count(*) FROM {} WHERE tenant_id = %s AND {}::text ILIKE %s").format(
                sql.Identifier(table), sql.Identifier(column)
            )
            found = connection.execute(statement, (world.tenant.tenant_id, f"%{world.mark}%")).fetchone()
            if name not in CLOSED and found == (0,):
                missing.add(name)
        return missing


async def fill_world(
    client: httpx.AsyncClient, tenant: TestTenant, mark: str, ids: dict[str, str] | None = None
) -> World:
    """Store something of everything.

    Args:
        client: Of the service.
        tenant: Whose it will be.
        mark: A word in lower case that every text will hold.
        ids: Ids that the client chooses, by kind; new ones by default.
    """
    chosen = ids or {kind: str(uuid4()) for kind in CLIENT_CHOSEN}
    world = World(tenant, mark, dict(chosen), {"memory": chosen["hidden_memory"]})
    world.ids.update(tenant=str(tenant.tenant_id), user=world.user)
    await _store_records(client, world)
    await _store_structure(client, world)
    token = {"role": "reader", "name": mark, "user_id": world.user, "groups": [f"group {mark}"]}
    world.ids["token"] = (await send(client, world, "POST", "/v1/tokens", token, role="admin"))["id"]
    _store_traces(world)
    return world


async def _store_records(client: httpx.AsyncClient, world: World) -> None:
    mark, ids = world.mark, world.ids
    readers = {"users": [world.user], "groups": [f"group {mark}"]}
    text = f"The pizza oven of Ada Lovelace impressed Bob {mark.capitalize()}."
    memory = {
        "text": text,
        "label": "Attribute",
        "title": f"Pizza {mark}",
        "subject": mark,
        "property": mark,
        "conversation_id": mark,
        "origin": mark,
        "tags": [mark],
        "metadata": {mark: mark},
    }
    entity = {
        "name": f"Oven {mark}",
        "entity_type": f"thing {mark}",
        "aliases": [f"Stove {mark}"],
        "summary": mark,
        "payload": {mark: mark},
    }
    restricted = {"visibility": "restricted", "readers": readers}
    await send(client, world, "POST", "/v1/memories", {**memory, "id": ids["memory"]})
    await send(client, world, "POST", "/v1/memories", {**memory, "id": ids["hidden_memory"], **restricted})
    await send(client, world, "POST", "/v1/memory/entities", {**entity, "id": ids["entity"]})
    ids["alias"] = entity["aliases"][0]
    twin = {**entity, "id": ids["twin"], "name": f"Kiln {mark}", "aliases": []}
    await send(client, world, "POST", "/v1/memory/entities", twin)
    hidden = await send(client, world, "POST", "/v1/memory/entities", {**entity, **restricted})
    world.hidden["entity"] = hidden["entity"]["id"]
    for kind in RECORDS:
        record = {"title": f"Pizza {mark}", "summary": mark, "payload": {mark: mark}}
        path = f"/v1/memory/{kind}s"
        await send(client, world, "POST", path, {**record, "id": ids[kind]})
        stored = await send(client, world, "POST", path, {**record, **restricted})
        world.hidden[kind] = stored[kind]["id"]
    # A change leaves what was there before in the audit log.
    await send(client, world, "PATCH", f"/v1/memories/{ids['memory']}", {"title": f"Pizza oven {mark}"})
    await _store_acts(client, world)


async def _store_acts(client: httpx.AsyncClient, world: World) -> None:
    """Acts that can be undone, on a memory and on the hidden one; and memories to take further steps with."""
    ids, hidden = world.ids, world.hidden
    for memory, found in ((ids["memory"], ids), (ids["hidden_memory"], hidden)):
        disputed = await send(client, world, "POST", f"/v1/memories/{memory}/dispute", {"reason": world.mark})
        found["act"] = disputed["act_id"]
    for entity, found in ((ids["entity"], ids), (hidden["entity"], hidden)):
        grill = {"name": f"Grill {world.mark}", "entity_type": world.mark}
        gone = (await send(client, world, "POST", "/v1/memory/entities", grill))["entity"]["id"]
        merged = await send(client, world, "POST", "/v1/memory/entities/merge", {"from": gone, "into": entity})
        found["entity_act"] = merged["act_id"]
    for kind in STEPPING:
        text = {"text": f"Means to bake for the {kind} {world.mark}.", "label": "Goal", "dedup": "off"}
        ids[kind] = (await send(client, world, "POST", "/v1/memories", text))["memory"]["id"]
        hidden[kind] = ids["hidden_memory"]
    await send(client, world, "POST", f"/v1/memories/{ids['archived']}/archive", {})


async def _store_structure(client: httpx.AsyncClient, world: World) -> None:
    ids = world.ids
    link = {"layer": "memory", "target_id": ids["memory"], "relationship": f"heats {world.mark}", "id": ids["link"]}
    await send(client, world, "POST", f"/v1/memory/entities/{ids['entity']}/links", link)
    edge = {"type": "ABOUT", "from": {"memory": ids["memory"]}, "to": {"entity": ids["entity"]}, "id": ids["edge"]}
    await send(client, world, "POST", "/v1/edges", edge)


def _store_traces(world: World) -> None:
    """What only workers, operators and retrievals leave, put straight into the database."""
    mark, tenant_id = world.mark, world.tenant.tenant_id
    error = json.dumps({"at": mark, "class": mark, "message": mark, "fingerprint": mark, "worker": mark})
    with psycopg.connect(world.tenant.owner_url) as connection:
        connection.execute("UPDATE tenants SET name = %s WHERE tenant_id = %s", (f"Team {mark}", tenant_id))
        for kind, status in (("event", "dead"), ("dead_event", "dead"), ("discarded_event", "discarded")):
            reason = mark if status == "discarded" else None
            row = connection.execute(
                "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
                "attempts, last_error, errors, payload, finished_at, discard_reason, discarded_by, request_id) VALUES "
                "(%s, 'GRAPH_UPSERT', 'memory', %s, 1, %s, 5, %s, %s, %s, clock_timestamp(), %s, %s, %s) RETURNING id",
                (
                    *(tenant_id, uuid4(), status, f"Error: {mark}", f"[{error}]", json.dumps({"name": mark})),
                    *(reason, reason, f"request-{mark}"),
                ),
            ).fetchone()
            assert row
            world.ids[kind] = str(row[0])
        world.ids["rebuild"] = str(uuid4())
        connection.execute(
            "INSERT INTO graph_rebuilds (tenant_id, id, status, phase, user_id, requested_by, request_id, error, "
            "finished_at) VALUES (%s, %s, 'failed', %s, %s, %s, %s, %s, now())",
            (tenant_id, world.ids["rebuild"], *[mark] * 5),
        )
        world.ids["waiting_rebuild"] = str(uuid4())
        connection.execute(
            "INSERT INTO graph_rebuilds (tenant_id, id, phase, user_id, requested_by, request_id) "
            "VALUES (%s, %s, %s, %s, %s, %s)",
            (tenant_id, world.ids["waiting_rebuild"], *[mark] * 4),
        )
        world.ids["verification"] = str(uuid4())
        connection.execute(
            "INSERT INTO graph_verifications (tenant_id, id, status, phase, parts, sample, damage, requested_by, "
            "request_id, error, finished_at) VALUES (%s, %s, 'failed', %s, %s, %s, %s, %s, %s, %s, now())",
            (tenant_id, world.ids["verification"], mark, *_found(mark), *[mark] * 4),
        )
        connection.execute(
            "INSERT INTO graph_states (tenant_id, epoch, next_epoch, doubt, doubted_at) VALUES (%s, %s, %s, %s, now()) "
            "ON CONFLICT (tenant_id) DO UPDATE SET next_epoch = excluded.next_epoch, doubt = excluded.doubt, "
            "doubted_at = now()",
            (tenant_id, *[mark] * 3),
        )
        connection.execute(
            "INSERT INTO graph_tombstones (tenant_id, aggregate_type, aggregate_id, version) "
            "VALUES (%s, 'memory', %s, 2)",
            (tenant_id, uuid4()),
        )
        _store_reviews(connection, world)
        store_provenances(connection, world)
        store_cycles(connection, world)
        _index_vectors(connection, tenant_id)
        connection.execute(
            "INSERT INTO text_frequencies (tenant_id, term, reader, records) "
            "SELECT tenant_id, term, reader, count(*) FROM postings WHERE tenant_id = %s "
            "GROUP BY tenant_id, term, reader",
            (tenant_id,),
        )
        world.ids["retrieval"] = str(uuid4())
        marked = json.dumps({mark: 1})
        path = [{"id": world.ids["memory"], "type": "memory", "via": mark}]
        connection.execute(
            "INSERT INTO retrievals (tenant_id, id, user_id, conversation_id, query, arms, bounds, timings_ms, "
            "graph_state, no_match, items, omitted, pack_tokens, request_id) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'current', false, 1, 0, 10, %s)",
            (tenant_id, world.ids["retrieval"], world.user, *[mark] * 2, *[marked] * 3, f"request-{mark}"),
        )
        connection.execute(
            "INSERT INTO retrieval_items (tenant_id, retrieval_id, position, record_type, record_id, in_pack, reason, "
            "score, arms, path) VALUES (%s, %s, 1, 'memory', %s, true, %s, 1, %s, %s)",
            (tenant_id, world.ids["retrieval"], UUID(world.ids["memory"]), mark, marked, json.dumps(path)),
        )
        walked = (tenant_id, world.ids["retrieval"], UUID(world.ids["edge"]), UUID(world.ids["memory"]))
        connection.execute(
            "INSERT INTO retrieval_edges (tenant_id, retrieval_id, edge_id, record_id, record_type, state, reason) "
            "VALUES (%s, %s, %s, %s, 'memory', 'skipped', %s)",
            (*walked, mark),
        )
        connection.execute(
            "INSERT INTO edge_reinforcements (tenant_id, retrieval_id, edge_id, period) VALUES (%s, %s, %s, %s)",
            (*walked[:3], f"c:{mark}"),
        )
        connection.execute(
            "INSERT INTO retrieval_feedback (tenant_id, retrieval_id, record_id, verdict, user_id) "
            "VALUES (%s, %s, %s, 'wrong', %s)",
            (*walked[:2], walked[3], world.user),
        )


def _index_vectors(connection: psycopg.Connection[Any], tenant_id: UUID) -> None:
    """Build the tenant's index of vectors, as a worker does for a large one."""
    connection.execute("SELECT set_config('memory_os.tenant_id', %s, true)", (str(tenant_id),))
    row = connection.execute(
        "SELECT build_vector_index(%s, model, dimension, 16) FROM memory_embeddings WHERE tenant_id = %s LIMIT 1",
        (tenant_id, tenant_id),
    ).fetchone()
    assert row
    assert row[0]


def _store_reviews(connection: psycopg.Connection[Any], world: World) -> None:
    """Pairs to decide, of which one is decided and one is of the hidden memory."""
    ids, mark = world.ids, world.mark
    ids["review"], world.hidden["review"] = str(uuid4()), str(uuid4())
    for review, memory, other, status in (
        (ids["review"], ids["memory"], ids["mistake"], "open"),
        (str(uuid4()), ids["memory"], ids["spare"], "kept"),
        (world.hidden["review"], ids["hidden_memory"], ids["spare"], "open"),
    ):
        decided = (datetime.now(UTC), mark, mark) if status == "kept" else (None, None, None)
        connection.execute(
            "INSERT INTO memory_reviews (tenant_id, id, memory_id, other_id, kind, tier, rule, guard, status, "
            "decided_at, decided_by, reason) VALUES (%s, %s, %s, %s, 'duplicate', 'older', %s, %s, %s, %s, %s, %s)",
            (world.tenant.tenant_id, UUID(review), UUID(memory), UUID(other), mark, [mark], status, *decided),
        )


async def send(
    client: httpx.AsyncClient, world: World, method: str, path: str, body: dict[str, Any], role: str = "writer"
) -> dict[str, Any]:
    """The answer to a call that succeeds, made for the world's user."""
    answer = await client.request(method, path, json=body, headers=world.headers(role))
    assert answer.status_code in (200, 201), (path, answer.text)
    return dict(answer.json())


def _found(mark: str) -> tuple[str, str]:
    """What a comparison has found, as its row keeps it: parts and differences."""
    difference = {"part": "memories", "kind": "missing", "key": [mark], "expected": {"id": mark}, "found": None}
    return json.dumps({mark: {"rows": 1}}), json.dumps([difference])
