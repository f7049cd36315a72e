"""What says the same and got past the gate becomes one at night, by the gate's own judgement; and it all comes back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.fixtures.citing import Citer
from tests.integration.cycles.conftest import DAY, NOW, Cycling

from memory_os.cycles import merging_duplicates
from memory_os.cycles.merging_duplicates import RULE
from memory_os.storage.checks import current_model
from memory_os_workers import indexer

pytestmark = pytest.mark.anyio

SAME = (
    "Mara likes green tea.",
    "mara LIKES green tea",
    "Mara really likes green tea.",
    "Green tea is what Mara likes.",
)
CHAIN = ("The office opens at 9.", "The office opens at 9 am.", "Our office opens at 9 am.")
"""The first and the last are not proven to be the same by themselves."""

Merges = dict[str, str]


async def store(cycling: Cycling, text: str, *, user: str | None = None, **fields: Any) -> str:
    """A memory that passes no gate, unless it says so, of a user or of nobody."""
    body = {"text": text, "label": "Attribute", "dedup": "off", **fields}
    answer = await cycling.client.post("/v1/memories", json=body, headers=cycling.tenant.headers(user=user))
    assert answer.is_success, answer.text
    return str(answer.json()["memory"]["id"])


def merges(cycling: Cycling, run: UUID) -> Merges:
    """Into what a run has merged what."""
    return {
        str(action["target_id"]): str(action["other_id"]) for action in cycling.actions(run) if action["rule"] == RULE
    }


def live(cycling: Cycling) -> set[str]:
    rows = cycling.rows("SELECT id FROM memories WHERE status IN ('active', 'disputed')")
    return {str(row["id"]) for row in rows}


def reviews(cycling: Cycling) -> list[dict[str, Any]]:
    return cycling.rows("SELECT * FROM memory_reviews ORDER BY id")


def lay_beside(cycling: Cycling, one: str, other: str) -> None:
    """Give a memory the vector of another one: as an embedder does that knows both for the same."""
    cycling.rows(
        "UPDATE memory_embeddings SET embedding = (SELECT embedding FROM memory_embeddings WHERE memory_id = %s) "
        "WHERE memory_id = %s RETURNING memory_id",
        other,
        one,
    )


async def declare(cycling: Cycling, name: str, *aliases: str) -> None:
    made = await cycling.post("/v1/memory/entities", name=name, entity_type="system", aliases=list(aliases))
    assert made["entity"]["name"] == name


async def test_what_got_past_the_gate_merges_into_the_oldest(cycling: Cycling) -> None:
    first = await store(cycling, SAME[0], dedup="gate")
    others = [await store(cycling, text) for text in SAME[1:3]]
    apart = await store(cycling, "Mara likes green tables.")
    run = await cycling.run("nightly")
    assert merges(cycling, run) == dict.fromkeys(others, first)
    assert live(cycling) == {first, apart}
    exact = next(action for action in cycling.actions(run) if str(action["target_id"]) == others[0])
    assert exact["before"]["status"] == "active"
    assert {name: exact["after"][name] for name in ("status", "rule", "tier")} == {
        "status": "archived",
        "rule": "exact",
        "tier": "exact",
    }
    assert not [text for text in SAME if text in str(cycling.actions(run))]
    (act,) = cycling.rows("SELECT * FROM memory_acts WHERE memory_id = %s", others[0])
    assert (act["kind"], str(act["other_id"]), act["role"]) == ("merge", first, "cycle")
    assert (act["detail"]["run"], act["detail"]["rule"]) == (str(run), "exact")
    edges = cycling.rows("SELECT * FROM edges WHERE type = 'DUPLICATES'")
    assert {str(edge["source_memory_id"]): str(edge["target_memory_id"]) for edge in edges} == merges(cycling, run)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Room 101 is free.", "Room 102 is free."),
        ("The plant weighs 178 lbs.", "The plant weighs 182 lbs."),
        ("Ann eats meat.", "Ann does not eat meat."),
        ("Ann pays Bo for lunch.", "Bo pays Ann for lunch."),
        ("The rehearsal is on Monday.", "The rehearsal is on Tuesday."),
        ("Mara prefers tea.", "Does Mara prefer tea?"),
        ("Kettle runs the billing jobs.", "Boiler runs the billing jobs."),
        ("Ann works in Oslo.", "Ann no longer works in Oslo."),
    ],
)
async def test_what_differs_in_meaning_stays_two_however_near(cycling: Cycling, one: str, other: str) -> None:
    ids = [await store(cycling, text) for text in (one, other)]
    lay_beside(cycling, ids[1], ids[0])
    assert merges(cycling, await cycling.run("nightly")) == {}


async def test_users_and_readers_are_kept_apart(cycling: Cycling) -> None:
    private = {"visibility": "private"}
    restricted = {"visibility": "restricted", "readers": {"users": ["noor", "bo"], "groups": ["ops"]}}
    same = {"visibility": "restricted", "readers": {"users": ["bo", "noor"], "groups": ["ops"]}}
    fewer = {"visibility": "restricted", "readers": {"users": ["noor"], "groups": ["ops"]}}
    kinds: list[tuple[str | None, dict[str, Any]]] = [
        (None, {}), ("mara", {}), ("noor", {}), ("mara", private), ("noor", private), ("mara", restricted),
        ("noor", restricted), ("mara", fewer),
    ]  # fmt: skip
    firsts = [await store(cycling, SAME[0], user=user, **fields) for user, fields in kinds]
    assert merges(cycling, await cycling.run("nightly", dry_run=True)) == {}
    again = await store(cycling, SAME[1], user="mara", **same)
    mine = await store(cycling, SAME[2], user="noor", **private)
    assert merges(cycling, await cycling.run("nightly")) == {again: firsts[5], mine: firsts[4]}


async def test_several_that_say_the_same_one_by_one_end_as_one(cycling: Cycling) -> None:
    ids = [await store(cycling, text) for text in CHAIN]
    run = await cycling.run("nightly")
    assert merges(cycling, run) == {ids[1]: ids[0], ids[2]: ids[0]}
    rules = {str(action["target_id"]): action["after"]["rule"] for action in cycling.actions(run)}
    assert rules == {ids[1]: "aligned_loosely", ids[2]: "aligned"}


async def test_one_in_the_middle_brings_both_sides_together(cycling: Cycling) -> None:
    """Only the one in the middle has changed since the last run."""
    ids = [await store(cycling, CHAIN[place]) for place in (0, 2, 1)]
    for ident in ids:
        cycling.put("memories", ident, created_at=NOW - 9 * DAY, updated_at=NOW - 9 * DAY)
    cycling.put("memories", ids[2], updated_at=NOW + DAY)
    await finish_a_night(cycling)
    assert merges(cycling, await cycling.run("nightly", NOW + DAY)) == {ids[2]: ids[0], ids[1]: ids[0]}


async def test_what_one_says_of_two_is_no_proof_against_the_guard(cycling: Cycling) -> None:
    """One of them is near to both; but these two conflict, so that they do not become one through it."""
    ids = [
        await store(cycling, text)
        for text in ("Ann bought a car.", "Ann purchased an automobile.", "Ann purchased a car.")
    ]
    for ident in ids[1:]:
        lay_beside(cycling, ident, ids[0])
    assert merges(cycling, await cycling.run("nightly")) == {ids[1]: ids[0]}


async def test_times_commitments_and_disputes_are_no_duplicates(cycling: Cycling) -> None:
    spring = await store(
        cycling, "The hall is closed.", valid_from="2026-03-01T00:00:00Z", valid_to="2026-04-01T00:00:00Z"
    )
    await store(cycling, "The hall is closed.", valid_from="2026-06-01T00:00:00Z")
    await store(cycling, "Mara sends the report.")
    promised = await store(cycling, "Mara sends the report.", label="Commitment")
    again = await store(cycling, "Mara sends the report.", label="Commitment")
    await store(cycling, "Bo sings.")
    doubted = await store(cycling, "Bo sings.")
    cycling.put("memories", doubted, status="disputed")
    rehearsals = [
        await store(cycling, "The choir rehearsed.", label="Event", occurred_at=f"2026-03-0{day}T18:00:00Z")
        for day in (1, 8)
    ]
    found = merges(cycling, await cycling.run("nightly"))
    assert not {spring, promised, doubted, *rehearsals} & found.keys()
    assert found == {again: found[again]}


async def night_of_many(cycling: Cycling) -> None:
    """Something of everything, with edges that meet their equals and are not used any more."""
    goal = await store(cycling, "Mara wants a quiet office.", label="Goal")
    old = {"used_at": NOW - 90 * DAY, "confidence": 0.9}
    for text in (*SAME, *CHAIN, "Room 101 is free.", "Room 102 is free.", *SAME[:2]):
        ident = await store(cycling, text)
        await cycling.edge(ident, goal, "SUPPORTS", **old)
    for text in SAME:
        await store(cycling, text, user="mara", visibility="private")
    fair = [await store(cycling, "The fair is in Oslo.", label="Opportunity") for _ in range(2)]
    for ident in fair:
        cycling.put("memories", ident, valid_to=NOW - DAY)
    for _ in range(2):
        paper = await store(cycling, "The paper is on the shelf.", label="Reference")
        cycling.put("memories", paper, created_at=NOW - 400 * DAY, updated_at=NOW - 400 * DAY)


@pytest.mark.parametrize("batch", [1, 2, 3, 50])
async def test_a_dry_run_predicts_exactly_whatever_the_batches(
    cycling: Cycling, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    await night_of_many(cycling)
    before = cycling.state()
    whole = merges(cycling, await cycling.run("nightly", dry_run=True))
    monkeypatch.setattr(merging_duplicates, "BATCH", batch)
    predicted = await cycling.run("nightly", dry_run=True)
    assert merges(cycling, predicted) == whole
    assert cycling.state() == before
    made = await cycling.run("nightly")
    assert cycling.actions(made) == cycling.actions(predicted)
    assert len(whole) == 3 + 2 + 2 + 3 + 1 + 1


async def test_a_run_that_is_undone_leaves_the_rows_as_they_were(cycling: Cycling) -> None:
    await night_of_many(cycling)
    before = cycling.state()
    run = await cycling.run("nightly")
    assert cycling.state() != before
    assert await cycling.undo(run) == []
    assert cycling.state() == before
    assert merges(cycling, await cycling.run("nightly", NOW + DAY)) == {}  # what was parted stays apart


async def test_the_next_night_finds_nothing(cycling: Cycling) -> None:
    await night_of_many(cycling)
    await cycling.run("nightly")
    assert merges(cycling, await cycling.run("nightly", NOW + DAY)) == {}


async def finish_a_night(cycling: Cycling) -> None:
    """A run that came to its end and looked at nothing."""
    run = await cycling.enter("nightly", NOW)
    cycling.put("cycle_runs", str(run), status="done")


async def test_a_run_looks_at_what_was_changed_since_the_last_one(cycling: Cycling) -> None:
    old = [await store(cycling, text) for text in (*SAME[:2], *CHAIN[:2])]
    for ident in old:
        cycling.put("memories", ident, created_at=NOW - 9 * DAY, updated_at=NOW - 9 * DAY)
    await finish_a_night(cycling)
    cycling.put("memories", old[0], updated_at=NOW + timedelta(hours=3))
    assert merges(cycling, await cycling.run("nightly", NOW + DAY)) == {old[1]: old[0]}


async def test_vectors_of_another_model_are_not_compared(cycling: Cycling) -> None:
    ids = [await store(cycling, text) for text in CHAIN[:2]]
    cycling.rows("UPDATE memory_embeddings SET model = 'older' WHERE memory_id = %s RETURNING model", ids[0])
    assert merges(cycling, await cycling.run("nightly")) == {}


async def test_equal_words_are_found_by_their_key_where_there_is_no_vector(cycling: Cycling) -> None:
    ids = [await store(cycling, SAME[0], dedup="gate"), await store(cycling, SAME[1])]
    cycling.rows("DELETE FROM memory_embeddings RETURNING model")
    assert merges(cycling, await cycling.run("nightly")) == {ids[1]: ids[0]}


async def test_an_open_review_is_settled_and_opened_again(cycling: Cycling) -> None:
    """The gate was not sure before an alias was declared."""
    texts = ("The Kettle service runs in Oslo.", "The Steamworks service runs in Oslo.")
    ids = [await store(cycling, text) for text in texts]
    for ident in ids:
        cycling.put("memories", ident, created_at=NOW - 9 * DAY, updated_at=NOW - 9 * DAY)
    await finish_a_night(cycling)
    cycling.rows(
        "INSERT INTO memory_reviews (tenant_id, id, memory_id, other_id, kind, tier, rule) "
        "VALUES (%s, gen_random_uuid(), %s, %s, 'duplicate', 'older', 'unproven') RETURNING id",
        cycling.tenant.tenant_id, ids[1], ids[0],
    )  # fmt: skip
    waiting = reviews(cycling)
    assert merges(cycling, await cycling.run("nightly", NOW + DAY, dry_run=True)) == {}
    await declare(cycling, "Kettle", "Steamworks")
    run = await cycling.run("nightly", NOW + DAY)
    assert merges(cycling, run) == {ids[1]: ids[0]}
    assert [(row["status"], row["decided_by"]) for row in reviews(cycling)] == [("merged", "cycle")]
    assert await cycling.undo(run) == []
    assert reviews(cycling) == waiting
    assert merges(cycling, await cycling.run("nightly", NOW + 2 * DAY)) == {}


async def test_what_a_person_keeps_apart_stays_apart(cycling: Cycling) -> None:
    ids = [await store(cycling, text) for text in SAME[:2]]
    cycling.rows(
        "INSERT INTO memory_reviews (tenant_id, id, memory_id, other_id, kind, tier, rule, status, decided_at) "
        "VALUES (%s, gen_random_uuid(), %s, %s, 'duplicate', 'older', 'unproven', 'kept', now()) RETURNING id",
        cycling.tenant.tenant_id, ids[1], ids[0],
    )  # fmt: skip
    assert merges(cycling, await cycling.run("nightly")) == {}


async def test_a_merge_of_the_gate_that_was_taken_back_is_not_made_again(cycling: Cycling) -> None:
    first = await store(cycling, SAME[0], dedup="gate")
    merged = await cycling.post("/v1/memories", text=SAME[1], label="Attribute")
    assert merged["outcome"] == "merged"
    await cycling.post(f"/v1/memories/{first}/acts/{merged['act_id']}/undo")
    assert len(live(cycling)) == 2
    assert merges(cycling, await cycling.run("nightly")) == {}


async def test_what_changes_between_plan_and_merge_is_passed_over(
    cycling: Cycling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of four changes: what rests on it waits, the others merge."""
    ids = [await store(cycling, text) for text in (*CHAIN, *SAME[:2])]
    enter = merging_duplicates.enter_scopes

    async def change_and_enter(*given: Any) -> None:
        cycling.put("memories", ids[1], version=2)
        await enter(*given)

    monkeypatch.setattr(merging_duplicates, "enter_scopes", change_and_enter)
    assert merges(cycling, await cycling.run("nightly")) == {ids[4]: ids[3]}
    monkeypatch.undo()
    assert live(cycling) == {*ids[:4]}
    assert merges(cycling, await cycling.run("nightly", NOW + DAY)) == {ids[1]: ids[0], ids[2]: ids[0]}


