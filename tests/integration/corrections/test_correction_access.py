"""Who may propose, decide, and see what; and whose memories a writer may correct."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from tests.fixtures.acting import canonical, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.integration.corrections.conftest import Desk, Json, pointers

pytestmark = pytest.mark.anyio

ROLES = ("reader", "writer", "reviewer", "operator", "admin")


@pytest.mark.parametrize("role", ROLES)
async def test_whoever_reads_may_propose_and_only_reviewers_decide(desk: Desk, role: str) -> None:
    old = await desk.actor.remember("One.")
    proposed = await desk.propose(old["id"], "replace_text", {"text": "Two."}, how={"role": role})
    other = await desk.propose(old["id"], "retract", how={"role": role})
    may = role in ("reviewer", "admin")
    applied = await desk.decide(proposed, "apply", {}, role=role)
    rejected = await desk.decide(other, "reject", {"reason": "No."}, role=role)
    assert (applied.status_code, rejected.status_code) == ((200, 200) if may else (403, 403))


async def test_what_the_proposer_may_not_see_is_answered_like_what_is_not_there(
    desk: Desk, database_urls: DatabaseUrls
) -> None:
    ann, bob = desk.actor.acting("ann"), {"user": "bob"}
    hidden = (await ann.remember("Hidden.", visibility="private"))["id"]
    seen = (await desk.actor.remember("Oven of Ada."))["id"]
    entity = await desk.actor.declare("Ada")
    body = {"name": "Eve", "entity_type": "person", "visibility": "private"}
    answer = await desk.send("POST", "/v1/memory/entities", body, role="writer", user="ann")
    secret_entity = answer.json()["entity"]["id"]
    source = await desk.source("Hidden.", user="ann", visibility="private")
    asked = await desk.send("POST", "/v1/retrieve", {"query": "oven of Ada"}, user="ann")
    retrieval = asked.json()["retrieval_id"]
    await desk.get(f"/v1/retrievals/{retrieval}", user="ann")
    before = canonical(database_urls)

    async def refused(target: str, kind: str, proposal: Json | None = None, **fields: Any) -> Json:
        found = await desk.try_to_propose(target, kind, proposal, how=bob, **fields)
        assert found.status_code == 422, found.text
        return {**found.json(), "instance": None}

    nobodys = str(uuid4())
    for mine in (hidden, nobodys):
        assert (await refused(mine, "retract"))["errors"][0]["pointer"] == "/target"
        assert (await refused(seen, "dispute", {"against": mine}))["errors"][0]["pointer"] == "/proposal/against"
    assert await refused(hidden, "retract") == await refused(nobodys, "retract")
    for there, field in ((source, "source_id"), (retrieval, "retrieval_id")):
        found = await refused(seen, "retract", **{field: there})
        assert found == await refused(seen, "retract", **{field: nobodys})
        assert found["errors"][0]["pointer"] == f"/{field}"
    for end in ("from", "to"):
        ends = {"from": entity, "to": entity}
        found = await refused(seen, "wrong_entity", {**ends, end: secret_entity})
        assert found == await refused(seen, "wrong_entity", {**ends, end: nobodys})
        assert found["errors"][0]["pointer"] == f"/proposal/{end}"
    assert canonical(database_urls) == before
    assert rows_of(database_urls, "SELECT 1 FROM corrections") == []


async def test_a_retrieval_must_have_met_the_memory(desk: Desk) -> None:
    old, other = await desk.actor.remember("The oven is hot."), await desk.actor.remember("Finch is a ship.")
    pack = await desk.ask("is the oven hot?")
    wrong = await desk.try_to_propose(other["id"], "retract", retrieval_id=pack["retrieval_id"])
    assert pointers(wrong) == ["/retrieval_id"]
    await desk.propose(old["id"], "retract", retrieval_id=pack["retrieval_id"])


async def test_corrections_of_what_is_hidden_are_hidden(desk: Desk) -> None:
    ann = desk.actor.acting("ann")
    hidden = await ann.remember("Hidden.", visibility="private")
    proposed = await desk.propose(hidden["id"], "replace_text", {"text": "Secret."}, how={"user": "ann"})
    assert (await desk.get("/v1/corrections", user="bob"))["items"] == []
    for path in ("", "/apply", "/reject"):
        method = "POST" if path else "GET"
        for ident in (proposed["id"], str(uuid4())):
            body = {"reason": "No."} if path else None
            url = f"/v1/corrections/{ident}{path}"
            answer = await desk.send(method, url, body, role="admin", user="bob")
            assert (answer.status_code, answer.json()["detail"]) == (404, "there is no such correction")
    for path in ("provenance", "retrievals"):
        answer = await desk.send("GET", f"/v1/memories/{hidden['id']}/{path}", user="bob", role="admin")
        assert answer.status_code == 404


async def test_a_private_memory_stays_its_users_when_a_reviewer_corrects_it(desk: Desk) -> None:
    ann = desk.actor.acting("ann")
    shared = {"visibility": "restricted", "readers": {"users": ["eve"], "groups": ["crew"]}}
    for readers, reviewer in ((shared, "eve"), ({"visibility": "private"}, "ann")):
        old = await ann.remember("Saves for a boat.", **readers)
        proposed = await desk.propose(old["id"], "replace_text", {"text": "Saves for a car."}, how={"user": "ann"})
        new = (await desk.apply(proposed, user=reviewer))["result"]
        for name in ("user_id", "visibility", "readers"):
            assert new[name] == old[name]
        assert (await ann.read(new["id"]))["supersedes"] == old["id"]
        assert (await desk.send("GET", f"/v1/memories/{new['id']}", user="bob")).status_code == 404


async def test_what_was_proposed_in_private_is_not_told_to_later_readers(desk: Desk) -> None:
    ann = desk.actor.acting("ann")
    old = await ann.remember("Earns 50,000.", visibility="private")
    proposed = await desk.propose(old["id"], "replace_text", {"text": "Earns 60,000."}, how={"user": "ann"})
    url, path = f"/v1/memories/{old['id']}", f"/v1/corrections/{proposed['id']}"
    for change in ({"text": "Earns enough."}, {"visibility": "tenant"}):
        answer = await desk.send("PATCH", url, change, role="writer", user="ann")
        assert answer.status_code == 200, answer.text
    for user, told in (("ann", True), ("bob", False)):
        found = await desk.get(path, user=user)
        assert (found["proposal"], found["reason"] is None) == (
            ({"text": "Earns 60,000."}, False) if told else ({}, True)
        )
        assert ("Earns" in str(await desk.get(f"{url}/provenance", user=user)).replace("Earns enough", "")) == told
        assert ("60,000" in str(await desk.get("/v1/corrections", user=user))) == told


async def test_ids_that_a_reader_may_not_see_are_left_out(desk: Desk) -> None:
    ann = desk.actor.acting("ann")
    old = await desk.actor.remember("Finch is green.")
    against = await ann.remember("Finch is red.", visibility="private")
    source = await desk.source("Finch is red.", user="ann", visibility="private")
    pack = (await desk.send("POST", "/v1/retrieve", {"query": "is Finch green?"}, user="ann")).json()
    met = {"source_id": source, "retrieval_id": pack["retrieval_id"]}
    proposed = await desk.propose(old["id"], "dispute", {"against": against["id"]}, how={"user": "ann"}, **met)
    assert {**met, "proposal": {"against": against["id"]}}.items() <= proposed.items()
    seen = await desk.get(f"/v1/corrections/{proposed['id']}", user="bob")
    assert (seen["proposal"], seen["source_id"], seen["retrieval_id"]) == ({}, None, None)
    refused = await desk.decide(proposed, "apply", user="bob")
    assert refused.status_code == 409
    for told in (refused.text, str(await desk.get(f"/v1/memories/{old['id']}/provenance", user="bob"))):
        for ident in (against["id"], *met.values()):
            assert ident not in told


async def test_a_source_with_fewer_readers_is_not_told_by_accident(desk: Desk, database_urls: DatabaseUrls) -> None:
    old = await desk.actor.remember("Finch is green.")
    source = await desk.source("Finch is red.", user="ann", visibility="private")
    how = {"user": "ann"}
    proposed = await desk.propose(old["id"], "replace_text", {"text": "Finch is red."}, source_id=source, how=how)
    before = canonical(database_urls)
    assert (await desk.decide(proposed, "apply", {"widen": True}, user="bob")).status_code == 409
    narrow = await desk.decide(proposed, "apply", **how)
    assert (narrow.status_code, "widen" in narrow.text) == (409, True)
    assert canonical(database_urls) == before
    new = (await desk.apply(proposed, {"widen": True}, **how))["result"]
    assert rows_of(database_urls, "SELECT target_id FROM audit_log WHERE action = 'memory.widen'") == [
        {"target_id": new["id"]}
    ]
    assert (await desk.get(f"/v1/memories/{new['id']}/provenance", user="bob"))["sources"] == []


async def test_the_name_of_an_entity_with_fewer_readers_is_not_told_by_accident(desk: Desk) -> None:
    old = await desk.actor.remember("Ada leads Finch.")
    ada = await desk.actor.declare("Ada")
    body = {"name": "Eve", "entity_type": "person", "visibility": "private"}
    eve = (await desk.send("POST", "/v1/memory/entities", body, role="writer", user="ann")).json()["entity"]["id"]
    how = {"user": "ann"}
    proposed = await desk.propose(old["id"], "wrong_entity", {"from": ada, "to": eve}, how=how)
    assert (await desk.get(f"/v1/corrections/{proposed['id']}", user="bob"))["proposal"] == {"from": ada}
    assert (await desk.decide(proposed, "apply", user="bob")).status_code == 409
    assert (await desk.decide(proposed, "apply", **how)).status_code == 409
    assert (await desk.apply(proposed, {"widen": True}, **how))["result"]["text"] == "Eve leads Finch."


async def test_uses_are_told_to_who_may_know_of_them(desk: Desk) -> None:
    old = await desk.actor.remember("The oven is hot.")
    packs = {}
    for user in ("ann", "bob"):
        answer = await desk.send("POST", "/v1/retrieve", {"query": f"oven of {user}"}, user=user)
        packs[user] = answer.json()["retrieval_id"]
        wrong = {"records": [{"id": old["id"], "verdict": "wrong"}]}
        await desk.send("POST", f"/v1/retrievals/{packs[user]}/feedback", wrong, user=user)
    both = [packs["bob"], packs["ann"]]
    for role, user, ids, asked in (
        ("reader", "ann", [packs["ann"]], ["oven of ann"]),
        ("writer", "eve", [], []),
        ("reader", None, [], []),
        ("reviewer", "ann", both, [None, "oven of ann"]),
        ("reviewer", None, both, [None, None]),
        ("operator", None, both, ["oven of bob", "oven of ann"]),
        ("admin", "eve", both, ["oven of bob", "oven of ann"]),
    ):
        uses = (await desk.get(f"/v1/memories/{old['id']}/retrievals", role=role, user=user))["items"]
        assert [use["id"] for use in uses] == ids, (role, user)
        assert [use["query"] for use in uses] == asked
        assert [use["user_id"] for use in uses] == [None if one is None else one.split()[-1] for one in asked]
        assert {(use["in_pack"], use["position"], use["verdict"]) for use in uses} <= {(True, 0, "wrong")}
    page = await desk.get(f"/v1/memories/{old['id']}/retrievals", role="admin", limit=1)
    rest = await desk.get(f"/v1/memories/{old['id']}/retrievals", role="admin", limit=1, cursor=page["next_cursor"])
    assert [use["id"] for use in page["items"] + rest["items"]] == both


CHANGES: list[Json] = [
    {"text": "Two."},
    {"label": "Goal"},
    {"occurred_at": "2026-01-01T00:00:00Z"},
    {"valid_from": "2026-01-01T00:00:00Z"},
    {"valid_to": "2026-01-01T00:00:00Z"},
    {"subject": "Ada"},
    {"property": "city"},
    {"status": "archived"},
    {"confidence": 0.5},
    {"visibility": "restricted", "readers": {"users": ["bob"], "groups": []}},
]


async def test_writers_correct_their_own_and_propose_for_others(desk: Desk, database_urls: DatabaseUrls) -> None:
    ann = desk.actor.acting("ann")
    before: Any = None
    for role, user, may in (
        ("writer", "bob", False),
        ("writer", None, False),
        ("writer", "ann", True),
        ("reviewer", "bob", True),
    ):
        who = {"role": role, "user": user}
        memories = [await ann.remember(f"{n}.", label="Goal" if n < 2 else "Attribute") for n in range(16)]
        urls = [f"/v1/memories/{memory['id']}" for memory in memories]
        archived = await ann.do("archive", memories[4]["id"])
        before = canonical(database_urls)
        answers = [await desk.send("POST", f"{urls[0]}/complete", **who)]
        answers.append(await desk.send("POST", f"{urls[1]}/abandon", **who))
        answers.append(await desk.send("POST", f"{urls[2]}/archive", **who))
        answers.append(await desk.send("POST", f"{urls[3]}/retract", **who))
        undo = f"{urls[4]}/acts/{archived['act_id']}/undo"
        answers += [await desk.send("POST", path, **who) for path in (undo, f"{urls[2]}/restore")]
        answers.append(await desk.send("POST", f"{urls[5]}/supersede", {"text": "Three."}, **who))
        for change, url in zip(CHANGES, urls[6:], strict=True):
            answers.append(await desk.send("PATCH", url, change, **who))
        answers.append(await desk.send("DELETE", urls[3], **who))
        allowed = {200, 201} if may else {403}
        assert {answer.status_code for answer in answers} <= allowed, [answer.text for answer in answers]
        if not may:
            assert all("/v1/corrections" in answer.text for answer in answers)
            assert canonical(database_urls) == before


async def test_what_changes_no_claim_is_open_to_all_writers(desk: Desk) -> None:
    old = await desk.actor.acting("ann").remember("One.")
    url, bob = f"/v1/memories/{old['id']}", {"role": "writer", "user": "bob"}
    change = {"title": "A", "tags": ["a"], "metadata": {"a": 1}, "text": "One."}  # the text is as it was
    assert (await desk.send("PATCH", url, change, **bob)).status_code == 200
    disputed = await desk.send("POST", f"{url}/dispute", {"reason": "No."}, **bob)
    assert disputed.status_code == 200
    undone = await desk.send("POST", f"{url}/acts/{disputed.json()['act_id']}/undo", **bob)
    assert undone.status_code == 200
    nobodys = await desk.actor.remember("Two.")
    assert (await desk.send("PATCH", f"/v1/memories/{nobodys['id']}", {"text": "3."}, **bob)).status_code == 200


async def test_texts_of_the_audit_log_have_the_readers_of_the_memory(desk: Desk) -> None:
    old = await desk.actor.acting("ann").remember("Earns 50,000.", visibility="private")
    proposed = await desk.propose(old["id"], "replace_text", {"text": "Earns 60,000."}, how={"user": "ann"})
    await desk.decide(proposed, "reject", {"reason": "No, 70,000."}, user="ann")
    for user, told in (("ann", True), ("bob", False)):
        found = str((await desk.get("/v1/audit", role="admin", user=user, target_type="correction"))["items"])
        assert ("correction.propose" in found, "correction.reject" in found) == (True, True)
        assert [word in found for word in ("60,000", "It was said", "70,000")] == [told] * 3
