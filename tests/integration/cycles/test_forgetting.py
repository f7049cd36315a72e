"""What the nightly and monthly cycles let fade, put away, expire and mark, on real rows; and that it all comes back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.fixtures.worker import drain
from tests.integration.cycles.conftest import DAY, NOW, Cycling

from memory_os.errors import ConflictError
from memory_os.graph.port import GraphDump
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

OLD = NOW - 400 * DAY


async def world(cycling: Cycling) -> dict[str, str]:
    """Something for each rule to do, and its neighbours that must stay."""
    names = [
        ("pump", "Attribute"),
        ("seal", "Attribute"),
        ("promise", "Commitment"),
        ("paper", "Reference"),
        ("tool", "Resource"),
        ("fair", "Opportunity"),
        ("later fair", "Opportunity"),
        ("taste", "Preference"),
    ]
    made = {name: await cycling.memory(f"The {name} is known.", label) for name, label in names}
    for ident in made.values():
        cycling.put("memories", ident, created_at=OLD, updated_at=OLD)
    cycling.put("memories", made["fair"], valid_to=NOW)
    cycling.put("memories", made["later fair"], valid_to=NOW + timedelta(microseconds=1))
    weak = {"used_at": NOW - 30 * DAY, "confidence": 0.29, "co_reference_count": 2}
    made["weak"] = await cycling.edge(made["pump"], made["seal"], "SUPPORTS", **weak)
    made["kept"] = await cycling.edge(made["seal"], made["pump"], "EVOLVED_INTO", **weak)
    made["strong"] = await cycling.edge(made["pump"], made["taste"], "SUPPORTS", used_at=OLD, confidence=0.9)
    made["promised"] = await cycling.edge(made["promise"], made["taste"], "ADVANCES", used_at=OLD, confidence=0.9)
    made["rested"] = await cycling.edge(made["taste"], made["seal"], "SUPPORTS", used_at=NOW - 7 * DAY)
    return made


async def test_a_night_fades_expires_and_marks(cycling: Cycling) -> None:
    made = await world(cycling)
    run = await cycling.run("nightly")
    done = {(action["rule"], str(action["target_id"])) for action in cycling.actions(run)}
    assert done == {
        ("decay_edges", made["weak"]),
        ("decay_edges", made["strong"]),
        ("expire_opportunities", made["fair"]),
        ("mark_stale", made["paper"]),
        ("mark_stale", made["tool"]),
    }
    (faded,) = cycling.rows("SELECT confidence, claimed_confidence, faded_at FROM edges WHERE id = %s", made["strong"])
    assert faded["confidence"] == pytest.approx(0.9 * 0.5 ** (393 / 180))
    assert faded["faded_at"] == NOW
    statuses = {str(row["id"]): row["status"] for row in cycling.rows("SELECT id, status FROM memories")}
    assert statuses[made["fair"]] == "expired"
    assert [name for name in ("pump", "later fair", "paper") if statuses[made[name]] != "active"] == []
    (history,) = cycling.rows("SELECT kind, role, detail FROM memory_acts WHERE memory_id = %s", made["fair"])
    assert (history["kind"], history["role"], history["detail"]["run"]) == ("expire", "cycle", str(run))


async def test_a_month_puts_weak_edges_away(cycling: Cycling, worker: WorkerContext) -> None:
    made = await world(cycling)
    await drain(worker)
    await cycling.run("monthly")
    await drain(worker)
    assert {str(row["id"]) for row in cycling.rows("SELECT id FROM archived_edges")} == {made["weak"]}
    graph = await worker.backend.dump(cycling.tenant.tenant_id)
    assert edges_of(graph) == {str(row["id"]) for row in cycling.rows("SELECT id FROM edges")}
    assert made["weak"] not in edges_of(graph)


def edges_of(graph: GraphDump) -> set[str]:
    return {edge.id for edge in graph.edges.values()}


@pytest.mark.parametrize("cycle", ["nightly", "monthly"])
async def test_a_dry_run_changes_nothing_and_predicts_exactly(cycling: Cycling, cycle: str) -> None:
    await world(cycling)
    await cycling.declare_retired()
    before = cycling.state()
    predicted = await cycling.run(cycle, dry_run=True)  # type: ignore[arg-type]
    assert cycling.state() == before
    made = await cycling.run(cycle)  # type: ignore[arg-type]
    assert cycling.actions(made) == cycling.actions(predicted)
    assert cycling.actions(made)


@pytest.mark.parametrize("cycle", ["nightly", "monthly"])
async def test_a_run_that_is_undone_leaves_the_rows_as_they_were(cycling: Cycling, cycle: str) -> None:
    await world(cycling)
    await cycling.declare_retired()
    before = cycling.state()
    run = await cycling.run(cycle)  # type: ignore[arg-type]
    assert cycling.state() != before
    assert await cycling.undo(run) == []
    assert cycling.state() == before


async def test_one_action_is_undone_once(cycling: Cycling) -> None:
    made = await world(cycling)
    run = await cycling.run("monthly")
    (action,) = cycling.rows("SELECT id FROM cycle_actions WHERE run_id = %s AND rule = 'prune_edges'", run)
    await cycling.undo_one(action["id"])
    assert cycling.rows("SELECT confidence FROM edges WHERE id = %s", made["weak"]) == [{"confidence": 0.29}]
    with pytest.raises(ConflictError, match="undone already"):
        await cycling.undo_one(action["id"])


async def test_what_was_used_meanwhile_keeps_what_it_gained(cycling: Cycling) -> None:
    made = await world(cycling)
    run = await cycling.run("nightly")
    cycling.put("edges", made["strong"], confidence=0.95)
    (stays,) = await cycling.undo(run)
    assert [str(row["target_id"]) for row in cycling.rows("SELECT target_id FROM cycle_actions WHERE id = %s", stays)] == [
        made["strong"]
    ]


async def test_two_nights_of_one_moment_do_nothing_twice(cycling: Cycling) -> None:
    made = await world(cycling)
    await cycling.run("nightly")
    second = await cycling.run("nightly", NOW + DAY)
    assert [(action["rule"], str(action["target_id"])) for action in cycling.actions(second)] == [
        ("expire_opportunities", made["later fair"])
    ]
