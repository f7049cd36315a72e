"""Structural questions are answered from edges, links and mentions: with the reason, the source, and page by page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.citing import Citer
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain

from memory_os.domain.ids import new_id
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

ENTITIES, MEMORIES = "/v1/memory/entities", "/v1/memories"

Json = dict[str, Any]


@pytest.fixture
def actor(client: httpx.AsyncClient, tenant: TestTenant) -> Actor:
    return Actor(client, tenant)


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    return Citer(client, tenant)


async def listed(actor: Actor, path: str, **query: Any) -> list[Json]:
    """All pages of a list, two rows at a time; the same as on one page."""
    answer = await actor.client.get(path, headers=actor.headers, params={**query, "limit": 200})
    assert answer.status_code == 200, answer.text
    found: list[Json] = []
    page: Json = {"next_cursor": None}
    while not found or page["next_cursor"] is not None:
        cursor = {} if page["next_cursor"] is None else {"cursor": page["next_cursor"]}
        page = (await actor.client.get(path, headers=actor.headers, params={**query, **cursor, "limit": 2})).json()
        found += page["items"]
        if not page["items"]:
            break
    assert found == answer.json()["items"]
    return found


def ids(items: list[Json]) -> list[str]:
    return [item["id"] for item in items]


def ties(item: Json) -> list[tuple[str, str, str]]:
    return [(tie["kind"], tie["type"], tie["direction"]) for tie in item["why"]]


async def link(actor: Actor, entity: str, layer: str, target: str, relationship: str, **fields: Any) -> str:
    body = {"layer": layer, "target_id": target, "relationship": relationship, **fields}
    answer = await actor.client.post(f"{ENTITIES}/{entity}/links", json=body, headers=actor.headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["link"]["id"])


async def test_everything_about_an_entity_comes_newest_first_with_its_reasons(
    actor: Actor, citer: Citer, worker: WorkerContext
) -> None:
    john = await actor.declare("John Falk")
    yard = await actor.declare("Harbour Yard")
    source = await citer.source("He signed it.", title="The contract")
    mentioned = await actor.remember("John Falk bought a ketch.", label="Event", occurred_at="2025-05-01T00:00:00Z")
    about = await actor.remember("Sails every weekend.", label="Behavior", occurred_at="2025-03-01T00:00:00Z")
    both = await actor.remember("John Falk likes tea.", label="Preference", occurred_at="2025-04-01T00:00:00Z")
    edge = await actor.tie("ABOUT", about["id"], {"entity": john}, confidence=0.9)
    await actor.tie("ABOUT", both["id"], {"entity": john})
    made = await actor.client.post(
        "/v1/memory/observations", json={"title": "Pays late", "summary": "Twice."}, headers=actor.headers
    )
    observation = made.json()["observation"]["id"]
    links = {
        layer: await link(actor, john, layer, target, relationship)
        for layer, target, relationship in (
            ("observation", observation, "is customer of"),
            ("source", source, "signed"),
            ("entity", yard, "rents from"),
        )
    }
    await drain(worker)
    items = await listed(actor, f"{ENTITIES}/{john}/everything")
    assert [item["date"] for item in items] == sorted((item["date"] for item in items), reverse=True)
    found = {item["id"]: item for item in items}
    assert ids(items)[-3:] == [mentioned["id"], both["id"], about["id"]]
    assert found.keys() == {mentioned["id"], about["id"], both["id"], observation, source, yard}
    assert ties(found[mentioned["id"]]) == [("mention", "MENTIONS", "in")]
    assert ties(found[both["id"]]) == [("edge", "ABOUT", "in"), ("mention", "MENTIONS", "in")]
    assert found[about["id"]]["why"] == [
        {"kind": "edge", "type": "ABOUT", "direction": "in", "confidence": 0.9, "id": edge}
    ]
    assert ties(found[observation]) == [("link", "is customer of", "out")]
    assert {tie["id"] for ident in (observation, source, yard) for tie in found[ident]["why"]} == set(links.values())
    assert (found[yard]["type"], found[yard]["label"], found[yard]["title"]) == ("entity", "thing", "Harbour Yard")
    assert ties((await listed(actor, f"{ENTITIES}/{yard}/everything"))[0]) == [("link", "rents from", "in")]


async def test_what_does_not_hold_comes_with_history_only(actor: Actor) -> None:
    yard, crew = await actor.declare("Harbour Yard"), await actor.declare("The crew")
    old = await actor.remember("The yard opens at eight.", valid_from="2025-01-01T00:00:00Z")
    await actor.tie("ABOUT", old["id"], {"entity": yard})
    await link(actor, yard, "entity", crew, "employs", valid_to="2025-06-01T00:00:00Z")
    new = await actor.do(
        "supersede", old["id"], {"text": "The yard opens at nine.", "valid_from": "2026-01-01T00:00:00Z"}
    )
    path = f"{ENTITIES}/{yard}/everything"
    assert ids(await listed(actor, path)) == [new["memory"]["id"]]
    # Context has moved to the memory that took its place, whose window begins later.
    assert ids(await listed(actor, path, as_of="2025-05-01T00:00:00Z")) == [crew]
    assert set(ids(await listed(actor, path, include="history"))) == {new["memory"]["id"], crew}
    await actor.do("retract", new["memory"]["id"])
    assert ids(await listed(actor, path)) == []
    assert {item["status"] for item in await listed(actor, path, include="history")} == {"retracted", "active"}


async def test_a_project_has_its_current_decisions(actor: Actor, citer: Citer, worker: WorkerContext) -> None:
    project = await actor.declare("Project Zephyr")
    plan = await actor.remember("Build the ketch.", label="Project")
    letter = await citer.source("We take oak.", title="A letter")
    cited = {"evidence": [{"source_id": letter, "support": "states"}]}
    oak = await actor.remember("Project Zephyr is built of oak.", label="Decision", **cited)
    sails = await actor.remember("The sails are red.", label="Decision")
    given_up = await actor.remember("There is no engine.", label="Decision")
    fact = await actor.remember("The ketch has two masts.")
    for memory in (sails, given_up, fact):
        await actor.tie("PART_OF", memory["id"], {"entity": project})
        await actor.tie("PART_OF", memory["id"], plan["id"])
    other = await actor.remember("The shed is painted.", label="Decision")
    await actor.tie("CONTRADICTS", other["id"], plan["id"])
    await actor.do("abandon", given_up["id"])
    await drain(worker)
    decisions = await listed(actor, f"{ENTITIES}/{project}/decisions")
    assert ids(decisions) == [sails["id"], oak["id"]]
    assert decisions[1]["source"]["title"] == "A letter"
    assert ids(await listed(actor, f"{MEMORIES}/{plan['id']}/decisions")) == [sails["id"]]
    blue = (await actor.do("supersede", sails["id"], {"text": "The sails are blue."}))["memory"]
    assert ids(await listed(actor, f"{ENTITIES}/{project}/decisions")) == [blue["id"], oak["id"]]
    past = await listed(actor, f"{ENTITIES}/{project}/decisions", include="history")
    assert {item["id"]: item["status"] for item in past} == {
        blue["id"]: "active",
        given_up["id"]: "abandoned",
        oak["id"]: "active",
    }


async def test_open_tasks_come_with_who_is_bound_to_them(actor: Actor) -> None:
    project, john, mary = [await actor.declare(name) for name in ("Project Zephyr", "John Falk", "Mary Stone")]
    plan = await actor.remember("Build the ketch.", label="Project")
    ann = actor.acting("ann")
    rudder = await ann.remember("Carve the rudder.", label="Commitment")
    launch = await actor.remember("Launch in May.", label="Goal")
    done = await actor.remember("Buy the oak.", label="Commitment")
    for task in (rudder, launch, done):
        await actor.tie("PART_OF", task["id"], {"entity": project})
        await actor.tie("ADVANCES", task["id"], plan["id"])
    edges = [await actor.tie("COMMITTED_TO", {"entity": who}, rudder["id"]) for who in (john, mary)]
    await actor.do("complete", done["id"])
    path = f"{ENTITIES}/{project}/tasks"
    tasks = await listed(actor, path)
    assert ids(tasks) == [launch["id"], rudder["id"]]
    assert tasks[0]["owners"] == []
    assert tasks[1]["owners"] == [
        {"id": john, "name": "John Falk", "edge_id": edges[0]},
        {"id": mary, "name": "Mary Stone", "edge_id": edges[1]},
    ]
    assert tasks[1]["user_id"] == "ann"
    assert ids(await listed(actor, f"{MEMORIES}/{plan['id']}/tasks")) == [launch["id"], rudder["id"]]
    assert ids(await listed(actor, path, status="closed")) == [done["id"]]
    assert ids(await listed(actor, path, status="all")) == [done["id"], launch["id"], rudder["id"]]
    mine = await listed(actor, f"{ENTITIES}/{john}/tasks")
    assert [(item["id"], ties(item)) for item in mine] == [(rudder["id"], [("edge", "COMMITTED_TO", "out")])]


async def test_a_claim_has_what_supports_and_what_contradicts_it(actor: Actor) -> None:
    claim = await actor.remember("The ketch is fast.")
    race = await actor.remember("It won the race.", label="Event")
    slow = await actor.remember("It lost to a dinghy.", label="Event")
    made = await actor.remember("It has a wide hull.")
    john = await actor.declare("John Falk")
    edge = await actor.tie("SUPPORTS", race["id"], claim["id"], confidence=0.8)
    await actor.tie("SUPPORTS", {"entity": john}, claim["id"])
    await actor.tie("SUPPORTS", claim["id"], made["id"])
    await actor.tie("CONTRADICTS", slow["id"], claim["id"])
    await actor.tie("CONTRADICTS", claim["id"], made["id"])
    path = f"{MEMORIES}/{claim['id']}/support"
    sides = {item["id"]: item["stance"] for item in await listed(actor, path)}
    assert sides == {race["id"]: "supports", john: "supports", slow["id"]: "contradicts", made["id"]: "contradicts"}
    supporting = {item["id"]: item for item in await listed(actor, path, stance="supports")}
    assert supporting.keys() == {race["id"], john}
    assert supporting[race["id"]]["why"] == [
        {"kind": "edge", "type": "SUPPORTS", "direction": "in", "confidence": 0.8, "id": edge}
    ]
    assert ids(await listed(actor, path, stance="contradicts")) == [made["id"], slow["id"]]
    await actor.do("retract", race["id"])
    assert set(ids(await listed(actor, path, stance="supports"))) == {john}


async def test_a_claim_has_its_sources_and_those_of_what_supports_it(actor: Actor, citer: Citer) -> None:
    letter, log, book = [await citer.source(f"{title} says so.", title=title) for title in ("Letter", "Log", "Book")]
    cited = [{"evidence": [{"source_id": source, "support": "states"}]} for source in (letter, log, book)]
    claim = await actor.remember("The ketch is fast.", **cited[0])
    race = await actor.remember("It won the race.", label="Event", **cited[1])
    notes = await actor.remember("Notes on boats.", label="Reference", **cited[2])
    supports = await actor.tie("SUPPORTS", race["id"], claim["id"])
    await actor.tie("EXTRACTED_FROM", claim["id"], notes["id"])
    path = f"{MEMORIES}/{claim['id']}/sources"
    sources = await listed(actor, path)
    assert [(item["title"], item["memory_id"]) for item in sources] == [
        ("Book", notes["id"]),
        ("Log", race["id"]),
        ("Letter", claim["id"]),
    ]
    assert [ties(item) for item in sources] == [
        [("edge", "EXTRACTED_FROM", "out")],
        [("edge", "SUPPORTS", "in")],
        [],
    ]
    assert sources[1]["why"][0]["id"] == supports
    evidence = sources[2]["id"]
    gone = await actor.client.delete(f"{MEMORIES}/{claim['id']}/evidence/{evidence}", headers=actor.headers)
    assert gone.is_success
    await actor.do("retract", race["id"])
    assert [item["title"] for item in await listed(actor, path)] == ["Book"]


async def test_what_changed_since_a_moment_comes_in_its_order(actor: Actor) -> None:
    yard = await actor.declare("Harbour Yard")
    old = await actor.remember("The yard opens at eight.")
    await actor.tie("ABOUT", old["id"], {"entity": yard})
    since = datetime.now(UTC).isoformat()
    goal = await actor.remember("Paint the shed.", label="Goal")
    done = await actor.do("complete", goal["id"])
    new = (await actor.do("supersede", old["id"], {"text": "The yard opens at nine."}))["memory"]
    await actor.undo(goal["id"], done["act_id"])
    changes = await listed(actor, "/v1/changes", since=since)
    assert [(change["kind"], change["memory"]["id"], change["other_id"]) for change in changes] == [
        ("create", goal["id"], None),
        ("complete", goal["id"], None),
        ("create", new["id"], None),
        ("supersede", old["id"], new["id"]),
        ("undo", goal["id"], None),
    ]
    assert changes[1]["undone_at"] is not None
    assert changes[3]["memory"]["status"] == "superseded"
    assert changes[1]["who"] == {"role": "writer", "user_id": None}
    assert len(await listed(actor, "/v1/changes")) == len(changes) + 1
    # Its edge has moved to the memory that took its place.
    about = await listed(actor, f"{ENTITIES}/{yard}/changes", since=since)
    assert [(change["kind"], change["memory"]["id"]) for change in about] == [("create", new["id"])]


async def test_what_changed_after_an_event_counts_from_when_it_happened(actor: Actor) -> None:
    before = await actor.remember("The yard is empty.")
    event = await actor.remember("The storm came.", label="Event", occurred_at=datetime.now(UTC).isoformat())
    after = await actor.remember("The shed lost its roof.")
    path = f"{MEMORIES}/{{}}/changes"
    changes = await listed(actor, path.format(event["id"]))
    assert [change["memory"]["id"] for change in changes] == [event["id"], after["id"]]
    undated = await listed(actor, path.format(before["id"]))
    assert [change["memory"]["id"] for change in undated] == [event["id"], after["id"]]


async def test_nothing_tells_of_what_is_hidden(actor: Actor, worker: WorkerContext) -> None:
    ann, ben = actor.acting("ann"), actor.acting("ben")
    project = await ann.declare("Project Zephyr")
    task = await ann.remember("Carve the rudder.", label="Goal")
    await ann.tie("PART_OF", task["id"], {"entity": project})
    secret = {"visibility": "private"}
    hidden = await ann.remember("Project Zephyr is bankrupt.", label="Decision", **secret)
    made = {"name": "Zarah", "entity_type": "person", **secret}
    owner = (await ann.client.post(ENTITIES, json=made, headers=ann.headers)).json()["entity"]["id"]
    await ann.tie("PART_OF", hidden["id"], {"entity": project})
    await ann.tie("CONTRADICTS", hidden["id"], task["id"])
    await ann.tie("COMMITTED_TO", {"entity": owner}, task["id"])
    await ann.do("dispute", hidden["id"])
    await ann.do("dispute", task["id"], {"against": hidden["id"]})
    await drain(worker)
    assert ids(await listed(ann, f"{ENTITIES}/{project}/decisions")) == [hidden["id"]]
    assert ids(await listed(ben, f"{ENTITIES}/{project}/decisions")) == []
    assert set(ids(await listed(ann, f"{ENTITIES}/{project}/everything"))) == {hidden["id"], task["id"]}
    assert ids(await listed(ben, f"{ENTITIES}/{project}/everything")) == [task["id"]]
    assert [one["name"] for one in (await listed(ann, f"{ENTITIES}/{project}/tasks"))[0]["owners"]] == ["Zarah"]
    assert (await listed(ben, f"{ENTITIES}/{project}/tasks"))[0]["owners"] == []
    assert ids(await listed(ben, f"{MEMORIES}/{task['id']}/support")) == []
    for path in ("/v1/changes", f"{ENTITIES}/{project}/changes"):
        told = await listed(ben, path)
        assert {change["memory"]["id"] for change in told} == {task["id"]}
        assert [change["other_id"] for change in told] == [None, None]
    for path in (f"{MEMORIES}/{hidden['id']}/support", f"{ENTITIES}/{owner}/everything"):
        answer = await ben.client.get(path, headers=ben.headers)
        assert answer.status_code == 404


@pytest.mark.parametrize(
    ("path", "query", "pointer"),
    [
        ("entities/{}/tasks", {"status": "opne"}, "/status"),
        ("entities/{}/everything", {"include": "all"}, "/include"),
        ("entities/{}/everything", {"as_of": "yesterday"}, "/as_of"),
        ("entities/{}/everything", {"cursor": "x"}, "/cursor"),
        ("entities/{}/changes", {"since": "1"}, "/since"),
    ],
)
async def test_a_question_that_is_not_understood_is_refused(
    actor: Actor, path: str, query: dict[str, str], pointer: str
) -> None:
    entity = await actor.declare("Harbour Yard")
    answer = await actor.client.get(f"/v1/memory/{path.format(entity)}", params=query, headers=actor.headers)
    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("call", ["everything", "decisions", "tasks", "changes"])
async def test_an_entity_that_is_not_there_has_nothing_to_tell(actor: Actor, call: str) -> None:
    answer = await actor.client.get(f"{ENTITIES}/{new_id()}/{call}", headers=actor.headers)
    assert answer.status_code == 404


@pytest.mark.parametrize("call", ["decisions", "tasks", "support", "sources", "changes"])
async def test_a_memory_that_is_not_there_has_nothing_to_tell(actor: Actor, call: str) -> None:
    answer = await actor.client.get(f"{MEMORIES}/{new_id()}/{call}", headers=actor.headers)
    assert answer.status_code == 404
