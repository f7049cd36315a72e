"""Workers are killed in the middle of a nightly and a monthly cycle: the end is that of an undisturbed twin."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.chaos.observing import Observer, differences
from tests.chaos.trapping import TrappedWorkers
from tests.fixtures.waiting import wait_for

from memory_os.domain.ids import new_id

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("failpoints")]

MOMENT: Final = datetime(2026, 3, 2, 2, 0, tzinfo=UTC)
DAY: Final = timedelta(days=1)
MEMORIES: Final = 60
EDGES: Final = 3000
KILLS: Final = 3
CONSTANTS: Final[Mapping[str, Any]] = {
    "memory_os.cycles.fading.BATCH": 60,
    "memory_os.cycles.setting_aside.BATCH": 3,
    "memory_os.cycles.staling.BATCH": 3,
    "memory_os_workers.cycler.EVERY_S": 0.1,
    "memory_os_workers.cycler.REST_S": 0.04,
}
"""Small batches, so that there is a middle to die in."""

TYPES: Final = ("SUPPORTS", "TAGGED_WITH", "REQUIRES", "ADVANCES", "EXTRACTED_FROM", "EVOLVED_INTO")
LABELS: Final = {"Attribute": "identity", "Opportunity": "intelligence", "Reference": "world", "Goal": "direction"}
STATE: Final = ("memories", "edges", "archived_edges", "entities")
GROWING: Final = ("tenant_id", "updated_at", "archived_at", "embedding", "embedding_model")
_TABLES: Final = {
    "memories": "(id uuid, label text, layer text, text text, search tsvector, created_at timestamptz, "
    "updated_at timestamptz, valid_to timestamptz)",
    "entities": "(id uuid, declared boolean, name text, entity_type text, status text)",
    "edges": "(id uuid, type text, source_memory_id uuid, target_memory_id uuid, target_entity_id uuid, "
    "confidence float8, co_reference_count int, used_at timestamptz, created_at timestamptz)",
}


def world(seed: int) -> dict[str, list[dict[str, Any]]]:
    """Rows of a tenant: memories of all kinds, half of them about something retired, and thousands of old edges."""
    chance = random.Random(seed)
    labels = list(LABELS)
    memories = [
        {
            "id": new_id(),
            "label": (label := labels[number % len(labels)]),
            "layer": LABELS[label],
            "text": " ".join("".join(chance.choices("bdfgklmnprst", k=7)) for _ in range(6)),
            "search": "",
            "created_at": MOMENT - 200 * DAY,
            "updated_at": MOMENT - 200 * DAY,
            "valid_to": MOMENT if number % 3 == 0 else None,
        }
        for number in range(MEMORIES)
    ]
    retired = new_id()
    ends = chance.sample([(a, b, kind) for a in memories for b in memories for kind in TYPES if a is not b], EDGES)
    edges = [
        {"id": new_id(), "type": kind, "source_memory_id": a["id"], "target_memory_id": b["id"]} for a, b, kind in ends
    ]
    about = [
        {"id": new_id(), "type": "ABOUT", "source_memory_id": memory["id"], "target_entity_id": retired}
        for memory in memories[::2]
    ]
    for edge in (*edges, *about):
        edge["confidence"] = chance.choice((0.1, 0.25, 0.6, chance.random()))
        edge["co_reference_count"] = chance.randrange(5)
        edge["used_at"] = MOMENT - chance.choice((3, 12, 29, 31, 90)) * DAY
        edge["created_at"] = MOMENT - 200 * DAY
    return {
        "memories": memories,
        "entities": [{"id": retired, "declared": True, "name": "qwzx", "entity_type": "thing", "status": "retired"}],
        "edges": [*edges, *about],
    }


def fill(owner_url: str, seen: Observer, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Put rows into a tenant, and have them projected."""
    kinds = {"memories": "memory", "entities": "entity", "edges": "edge"}
    with psycopg.connect(owner_url) as connection:
        for table, kind in kinds.items():
            names = ", ".join(rows[table][0] | rows[table][-1])
            given = Jsonb([{name: _told(value) for name, value in row.items()} for row in rows[table]])
            connection.execute(
                f"INSERT INTO {table} (tenant_id, {names}) "
                f"SELECT %s, {names} FROM jsonb_to_recordset(%s::jsonb) AS given {_TABLES[table]}",
                (seen.tenant_id, given),
            )
            connection.execute(
                "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version) "
                f"SELECT tenant_id, 'GRAPH_UPSERT', %s, id, version FROM {table} WHERE tenant_id = %s",
                (kind, seen.tenant_id),
            )


