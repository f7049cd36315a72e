"""What memory believed at an earlier moment: records, sources, paths as they stood, for who may see them now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.citing import Citer
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain
from tests.integration.retrieval.conftest import Ask

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

WORDS = {"arms": {"vector": False, "graph": False}}
GRAPH_ONLY = {"arms": {"vector": False, "text": False}}


@pytest.fixture
def actor(client: httpx.AsyncClient, tenant: TestTenant) -> Actor:
    return Actor(client, tenant)


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    return Citer(client, tenant)


def now() -> str:
    return datetime.now(UTC).isoformat()


def found(pack: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in pack["items"]}


async def change(actor: Actor, ident: str, **fields: Any) -> None:
    answer = await actor.client.patch(f"/v1/memories/{ident}", json=fields, headers=actor.headers)
    assert answer.status_code == 200, answer.text


async def correct(actor: Actor, ident: str, kind: str, proposal: dict[str, Any]) -> dict[str, Any]:
    headers = actor.tenant.headers("reviewer", user=actor.user)
    body = {"target": ident, "kind": kind, "proposal": proposal, "reason": "The letter says so."}
    made = await actor.client.post("/v1/corrections", json=body, headers=headers)
    assert made.status_code == 201, made.text
    path = f"/v1/corrections/{made.json()['correction']['id']}/apply"
    applied = await actor.client.post(path, json={}, headers=headers)
    assert applied.is_success, applied.text
    return dict(applied.json())


async def test_what_was_wrong_was_believed_until_it_was_corrected(actor: Actor, ask: Ask) -> None:
    wrong = await actor.remember("The ferry leaves from pier four.", valid_from="2026-01-01T00:00:00Z")
    then = now()
    await correct(actor, wrong["id"], "replace_text", {"text": "The ferry leaves from pier nine."})
    asked = {"as_of": "2026-02-01T00:00:00Z", **WORDS}
    assert [item["text"] for item in (await ask("ferry", **asked))["items"]] == ["The ferry leaves from pier nine."]
    (item,) = (await ask("ferry", believed_at=then, **asked))["items"]
    assert (item["id"], item["text"], item["status"]) == (wrong["id"], wrong["text"], "active")
    assert (item["valid_from"], item["valid_to"]) == ("2026-01-01T00:00:00Z", None)
    assert "superseded_by" not in item


async def test_a_text_that_was_changed_is_shown_as_it_was(actor: Actor, ask: Ask) -> None:
    memory = await actor.remember("The ferry takes an hour.", title="Crossing")
    then = now()
    await change(actor, memory["id"], text="The ferry takes two hours.", title="Sailing", confidence=0.3)
    (item,) = (await ask("ferry", believed_at=then, **WORDS))["items"]
    assert (item["text"], item["title"], item["confidence"]) == ("The ferry takes an hour.", "Crossing", 1.0)
    (item,) = (await ask("ferry", believed_at=now(), **WORDS))["items"]
    assert (item["text"], item["title"], item["confidence"]) == ("The ferry takes two hours.", "Sailing", 0.3)


@pytest.mark.parametrize("verb", ["archive", "retract", "complete", "abandon", "dispute"])
async def test_a_step_is_taken_back_and_so_is_its_undoing(actor: Actor, ask: Ask, verb: str) -> None:
    memory = await actor.remember("Paint the ferry.", label="Goal")
    before = now()
    done = await actor.do(verb, memory["id"])
    between = now()
    assert (await actor.undo(memory["id"], done["act_id"])).status_code == 200
    history = {"include": ["history"], **WORDS}
    statuses = [
        found(await ask("ferry", believed_at=moment, **history))[memory["id"]]["status"]
        for moment in (before, between, now())
    ]
    assert statuses == ["active", done["memory"]["status"], "active"]


async def test_what_was_recorded_later_was_not_known(actor: Actor, ask: Ask) -> None:
    then = now()
    memory = await actor.remember("The ferry is blue.", valid_from="2020-01-01T00:00:00Z")
    assert (await ask("ferry", believed_at=then))["no_match"]
    assert set(found(await ask("ferry", believed_at=now()))) == {memory["id"]}


async def test_both_times_are_asked_apart(actor: Actor, ask: Ask) -> None:
    old = await actor.remember(
        "The ferry is green.", subject="ferry", property="colour", valid_from="2025-01-01T00:00:00Z"
    )
    then = now()
    claim = {"subject": "ferry", "property": "colour", "on_conflict": "supersede", "dedup": "gate"}
    new = await actor.remember("The ferry is white.", valid_from="2026-01-01T00:00:00Z", **claim)
    for asked, wanted in (
        ({"as_of": "2025-06-01T00:00:00Z"}, old),
        ({"as_of": "2026-06-01T00:00:00Z"}, new),
        ({"as_of": "2026-06-01T00:00:00Z", "believed_at": then}, old),
        ({"believed_at": then}, old),
        ({"believed_at": now()}, new),
    ):
        assert set(found(await ask("ferry", **asked, **WORDS))) == {wanted["id"]}, asked


async def test_nobody_knows_what_will_be_believed(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for path in ("/v1/retrieve", "/v1/context"):
        body = {"query": "ferry", "believed_at": later}
        answer = await client.post(path, json=body, headers=tenant.headers("reader"))
        assert answer.status_code == 422
        assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/believed_at"]


async def test_an_answer_from_before_the_beginning_is_empty(actor: Actor, ask: Ask) -> None:
    await actor.remember("The ferry is blue.")
    assert (await ask("ferry", believed_at="1970-01-01T00:00:00Z"))["no_match"]


async def test_what_is_hidden_now_is_hidden_of_then(actor: Actor, ask: Ask) -> None:
    ann = actor.acting("ann")
    memory = await ann.remember("The ferry is sold.")
    then = now()
    await change(ann, memory["id"], visibility="private")
    assert (await ask("ferry", user="ben", believed_at=then))["no_match"]
    assert set(found(await ask("ferry", user="ann", believed_at=then))) == {memory["id"]}


async def test_a_text_that_somebody_could_not_read_is_not_told_later(actor: Actor, ask: Ask) -> None:
    ann = actor.acting("ann")
    memory = await ann.remember("The ferry is sold to Zarah.", visibility="private")
    then = now()
    await change(ann, memory["id"], text="The ferry is sold.")
    between = now()
    await change(ann, memory["id"], visibility="tenant")
    assert set(found(await ask("ferry", user="ben"))) == {memory["id"]}
    pack = await ask("ferry", user="ben", believed_at=then)
    assert pack["no_match"]
    assert "Zarah" not in str(pack)
    # From here on it said what it says now, and whoever may read it now may know that.
    assert set(found(await ask("ferry", user="ben", believed_at=between))) == {memory["id"]}
    (item,) = (await ask("ferry", user="ann", believed_at=then))["items"]
    assert item["text"] == "The ferry is sold to Zarah."


async def test_an_act_that_names_a_hidden_memory_is_taken_back_all_the_same(actor: Actor, ask: Ask) -> None:
    ann = actor.acting("ann")
    seen = await ann.remember("The ferry is sold.")
    hidden = await ann.remember("The ferry is kept, and Zarah knows.", visibility="private")
    then = now()
    await ann.do("dispute", hidden["id"], {"against": seen["id"]})
    (item,) = (await ask("ferry", user="ben", believed_at=then))["items"]
    assert (item["id"], item["status"]) == (seen["id"], "active")
    (item,) = (await ask("ferry", user="ben"))["items"]
    assert item["status"] == "disputed"


async def test_the_source_is_the_one_of_then(citer: Citer, ask: Ask) -> None:
    first, second = await citer.source(title="A letter"), await citer.source(title="A ledger")
    memory = (await citer.remember("The ferry is sold.", {"source_id": first, "support": "mentions"}))["memory"]
    then = now()
    path = f"/v1/memories/{memory['id']}/evidence"
    assert (await citer.post(path, {"source_id": second, "support": "states"})).status_code == 201
    between = now()
    stated = (await citer.get(path))["items"][0]
    gone = await citer.delete(f"{path}/{stated['id']}")
    assert gone.is_success, gone.text
    for moment, title in ((then, "A letter"), (between, "A ledger"), (now(), "A letter")):
        (item,) = (await ask("ferry", believed_at=moment, **WORDS))["items"]
        assert item["source"]["title"] == title


async def test_passages_are_there_from_when_they_were_recorded(citer: Citer, ask: Ask) -> None:
    then = now()
    await citer.source("The ferry has two decks.", source_date="2020-01-01T00:00:00Z")
    assert (await ask("ferry", believed_at=then, as_of=now()))["no_match"]
    assert [item["type"] for item in (await ask("ferry", believed_at=now()))["items"]] == ["passage"]
    early = {"believed_at": now(), "as_of": "2019-01-01T00:00:00Z"}
    assert (await ask("ferry", **early))["no_match"]


async def test_an_entity_that_was_changed_since_is_no_answer(actor: Actor, ask: Ask) -> None:
    entity = await actor.declare("Zephyr")
    then = now()
    assert set(found(await ask("what of Zephyr?", believed_at=then))) == {entity}
    body = {"summary": "A ferry."}
    path = f"/v1/memory/entities/{entity}"
    assert (await actor.client.patch(path, json=body, headers=actor.headers)).status_code == 200
    assert (await ask("what of Zephyr?", believed_at=then))["no_match"]
    assert set(found(await ask("what of Zephyr?", believed_at=now()))) == {entity}


async def test_a_path_needs_every_step_of_it_then(actor: Actor, ask: Ask, worker: WorkerContext) -> None:
    entity = await actor.declare("Zephyr")
    memory = await actor.remember("It needs a new rudder.", label="Goal")
    before = now()
    await actor.tie("ABOUT", memory["id"], {"entity": entity}, confidence=1)
    tied = now()
    new = (await actor.do("supersede", memory["id"], {"text": "It needs two new rudders."}))["memory"]
    moved = now()
    await drain(worker)
    for moment, wanted in ((before, set()), (tied, set()), (moved, {new["id"]})):
        pack = await ask("what of Zephyr?", believed_at=moment, **GRAPH_ONLY)
        # The edge has moved: where it was is kept for an undo, but the graph leads from where it is.
        assert set(found(pack)) - {entity} == wanted, moment


async def test_a_name_that_a_text_did_not_hold_yet_leads_nowhere(actor: Actor, ask: Ask, worker: WorkerContext) -> None:
    await actor.declare("Zephyr")
    memory = await actor.remember("It needs a new rudder.")
    then = now()
    await change(actor, memory["id"], text="Zephyr needs a new rudder.")
    await drain(worker)
    assert memory["id"] in found(await ask("what of Zephyr?", believed_at=now(), **GRAPH_ONLY))
    assert memory["id"] not in found(await ask("what of Zephyr?", believed_at=then, **GRAPH_ONLY))


async def test_contradictions_are_those_of_then(actor: Actor, ask: Ask) -> None:
    one = await actor.remember("The ferry is sold.")
    other = await actor.remember("The ferry is kept.")
    then = now()
    await actor.tie("CONTRADICTS", one["id"], other["id"])
    assert (await ask("ferry", believed_at=then))["conflicts"] == []
    (conflict,) = (await ask("ferry", believed_at=now()))["conflicts"]
    assert conflict["kind"] == "contradicts"


async def test_what_was_deleted_stays_absent(actor: Actor, ask: Ask) -> None:
    memory = await actor.remember("The ferry is sold.")
    then = now()
    answer = await actor.client.delete(f"/v1/memories/{memory['id']}", headers=actor.headers)
    assert answer.status_code == 200
    assert (await ask("ferry", believed_at=then))["no_match"]


async def test_the_log_says_what_moment_was_asked_about(
    actor: Actor, client: httpx.AsyncClient, tenant: TestTenant, ask: Ask
) -> None:
    await actor.remember("The ferry is sold.")
    then = now()
    pack = await ask("ferry", believed_at=then)
    answer = await client.get(f"/v1/retrievals/{pack['retrieval_id']}", headers=tenant.headers("operator"))
    explained = answer.json()
    assert datetime.fromisoformat(explained["bounds"]["believed_at"]) == datetime.fromisoformat(then)
    assert datetime.fromisoformat(explained["retrieval"]["as_of"]) == datetime.fromisoformat(then)