async def test_one_action_is_taken_back_by_itself(cycling: Cycling) -> None:
    ids = [await store(cycling, text) for text in (*SAME[:2], *CHAIN[:2])]
    run = await cycling.run("nightly")
    (action,) = cycling.rows("SELECT id FROM cycle_actions WHERE run_id = %s AND target_id = %s", run, ids[1])
    await cycling.undo_one(action["id"])
    assert live(cycling) == set(ids[:3])


async def test_evidence_is_shared_and_taken_back(cycling: Cycling) -> None:
    citer = Citer(cycling.client, cycling.tenant)
    ids, sources = [], []
    for text in SAME[:2]:
        sources.append(await citer.source(text))
        made = await citer.remember(text, {"source_id": sources[-1]})
        ids.append(made["memory"]["id"])

    def told_by() -> dict[str, set[str]]:
        rows = cycling.rows("SELECT memory_id, source_id FROM evidence WHERE withdrawn_at IS NULL")
        return {ident: {str(row["source_id"]) for row in rows if str(row["memory_id"]) == ident} for ident in ids}

    before = told_by()
    assert before == {ids[0]: {sources[0]}, ids[1]: {sources[1]}}
    run = await cycling.run("nightly")
    assert told_by()[ids[0]] == set(sources)
    undone = await cycling.post(f"/v1/cycles/{run}/undo")
    assert undone["kept"] == 0
    assert told_by() == before


async def test_an_index_of_vectors_finds_the_same(cycling: Cycling) -> None:
    await night_of_many(cycling)
    whole = merges(cycling, await cycling.run("nightly", dry_run=True))
    few = {"vector_index_from": 3, "vector_index_tail": 3, "vector_index_memory_mb": 16}
    cycling.worker.settings = cycling.worker.settings.model_copy(update=few)
    async with cycling.worker.database.transaction(cycling.scope) as tx:
        model = await current_model(tx)
    assert model is not None
    while await indexer.tend(cycling.worker, cycling.tenant.tenant_id, model):
        pass
    assert cycling.rows("SELECT count(*) FROM memory_embeddings WHERE indexed")[0]["count"] > len(whole)
    assert merges(cycling, await cycling.run("nightly")) == whole
