"""What has changed, been corrected or deleted: every way of asking tells the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain
from tests.integration.retrieval.conftest import Ask, Memory

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

Body = dict[str, Any]


def texts(pack: Body) -> list[str]:
    return [item["text"] for item in pack["items"]]


async def stored(client: httpx.AsyncClient, tenant: TestTenant, text: str, **fields: Any) -> Body:
    """Store a text through the gate, a new value taking the place of the old one; gives the whole answer."""
    body = {"text": text, "label": "Attribute", "on_conflict": "supersede", **fields}
    answer = await client.post("/v1/memories", json=body, headers=tenant.headers())
    assert answer.is_success, answer.text
    return dict(answer.json())


CHAINS = [
    (
        ("Ada Falk works at Dunlin Optics.", "Ada Falk has left Dunlin Optics and started at Fennel Foods."),
        "Where does Ada Falk work?",
    ),
    (
        ("Ada Falk lives in Graz.", "Ada Falk lives in Linz.", "Ada Falk has moved to Porto."),
        "In which city does Ada Falk live?",
    ),
    (
        ("The Plover lamp costs 89 euros.", "The price of the Plover lamp has gone up to 95 euros."),
        "What does the Plover lamp cost?",
    ),
    (
        ("Harbor is owned by the print team.", "The archive team has taken over Harbor."),
        "Who owns Harbor?",
    ),
]


@pytest.mark.parametrize(("chain", "query"), CHAINS, ids=["employer", "home", "price", "owner"])
async def test_the_newest_fact_comes_and_the_old_ones_with_history_alone(
    client: httpx.AsyncClient, tenant: TestTenant, ask: Ask, chain: tuple[str, ...], query: str
) -> None:
    for text in ("Ada Falk keeps two greyhounds.", "Edda Falk works at Gannet Shipping.", "The Plover router hums."):
        await stored(client, tenant, text)
    outcomes = [(await stored(client, tenant, text))["outcome"] for text in chain]
    assert set(outcomes[1:]) == {"superseded"}
    now = texts(await ask(query))
    assert chain[-1] in now
    assert not set(chain[:-1]) & set(now)
    past = (await ask(query, include=["history"]))["items"]
    assert {item["text"]: item["status"] for item in past if item["text"] in chain} == {
        **dict.fromkeys(chain[:-1], "superseded"),
        chain[-1]: "active",
    }
    replaced = {item["text"]: item.get("superseded_by") for item in past}
    ids = {item["text"]: item["id"] for item in past}
    assert [replaced[text] for text in chain[:-1]] == [ids[text] for text in chain[1:]]


async def test_what_is_said_beside_a_fact_does_not_end_it(
    client: httpx.AsyncClient, tenant: TestTenant, ask: Ask
) -> None:
    await stored(client, tenant, "Ann works at Northwind.")
    for text in (
        "Ann administers the repository of Northwind.",
        "Ann now lives in Graz.",
        "Ann now sits in room 117.",
        "Anna now works at Finch.",
        "Ann has left the choir.",
    ):
        assert (await stored(client, tenant, text))["outcome"] != "superseded", text
    assert "Ann works at Northwind." in texts(await ask("Where does Ann work?"))


async def test_a_batch_that_changes_a_fact_twice_ends_with_the_last(
    client: httpx.AsyncClient, tenant: TestTenant, ask: Ask
) -> None:
    await stored(client, tenant, "Ada Falk lives in Graz.")
    moves = ["Ada Falk lives in Linz.", "Ada Falk has moved to Porto."]
    items = [{"text": text, "label": "Attribute", "on_conflict": "supersede"} for text in moves]
    answer = await client.post("/v1/memories/batch", json={"items": items}, headers=tenant.headers())
    assert [result["outcome"] for result in answer.json()["results"]] == ["superseded", "superseded"]
    assert texts(await ask("Where does Ada Falk live?")) == ["Ada Falk has moved to Porto."]


async def test_a_former_value_is_found_among_many_told_in_the_same_words(
    client: httpx.AsyncClient, tenant: TestTenant, ask: Ask
) -> None:
    old = await stored(client, tenant, "Ada Falk works at Dunlin Optics.")
    for name in ("Bela", "Ciro", "Dunja", "Edda", "Gita", "Henk"):
        await stored(client, tenant, f"{name} Falk works at Gannet Shipping.")
    new = await stored(client, tenant, "Ada Falk works at Gannet Shipping.")
    assert new["outcome"] == "superseded"
    assert new["memory"]["supersedes"] == old["memory"]["id"]
    assert "Ada Falk works at Dunlin Optics." not in texts(await ask("Where does Ada Falk work?"))


async def test_a_changed_text_is_the_same_wherever_it_is_asked_for(
    client: httpx.AsyncClient, tenant: TestTenant, remember: Memory, ask: Ask, worker: WorkerContext
) -> None:
    ident = await remember("Zephyr pays the rent of the boathouse.")
    await remember("The boathouse needs paint.", edges=[{"type": "REQUIRES", "to": ident}])
    text = "Quill pays the rent of the boathouse."
    changed = await client.patch(f"/v1/memories/{ident}", json={"text": text}, headers=tenant.headers())
    assert changed.status_code == 200, changed.text
    one = await client.get(f"/v1/memories/{ident}", headers=tenant.headers())
    every = await client.get("/v1/memories", headers=tenant.headers())
    assert one.json()["text"] == text
    assert next(item["text"] for item in every.json()["items"] if item["id"] == ident) == text
    for arms in ({"vector": False, "graph": False}, {"text": False, "graph": False}, {}):
        pack = await ask("Who pays the rent of the boathouse?", arms=arms)
        assert text in texts(pack)
        assert "Zephyr" not in str(pack["items"])
    await drain(worker)
    pack = await ask("Who pays the rent of the boathouse?", include=["history"])
    assert "Zephyr" not in str(pack["items"])
    assert (await ask("Zephyr", arms={"vector": False}))["no_match"]


@pytest.mark.parametrize("way", ["item", "path"])
async def test_the_id_that_an_answer_tells_is_the_one_to_delete_by(
    client: httpx.AsyncClient, tenant: TestTenant, remember: Memory, ask: Ask, worker: WorkerContext, way: str
) -> None:
    cause = await remember("The valve of the boiler leaks.")
    await remember("The cellar was flooded.", edges=[{"type": "CAUSED_BY", "to": cause}])
    await drain(worker)
    items = (await ask("Why was the cellar flooded?"))["items"]
    item = next(item for item in items if item["id"] == cause)
    ident = item["id"] if way == "item" else item["path"][-1]["id"]
    gone = await client.delete(f"/v1/memories/{ident}", headers=tenant.headers())
    assert gone.status_code == 200, gone.text
    assert gone.json()["deleted"] == 1
    left = await ask("Why was the cellar flooded?")
    assert texts(left) == ["The cellar was flooded."]
    assert cause not in str(left)


async def test_a_link_holds_up_to_its_end_and_no_longer(
    client: httpx.AsyncClient, tenant: TestTenant, ask: Ask, worker: WorkerContext
) -> None:
    async def declare(name: str) -> str:
        body = {"name": name, "entity_type": "vendor"}
        answer = await client.post("/v1/memory/entities", json=body, headers=tenant.headers())
        return str(answer.json()["entity"]["id"])

    bakery, ardal, finch = [await declare(name) for name in ("Larkspur Bakery", "Ardal", "Finch")]
    end = "2026-04-01T00:00:00Z"
    for target, window in ((ardal, {"valid_to": end}), (finch, {"valid_from": end})):
        body = {"layer": "entity", "target_id": target, "relationship": "buys flour from", **window}
        path = f"/v1/memory/entities/{bakery}/links"
        assert (await client.post(path, json=body, headers=tenant.headers())).status_code == 201
    await drain(worker)
    for moment, there, gone in (
        ("2026-03-31T23:59:59.999999Z", ardal, finch),
        (end, finch, ardal),
        ("2026-04-01T01:59:59+02:00", ardal, finch),
        (datetime.now(UTC).isoformat(), finch, ardal),
    ):
        items = (await ask("Larkspur Bakery", as_of=moment))["items"]
        ids = {item["id"] for item in items}
        assert there in ids, moment
        assert gone not in ids, moment
