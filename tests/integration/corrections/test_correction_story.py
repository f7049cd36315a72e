"""The whole story of a wrong memory: met in a pack, proposed, corrected, told, and taken back."""

from __future__ import annotations

import pytest
from tests.fixtures.acting import canonical
from tests.fixtures.postgres import DatabaseUrls
from tests.integration.corrections.conftest import Desk

pytestmark = pytest.mark.anyio

WRONG, RIGHT = "The launch of Finch is on Monday.", "The launch of Finch is on Thursday."
QUESTION = "when is the launch of Finch?"
THEN = "2026-02-01T00:00:00Z"
HISTORY = {"include": ["history"]}


async def test_a_wrong_memory_is_found_by_its_retrieval_and_corrected_for_all_times(desk: Desk) -> None:
    old = await desk.actor.remember(WRONG, valid_from="2026-01-01T00:00:00Z", tags=["launch"], metadata={"a": 1})
    source = await desk.source("Dear all, the launch of Finch is on Thursday. Ada")
    pack = await desk.ask(QUESTION)
    assert [item["id"] for item in pack["items"] if item["type"] == "memory"] == [old["id"]]

    explained = await desk.get(f"/v1/retrievals/{pack['retrieval_id']}")
    assert old["id"] in [item["id"] for item in explained["items"]]
    uses = (await desk.get(f"/v1/memories/{old['id']}/retrievals"))["items"]
    assert [(use["id"], use["in_pack"], use["query"]) for use in uses] == [(pack["retrieval_id"], True, QUESTION)]
    met = {"source_id": source, "retrieval_id": pack["retrieval_id"]}
    proposed = await desk.propose(old["id"], "replace_text", {"text": RIGHT}, **met)
    assert (proposed["status"], proposed["source_id"]) == ("open", source)
    assert proposed["retrieval_id"] == pack["retrieval_id"]
    assert await desk.texts(QUESTION) == [WRONG]

    applied = await desk.apply(proposed, {"reason": "The letter says so."})
    new = applied["result"]
    assert applied["correction"]["status"] == "applied"
    assert (applied["memory"]["status"], applied["memory"]["superseded_by"]) == ("superseded", new["id"])
    for name in ("label", "valid_from", "valid_to", "tags", "metadata", "user_id", "visibility", "subject"):
        assert new[name] == old[name], name
    assert await desk.texts(QUESTION) == [RIGHT]
    for moment in (THEN, "2026-01-01T00:00:00Z", "2025-12-31T00:00:00Z"):
        found = await desk.texts(QUESTION, as_of=moment)
        assert found == ([] if moment.startswith("2025") else [RIGHT]), moment
    assert await desk.texts(QUESTION, **HISTORY) == [WRONG, RIGHT]
    assert await desk.texts(QUESTION, as_of=THEN, **HISTORY) == [WRONG, RIGHT]


async def test_who_when_why_and_the_source_are_told_of_both(desk: Desk) -> None:
    old = await desk.actor.remember(WRONG, origin="minutes")
    source = await desk.source("The launch of Finch is on Thursday.")
    proposed = await desk.propose(old["id"], "replace_text", {"text": RIGHT}, source_id=source, how={"user": "bob"})
    how = {"user": "eve"}
    applied = await desk.apply(proposed, {"reason": "The letter says so."}, **how)
    new = applied["result"]

    told = await desk.get(f"/v1/memories/{old['id']}/provenance")
    assert [event["kind"] for event in told["events"]] == ["created", "proposed", "superseded", "corrected"]
    _, proposal, act, decision = told["events"]
    assert proposal["who"] == {"role": "reader", "user_id": "bob"}
    assert proposal["detail"] == {
        "kind": "replace_text",
        "reason": "It was said otherwise.",
        "proposal": {"text": RIGHT},
    }
    assert (proposal["source_id"], decision["source_id"]) == (source, source)
    assert decision["who"] == {"role": "reviewer", "user_id": "eve"}
    assert decision["detail"]["reason"] == "The letter says so."
    assert (act["act_id"], act["other_id"], act["detail"]["correction"]) == (
        applied["act_id"],
        new["id"],
        proposed["id"],
    )
    assert told["recorded"]["origin"] == "minutes"
    assert told["recorded"]["role"] == "writer"
    assert told["recorded"]["at"] == old["created_at"]
    assert [link["id"] for link in told["chain"]] == [old["id"], new["id"]]
    assert told["chain"][0]["valid_from"] == told["chain"][0]["valid_to"]
    assert told["truncated"] is False

    told = await desk.get(f"/v1/memories/{new['id']}/provenance")
    kinds = [event["kind"] for event in told["events"]]
    assert kinds == ["proposed", "created", "evidence", "supersedes", "corrected"]
    assert [(piece["source"]["id"], piece["support"]) for piece in told["sources"]] == [(source, "states")]
    assert [link["id"] for link in told["chain"]] == [old["id"], new["id"]]
    for memory in (old, new):
        entry = (await desk.actor.history(memory["id"]))[0]
        assert (entry["kind"], entry["detail"]["correction"]) == ("supersede", proposed["id"])


