"""The story of a memory: evidence with its words, derivations, acts, and a chain with hidden members."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.corrections.conftest import Desk, Json

pytestmark = pytest.mark.anyio


async def story(desk: Desk, memory: str, **how: Any) -> Json:
    return await desk.get(f"/v1/memories/{memory}/provenance", **how)


async def test_a_memory_without_a_source_has_a_story_all_the_same(desk: Desk) -> None:
    memory = await desk.actor.acting("ann").remember("One.", origin="chat")
    told = await story(desk, memory["id"])
    assert told["memory"] == memory
    recorded = told["recorded"]
    assert (recorded["user_id"], recorded["role"], recorded["origin"]) == ("ann", "writer", "chat")
    assert recorded["token_id"] is not None
    assert [(event["kind"], event["who"]["user_id"]) for event in told["events"]] == [("created", "ann")]
    assert [link["id"] for link in told["chain"]] == [memory["id"]]
    assert told["sources"] == told["derived_from"] == told["derivations"] == []


async def test_evidence_comes_with_its_words_and_what_was_withdrawn_stays(desk: Desk) -> None:
    memory = await desk.actor.remember("Finch sails on Thursday.")
    source = await desk.source("Dear all, Finch sails on Thursday. Ada", title="Letter of Ada")
    path = f"/v1/memories/{memory['id']}/evidence"
    body = {"source_id": source, "support": "states", "quote": "Finch sails on Thursday."}
    answer = await desk.send("POST", path, body, role="writer", user="ann")
    assert answer.status_code == 201, answer.text
    evidence = answer.json()["evidence"]
    (piece,) = (await story(desk, memory["id"]))["sources"]
    assert (piece["quote"], piece["source"]["title"], piece["support"]) == (body["quote"], "Letter of Ada", "states")
    withdrawn = await desk.send("DELETE", f"{path}/{evidence['id']}", role="writer")
    assert withdrawn.is_success, withdrawn.text
    told = await story(desk, memory["id"])
    kinds = [(event["kind"], event.get("evidence_id")) for event in told["events"]]
    assert kinds == [("created", None), ("evidence", evidence["id"]), ("evidence_withdrawn", evidence["id"])]
    assert told["events"][1]["who"]["user_id"] == "ann"
    assert told["events"][2]["detail"] == {"because": "withdrawn"}


async def test_evidence_from_a_hidden_source_is_left_out(desk: Desk) -> None:
    memory = await desk.actor.remember("Finch sails.")
    source = await desk.source("Finch sails.", user="ann", visibility="private")
    body = {"source_id": source, "support": "states", "widen": True}
    path = f"/v1/memories/{memory['id']}/evidence"
    assert (await desk.send("POST", path, body, role="writer", user="ann")).status_code == 201
    for user, wanted in (("ann", 1), ("bob", 0)):
        told = await story(desk, memory["id"], user=user)
        assert len(told["sources"]) == wanted
        assert [event["kind"] for event in told["events"]] == ["created", *["evidence"] * wanted]
        assert (source in str(told)) == bool(wanted)


async def test_acts_are_told_in_order_under_their_names(desk: Desk) -> None:
    memory = await desk.actor.remember("Learns Welsh.", label="Goal")
    await desk.send("PATCH", f"/v1/memories/{memory['id']}", {"title": "Welsh"}, role="writer")
    for verb in ("complete", "restore", "archive", "restore", "dispute", "retract"):
        done = await desk.actor.do(verb, memory["id"])
    await desk.actor.undo(memory["id"], done["act_id"])
    told = (await story(desk, memory["id"]))["events"]
    assert [event["kind"] for event in told] == [
        *("created", "changed", "completed", "restored", "archived", "restored", "disputed", "retracted", "undone")
    ]
    assert told[1]["detail"]["after"] == {"title": "Welsh"}
    assert [event["kind"] for event in told if "undone_at" in event] == ["retracted"]


async def test_derivations_are_told_from_both_ends_to_who_sees_both(desk: Desk) -> None:
    ann = desk.actor.acting("ann")
    base = await desk.actor.remember("Bob sails every day.")
    insight = await desk.actor.remember("Bob is a sailor.", label="Insight")
    secret = await ann.remember("Bob is away.", visibility="private")
    edge = await desk.actor.tie("EXTRACTED_FROM", insight["id"], base["id"], confidence=0.8)
    await ann.tie("EXTRACTED_FROM", secret["id"], base["id"])
    (found,) = (await story(desk, insight["id"]))["derived_from"]
    assert (found["type"], found["id"], found["edge_id"], found["confidence"]) == ("memory", base["id"], edge, 0.8)
    told = await story(desk, base["id"])
    assert [one["id"] for one in told["derivations"]] == [insight["id"]]
    assert [(event["kind"], event.get("other_id")) for event in told["events"]][1:] == [("derivation", insight["id"])]
    assert secret["id"] not in str(told)
    mine = await story(desk, base["id"], user="ann")
    assert [one["id"] for one in mine["derivations"]] == [insight["id"], secret["id"]]


async def test_a_hidden_member_does_not_hide_those_behind_it(desk: Desk) -> None:
    ann = desk.actor.acting("ann")
    chain = [await ann.remember("Lives in Oslo.")]
    for text in ("Lives in Bergen.", "Lives in Turku.", "Lives in Narvik."):
        done = await ann.do("supersede", chain[-1]["id"], {"text": text})
        chain.append(done["memory"])
    hidden = chain[1]["id"]
    answer = await desk.send("PATCH", f"/v1/memories/{hidden}", {"visibility": "private"}, role="writer", user="ann")
    assert answer.status_code == 200, answer.text
    ids = [memory["id"] for memory in chain]
    for place in (0, 2, 3):
        told = await story(desk, ids[place], user="ann")
        assert [link["id"] for link in told["chain"]] == ids
        assert [link["status"] for link in told["chain"]] == ["superseded"] * 3 + ["active"]
        told = await story(desk, ids[place], user="bob")
        assert [link["id"] for link in told["chain"]] == [ids[0], *ids[2:]]
        assert hidden not in str(told)
