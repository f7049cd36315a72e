"""What retrieval shows of memories that were superseded, disputed, withdrawn, and brought back."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain
from tests.integration.retrieval.conftest import Ask

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

GRAPH_ONLY = {"arms": {"vector": False, "text": False}}


@pytest.fixture
def actor(client: httpx.AsyncClient, tenant: TestTenant) -> Actor:
    return Actor(client, tenant)


def found(pack: dict[str, Any]) -> dict[str, str]:
    return {item["id"]: item["status"] for item in pack["items"]}


async def test_the_new_goal_has_the_context_of_the_old_one(actor: Actor, ask: Ask, worker: WorkerContext) -> None:
    old = await actor.remember("Swim across the lake.", label="Goal")
    source = await actor.remember("A talk with the coach in spring.", label="Event")
    helps = await actor.remember("Wakes before dawn every day.", label="Behavior")
    await actor.tie("EXTRACTED_FROM", old["id"], source["id"], confidence=1)
    await actor.tie("ADVANCES", helps["id"], old["id"], confidence=1)
    new = (await actor.do("supersede", old["id"], {"text": "Swim across the channel."}))["memory"]
    await drain(worker)
    now = await ask("swim across the channel", limits={"hops": 1})
    assert old["id"] not in found(now)
    assert found(now)[new["id"]] == "active"
    (item,) = [item for item in now["items"] if item["id"] == helps["id"]]
    assert [(node["id"], node.get("via")) for node in item["path"]] == [(new["id"], None), (helps["id"], "ADVANCES")]
    past = await ask("swim across the lake", include=["history"], limits={"hops": 1})
    assert found(past)[old["id"]] == "superseded"
    (was,) = [item for item in past["items"] if item["id"] == old["id"]]
    assert was["superseded_by"] == new["id"]
    (talk,) = [item for item in past["items"] if item["id"] == source["id"]]
    assert [node["id"] for node in talk["path"]] == [old["id"], source["id"]]


async def test_both_sides_of_a_dispute_come_together_labelled(actor: Actor, ask: Ask, worker: WorkerContext) -> None:
    one = await actor.remember("The warehouse opens at eight.")
    others = [await actor.remember(f"The warehouse has a gate number {number}.") for number in range(4)]
    other = await actor.remember("Nobody is let in before nine.")
    await actor.do("dispute", one["id"], {"against": other["id"], "reason": "A visit."})
    await drain(worker)
    pack = await ask("when does the warehouse open?")
    assert found(pack)[one["id"]] == found(pack)[other["id"]] == "disputed"
    places = {item["id"]: place for place, item in enumerate(pack["items"])}
    assert places[other["id"]] - places[one["id"]] == 1
    assert len(places) == 2 + len(others)
    assert pack["conflicts"] == [{"kind": "contradicts", "items": [one["id"], other["id"]]}]
    markdown = (await ask("when does the warehouse open?", path="/v1/context"))["markdown"]
    assert "disputed" in markdown


@pytest.mark.parametrize("verb", ["archive", "retract", "supersede"])
async def test_what_is_out_of_the_way_comes_by_no_arm_until_it_is_back(
    actor: Actor, ask: Ask, worker: WorkerContext, verb: str
) -> None:
    memory = await actor.remember("The gearbox of the Ketch needs oil.")
    near = await actor.remember("Oil is in the shed.")
    await actor.tie("REQUIRES", memory["id"], near["id"], confidence=1)
    entity = await actor.declare("Ketch")
    await actor.tie("ABOUT", memory["id"], {"entity": entity}, confidence=1)
    await drain(worker)
    assert memory["id"] in found(await ask("what of the Ketch?", **GRAPH_ONLY))
    body = {"text": "The Ketch was sold."} if verb == "supersede" else None
    done = await actor.do(verb, memory["id"], body)
    for drained in (False, True):
        if drained:
            await drain(worker)
        for question in ("gearbox oil", "what of the Ketch?"):
            for arms in ({}, GRAPH_ONLY):
                assert memory["id"] not in found(await ask(question, **arms)), (drained, question, arms)
    history = await ask("gearbox oil", include=["history"])
    assert found(history)[memory["id"]] == done.get("superseded", done["memory"])["status"]
    assert (await actor.undo(memory["id"], done["act_id"])).status_code == 200
    assert found(await ask("gearbox oil"))[memory["id"]] == "active"
    await drain(worker)
    assert memory["id"] in found(await ask("what of the Ketch?", **GRAPH_ONLY))
