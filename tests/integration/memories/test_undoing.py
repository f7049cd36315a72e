"""What was done to a memory can be undone: all rows are as they were, and the history tells of both."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from tests.fixtures.acting import Actor, Memory, canonical, edges_of, rows_of
from tests.fixtures.postgres import DatabaseUrls

from memory_os.domain.acts import ACTS
from memory_os.memories.undoing import UNDOERS

pytestmark = pytest.mark.anyio

STEPS = {"complete": "completed", "abandon": "abandoned", "archive": "archived", "retract": "retracted"}


async def world(actor: Actor) -> tuple[Memory, Memory, Memory]:
    """An old memory and a new one with context of every kind, and a third that both have to do with."""
    old = await actor.remember("Reach the coast.", label="Goal", dedup="gate", valid_to="2027-01-01T00:00:00Z")
    new, far = await actor.remember("Reach the islands.", label="Goal"), await actor.remember("Owns a boat.")
    thing = {"entity": await actor.declare("Harbour")}
    await actor.tie("ABOUT", old["id"], thing, confidence=0.3)
    await actor.tie("ENABLES", far["id"], old["id"], confidence=0.8)
    await actor.tie("ENABLES", far["id"], new["id"], confidence=0.2)
    await actor.tie("CONTRADICTS", new["id"], old["id"])
    await actor.tie("EXTRACTED_FROM", old["id"], far["id"])
    return old, new, far


def test_whatever_can_be_undone_has_its_way() -> None:
    assert UNDOERS.keys() == {kind for kind, act in ACTS.items() if act.undoable}


@pytest.mark.parametrize("verb", [*STEPS, "dispute"])
async def test_a_step_is_undone(actor: Actor, database_urls: DatabaseUrls, verb: str) -> None:
    old, _, _ = await world(actor)
    before = canonical(database_urls)
    done = await actor.do(verb, old["id"])
    assert done["memory"]["status"] == STEPS.get(verb, "disputed")
    assert canonical(database_urls) != before
    undone = await actor.undo(old["id"], done["act_id"])
    assert undone.status_code == 200, undone.text
    assert canonical(database_urls) == before
    memory = undone.json()["memory"]
    assert (memory["status"], memory["version"]) == ("active", 3)
    assert undone.headers["etag"] == '"3"'


@pytest.mark.parametrize("body", [{"text": "Reach the open sea."}, None], ids=["a new one", "a stored one"])
async def test_a_supersession_is_undone(actor: Actor, database_urls: DatabaseUrls, body: Any) -> None:
    old, new, _ = await world(actor)
    before = canonical(database_urls)
    done = await actor.do("supersede", old["id"], body or {"by": new["id"]})
    assert (await actor.undo(old["id"], done["act_id"])).status_code == 200
    after = canonical(database_urls)
    if body:  # a memory that was stored with it stays, as it was stored
        made = done["memory"]["id"]
        assert await actor.read(made) == {**done["memory"], **_grown(await actor.read(made)), "valid_from": None}
        for table, column in (("memories", "id"), ("memory_embeddings", "memory_id")):
            after[table] = [row for row in after[table] if str(row[column]) != made]
    assert after == before


def _grown(memory: Memory) -> Memory:
    return {"version": memory["version"], "updated_at": memory["updated_at"], "supersedes": None}


async def test_it_can_be_undone_from_either_memory(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, far = await world(actor)
    before = canonical(database_urls)
    done = await actor.do("supersede", old["id"], {"by": new["id"]})
    assert (await actor.undo(far["id"], done["act_id"])).status_code == 404
    assert (await actor.undo(new["id"], str(uuid4()))).status_code == 404
    undone = await actor.undo(new["id"], done["act_id"])
    assert undone.json()["memory"]["id"] == new["id"]
    assert canonical(database_urls) == before


async def test_a_dispute_between_two_is_undone(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, _, far = await world(actor)
    before = canonical(database_urls)
    done = await actor.do("dispute", old["id"], {"against": far["id"], "reason": "It was sold."})
    assert [(await actor.read(one["id"]))["status"] for one in (old, far)] == ["disputed", "disputed"]
    assert (await actor.undo(far["id"], done["act_id"])).status_code == 200
    assert canonical(database_urls) == before


async def test_a_chain_of_acts_is_undone_in_reverse(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, far = await world(actor)
    states, acts = [canonical(database_urls)], []
    for verb, ident, body in (
        ("dispute", old["id"], {"against": far["id"]}),
        ("supersede", old["id"], {"by": new["id"]}),
        ("supersede", far["id"], {"by": new["id"]}),
        ("complete", new["id"], None),
        ("retract", old["id"], {"reason": "It was never so."}),
        ("restore", old["id"], None),
        ("archive", old["id"], None),
        ("restore", old["id"], None),
    ):
        done = await actor.do(verb, ident, body)
        acts.append((ident, done["act_id"]))
        states.append(canonical(database_urls))
    states.pop()
    for ident, act in reversed(acts):
        undone = await actor.undo(ident, act)
        assert undone.status_code == 200, undone.text
        assert canonical(database_urls) == states.pop()


async def test_what_came_after_stands_in_the_way(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, _ = await world(actor)
    first = await actor.do("supersede", old["id"], {"by": new["id"]})
    second = await actor.do("complete", new["id"])
    before = canonical(database_urls)
    problem = await actor.undo(old["id"], first["act_id"])
    assert problem.status_code == 409
    assert problem.json()["later"] == [{"id": second["act_id"], "kind": "complete", "memory_id": new["id"]}]
    assert canonical(database_urls) == before
    change = await actor.client.patch(f"/v1/memories/{new['id']}", json={"title": "Isles"}, headers=actor.headers)
    assert change.status_code == 200
    blocked = await actor.undo(new["id"], second["act_id"])
    assert blocked.status_code == 409
    assert "change at" in blocked.json()["detail"]


async def test_an_act_is_undone_once_and_a_change_never(actor: Actor) -> None:
    memory = await actor.remember("One.")
    done = await actor.do("archive", memory["id"])
    assert (await actor.undo(memory["id"], done["act_id"])).status_code == 200
    again = await actor.undo(memory["id"], done["act_id"])
    assert (again.status_code, "undone already" in again.text) == (409, True)
    undo = (await actor.history(memory["id"]))[0]
    assert undo["kind"] == "undo"
    refused = await actor.undo(memory["id"], undo["id"])
    assert (refused.status_code, "can't be undone" in refused.text) == (409, True)


async def test_the_equal_that_was_stored_since_keeps_its_key(actor: Actor, database_urls: DatabaseUrls) -> None:
    texts = {"text": "The rate is 3 %.", "label": "Attribute"}
    old = (await actor.client.post("/v1/memories", json=texts, headers=actor.headers)).json()["memory"]
    done = await actor.do("retract", old["id"])
    equal = await actor.client.post("/v1/memories", json=texts, headers=actor.headers)
    assert equal.json()["outcome"] == "created"
    assert (await actor.undo(old["id"], done["act_id"])).status_code == 200
    keys = {str(row["id"]): row["exact_key"] for row in rows_of(database_urls, "SELECT * FROM memories")}
    assert keys[old["id"]] is None
    assert keys[equal.json()["memory"]["id"]] is not None
    # The same by a step and by a change.
    await actor.do("archive", old["id"])
    assert (await actor.do("restore", old["id"]))["memory"]["status"] == "active"
    await actor.do("archive", old["id"])
    url = f"/v1/memories/{old['id']}"
    assert (await actor.client.patch(url, json={"status": "active"}, headers=actor.headers)).status_code == 200


async def test_a_change_that_makes_it_equal_is_no_error(actor: Actor, database_urls: DatabaseUrls) -> None:
    one, two = [
        (await actor.client.post("/v1/memories", json={"text": text, "label": "Skill"}, headers=actor.headers)).json()
        for text in ("Bakes bread.", "Repairs clocks.")
    ]
    for text, keyed in (("Bakes  bread.", False), ("Repairs old clocks.", False)):
        url = f"/v1/memories/{two['memory']['id']}"
        answer = await actor.client.patch(url, json={"text": text}, headers=actor.headers)
        assert answer.status_code == 200, answer.text
        (row,) = rows_of(database_urls, "SELECT exact_key FROM memories WHERE id = %s", two["memory"]["id"])
        assert (row["exact_key"] is not None) is keyed
    assert one["memory"]["id"] != two["memory"]["id"]


async def test_what_edges_gained_since_stays_with_them(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, far = await world(actor)
    edges = edges_of(database_urls)
    (about,) = [ident for ident, edge in edges.items() if edge["type"] == "ABOUT"]
    (kept,) = [ident for ident, edge in edges.items() if edge["target_memory_id"] == new["id"]]
    rows_of(database_urls, "UPDATE edges SET co_reference_count = 2 WHERE type = 'ENABLES' RETURNING 1")
    done = await actor.do("supersede", old["id"], {"by": new["id"]})
    for ident in (about, kept):
        raised = "UPDATE edges SET co_reference_count = co_reference_count + 5, confidence = confidence + 0.05"
        rows_of(database_urls, f"{raised} WHERE id = %s RETURNING 1", ident)
    assert (await actor.undo(old["id"], done["act_id"])).status_code == 200
    after = edges_of(database_urls)
    assert (after[about]["co_reference_count"], after[about]["source_memory_id"]) == (5, old["id"])
    assert after[about]["confidence"] == pytest.approx(0.35)
    assert (after[kept]["co_reference_count"], after[kept]["confidence"]) == (7, pytest.approx(0.25))
    assert sum(edge["co_reference_count"] for edge in after.values()) == 4 + 10
    assert after.keys() == edges.keys()
    assert far


async def test_edges_that_are_gone_stay_gone(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, far = await world(actor)
    edges = edges_of(database_urls)
    done = await actor.do("supersede", old["id"], {"by": new["id"]})
    (about,) = [ident for ident, edge in edges.items() if edge["type"] == "ABOUT"]
    await actor.client.delete(f"/v1/edges/{about}", headers=actor.headers)
    await actor.client.delete(f"/v1/memories/{far['id']}", headers=actor.headers)
    assert (await actor.undo(old["id"], done["act_id"])).status_code == 200
    assert [edge["type"] for edge in edges_of(database_urls).values()] == ["CONTRADICTS"]


async def test_an_edge_in_the_way_is_named(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, _ = await world(actor)
    (about,) = [edge for edge in edges_of(database_urls).values() if edge["type"] == "ABOUT"]
    done = await actor.do("supersede", old["id"], {"by": new["id"]})
    entity = {"entity": about["target_entity_id"]}
    again = await actor.tie("ABOUT", old["id"], entity)
    before = canonical(database_urls)
    problem = await actor.undo(old["id"], done["act_id"])
    assert (problem.status_code, problem.json()["edges"]) == (409, [again])
    assert canonical(database_urls) == before
    await actor.client.delete(f"/v1/edges/{again}", headers=actor.headers)
    assert (await actor.undo(old["id"], done["act_id"])).status_code == 200


async def test_who_may_not_see_the_other_memory_can_not_undo(actor: Actor, database_urls: DatabaseUrls) -> None:
    ann = actor.acting("ann")
    old = await ann.remember("One.", visibility="private")
    done = await ann.do("supersede", old["id"], {"text": "Two.", "visibility": "tenant"})
    new = done["memory"]["id"]
    before = canonical(database_urls)
    assert (await actor.undo(new, done["act_id"])).status_code == 404
    assert canonical(database_urls) == before
    gone = await ann.client.delete(f"/v1/memories/{new}", headers=ann.headers)
    assert gone.status_code == 200
    for reused in (False, True):
        if reused:
            await ann.remember("Another one.", id=new)
        refused = await ann.undo(old["id"], done["act_id"])
        assert (refused.status_code, "restore this one" in refused.text) == (409, True)
    restored = (await ann.do("restore", old["id"]))["memory"]
    assert (restored["status"], restored["superseded_by"]) == ("active", None)


async def test_a_superseded_memory_that_is_restored_holds_again(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, _ = await world(actor)
    await actor.do("supersede", old["id"], {"by": new["id"]})
    url = f"/v1/memories/{old['id']}"
    change = await actor.client.patch(url, json={"status": "active"}, headers=actor.headers)
    assert (change.status_code, "restore" in change.text) == (409, True)
    restored = (await actor.do("restore", old["id"]))["memory"]
    assert (restored["status"], restored["superseded_by"]) == ("active", None)
    assert restored["valid_to"] == old["valid_to"]
    assert (await actor.read(new["id"]))["supersedes"] is None
    assert not [edge for edge in edges_of(database_urls).values() if edge["type"] == "SUPERSEDES"]
