"""The history of a memory, and the steps of its life as calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.acting import Actor, canonical, rows_of
from tests.fixtures.postgres import DatabaseUrls

from memory_os.domain.labels import LABELS, STATUSES

pytestmark = pytest.mark.anyio

VERBS = {
    "complete": "completed",
    "abandon": "abandoned",
    "dispute": "disputed",
    "archive": "archived",
    "retract": "retracted",
    "restore": "active",
}


async def test_all_that_was_done_is_told_newest_first(actor: Actor) -> None:
    ann = actor.acting("ann")
    memory = await actor.remember("Learns Welsh.", label="Goal")
    change = {"title": "Welsh", "confidence": 0.5}
    await ann.client.patch(f"/v1/memories/{memory['id']}", json=change, headers=ann.headers)
    done = await actor.do("complete", memory["id"])
    undone = (await ann.undo(memory["id"], done["act_id"])).json()
    await actor.do("retract", memory["id"], {"reason": "It was Breton."})
    found = await actor.history(memory["id"])
    assert [entry["kind"] for entry in found] == ["retract", "undo", "complete", "change", "create"]
    retracted, undo, completed, changed, created = found
    assert retracted["detail"] == {"reason": "It was Breton."}
    assert undo["detail"] == {"act_id": done["act_id"], "kind": "complete"}
    assert (undo["id"], undo["who"]) == (undone["act_id"], {"role": "writer", "user_id": "ann"})
    assert (completed["id"], completed["undone_at"] is not None) == (done["act_id"], True)
    assert changed["detail"] == {
        "before": {"title": None, "confidence": 1.0},
        "after": {"title": "Welsh", "confidence": 0.5},
    }
    assert (created["at"], created["who"], created["id"]) == (
        memory["created_at"],
        {"role": None, "user_id": None},
        memory["id"],
    )


async def test_it_comes_in_pages(actor: Actor) -> None:
    memory = await actor.remember("One.")
    for _ in range(3):
        await actor.do("archive", memory["id"])
        await actor.do("restore", memory["id"])
    seen: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        url = f"/v1/memories/{memory['id']}/history"
        page = (await actor.client.get(url, params={"limit": 3, **cursor}, headers=actor.headers)).json()
        seen += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert [entry["kind"] for entry in seen] == ["restore", "archive"] * 3 + ["create"]
    assert seen == await actor.history(memory["id"])


async def test_both_memories_of_an_act_tell_of_it(actor: Actor) -> None:
    old = await actor.remember("One.")
    done = await actor.do("supersede", old["id"], {"text": "Two."})
    new = done["memory"]["id"]
    for ident in (old["id"], new):
        entry = (await actor.history(ident))[0]
        assert (entry["kind"], entry["memory_id"], entry["other_id"]) == ("supersede", old["id"], new)


async def test_it_names_no_memory_that_the_reader_may_not_see(actor: Actor) -> None:
    ann, bob = actor.acting("ann"), actor.acting("bob")
    old = await ann.remember("Saves for a boat.", visibility="private")
    new = (await ann.do("supersede", old["id"], {"text": "Has a boat.", "visibility": "tenant"}))["memory"]
    mine = await ann.remember("It is a ketch.", visibility="private")
    await ann.do("dispute", new["id"], {"against": mine["id"]})
    assert [entry["kind"] for entry in await ann.history(new["id"])] == ["dispute", "supersede", "create"]
    found = await bob.history(new["id"])
    assert [(entry["kind"], entry["other_id"]) for entry in found] == [("dispute", None), ("create", None)]
    assert old["id"] not in str(found)
    assert mine["id"] not in str(found)
    hidden = await bob.client.get(f"/v1/memories/{old['id']}/history", headers=bob.headers)
    assert hidden.status_code == 404


async def test_what_was_private_then_is_not_told_to_later_readers(actor: Actor) -> None:
    ann, bob = actor.acting("ann"), actor.acting("bob")
    memory = await ann.remember("Earns 50,000.", visibility="private")
    url = f"/v1/memories/{memory['id']}"
    for change in ({"text": "Earns enough."}, {"visibility": "tenant"}, {"title": "Pay"}):
        assert (await ann.client.patch(url, json=change, headers=ann.headers)).status_code == 200
    told = [entry["detail"].get("before") for entry in await bob.history(memory["id"])]
    assert told == [{"title": None}, None, None, None]
    told = [entry["detail"].get("before") for entry in await ann.history(memory["id"])]
    private = {"visibility": "private", "readers": {"users": [], "groups": []}}
    assert told == [{"title": None}, private, {"text": "Earns 50,000."}, None]


@pytest.mark.parametrize("label", LABELS)
async def test_each_label_takes_the_steps_that_it_has(actor: Actor, database_urls: DatabaseUrls, label: str) -> None:
    memory = await actor.remember("One.", label=label)
    row = LABELS[label]
    for status in row.statuses:
        for verb, leads_to in VERBS.items():
            rows_of(database_urls, "UPDATE memories SET status = %s WHERE id = %s RETURNING 1", status, memory["id"])
            answer = await actor.try_to(verb, memory["id"])
            if leads_to in row.transitions[status]:
                assert answer.status_code == 200, (status, verb, answer.text)
                assert answer.json()["memory"]["status"] == leads_to
            else:
                assert answer.status_code == 422, (status, verb, answer.text)
                problem = answer.json()
                assert problem["allowed"] == list(row.transitions[status])
                assert problem["errors"][0]["pointer"] == "/status"


async def test_a_step_needs_the_version_that_was_seen(actor: Actor) -> None:
    memory = await actor.remember("One.")
    for verb in ("archive", "dispute", "retract"):
        stale = await actor.try_to(verb, memory["id"], if_match='"9"')
        assert stale.status_code == 412
    done = await actor.try_to("archive", memory["id"], if_match='"1"')
    assert (done.status_code, done.headers["etag"]) == (200, '"2"')


async def test_a_repeated_step_is_taken_once(actor: Actor) -> None:
    memory = await actor.remember("One.")
    answers = [await actor.try_to("retract", memory["id"], {"reason": "No."}, idempotency_key="k") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(await actor.history(memory["id"])) == 2


@pytest.mark.parametrize(
    "reason", ["", " ", "\ud800", "x" * 2001, "a\x00b"], ids=["empty", "blank", "half", "long", "nul"]
)
async def test_a_reason_that_can_not_be_kept_is_refused(actor: Actor, reason: str) -> None:
    memory = await actor.remember("One.")
    content = b'{"reason": "\\ud800"}' if reason == "\ud800" else None
    for verb in ("retract", "dispute"):
        url = f"/v1/memories/{memory['id']}/{verb}"
        body: dict[str, Any] = {"content": content} if content else {"json": {"reason": reason}}
        answer = await actor.client.post(url, headers=actor.headers, **body)
        assert answer.status_code in (400, 422), answer.text
    assert (await actor.read(memory["id"]))["version"] == 1


@pytest.mark.parametrize("status", ["superseded", "disputed"])
async def test_a_change_of_status_names_the_call_that_does_more(
    actor: Actor, database_urls: DatabaseUrls, status: str
) -> None:
    memory = await actor.remember("One.")
    before = canonical(database_urls)
    change = await actor.client.patch(f"/v1/memories/{memory['id']}", json={"status": status}, headers=actor.headers)
    assert change.status_code == 422
    assert f".../{status.removesuffix('d')}" in change.text
    assert canonical(database_urls) == before


async def test_what_contradicts_each_other_is_disputed_together(actor: Actor) -> None:
    one, other, third = [await actor.remember(f"Opens at {hour}.") for hour in (8, 9, 10)]
    await actor.do("dispute", one["id"], {"against": other["id"]})
    again = await actor.try_to("dispute", other["id"], {"against": one["id"]})
    assert (again.status_code, "already" in again.text) == (409, True)
    await actor.do("dispute", one["id"], {"against": third["id"]})
    alone = await actor.try_to("dispute", one["id"])
    assert (alone.status_code, alone.json()["allowed"]) == (422, list(LABELS["Attribute"].transitions["disputed"]))
    itself = await actor.try_to("dispute", one["id"], {"against": one["id"]})
    assert itself.status_code == 422
    gone = await actor.remember("Opens at noon.")
    await actor.do("retract", gone["id"])
    refused = await actor.try_to("dispute", one["id"], {"against": gone["id"]})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/against")
    edges = (await actor.client.get("/v1/edges", params={"memory": one["id"]}, headers=actor.headers)).json()["items"]
    assert {(edge["type"], edge["to"]["memory"]) for edge in edges} == {
        ("CONTRADICTS", other["id"]),
        ("CONTRADICTS", third["id"]),
    }


def test_the_verbs_lead_to_statuses_that_there_are() -> None:
    assert set(VERBS.values()) < STATUSES.keys()
