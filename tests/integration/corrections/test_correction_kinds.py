"""Each kind of correction, what it is refused for, and what it does."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from tests.fixtures.acting import canonical, edges_of, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.worker import drain
from tests.integration.corrections.conftest import Desk, Json, pointers

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

TEXT = "The rent is paid from Chase Checking."


async def test_a_label_is_corrected_by_another_memory(desk: Desk) -> None:
    old = await desk.actor.remember("Bob wants to sail.", label="Preference")
    source = await desk.source("Bob wants to sail.")
    evidence = {"source_id": source, "support": "supports"}
    await desk.send("POST", f"/v1/memories/{old['id']}/evidence", evidence, role="writer")
    applied = await desk.correct(old["id"], "wrong_label", {"label": "Goal"})
    assert (applied["result"]["label"], applied["result"]["layer"]) == ("Goal", "direction")
    assert applied["result"]["text"] == old["text"]
    told = await desk.get(f"/v1/memories/{applied['result']['id']}/provenance")
    assert [piece["support"] for piece in told["sources"]] == ["supports"]  # the text is the same


async def test_what_was_done_stays_done(desk: Desk) -> None:
    old = await desk.actor.remember("Bob learns Welsh.", label="Goal")
    await desk.actor.do("complete", old["id"])
    applied = await desk.correct(old["id"], "replace_text", {"text": "Bob learns Breton."})
    assert applied["result"]["status"] == "completed"
    applied = await desk.correct(applied["result"]["id"], "wrong_label", {"label": "Skill"})
    assert applied["result"]["status"] == "active"  # a skill can't be completed


async def test_times_are_corrected_and_the_others_stay(desk: Desk) -> None:
    times = {"valid_from": "2026-01-01T00:00:00Z", "valid_to": "2026-03-01T00:00:00Z"}
    old = await desk.actor.remember("Oslo is the base.", occurred_at="2026-01-05T00:00:00Z", **times)
    moved = {"valid_from": "2026-02-01T01:00:00+01:00", "occurred_at": None}
    new = (await desk.correct(old["id"], "wrong_date", moved))["result"]
    assert (new["valid_from"], new["valid_to"]) == ("2026-02-01T00:00:00Z", times["valid_to"])
    assert new["occurred_at"] is None
    assert await desk.texts("what is the base?", as_of="2026-01-15T00:00:00Z") == []
    assert await desk.texts("what is the base?", as_of="2026-02-15T00:00:00Z") == ["Oslo is the base."]


@pytest.mark.parametrize("kind", ["replace_text", "wrong_date", "wrong_label"])
async def test_what_happened_is_retracted_and_told_anew(desk: Desk, kind: str, database_urls: DatabaseUrls) -> None:
    old = await desk.actor.remember("Ada called Finch.", label="Event", occurred_at="2026-01-01T00:00:00Z")
    far = await desk.actor.remember("Finch is a ship.")
    await desk.actor.tie("ABOUT", old["id"], far["id"])
    before = canonical(database_urls)
    proposals: dict[str, Json] = {
        "replace_text": {"text": "Bob called Finch."},
        "wrong_date": {"occurred_at": "2026-01-02T00:00:00Z"},
        "wrong_label": {"label": "Behavior"},
    }
    applied = await desk.correct(old["id"], kind, proposals[kind])
    new = applied["result"]
    assert (applied["memory"]["status"], applied["memory"]["superseded_by"]) == ("retracted", None)
    assert (new["status"], applied["correction"]["result_id"]) == ("active", new["id"])
    edges = edges_of(database_urls).values()
    assert {(edge["type"], edge["source_memory_id"]) for edge in edges} == {("ABOUT", new["id"])}
    for memory in (old, new):
        told = await desk.get(f"/v1/memories/{memory['id']}/provenance")
        assert [link["id"] for link in told["chain"]] == [old["id"], new["id"]]
    await desk.undo(old["id"], applied["act_id"])
    after = canonical(database_urls)
    assert [row for row in after["memories"] if str(row["id"]) != new["id"]] == before["memories"]
    assert after["edges"] == before["edges"]
    told = await desk.get(f"/v1/memories/{old['id']}/provenance")
    assert [link["id"] for link in told["chain"]] == [old["id"]]


async def test_a_dispute_is_what_it_is_elsewhere(desk: Desk) -> None:
    one, other = [await desk.actor.remember(f"Finch opens at {hour}.") for hour in (8, 9)]
    applied = await desk.correct(one["id"], "dispute", {"against": other["id"]})
    assert (applied["memory"]["status"], applied["result"]) == ("disputed", None)
    assert (await desk.actor.read(other["id"]))["status"] == "disputed"
    entry = (await desk.actor.history(one["id"]))[0]
    assert entry["detail"] == {"reason": "It was said otherwise.", "correction": applied["correction"]["id"]}
    again = await desk.try_to_propose(one["id"], "dispute")
    assert again.status_code == 409
    twice = await desk.propose(one["id"], "dispute", {"against": other["id"]})
    assert (await desk.decide(twice, "apply")).status_code == 409


async def test_a_retraction_is_what_it_is_elsewhere(desk: Desk) -> None:
    old = await desk.actor.remember("Finch is green.")
    applied = await desk.correct(old["id"], "retract")
    assert (applied["memory"]["status"], applied["result"]) == ("retracted", None)
    assert await desk.texts("is Finch green?") == []
    await desk.undo(old["id"], applied["act_id"])
    assert (await desk.actor.read(old["id"]))["status"] == "active"


@pytest.fixture
async def accounts(desk: Desk) -> dict[str, str]:
    """Two entities with similar names, by name."""
    return {name: await desk.actor.declare(name) for name in ("Chase Checking", "Chase Savings", "Chase")}


@pytest.mark.parametrize("extracted", [True, False], ids=["extracted", "not yet extracted"])
async def test_the_other_entity_is_named_instead(
    desk: Desk, accounts: dict[str, str], worker: WorkerContext, database_urls: DatabaseUrls, extracted: bool
) -> None:
    text = "Chase Checking (chase CHECKING, not Chase) pays the rent; Chase Checkings and Purchase Checking do not."
    named = {"subject": "chase checking", "property": "use"}
    old = await desk.actor.remember(text, title="Rent from Chase Checking", **named)
    about = await desk.actor.tie("ABOUT", old["id"], {"entity": accounts["Chase Checking"]}, confidence=0.9)
    also = await desk.actor.tie("PART_OF", old["id"], {"entity": accounts["Chase"]})
    link = {"layer": "memory", "target_id": old["id"], "relationship": "pays", "confidence": 0.5}
    path = f"/v1/memory/entities/{accounts['Chase Checking']}/links"
    linked = (await desk.send("POST", path, link, role="writer")).json()["link"]
    if extracted:
        await drain(worker)
    before = canonical(database_urls)
    ends = {"from": accounts["Chase Checking"], "to": accounts["Chase Savings"]}
    applied = await desk.correct(old["id"], "wrong_entity", ends)
    new = applied["result"]
    assert new["text"] == (
        "Chase Savings (Chase Savings, not Chase) pays the rent; Chase Checkings and Purchase Checking do not."
    )
    assert new["title"] == "Rent from Chase Savings"
    assert (new["subject"], new["property"]) == ("Chase Savings", "use")
    edges = edges_of(database_urls)
    assert about not in edges
    assert (edges[also]["source_memory_id"], edges[also]["target_entity_id"]) == (new["id"], accounts["Chase"])
    found = [edge for edge in edges.values() if edge["type"] == "ABOUT"]
    assert [(edge["source_memory_id"], edge["target_entity_id"], edge["confidence"]) for edge in found] == [
        (new["id"], accounts["Chase Savings"], 0.9)
    ]
    assert await _links(desk, accounts["Chase Savings"]) == [(new["id"], "pays", 0.5, None, None)]
    former = await _links(desk, accounts["Chase Checking"])
    assert [link[:3] for link in former] == [(old["id"], "pays", 0.5)]
    assert former[0][3] == former[0][4] == linked["created_at"]

    await desk.undo(old["id"], applied["act_id"])
    after = canonical(database_urls)
    for table in ("edges", "entity_links"):
        assert after[table] == before[table]
    assert [row for row in after["memories"] if str(row["id"]) != new["id"]] == before["memories"]


async def _links(desk: Desk, entity: str) -> list[tuple[Any, ...]]:
    items = (await desk.get(f"/v1/memory/entities/{entity}/links"))["items"]
    return [
        tuple(item[name] for name in ("target_id", "relationship", "confidence", "valid_from", "valid_to"))
        for item in items
    ]


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "derived"])
async def test_the_other_entity_is_named_in_the_title_alone(
    desk: Desk, worker: WorkerContext, database_urls: DatabaseUrls, declared: bool
) -> None:
    if declared:
        await desk.actor.declare("Inception")
    meant = await desk.actor.declare("Interstellar")
    old = await desk.actor.remember("It won a prize.", title="Inception (film)")
    await drain(worker)
    (mention,) = rows_of(database_urls, "SELECT entity_id, spans FROM mentions")
    assert mention["spans"] == []
    ends = {"from": str(mention["entity_id"]), "to": meant}
    new = (await desk.correct(old["id"], "wrong_entity", ends))["result"]
    assert (new["title"], new["text"]) == ("Interstellar (film)", "It won a prize.")


async def test_a_text_that_is_given_is_taken_as_it_is(desk: Desk, accounts: dict[str, str]) -> None:
    old = await desk.actor.remember(TEXT)
    ends = {"from": accounts["Chase Checking"], "to": accounts["Chase Savings"], "text": "Rent comes from savings."}
    assert (await desk.correct(old["id"], "wrong_entity", ends))["result"]["text"] == "Rent comes from savings."


async def test_a_tie_alone_is_enough_and_leaves_the_text(
    desk: Desk, accounts: dict[str, str], database_urls: DatabaseUrls
) -> None:
    old = await desk.actor.remember("The rent is paid monthly.")
    await desk.actor.tie("ABOUT", {"entity": accounts["Chase Checking"]}, old["id"])
    ends = {"from": accounts["Chase Checking"], "to": accounts["Chase Savings"]}
    new = (await desk.correct(old["id"], "wrong_entity", ends))["result"]
    assert new["text"] == old["text"]
    ties = {(edge["source_entity_id"], edge["target_memory_id"]) for edge in edges_of(database_urls).values()}
    assert (accounts["Chase Savings"], new["id"]) in ties
    assert accounts["Chase Checking"] not in {source for source, _ in ties}


async def test_one_that_has_nothing_to_do_with_the_entity_is_refused(desk: Desk, accounts: dict[str, str]) -> None:
    old = await desk.actor.remember(TEXT)
    swapped = {"from": accounts["Chase Savings"], "to": accounts["Chase Checking"]}
    assert pointers(await desk.try_to_propose(old["id"], "wrong_entity", swapped)) == ["/proposal/from"]
    within = {"from": accounts["Chase"], "to": accounts["Chase Savings"]}  # only as part of a longer name
    assert pointers(await desk.try_to_propose(old["id"], "wrong_entity", within)) == ["/proposal/from"]
    ends = {"from": accounts["Chase Checking"], "to": accounts["Chase Savings"]}
    proposed = await desk.propose(old["id"], "wrong_entity", ends)
    change = {"text": "The rent is paid from savings."}
    await desk.send("PATCH", f"/v1/memories/{old['id']}", change, role="writer")
    refused = await desk.decide(proposed, "apply")
    assert (refused.status_code, "nothing to do" in refused.text) == (409, True)
    assert (await desk.get(f"/v1/corrections/{proposed['id']}"))["status"] == "open"


REFUSALS: list[tuple[str, Json, list[str]]] = [
    ("replace_text", {}, ["/proposal/text"]),
    ("replace_text", {"text": TEXT}, ["/proposal/text"]),
    ("replace_text", {"text": " "}, ["/proposal/text"]),
    ("replace_text", {"text": "x" * 20_000_0}, ["/proposal/text"]),
    ("replace_text", {"text": "One.", "label": "Goal"}, ["/proposal/label"]),
    ("replace_text", {"txt": "One."}, ["/proposal/txt"]),
    ("wrong_label", {"label": "Attribute"}, ["/proposal/label"]),
    ("wrong_label", {"label": "Fact"}, ["/proposal/label"]),
    ("wrong_date", {}, ["/proposal"]),
    ("wrong_date", {"valid_to": None}, ["/proposal/valid_to"]),
    ("wrong_date", {"valid_from": "2026-01-01"}, ["/proposal/valid_from"]),
    (
        "wrong_date",
        {"valid_from": "2026-02-01T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z"},
        ["/proposal/valid_to"],
    ),
    ("wrong_entity", {"from": str(uuid4())}, ["/proposal/to"]),
    ("dispute", {"against": str(uuid4())}, ["/proposal/against"]),
    ("retract", {"text": "One."}, ["/proposal/text"]),
    ("rename", {}, ["/kind"]),
]


@pytest.mark.parametrize(
    ("kind", "proposal", "wanted"), REFUSALS, ids=[f"{row[0]}-{number}" for number, row in enumerate(REFUSALS)]
)
async def test_what_says_nothing_new_or_can_not_be_is_refused(
    desk: Desk, kind: str, proposal: Json, wanted: list[str]
) -> None:
    old = await desk.actor.remember(TEXT)
    assert pointers(await desk.try_to_propose(old["id"], kind, proposal)) == wanted
    assert (await desk.get("/v1/corrections"))["items"] == []


async def test_itself_and_the_same_entity_are_no_other_ones(desk: Desk, accounts: dict[str, str]) -> None:
    old = await desk.actor.remember(TEXT)
    same = {"from": accounts["Chase Checking"], "to": accounts["Chase Checking"]}
    assert pointers(await desk.try_to_propose(old["id"], "wrong_entity", same)) == ["/proposal/to"]
    assert pointers(await desk.try_to_propose(old["id"], "dispute", {"against": old["id"]})) == ["/proposal/against"]
    assert pointers(await desk.try_to_propose(old["id"], "retract", reason=" ")) == ["/reason"]
    assert pointers(await desk.try_to_propose(old["id"], "retract", more=1)) == ["/more"]


@pytest.mark.parametrize("verb", ["supersede", "retract"])
async def test_what_has_gone_meanwhile_is_named(desk: Desk, verb: str) -> None:
    old = await desk.actor.remember(TEXT)
    kinds: dict[str, Json] = {"replace_text": {"text": "One."}, "dispute": {}, "retract": {}}
    proposed = [await desk.propose(old["id"], kind, proposal) for kind, proposal in kinds.items()]
    done = await desk.actor.do(verb, old["id"], {"text": "Two."} if verb == "supersede" else None)
    for one in proposed:
        refused = await desk.decide(one, "apply")
        assert (refused.status_code, f"has been {verb.rstrip('e')}ed" in refused.text) == (409, True), refused.text
        if verb == "supersede":
            assert refused.json()["superseded_by"] == done["memory"]["id"]
    late = await desk.try_to_propose(old["id"], "replace_text", {"text": "Three."})
    assert late.status_code == 409
    assert (await desk.get("/v1/corrections", status="open"))["items"] != []
    if verb == "supersede":  # it did hold, is found for its time, and may be wrong about that
        assert (await desk.correct(old["id"], "retract"))["memory"]["status"] == "retracted"


async def test_a_proposal_that_came_true_meanwhile_is_not_applied(desk: Desk) -> None:
    old = await desk.actor.remember(TEXT)
    proposed = await desk.propose(old["id"], "replace_text", {"text": "One."})
    await desk.send("PATCH", f"/v1/memories/{old['id']}", {"text": "One."}, role="writer")
    refused = await desk.decide(proposed, "apply")
    assert (refused.status_code, "has changed since" in refused.text) == (409, True)


async def test_what_was_erased_of_a_proposal_can_not_be_applied(desk: Desk, database_urls: DatabaseUrls) -> None:
    old = await desk.actor.remember(TEXT)
    proposed = await desk.propose(old["id"], "replace_text", {"text": "One."})
    rows_of(database_urls, "UPDATE corrections SET proposal = '{}' RETURNING 1")
    refused = await desk.decide(proposed, "apply")
    assert (refused.status_code, "erased" in refused.text) == (409, True)
    assert (await desk.get(f"/v1/corrections/{proposed['id']}"))["proposal"] == {}


async def test_of_several_at_once_one_is_applied(desk: Desk, database_urls: DatabaseUrls) -> None:
    for number in range(3):
        old = await desk.actor.remember(f"{number}: {TEXT}")
        proposed = [await desk.propose(old["id"], "replace_text", {"text": f"{n}."}) for n in range(3)]
        answers = await asyncio.gather(*(desk.decide(one, "apply") for one in [*proposed, proposed[0]]))
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
        edges = rows_of(database_urls, "SELECT 1 FROM edges WHERE target_memory_id = %s", old["id"])
        assert len(edges) == 1


async def test_a_decision_is_made_once(desk: Desk, database_urls: DatabaseUrls) -> None:
    old = await desk.actor.remember(TEXT)
    first, second = [await desk.propose(old["id"], "replace_text", {"text": f"{n}."}) for n in (1, 2)]
    rejected = (await desk.decide(first, "reject", {"reason": "No."})).json()["correction"]
    assert (rejected["status"], rejected["decision_reason"], rejected["act_id"]) == ("rejected", "No.", None)
    await desk.apply(second)
    before = canonical(database_urls)
    for one in (first, second):
        for verb, body in (("apply", {}), ("reject", {"reason": "No."})):
            assert (await desk.decide(one, verb, body)).status_code == 409
    assert canonical(database_urls) == before
    told = await desk.get(f"/v1/memories/{old['id']}/provenance")
    kinds = [event["kind"] for event in told["events"]]
    assert kinds == ["created", "proposed", "proposed", "rejected", "superseded", "corrected"]
    assert (await desk.decide(first, "reject", {})).status_code == 422
    audited = rows_of(database_urls, "SELECT action FROM audit_log WHERE target_type = 'correction' ORDER BY at")
    assert [row["action"] for row in audited] == [
        f"correction.{verb}" for verb in ("propose",) * 2 + ("reject", "apply")
    ]


async def test_a_repeated_request_is_answered_alike(desk: Desk, database_urls: DatabaseUrls) -> None:
    old = await desk.actor.remember(TEXT)
    proposed = await desk.propose(old["id"], "replace_text", {"text": "One."})
    headers = {**desk.tenant.headers("reviewer"), "Idempotency-Key": "k"}
    url = f"/v1/corrections/{proposed['id']}/apply"
    answers = [await desk.client.post(url, json={}, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(rows_of(database_urls, "SELECT 1 FROM memories")) == 2


async def test_lists_are_narrowed_and_come_in_pages(desk: Desk) -> None:
    one, other = await desk.actor.remember(TEXT), await desk.actor.remember("Two.")
    made = [await desk.propose(one["id"], "replace_text", {"text": f"{n}."}) for n in range(3)]
    made.append(await desk.propose(other["id"], "retract"))
    await desk.decide(made[0], "reject", {"reason": "No."})

    async def listed(**query: Any) -> list[str]:
        return [item["id"] for item in (await desk.get("/v1/corrections", **query))["items"]]

    ids = [one["id"] for one in made]
    assert await listed() == ids[::-1]
    assert await listed(status="rejected") == ids[:1]
    assert await listed(memory=one["id"]) == ids[2::-1]
    assert await listed(kind="retract") == ids[3:]
    page = await desk.get("/v1/corrections", limit=3)
    rest = await desk.get("/v1/corrections", limit=3, cursor=page["next_cursor"])
    assert [item["id"] for item in page["items"] + rest["items"]] == ids[::-1]
    assert pointers(await desk.send("GET", "/v1/corrections", status="done")) == ["/status"]
    assert pointers(await desk.send("GET", "/v1/corrections", kind="rename")) == ["/kind"]
