"""Fading is written in steps: never far from the formula, rested by use, and the same in the graph as in the rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from tests.fixtures.worker import drain, dump
from tests.integration.cycles.conftest import DAY, NOW, Cycling

from memory_os.api.services import Services
from memory_os.cycles import running
from memory_os.domain.cycles.forgetting import HALF_LIVES, REST, STEP, UsedEdge, faded_confidence, fading_types
from memory_os.domain.cycles.rules import RULES
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.settings import Settings
from memory_os_workers import reinforcer, verifier
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

YEAR = 365


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """Every walk counts."""
    return service_settings.model_copy(update={"reinforce_unconfirmed_share": 1.0})


@pytest.fixture(autouse=True)
def fading_alone() -> Iterator[None]:
    """Nights that do nothing but let edges fade."""
    with patch.object(running, "rules_of", lambda _: (RULES["decay_edges"],)):
        yield


def left(kind: str, unused: timedelta) -> float:
    """The share of its confidence that an edge has left after a time of disuse, in closed form."""
    life = HALF_LIVES[EDGE_TYPES[kind].category]
    assert life is not None
    return float(0.5 ** (max(unused - REST, timedelta()) / life))


async def check_graph(cycling: Cycling, worker: WorkerContext) -> None:
    """The graph tells of every edge what its row does, and a comparison of both finds nothing."""
    await drain(worker)
    shown = (await dump(worker, cycling.tenant.tenant_id)).edges
    for row in cycling.rows("SELECT * FROM edges"):
        edge = shown.pop(str(row["id"]))
        assert edge.confidence == pytest.approx(row["confidence"], rel=1e-14)
        assert edge.co_reference_count == row["co_reference_count"]
        assert edge.weight == (None if row["claimed_confidence"] is None else pytest.approx(row["claimed_confidence"]))
    assert shown == {}
    headers = cycling.tenant.headers("admin")
    assert (await cycling.client.get("/v1/graph/verify", headers=headers)).is_success
    assert await verifier.take_job(worker)
    told = (await cycling.client.get("/v1/graph/verifications", headers=headers)).json()["items"][0]
    assert (told["status"], told["equal"]) == ("done", True), told


async def test_a_year_of_nights_is_never_a_step_from_the_formula(cycling: Cycling, worker: WorkerContext) -> None:
    hub = await cycling.memory("The hub is known.")
    made = {}
    for number, kind in enumerate(fading_types()):
        spoke = await cycling.memory(f"Spoke {kind} is known.")
        claimed = 0.5 if number % 2 else None
        made[await cycling.edge(hub, spoke, kind, used_at=NOW, confidence=0.9, claimed_confidence=claimed)] = kind
    writes = 0
    for night in range(1, YEAR + 1):
        run = await cycling.run("nightly", NOW + night * DAY)
        writes += len(cycling.actions(run))
        if night % 7 in (0, 1) or night == YEAR:
            for row in cycling.rows("SELECT id, confidence, claimed_confidence AS claimed FROM edges"):
                exact = 0.9 * left(made[str(row["id"])], night * DAY)
                assert exact * (1 - 1e-9) <= row["confidence"] <= exact / (1 - STEP) * (1 + 1e-9)
                if row["claimed"] is not None:
                    assert row["claimed"] / row["confidence"] == pytest.approx(0.5 / 0.9)
    # One of 60 days halves itself six times in the year: some 80 steps, and not 365.
    assert YEAR * len(made) / 25 < writes < YEAR * len(made) / 5
    await check_graph(cycling, worker)


async def test_one_run_at_the_end_takes_what_many_take(cycling: Cycling) -> None:
    hub = await cycling.memory("The hub is known.")
    edges = [
        await cycling.edge(hub, await cycling.memory(f"Spoke {name}."), used_at=NOW, confidence=0.9) for name in "ab"
    ]
    for night in (20, 41, 60, 81, 100):
        cycling.put("edges", edges[1], used_at=NOW + YEAR * DAY)
        await cycling.run("nightly", NOW + night * DAY)
    cycling.put("edges", edges[1], used_at=NOW)
    await cycling.run("nightly", NOW + 200 * DAY)
    rows = cycling.rows("SELECT confidence, faded_at FROM edges")
    assert [row["faded_at"] for row in rows] == [NOW + 200 * DAY] * 2
    assert rows[0]["confidence"] == pytest.approx(rows[1]["confidence"], rel=1e-12)


async def test_use_rests_an_edge_again(cycling: Cycling, services: Services, worker: WorkerContext) -> None:
    now = datetime.now(UTC)
    stove = await cycling.memory("The gearbox needs oil every spring.")
    keys = await cycling.memory("Ask Ida for the workshop keys.")
    edge = await cycling.edge(stove, keys, "SUPPORTS", used_at=now - 97 * DAY, confidence=0.8)
    await cycling.run("nightly", now)
    await check_graph(cycling, worker)
    faded = cycling.rows("SELECT confidence FROM edges WHERE id = %s", edge)[0]["confidence"]
    assert faded == pytest.approx(0.8 * 0.5 ** (90 / 180), rel=1e-6)

    found = await cycling.post("/v1/retrieve", query="gearbox", arms={"vector": False})
    assert {stove, keys} == {item["id"] for item in found["items"]}
    await services.retriever.log.close()
    assert dict(await reinforcer.settle(worker)) == {"counted": 1}
    (used,) = cycling.rows("SELECT * FROM edges WHERE id = %s", edge)
    assert (used["confidence"], used["co_reference_count"]) == (pytest.approx(faded + 0.05), 1)
    assert used["claimed_confidence"] == faded
    assert used["used_at"] > now

    rested = await cycling.run("nightly", used["used_at"] + REST)
    assert cycling.actions(rested) == []
    later = used["used_at"] + REST + 90 * DAY
    await cycling.run("nightly", later)
    (row,) = cycling.rows("SELECT * FROM edges WHERE id = %s", edge)
    share = 0.5 ** (90 / 180)
    assert row["confidence"] == pytest.approx(used["confidence"] * share)
    assert row["claimed_confidence"] == pytest.approx(faded * share)
    assert (row["faded_at"], row["co_reference_count"]) == (later, 1)
    expected = UsedEdge("SUPPORTS", used["confidence"], 1, used["used_at"], used["faded_at"])
    assert row["confidence"] == faded_confidence(expected, later)
    await check_graph(cycling, worker)


async def test_an_edge_that_was_used_since_keeps_what_it_has(cycling: Cycling) -> None:
    """A fading that was planned before an answer used the edge is not made, nor taken back over it."""
    hub, spoke = [await cycling.memory(f"{name} is known.") for name in ("Hub", "Spoke")]
    edge = await cycling.edge(hub, spoke, used_at=NOW - 100 * DAY, confidence=0.8)
    run = await cycling.run("nightly")
    cycling.put("edges", edge, confidence=0.7, co_reference_count=1, used_at=NOW)
    (kept,) = await cycling.undo(run)
    assert cycling.rows("SELECT target_id::text AS id FROM cycle_actions WHERE id = %s", kept) == [{"id": edge}]
    assert cycling.rows("SELECT confidence FROM edges") == [{"confidence": 0.7}]
