"""Rows for `cycles.py`: a large tenant with edges of all kinds, what it has, and raw statements on it."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

import psycopg
from corpus import World
from psycopg import sql
from rebuild import rebuild
from retrieval_rows import wait_for_worker
from stack import Stores, Wire, service

from memory_os.domain.cycles.forgetting import REST, SELDOM, UNUSED, WEAK, fading_types, prunable_types
from memory_os.domain.cycles.insights import OFTEN, SURE
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.ids import new_id

EMBEDDERS: Final = str(Path(__file__).with_name("embedders.py"))
BATCH: Final = 500
LABELS: Final = {
    "Attribute": 30, "Event": 15, "Reference": 15, "Resource": 10, "Decision": 8, "Opportunity": 6, "Behavior": 5,
    "Preference": 4, "Goal": 3, "Commitment": 2, "Belief": 1, "Skill": 1,
}  # fmt: skip
COPY: Final = """
COPY edges (
    tenant_id, id, type, source_memory_id, target_memory_id, confidence, co_reference_count, used_at, created_at
) FROM STDIN"""
DECAY: Final = """
UPDATE edges SET confidence = confidence * 0.9, faded_at = now(), version = version + 1
WHERE tenant_id = %s AND used_at <= now() - %s AND type = ANY(%s)"""
PRUNE: Final = """
WITH gone AS (
    DELETE FROM edges WHERE tenant_id = %s AND used_at <= now() - %s AND type = ANY(%s) AND confidence < %s
    AND co_reference_count < %s RETURNING *)
INSERT INTO archived_edges (tenant_id, id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id,
    confidence, co_reference_count, created_at, updated_at, version, used_at)
SELECT tenant_id, id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id,
    confidence, co_reference_count, created_at, updated_at, version, used_at FROM gone"""

DAYS: Final = 300
"""Over how many days the memories and edges are spread."""

LIVELY: Final = 0.1
"""The share of edges that answers use often: what Insights are formed of."""

Json = dict[str, Any]


def fill(on: Stores, memories: int, edges: int, patience: float) -> None:
    """Put everything there, projected and indexed."""
    world, source = World(max(100, memories // 5), seed=memories), random.Random(3)
    with service(on, workers=1, command=[EMBEDDERS]) as address:
        asyncio.run(_store(address, on.token, world, memories, source))
        wait_for_worker(on, patience)
    _spread(on)
    _put_edges(on, edges, source)
    rebuild(on, patience)
    with psycopg.connect(on.owner_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


async def _store(address: str, token: str, world: World, count: int, source: random.Random) -> None:
    wire, texts = Wire(address, token), world.notes(count)
    await wire.open()
    done = 0
    while part := list(islice(texts, BATCH)):
        items = [_draft(text, source) for text in part]
        status, answer = await wire.post("/v1/memories/batch", json.dumps({"items": items}).encode())
        assert status == 200, answer
        done += len(part)
        print(f"stored {done} of {count}", flush=True) if done % 10_000 == 0 else None
    wire.close()


def _draft(text: str, source: random.Random) -> Json:
    label = source.choices(list(LABELS), weights=list(LABELS.values()))[0]
    draft = {"text": text, "label": label, "dedup": "off"}
    if label == "Opportunity":
        until = datetime.now(UTC) + timedelta(days=source.randint(-DAYS // 2, DAYS // 2))
        draft["valid_to"] = until.isoformat()
    return draft


def _spread(on: Stores) -> None:
    """Put the memories' times back over most of a year, in the order of their ids."""
    with psycopg.connect(on.owner_url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "UPDATE memories AS m SET created_at = now() - p.share * %(days)s * interval '1 day', "
            "updated_at = now() - p.share * %(days)s * interval '1 day' "
            "FROM (SELECT o.id, 1 - percent_rank() OVER (ORDER BY o.id) AS share FROM memories AS o "
            "WHERE o.tenant_id = %(tenant)s) AS p WHERE m.tenant_id = %(tenant)s AND m.id = p.id",
            {"days": DAYS, "tenant": on.tenant_id},
        )


def _put_edges(on: Stores, count: int, source: random.Random) -> None:
    """Put edges between memories by COPY, mostly between ones that were written at about the same time."""
    with psycopg.connect(on.owner_url) as connection, connection.cursor() as cursor:
        rows = cursor.execute("SELECT id FROM memories WHERE tenant_id = %s ORDER BY id", (on.tenant_id,)).fetchall()
        cursor.execute("SET session_replication_role = replica")
        with cursor.copy(COPY) as copy:
            for row in _edges([row[0] for row in rows], count, source):
                copy.write_row((on.tenant_id, new_id(), *row))


def _edges(ids: Sequence[Any], count: int, source: random.Random) -> Iterator[tuple[Any, ...]]:
    kinds, taken, now = list(EDGE_TYPES), set[tuple[str, int, int]](), datetime.now(UTC)
    while len(taken) < count:
        start = source.randrange(len(ids))
        end = min(len(ids) - 1, max(0, start + int(source.gauss(0, 30))))
        kind = source.choice(kinds)
        if start == end or (kind, start, end) in taken:
            continue
        taken.add((kind, start, end))
        lively = source.random() < LIVELY
        confidence = source.uniform(SURE, 1) if lively else source.random()
        references = source.randint(OFTEN, 5 * OFTEN) if lively else min(OFTEN, int(source.expovariate(1)))
        made = now - timedelta(days=source.uniform(1, DAYS))
        used = now - timedelta(days=source.uniform(0, 14)) if lively else made
        yield kind, ids[start], ids[end], round(confidence, 4), references, used, min(made, used)


def raw(on: Stores) -> Json:
    """Seconds of one statement each that does what decay and pruning do to edges; both are rolled back."""
    statements: dict[str, tuple[str, tuple[Any, ...]]] = {
        "decay": (DECAY, (on.tenant_id, REST, list(fading_types()))),
        "prune": (PRUNE, (on.tenant_id, UNUSED, list(prunable_types()), WEAK, SELDOM)),
    }
    taken: Json = {}
    with psycopg.connect(on.owner_url) as connection:
        for name, (statement, values) in statements.items():
            began = time.perf_counter()
            rows = connection.execute(statement, values).rowcount  # type: ignore[arg-type] # our own words
            taken[name] = {"rows": rows, "seconds": round(time.perf_counter() - began, 3)}
            connection.rollback()
    return taken


def counts(on: Stores) -> Json:
    """What the tenant has, and the edges that schemas form over."""
    found: Counter[str] = Counter()
    with psycopg.connect(on.owner_url) as connection:
        for table in ("memories", "entities", "edges", "archived_edges", "insight_candidates"):
            counted = sql.SQL("SELECT count(*) FROM {} WHERE tenant_id = %s").format(sql.Identifier(table))
            row = connection.execute(counted, (on.tenant_id,)).fetchone()
            found[table] = row[0] if row else 0
        row = connection.execute(
            "SELECT count(*) FROM edges WHERE tenant_id = %s AND co_reference_count >= %s AND confidence > %s",
            (on.tenant_id, OFTEN, SURE),
        ).fetchone()
        found["edges that schemas form over"] = row[0] if row else 0
    return dict(found)