async def test_an_undo_restores_all_of_the_old_one_and_takes_the_new_one_out(
    desk: Desk, database_urls: DatabaseUrls
) -> None:
    old = await desk.actor.remember(WRONG, valid_to="2030-01-01T00:00:00Z")
    far = await desk.actor.remember("Finch is a ship.")
    await desk.actor.tie("ABOUT", old["id"], far["id"], confidence=0.7)
    before = canonical(database_urls)
    applied = await desk.correct(old["id"], "replace_text", {"text": RIGHT})
    new = applied["result"]["id"]
    await desk.undo(old["id"], applied["act_id"])
    after = canonical(database_urls)
    mine = [row for row in after["memories"] if str(row["id"]) != new]
    assert (mine, after["edges"]) == (before["memories"], before["edges"])
    assert (await desk.actor.read(new))["status"] == "retracted"
    assert await desk.texts(QUESTION) == [WRONG]
    correction = await desk.get(f"/v1/corrections/{applied['correction']['id']}")
    assert correction["status"] == "applied"
    told = await desk.get(f"/v1/memories/{old['id']}/provenance")
    assert [event["kind"] for event in told["events"]][-3:] == ["superseded", "corrected", "undone"]
    assert told["events"][-3]["undone_at"] is not None
    assert [link["id"] for link in told["chain"]] == [old["id"]]


async def test_one_that_is_restored_holds_with_its_window_even_if_the_other_is_gone(desk: Desk) -> None:
    for gone in (False, True):
        old = await desk.actor.remember(WRONG, valid_to="2030-01-01T00:00:00Z")
        new = (await desk.correct(old["id"], "replace_text", {"text": RIGHT}))["result"]
        if gone:
            await desk.send("DELETE", f"/v1/memories/{new['id']}", role="writer")
        restored = (await desk.actor.do("restore", old["id"]))["memory"]
        assert (restored["status"], restored["valid_from"], restored["valid_to"]) == ("active", None, old["valid_to"])


async def test_what_was_corrected_is_no_value_of_its_property_any_more(desk: Desk) -> None:
    named = {"subject": "Ada", "property": "city", "dedup": "gate", "on_conflict": "supersede"}
    old = await desk.actor.remember("Ada lives in Oslo.", valid_from="2024-01-01T00:00:00Z", **named)
    new = (await desk.correct(old["id"], "replace_text", {"text": "Ada lives in Bergen."}))["result"]
    late = await desk.actor.remember("Ada lives in Turku.", valid_from="2023-01-01T00:00:00Z", **named)
    late = await desk.actor.read(late["id"])
    assert (late["superseded_by"], late["valid_to"]) == (new["id"], new["valid_from"])
    newest = await desk.actor.remember("Ada lives in Narvik.", valid_from="2025-01-01T00:00:00Z", **named)
    assert (await desk.actor.read(new["id"]))["superseded_by"] == newest["id"]
    kept = await desk.actor.read(old["id"])
    assert (kept["superseded_by"], kept["valid_from"]) == (new["id"], kept["valid_to"])
    told = await desk.get(f"/v1/memories/{new['id']}/provenance")
    assert {link["id"] for link in told["chain"]} == {old["id"], late["id"], new["id"], newest["id"]}
    assert [link["id"] for link in told["chain"]][2:] == [new["id"], newest["id"]]
