"""One memory takes the place of another: windows, chain, context, and what is refused."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.fixtures.acting import Actor, canonical, edges_of, rows_of
from tests.fixtures.postgres import DatabaseUrls

pytestmark = pytest.mark.anyio


def moment(text: str | None) -> datetime:
    assert text is not None
    return datetime.fromisoformat(text)


async def test_a_new_memory_takes_the_place_of_the_old_one(actor: Actor, database_urls: DatabaseUrls) -> None:
    old = await actor.remember("Weighs 178 lbs.", label="Belief", subject="Alex", property="weight")
    answer = await actor.try_to(
        "supersede", old["id"], {"text": "Weighs 182 lbs.", "valid_from": "2026-05-01T00:00:00Z"}
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()
    new, superseded = made["memory"], made["superseded"]
    assert answer.headers["etag"] == f'"{new["version"]}"'
    assert made["outcome"] == "superseded"
    assert made["position"] > 0
    assert (new["label"], new["subject"], new["property"], new["status"]) == ("Belief", "Alex", "weight", "active")
    assert (superseded["id"], superseded["status"], superseded["version"]) == (old["id"], "superseded", 2)
    assert moment(superseded["valid_to"]) == moment(new["valid_from"]) == moment("2026-05-01T00:00:00Z")
    assert (new["supersedes"], new["superseded_by"]) == (old["id"], None)
    assert (superseded["supersedes"], superseded["superseded_by"]) == (None, new["id"])
    assert await actor.read(old["id"]) == superseded
    assert await actor.read(new["id"]) == new
    (edge,) = edges_of(database_urls).values()
    assert (edge["type"], edge["source_memory_id"], edge["target_memory_id"]) == ("SUPERSEDES", new["id"], old["id"])


async def test_a_stored_memory_takes_the_place_from_now_on(actor: Actor) -> None:
    old, new = await actor.remember("The office is in Hamburg."), await actor.remember("The office is in Bremen.")
    made = await actor.do("supersede", old["id"], {"by": new["id"]})
    assert made["memory"]["id"] == new["id"]
    assert moment(new["created_at"]) < moment(made["memory"]["valid_from"])
    assert made["superseded"]["valid_to"] == made["memory"]["valid_from"]


@pytest.mark.parametrize(
    ("window", "start", "until"),
    [
        ({}, "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        ({"valid_from": "2026-04-01T00:00:00Z"}, "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"),
        ({"valid_to": "2026-02-01T00:00:00Z"}, "2026-03-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ({"valid_to": "2026-06-01T00:00:00Z"}, "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"),
    ],
    ids=["open", "begins later", "ended before", "ends later"],
)
async def test_the_old_window_ends_where_the_new_one_begins(
    actor: Actor, window: dict[str, str], start: str, until: str
) -> None:
    old = await actor.remember("The rate is 3 %.", **window)
    made = await actor.do("supersede", old["id"], {"text": "The rate is 4 %.", "valid_from": start})
    assert moment(made["superseded"]["valid_to"]) == moment(until)


@pytest.mark.parametrize("time", ["2024-01-01", "2024-01-01T00:00", "0001-01-01T00:00:00+14:00", "soon", 1])
async def test_a_time_without_its_place_in_the_world_is_refused(actor: Actor, time: object) -> None:
    old = await actor.remember("The rate is 3 %.")
    refused(
        await actor.try_to("supersede", old["id"], {"text": "The rate is 4 %.", "valid_from": time}), 422, "valid_from"
    )


async def test_context_moves_and_what_is_for_audit_stays(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, far, older = [await actor.remember(f"Note {number}.") for number in range(4)]
    thing = {"entity": await actor.declare("Harbour")}
    moving = [
        await actor.tie("ABOUT", old["id"], thing, confidence=0.3),
        await actor.tie("SUPPORTS", far["id"], old["id"], confidence=0.4),
        await actor.tie("CONTRADICTS", old["id"], far["id"]),
        await actor.tie("INFLUENCES", thing, old["id"]),
    ]
    staying = [
        await actor.tie("EXTRACTED_FROM", old["id"], far["id"]),
        await actor.tie("SUPERSEDES", old["id"], older["id"]),
        await actor.tie("DUPLICATES", far["id"], old["id"]),
        await actor.tie("SUPPORTS", new["id"], old["id"]),  # it would lead from the new one to itself
        await actor.tie("ABOUT", far["id"], thing),
    ]
    before = edges_of(database_urls)
    await actor.do("supersede", old["id"], {"by": new["id"]})
    after = edges_of(database_urls)
    for ident in staying:
        assert after[ident] == before[ident]
    for ident in moving:
        was, now = before[ident], after[ident]
        for end in ("source_memory_id", "target_memory_id"):
            assert now[end] == (new["id"] if was[end] == old["id"] else was[end])
        assert str(now["migrated_from"]) == old["id"]
        assert now["version"] == was["version"] + 1
        assert (now["confidence"], now["created_at"]) == (was["confidence"], was["created_at"])
    assert len(after) == len(before) + 1


async def test_an_edge_that_meets_its_equal_becomes_one_with_it(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, new, far = [await actor.remember(f"Note {number}.") for number in range(3)]
    sure = await actor.tie("SUPPORTS", old["id"], far["id"], confidence=0.9)
    kept = await actor.tie("SUPPORTS", new["id"], far["id"], confidence=0.4)
    other = await actor.tie("SUPPORTS", far["id"], new["id"])
    rows_of(database_urls, "UPDATE edges SET co_reference_count = 3 WHERE id = %s RETURNING 1", sure)
    rows_of(database_urls, "UPDATE edges SET co_reference_count = 4 WHERE id = %s RETURNING 1", kept)
    made = await actor.do("supersede", old["id"], {"by": new["id"]})
    after = edges_of(database_urls)
    assert sure not in after
    assert (after[kept]["confidence"], after[kept]["co_reference_count"]) == (0.9, 7)
    assert (after[kept]["migrated_from"], after[other]["co_reference_count"]) == (None, 0)
    (act,) = [entry for entry in await actor.history(old["id"]) if entry["id"] == made["act_id"]]
    assert act["detail"] == {"edges_moved": 0, "edges_merged": 1}
    events = rows_of(database_urls, "SELECT event_type FROM outbox_events WHERE aggregate_id = %s ORDER BY id", sure)
    assert [event["event_type"] for event in events] == ["GRAPH_UPSERT", "GRAPH_DELETE"]


async def test_edges_come_along_the_whole_chain(actor: Actor, database_urls: DatabaseUrls) -> None:
    first, far = await actor.remember("Drives a Saab."), await actor.remember("Parks in the yard.")
    edge = await actor.tie("SUPPORTS", far["id"], first["id"])
    second = (await actor.do("supersede", first["id"], {"text": "Drives a Volvo."}))["memory"]
    third = (await actor.do("supersede", second["id"], {"text": "Rides a bicycle."}))["memory"]
    now = edges_of(database_urls)[edge]
    assert (now["target_memory_id"], str(now["migrated_from"])) == (third["id"], first["id"])
    chain = [await actor.read(one["id"]) for one in (first, second, third)]
    assert [one["status"] for one in chain] == ["superseded", "superseded", "active"]
    assert [one["superseded_by"] for one in chain] == [second["id"], third["id"], None]
    assert [one["supersedes"] for one in chain] == [None, first["id"], second["id"]]


async def test_links_of_entities_stay(actor: Actor, database_urls: DatabaseUrls) -> None:
    old, entity = await actor.remember("The vendor is Ardal."), await actor.declare("Ardal")
    link = {"layer": "memory", "target_id": old["id"], "relationship": "is named in"}
    await actor.client.post(f"/v1/memory/entities/{entity}/links", json=link, headers=actor.headers)
    await actor.do("supersede", old["id"], {"text": "The vendor is Finch."})
    (row,) = rows_of(database_urls, "SELECT target_id, version FROM entity_links")
    assert (str(row["target_id"]), row["version"]) == (old["id"], 1)


def refused(answer: httpx.Response, status: int, words: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert words in answer.text, answer.text
    return dict(answer.json())


async def test_what_lost_its_place_does_not_lose_it_again(actor: Actor) -> None:
    old, new, more = [await actor.remember(f"Note {number}.") for number in range(3)]
    await actor.do("supersede", old["id"], {"by": new["id"]})
    problem = refused(await actor.try_to("supersede", old["id"], {"by": more["id"]}), 409, "superseded already")
    assert problem["superseded_by"] == new["id"]


async def test_a_circle_is_refused(actor: Actor) -> None:
    a, b, c = [await actor.remember(f"Note {number}.") for number in range(3)]
    await actor.do("supersede", a["id"], {"by": b["id"]})
    refused(await actor.try_to("supersede", b["id"], {"by": a["id"]}), 409, "circle")
    await actor.do("supersede", b["id"], {"by": c["id"]})
    refused(await actor.try_to("supersede", c["id"], {"by": a["id"]}), 409, "circle")
    refused(await actor.try_to("supersede", c["id"], {"by": c["id"]}), 422, "itself")


@pytest.mark.parametrize("status", ["archive", "retract"])
async def test_what_does_not_stand_takes_no_place(actor: Actor, status: str) -> None:
    old, new = await actor.remember("One."), await actor.remember("Two.")
    await actor.do(status, new["id"])
    refused(await actor.try_to("supersede", old["id"], {"by": new["id"]}), 409, "restore it first")


async def test_illegal_steps_name_the_legal_ones(actor: Actor) -> None:
    old, new = await actor.remember("One."), await actor.remember("Two.")
    await actor.do("archive", old["id"])
    problem = refused(await actor.try_to("supersede", old["id"], {"by": new["id"]}), 422, "Legal from here")
    assert problem["allowed"] == ["active", "retracted"]


async def test_events_are_never_superseded_and_supersede_nothing(actor: Actor) -> None:
    event, other = await actor.remember("They met in Oslo.", label="Event"), await actor.remember("They are friends.")
    refused(await actor.try_to("supersede", event["id"], {"by": other["id"]}), 422, "can't become")
    refused(await actor.try_to("supersede", event["id"], {"text": "They met in Bergen."}), 422, "can't become")
    refused(await actor.try_to("supersede", other["id"], {"by": event["id"]}), 422, "/by")
    refused(await actor.try_to("supersede", other["id"], {"text": "They fell out.", "label": "Event"}), 422, "/label")


async def test_nothing_is_stored_where_it_is_refused(actor: Actor, database_urls: DatabaseUrls) -> None:
    old = await actor.remember("One.")
    before = canonical(database_urls)
    narrow = {"text": "Two.", "visibility": "private"}
    refused(await actor.acting("ann").try_to("supersede", old["id"], narrow), 409, "lose sight")
    refused(await actor.try_to("supersede", old["id"], {"text": "  "}), 422, "/text")
    refused(await actor.try_to("supersede", old["id"], {}), 422, "/text")
    refused(await actor.try_to("supersede", old["id"], {"by": str(uuid4())}), 422, "/by")
    refused(await actor.try_to("supersede", old["id"], {"by": old["id"], "tags": ["a"]}), 422, "/tags")
    refused(await actor.try_to("supersede", old["id"], {"text": "Two."}, if_match='"7"'), 412, "version 1")
    refused(await actor.try_to("supersede", str(uuid4()), {"text": "Two."}), 404, "no such memory")
    assert canonical(database_urls) == before


async def test_readers_of_the_old_one_must_be_readers_of_the_new_one(actor: Actor) -> None:
    ann = actor.acting("ann")
    shared = {"visibility": "restricted", "readers": {"users": ["ann", "bob"], "groups": ["crew"]}}
    old = await ann.remember("The launch is in May.", **shared)
    fewer = {**shared, "readers": {"users": ["ann"], "groups": ["crew"]}}
    for narrow in ({"visibility": "private"}, fewer):
        new = await ann.remember("The launch is in June.", **narrow)
        refused(await ann.try_to("supersede", old["id"], {"by": new["id"]}), 409, "lose sight")
    made = await ann.do("supersede", old["id"], {"text": "The launch is in July."})
    assert made["memory"]["visibility"] == "restricted"
    assert made["memory"]["readers"] == shared["readers"]


async def test_the_user_of_the_old_one_stays_among_the_readers(actor: Actor) -> None:
    shared = {"visibility": "restricted", "readers": {"users": ["bob"], "groups": []}}
    old = await actor.acting("ann").remember("The launch is in May.", **shared)
    bob = actor.acting("bob")
    assert (await bob.try_to("supersede", old["id"], {"text": "The launch is in June."})).status_code == 403
    bob.headers = actor.tenant.headers("reviewer", user="bob")
    made = await bob.do("supersede", old["id"], {"text": "The launch is in June."})
    assert (made["memory"]["user_id"], made["memory"]["readers"]["users"]) == ("bob", ["bob", "ann"])
    assert (await actor.acting("ann").read(made["memory"]["id"]))["supersedes"] == old["id"]


async def test_more_readers_do_not_get_to_see_the_context(actor: Actor, database_urls: DatabaseUrls) -> None:
    ann = actor.acting("ann")
    old = await ann.remember("Saves for a boat.", visibility="private")
    edge = await ann.tie("ABOUT", old["id"], {"entity": await actor.declare("Ketch")})
    before = edges_of(database_urls)[edge]
    made = await ann.do("supersede", old["id"], {"text": "Has a boat.", "visibility": "tenant"})
    assert edges_of(database_urls)[edge] == before
    seen = await actor.acting("bob").read(made["memory"]["id"])
    assert (seen["supersedes"], seen["superseded_by"]) == (None, None)  # it must not know of the private one
    assert (await ann.read(made["memory"]["id"]))["supersedes"] == old["id"]
    assert (await ann.read(old["id"]))["superseded_by"] == made["memory"]["id"]


async def test_who_sees_one_of_the_two_only_can_do_nothing(actor: Actor, database_urls: DatabaseUrls) -> None:
    ann, bob = actor.acting("ann"), actor.acting("bob")
    hidden, seen = await ann.remember("Hidden.", visibility="private"), await actor.remember("Seen.")
    before = canonical(database_urls)
    refused(await bob.try_to("supersede", hidden["id"], {"by": seen["id"]}), 404, "no such memory")
    refused(await bob.try_to("supersede", seen["id"], {"by": hidden["id"]}), 422, "no such memory")
    refused(await bob.try_to("dispute", seen["id"], {"against": hidden["id"]}), 422, "no such memory")
    assert canonical(database_urls) == before


async def test_a_repeated_key_gets_the_first_answer(actor: Actor, database_urls: DatabaseUrls) -> None:
    old = await actor.remember("One.")
    first = await actor.try_to("supersede", old["id"], {"text": "Two."}, idempotency_key="k")
    again = await actor.try_to("supersede", old["id"], {"text": "Two."}, idempotency_key="k")
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert len(rows_of(database_urls, "SELECT 1 FROM memories")) == 2
    other = await actor.try_to("supersede", old["id"], {"text": "Three."}, idempotency_key="k")
    assert other.status_code == 409


async def test_two_at_once_make_one_chain(actor: Actor, database_urls: DatabaseUrls) -> None:
    for _ in range(5):
        old = await actor.remember("One.")
        answers = await asyncio.gather(
            *(actor.try_to("supersede", old["id"], {"text": f"Two, by client {number}."}) for number in range(4))
        )
        assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
        edges = rows_of(database_urls, "SELECT 1 FROM edges WHERE target_memory_id = %s", old["id"])
        assert len(edges) == 1


async def test_opposite_supersessions_at_once_make_no_circle(actor: Actor, database_urls: DatabaseUrls) -> None:
    for _ in range(5):
        ring = [await actor.remember(f"Note {number}.") for number in range(3)]
        pairs = list(zip(ring, [*ring[1:], ring[0]], strict=True))
        answers = await asyncio.gather(*(actor.try_to("supersede", a["id"], {"by": b["id"]}) for a, b in pairs))
        assert {answer.status_code for answer in answers} == {201, 409}, [answer.text for answer in answers]
        ids = [one["id"] for one in ring]
        left = rows_of(database_urls, "SELECT 1 FROM memories WHERE id = ANY (%s) AND status = 'active'", ids)
        assert left
