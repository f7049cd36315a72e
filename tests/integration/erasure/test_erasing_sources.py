"""A source is erased with what nothing else bears out."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from tests.fixtures.acting import Actor, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.worker import drain
from tests.integration.erasure.searching import in_graph, places_with

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

WORD = "Zyxquvort"


async def put_source(actor: Actor, text: str) -> str:
    body = {"kind": "document", "title": f"About {text}", "passages": [{"text": text}]}
    answer = await actor.client.post("/v1/sources", json=body, headers=actor.headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["source"]["id"])


async def bear_out(actor: Actor, memory: str, source: str, support: str) -> None:
    body = {"source_id": source, "support": support}
    answer = await actor.client.post(f"/v1/memories/{memory}/evidence", json=body, headers=actor.headers)
    assert answer.is_success, answer.text


async def erase(actor: Actor, source: str) -> Any:
    answer = await actor.client.post(f"/v1/sources/{source}/erase", headers=actor.tenant.headers("admin"))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_what_nothing_else_bears_out_goes_with_a_source(
    actor: Actor, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    source, other = await put_source(actor, f"{WORD} Halde came."), await put_source(actor, "Somebody came.")
    memories = {
        name: (await actor.remember(f"Memory {name}."))["id"] for name in ("both", "against", "loose", "denied")
    }
    memories["alone"] = (await actor.remember(f"{WORD} Halde came."))["id"]
    memories["derived"] = (await actor.remember(f"In short: {WORD}."))["id"]
    await actor.tie("EXTRACTED_FROM", memories["derived"], memories["alone"])
    for name, by, support in (
        ("alone", source, "states"),
        ("both", source, "states"),
        ("both", other, "mentions"),
        ("against", source, "contradicts"),
        ("denied", source, "supports"),
        ("denied", other, "contradicts"),
    ):
        await bear_out(actor, memories[name], by, support)
    entity = await actor.declare("Bakery")
    body = {"layer": "source", "target_id": source, "relationship": f"is in {WORD}"}
    linked = await actor.client.post(f"/v1/memory/entities/{entity}/links", json=body, headers=actor.headers)
    await drain(worker)
    receipt = await erase(actor, source)
    assert {memories["alone"], memories["derived"], memories["denied"], source} < set(receipt["record_ids"])
    rows = {place["place"]: place["rows"] for place in receipt["places"]}
    assert (rows["sources"], rows["passages"], rows["evidence"], rows["memories"]) == (1, 1, 5, 3)
    assert rows["entity_links"] == linked.is_success
    left = rows_of(database_urls, "SELECT id FROM memories")
    assert {str(row["id"]) for row in left} == {memories[name] for name in ("both", "against", "loose")}
    assert len(rows_of(database_urls, "SELECT id FROM evidence")) == 1
    await drain(worker)
    assert places_with(database_urls, WORD) == {}
    assert not await in_graph(worker.backend, actor.tenant.tenant_id, WORD)


async def test_a_source_that_is_not_there_for_the_asker_can_not_be_erased(actor: Actor) -> None:
    body = {"kind": "document", "title": "Mine", "visibility": "private"}
    ann = actor.acting("ann")
    hidden = (await ann.client.post("/v1/sources", json=body, headers=ann.headers)).json()["source"]["id"]
    admin = actor.tenant.headers("admin")
    answers = [await actor.client.post(f"/v1/sources/{ident}/erase", headers=admin) for ident in (hidden, uuid4())]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json()["detail"] == answers[1].json()["detail"]