def _told(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def state(seen: Observer) -> dict[str, list[dict[str, Any]]]:
    """All rows of a tenant that cycles change, versions among them; vectors come when they come."""
    return {
        table: [
            {name: value for name, value in row.items() if name not in GROWING}
            for row in seen.rows(f"SELECT * FROM {table} WHERE tenant_id = %(tenant)s ORDER BY id")
        ]
        for table in STATE
    }


def enter(seen: Observer, cycle: str) -> UUID:
    """Enter a run; whatever worker is there makes it."""
    run = new_id()
    seen.rows(
        "INSERT INTO cycle_runs (tenant_id, id, cycle, period, moment, role) "
        "VALUES (%(tenant)s, %(run)s, %(cycle)s, 'test', %(moment)s, 'cycle') RETURNING 1",
        run=run,
        cycle=cycle,
        moment=MOMENT,
    )
    return run


def progress(seen: Observer, run: UUID) -> tuple[str, int]:
    """The status of a run, and how much it has done."""
    (row,) = seen.rows("SELECT status, counts, error FROM cycle_runs WHERE id = %(run)s", run=run)
    assert row["error"] is None, row
    return row["status"], sum(row["counts"].values())


def actions(seen: Observer, run: UUID) -> list[dict[str, Any]]:
    """What a run did."""
    return seen.rows(
        "SELECT number, rule, target_kind, target_id, other_id, before, after FROM cycle_actions "
        "WHERE run_id = %(run)s ORDER BY number",
        run=run,
    )


@pytest.mark.parametrize("cycle", ["nightly", "monthly"])
def test_a_cycle_whose_workers_are_killed_ends_as_one_that_nobody_disturbed(
    workers: TrappedWorkers, seed: int, cycle: str
) -> None:
    workers.end()
    rows = world(seed)
    seen, twin = workers.rig.new_tenant(), workers.rig.new_tenant()
    worker = workers.start(CONSTANTS)
    for each in (seen, twin):
        fill(workers.rig.owner_url, each, rows)
    for each in (seen, twin):
        each.wait_until_drained()
    before = state(seen)
    assert state(twin) == before

    whole = enter(twin, cycle)
    wait_for(lambda: progress(twin, whole)[0] == "done", seconds=60, what="the cycle of the twin")
    expected = len(actions(twin, whole))
    assert expected > 150

    chance = random.Random(seed)
    run = enter(seen, cycle)
    for _ in range(KILLS):
        mark = progress(seen, run)[1] + chance.randint(1, expected // 8)
        wait_for(lambda mark=mark: progress(seen, run)[1] >= mark, seconds=60, what="a run in the middle")  # type: ignore[misc]  # bound at once
        time.sleep(chance.uniform(0, 0.1))  # in a batch, or between two
        os.kill(worker.pid, signal.SIGKILL)
        assert worker.process.wait(10) == -signal.SIGKILL
        assert progress(seen, run)[0] == "running", "the worker was quicker than the test"
        worker = workers.launch(CONSTANTS)
    wait_for(lambda: progress(seen, run)[0] == "done", seconds=60, what="the end of the cycle")

    done = actions(seen, run)
    assert done == actions(twin, whole)
    assert [action["number"] for action in done] == list(range(1, expected + 1))
    assert len({action["target_id"] for action in done}) == expected  # each once
    assert progress(seen, run)[1] == expected
    after = state(seen)
    assert after == state(twin)
    assert after != before
    for each in (seen, twin):
        each.wait_until_drained()
    grown = seen.dump()
    assert differences(grown, twin.dump()) == []
    assert set(grown.edges) == {str(edge["id"]) for edge in after["edges"]}
    seen.rebuild()
    assert differences(grown, seen.dump()) == []
    workers.end()
    assert workers.rig.errors() == []
