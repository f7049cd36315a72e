"""A memory is erased with every copy of it, whatever happened to it before; nothing else is."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.fixtures.acting import Actor, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.worker import drain
from tests.integration.erasure.searching import in_graph, places_with
from tests.integration.erasure.stories import CANARY, CHAPTERS, Story

from memory_os.api.services import Services
from memory_os.settings import Settings
from memory_os_workers import verifier
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


class _BothBackends:
    @pytest.fixture
    def service_settings(self, on_both_backends: Settings) -> Settings:
        return on_both_backends

    @pytest.fixture
    async def story(self, actor: Actor, worker: WorkerContext, services: Services) -> Story:
        """A memory and those beside it."""
        story = Story(actor, worker, services.retriever.log.close)
        await story.begin()
        return story


async def erase(story: Story, memory: str) -> dict[str, Any]:
    return dict(await story.send("POST", f"/v1/memories/{memory}/erase"))


def rows_in(receipt: dict[str, Any]) -> dict[str, int]:
    return {place["place"]: place["rows"] for place in receipt["places"]}


async def assert_nothing_left(story: Story, urls: DatabaseUrls) -> None:
    """No word of it anywhere, no id where none may be, and a graph that says what the rows say."""
    assert places_with(urls, CANARY) == {}
    await drain(story.worker)
    assert places_with(urls, CANARY) == {}
    assert not await in_graph(story.worker.backend, story.tenant_id, CANARY)
    for gone in (story.memory, *story.derived):
        assert places_with(urls, gone).keys() <= {
            *("erasures.record_ids", "erasures.subject", "audit_log.target_id", "audit_log.detail"),
            *("graph_tombstones.aggregate_id", "outbox_events.aggregate_id"),
        }
        assert not await in_graph(story.worker.backend, story.tenant_id, gone)
    assert rows_of(urls, "SELECT * FROM outbox_events WHERE status <> 'done'") == []
    await story.send("GET", "/v1/graph/verify")
    await verifier.take_job(story.worker)
    told = (await story.send("GET", "/v1/graph/verifications"))["items"][0]
    assert (told["status"], told["equal"]) == ("done", True), told


class TestWholeStories(_BothBackends):
    async def test_no_copy_is_left_and_the_receipt_names_each_place(
        self, story: Story, database_urls: DatabaseUrls
    ) -> None:
        for chapter in CHAPTERS.values():
            await chapter(story)
        before = places_with(database_urls, CANARY)
        assert {place.partition(".")[0] for place in before} >= {
            *("memories", "mentions", "entities", "entity_links", "memory_acts", "audit_contents", "corrections"),
            *("memory_reviews", "retrievals", "outbox_events", "audit_log", "graph_verifications"),
        }
        beside = [await story.actor.read(memory) for memory in story.beside]
        receipt = await erase(story, story.memory)
        assert set(receipt["record_ids"]) == {story.memory, *story.derived}
        rows = rows_in(receipt)
        for place in {name.partition(".")[0] for name in before} - {"entity_names"}:
            assert rows[place] > 0, place
        for place in ("memory_embeddings", "memory_sketches", "edges", "evidence", "retrieval_items"):
            assert rows[place] > 0, place
        assert rows["retrieval_feedback"] > 0
        assert rows["idempotency_keys"] > 0
        assert (rows["exports"], rows["backups"]) == (0, 0)
        await assert_nothing_left(story, database_urls)
        again = await story.repeat_first_request()
        assert (again.status_code, again.json()["type"]) == (410, "urn:memory-os:problem:gone")
        changed = {"superseded_by", "supersedes", "status"}
        for known in beside:
            now = await story.actor.read(known["id"])
            assert {name: now[name] for name in now.keys() - changed} == {
                name: known[name] for name in known.keys() - changed
            }
        names = {row["name"] for row in rows_of(database_urls, "SELECT name FROM entities")}
        assert "Ann Miller" in names

    @pytest.mark.parametrize("seed", range(6))
    async def test_no_copy_is_left_in_whatever_order_things_happened(
        self, story: Story, database_urls: DatabaseUrls, seed: int
    ) -> None:
        chance = random.Random(seed)
        happened = chance.sample([name for name in CHAPTERS if name != "absorb"], chance.randint(2, 8))
        for name in happened:
            await CHAPTERS[name](story)
        if chance.random() < 0.5:
            await drain(story.worker)
        await erase(story, story.memory)
        await assert_nothing_left(story, database_urls)


async def test_what_is_not_there_for_the_asker_can_not_be_erased(actor: Actor, database_urls: DatabaseUrls) -> None:
    hidden = await actor.acting("ann").remember("A secret.", visibility="private")
    headers = actor.tenant.headers("admin")
    answers = [
        await actor.client.post(f"/v1/memories/{ident}/erase", headers=headers) for ident in (hidden["id"], uuid4())
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert {name: answers[0].json()[name] for name in ("title", "detail")} == {
        name: answers[1].json()[name] for name in ("title", "detail")
    }
    refused = await actor.client.post(f"/v1/memories/{hidden['id']}/erase", headers=actor.tenant.headers("reviewer"))
    assert refused.status_code == 403
    unknown = await actor.client.post(f"/v1/memories/{hidden['id']}/erase", headers=headers, json={"why": "x"})
    assert unknown.status_code == 422
    assert len(rows_of(database_urls, "SELECT id FROM memories")) == 1
    assert rows_of(database_urls, "SELECT id FROM erasures") == []


async def test_a_repeated_erasure_gives_its_receipt_again_under_its_key(
    actor: Actor, database_urls: DatabaseUrls
) -> None:
    memory = await actor.remember("Here today.")
    url, headers = f"/v1/memories/{memory['id']}/erase", {**actor.tenant.headers("admin"), "Idempotency-Key": "once"}
    body = {"reason": "asked for by its author"}
    first, second = [await actor.client.post(url, headers=headers, json=body) for _ in range(2)]
    assert (first.status_code, second.json()) == (200, first.json())
    assert places_with(database_urls, "asked for by") == {}
    listed = await actor.client.get("/v1/erasures", headers=actor.tenant.headers("admin"))
    assert [(one["id"], one["records"]) for one in listed.json()["items"]] == [(first.json()["id"], 1)]
    read = await actor.client.get(f"/v1/erasures/{first.json()['id']}", headers=actor.tenant.headers("admin"))
    assert read.json() == first.json()
    absent = await actor.client.get(f"/v1/erasures/{uuid4()}", headers=actor.tenant.headers("admin"))
    assert absent.status_code == 404


async def test_a_correction_that_became_an_erased_memory_is_emptied_and_stays(
    actor: Actor, database_urls: DatabaseUrls
) -> None:
    memory = await actor.remember("The depot opens at eight.")
    send, review = actor.client.post, actor.tenant.headers("reviewer")
    body = {
        "target": memory["id"],
        "kind": "replace_text",
        "proposal": {"text": f"{CANARY} opens at nine."},
        "reason": f"{CANARY} told me",
    }
    proposed = (await send("/v1/corrections", json=body, headers=review)).json()["correction"]
    applied = (await send(f"/v1/corrections/{proposed['id']}/apply", json={}, headers=review)).json()["correction"]
    answer = await send(f"/v1/memories/{applied['result_id']}/erase", headers=actor.tenant.headers("admin"))
    assert answer.status_code == 200, answer.text
    assert places_with(database_urls, CANARY) == {}
    [row] = rows_of(database_urls, "SELECT memory_id, proposal, reason, result_id, status FROM corrections")
    assert row == {
        "memory_id": UUID(memory["id"]),
        "proposal": {},
        "reason": "erased",
        "result_id": None,
        "status": "applied",
    }
    assert (await actor.read(memory["id"]))["superseded_by"] is None


async def test_a_draft_that_was_taken_out_of_a_merge_leaves_the_act_too(
    actor: Actor, database_urls: DatabaseUrls
) -> None:
    kept = await actor.remember("The harbour is closed.", dedup="gate")
    body = {"text": "The harbour is closed.", "label": "Attribute", "title": CANARY}
    merged = (await actor.client.post("/v1/memories", json=body, headers=actor.headers)).json()
    assert merged["outcome"] == "merged"
    [act] = [entry for entry in await actor.history(kept["id"]) if entry["kind"] == "merge"]
    assert (await actor.undo(kept["id"], act["id"])).is_success
    [parted] = rows_of(database_urls, "SELECT id FROM memories WHERE title = %s", CANARY)
    answer = await actor.client.post(f"/v1/memories/{parted['id']}/erase", headers=actor.tenant.headers("admin"))
    assert answer.status_code == 200
    assert places_with(database_urls, CANARY) == {}
    assert (await actor.read(kept["id"]))["text"] == "The harbour is closed."


async def test_exports_and_backups_are_counted_where_they_may_hold_copies(actor: Actor) -> None:
    old = await actor.acting("ann").remember("One.")
    admin = actor.tenant.headers("admin")
    assert (await actor.client.get("/v1/users/ann", headers=admin)).status_code == 200
    young = await actor.remember("Two.")
    places = {}
    for memory in (old, young):
        answer = await actor.client.post(f"/v1/memories/{memory['id']}/erase", headers=admin)
        places[memory["text"]] = {place["place"]: place for place in answer.json()["places"]}
    assert places["One."]["exports"]["rows"] == 1
    assert "destroy" in places["One."]["exports"]["note"]
    assert places["Two."]["exports"] == {"place": "exports", "rows": 0}
