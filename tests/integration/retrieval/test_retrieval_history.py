"""What does not hold any more comes with history alone: labelled, and linked to what took its place."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.service import TestTenant
from tests.integration.retrieval.conftest import Ask

pytestmark = pytest.mark.anyio

WORDS = {"arms": {"vector": False, "graph": False}}
PAST = {"include": ["history"], **WORDS}


@pytest.fixture
def actor(client: httpx.AsyncClient, tenant: TestTenant) -> Actor:
    return Actor(client, tenant)


def found(pack: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {item["id"]: (item["status"], item.get("superseded_by")) for item in pack["items"]}


async def correct(actor: Actor, ident: str, text: str) -> str:
    """Replace a text that was wrong; the id of the memory that took the place."""
    headers = actor.tenant.headers("reviewer")
    body = {"target": ident, "kind": "replace_text", "proposal": {"text": text}, "reason": "The letter says so."}
    made = await actor.client.post("/v1/corrections", json=body, headers=headers)
    assert made.status_code == 201, made.text
    path = f"/v1/corrections/{made.json()['correction']['id']}/apply"
    applied = await actor.client.post(path, json={}, headers=headers)
    assert applied.is_success, applied.text
    return str(applied.json()["correction"]["result_id"])


@pytest.mark.parametrize(
    ("verb", "label", "status"),
    [("archive", "Attribute", "archived"), ("retract", "Event", "retracted"), ("expire", "Opportunity", "expired")],
)
async def test_what_was_put_aside_is_labelled(actor: Actor, ask: Ask, verb: str, label: str, status: str) -> None:
    memory = await actor.remember("The ferry is for sale.", label=label)
    if verb == "expire":
        body = {"status": "expired"}
        path = f"/v1/memories/{memory['id']}"
        assert (await actor.client.patch(path, json=body, headers=actor.headers)).status_code == 200
    else:
        await actor.do(verb, memory["id"])
    assert (await ask("ferry", **WORDS))["no_match"]
    assert found(await ask("ferry", **PAST)) == {memory["id"]: (status, None)}


async def test_what_was_superseded_leads_to_its_place(actor: Actor, ask: Ask) -> None:
    first = await actor.remember("The ferry is green.")
    second = (await actor.do("supersede", first["id"], {"text": "The ferry is white."}))["memory"]
    third = (await actor.do("supersede", second["id"], {"text": "The ferry is red."}))["memory"]
    assert found(await ask("ferry", **WORDS)) == {third["id"]: ("active", None)}
    assert found(await ask("ferry", **PAST)) == {
        first["id"]: ("superseded", second["id"]),
        second["id"]: ("superseded", third["id"]),
        third["id"]: ("active", None),
    }


@pytest.mark.parametrize(("label", "status"), [("Attribute", "superseded"), ("Event", "retracted")])
async def test_what_was_wrong_leads_to_what_is_right(actor: Actor, ask: Ask, label: str, status: str) -> None:
    wrong = await actor.remember("The ferry sank in May.", label=label)
    right = await correct(actor, wrong["id"], "The ferry sank in June.")
    assert found(await ask("ferry", **WORDS)) == {right: ("active", None)}
    assert found(await ask("ferry", **PAST)) == {wrong["id"]: (status, right), right: ("active", None)}
    # It has never held, so that no moment finds it without history.
    assert set(found(await ask("ferry", as_of=wrong["created_at"], **WORDS))) <= {right}


async def test_a_correction_that_was_undone_leads_nowhere(actor: Actor, ask: Ask) -> None:
    wrong = await actor.remember("The ferry sank in May.", label="Event")
    right = await correct(actor, wrong["id"], "The ferry sank in June.")
    act = (await actor.history(wrong["id"]))[0]["id"]
    reviewer = actor.tenant.headers("reviewer")
    undone = await actor.client.post(f"/v1/memories/{wrong['id']}/acts/{act}/undo", headers=reviewer)
    assert undone.status_code == 200
    assert found(await ask("ferry", **PAST)) == {wrong["id"]: ("active", None), right: ("retracted", None)}


async def test_a_duplicate_leads_to_the_one_that_stayed(actor: Actor, ask: Ask) -> None:
    stays = await actor.remember("The ferry is for sale.")
    goes = await actor.remember("The ferry is being sold.")
    await actor.tie("DUPLICATES", goes["id"], stays["id"])
    await actor.do("archive", goes["id"])
    assert found(await ask("ferry", **PAST)) == {stays["id"]: ("active", None), goes["id"]: ("archived", stays["id"])}


async def test_what_took_the_place_is_named_only_to_who_sees_it(actor: Actor, ask: Ask) -> None:
    ann = actor.acting("ann")
    old = await ann.remember("The ferry is green.")
    new = (await ann.do("supersede", old["id"], {"text": "The ferry is white."}))["memory"]
    body = {"visibility": "private"}
    path = f"/v1/memories/{new['id']}"
    assert (await ann.client.patch(path, json=body, headers=ann.headers)).status_code == 200
    assert found(await ask("ferry", user="ben", **PAST)) == {old["id"]: ("superseded", None)}
    assert found(await ask("ferry", user="ann", **PAST))[old["id"]] == ("superseded", new["id"])


async def test_both_sides_of_a_dispute_are_named_with_history_too(actor: Actor, ask: Ask) -> None:
    one, other = await actor.remember("The ferry is sold."), await actor.remember("The ferry is kept.")
    await actor.do("dispute", one["id"], {"against": other["id"]})
    pack = await ask("ferry", **PAST)
    assert found(pack) == {one["id"]: ("disputed", None), other["id"]: ("disputed", None)}
    assert [set(conflict["items"]) for conflict in pack["conflicts"]] == [{one["id"], other["id"]}]
