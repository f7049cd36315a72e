"""Passages of sources are found by their words and their meaning, by those who may read the source, and nobody else."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.fixtures.citing import Citer, cites
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain
from tests.integration.retrieval.conftest import Ask

from memory_os.retrieval.arms import ARM_LIMIT
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

ALONE = {"vector": False, "text": False, "graph": False}
SECRET = "The gearbox of CANARY-7781 must never run without oil."


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    """Stores sources and memories for nobody in particular."""
    return Citer(client, tenant)


async def passages_of(citer: Citer, source: str) -> list[str]:
    """Ids of a source's passages, in order."""
    return [passage["id"] for passage in (await citer.get(f"/v1/sources/{source}/passages"))["items"]]


def kinds(pack: dict[str, Any]) -> dict[str, str]:
    return {item["id"]: item["type"] for item in pack["items"]}


@pytest.mark.parametrize(("arm", "query"), [("text", "gearbox oil"), ("vector", "how to grease a transmission")])
async def test_a_passage_is_found_by_either_arm(citer: Citer, ask: Ask, arm: str, query: str) -> None:
    texts = ("The gearbox needs fresh oil every spring.", "Dividends went up in March.")
    source = await citer.source(*texts, kind="url", title="Manual", source_date="2025-03-01T08:00:00+01:00")
    first, _ = await passages_of(citer, source)
    (item,) = (await ask(query, arms={**ALONE, arm: True}))["items"]
    assert (item["type"], item["id"], item["text"]) == ("passage", first, texts[0])
    assert (item["label"], item["title"], item["status"]) == ("url", "Manual", "active")
    assert item["date"] == "2025-03-01T07:00:00Z"
    assert item["arms"] == {arm: 1}
    assert item["source"] == {"id": source, "title": "Manual", "date": "2025-03-01T07:00:00Z"}


async def test_memories_and_passages_compete_in_one_order(citer: Citer, ask: Ask) -> None:
    source = await citer.source("The gearbox needs oil, and so does the pump.", "Only the pump is painted.")
    memory = await citer.memory("The gearbox needs oil.")
    near, far = await passages_of(citer, source)
    pack = await ask("gearbox oil pump", arms={**ALONE, "text": True})
    assert set(kinds(pack)) == {near, far, memory}
    assert pack["items"][-1]["id"] == far
    assert pack["omitted_count"] == 0


async def test_a_source_of_later_date_is_not_in_force(citer: Citer, ask: Ask) -> None:
    source = await citer.source("The gearbox needs oil.", source_date="2025-03-01T00:00:00Z")
    (passage,) = await passages_of(citer, source)
    undated = await citer.source("The gearbox needs care.")
    (new,) = await passages_of(citer, undated)
    for arm in ("text", "vector"):
        arms = {**ALONE, arm: True}
        assert set(kinds(await ask("gearbox", arms=arms))) == {passage, new}
        assert set(kinds(await ask("gearbox", arms=arms, as_of="2025-03-01T00:00:00Z"))) == {passage}
        assert (await ask("gearbox", arms=arms, as_of="2025-02-28T23:59:59Z"))["no_match"]
        assert (await ask("gearbox", arms=arms, as_of="2025-02-28T23:59:59Z", include=["history"]))["no_match"]


@pytest.mark.parametrize("arm", ["text", "vector"])
async def test_later_sources_take_no_place_from_what_is_in_force(citer: Citer, ask: Ask, arm: str) -> None:
    await citer.source(*["Gearbox oil."] * (ARM_LIMIT + 1), source_date="2099-01-01T00:00:00Z")
    memory = await citer.memory("Every spring the gearbox needs fresh oil.")
    pack = await ask("gearbox oil", arms={**ALONE, arm: True})
    assert kinds(pack) == {memory: "memory"}
    assert pack["omitted_count"] == 0
    assert len((await ask("gearbox oil", arms={**ALONE, arm: True}, as_of="2100-01-01T00:00:00Z"))["items"]) == 8


async def test_the_passages_of_another_tenant_do_not_exist(
    client: httpx.AsyncClient, tenant_factory: Any, citer: Citer, ask: Ask
) -> None:
    await citer.source("The gearbox needs oil.")
    answer = await client.post("/v1/retrieve", json={"query": "gearbox"}, headers=tenant_factory().headers("admin"))
    assert answer.json()["no_match"]
    assert not (await ask("gearbox"))["no_match"]


@pytest.mark.parametrize(
    ("readers", "reads"),
    [
        ({"visibility": "private"}, [("ada", ())]),
        ({"visibility": "restricted", "readers": {"users": ["cleo"], "groups": []}}, [("ada", ()), ("cleo", ())]),
        ({"visibility": "restricted", "readers": {"users": [], "groups": ["ops"]}}, [("ada", ()), ("dan", ("ops",))]),
    ],
    ids=["private", "user", "group"],
)
async def test_a_passage_has_the_readers_of_its_source(
    citer: Citer, ask: Ask, readers: dict[str, Any], reads: list[tuple[str, tuple[str, ...]]]
) -> None:
    ada = citer.acting("ada")
    source = await ada.source(SECRET, title="CANARY diary", **readers)
    (passage,) = await passages_of(ada, source)
    for user, groups in reads:
        assert kinds(await ask("gearbox oil", user=user, groups=groups)) == {passage: "passage"}
    for stranger, groups in (("ben", ()), ("ADA", ()), ("ben", ("operations",)), (None, ())):
        pack = await ask("gearbox oil CANARY-7781", user=stranger, groups=groups)
        assert pack["no_match"]
        assert pack["omitted_count"] == 0
        assert "CANARY" not in json.dumps(pack["items"])
    opened = await ada.patch(f"/v1/sources/{source}", {"visibility": "tenant"})
    assert opened.status_code == 200, opened.text
    assert kinds(await ask("gearbox oil", user="ben")) == {passage: "passage"}


@pytest.mark.parametrize("budget", [4_000, 500])
async def test_hidden_passages_change_nothing_for_others(citer: Citer, ask: Ask, budget: int) -> None:
    await citer.source(*(f"Gearbox {number} needs oil of grade {number}." for number in range(6)))
    for number in range(4):
        await citer.memory(f"The oil of gearbox {number} was changed in May.")

    async def answer(form: str) -> dict[str, Any]:
        question = "which oil does the gearbox need?"
        return await ask(question, user="ben", limits={"memories": 5}, budget_tokens=budget, format=form)

    before = [await answer(form) for form in ("json", "markdown")]
    ada = citer.acting("ada")
    for number in range(12):
        texts = [f"Which oil does the gearbox need? Secret oil {number} of page {page}!" for page in range(5)]
        source = await ada.source(*texts, visibility="private")
        passage = (await passages_of(ada, source))[0]
        await ada.memory(f"The gearbox needs {number}.", cites(source, passage_id=passage), visibility="private")
    after = [await answer(form) for form in ("json", "markdown")]
    for one, other in zip(before, after, strict=True):
        assert [item["id"] for item in one["items"]] == [item["id"] for item in other["items"]]
        for old, new in zip(one["items"], other["items"], strict=True):
            assert (old["arms"], old["why"], old["text"]) == (new["arms"], new["why"], new["text"])
            assert old["score"] == pytest.approx(new["score"], abs=1e-3)  # a little for the time that has passed
            assert old.get("source") == new.get("source")
        assert one["omitted_count"] == other["omitted_count"]
        assert [gone.get("count") for gone in one["omitted"]] == [gone.get("count") for gone in other["omitted"]]
    assert (await ask("Secret oil", user="ada"))["items"][0]["type"] == "passage"


async def test_a_passage_goes_with_its_source(citer: Citer, ask: Ask) -> None:
    source = await citer.source("The gearbox needs oil.")
    assert len((await ask("gearbox"))["items"]) == 1
    gone = await Citer(citer.client, citer.tenant).client.delete(
        f"/v1/sources/{source}", params={"policy": "keep"}, headers=citer.tenant.headers("admin")
    )
    assert gone.is_success, gone.text
    assert (await ask("gearbox"))["no_match"]


async def test_the_graph_leads_to_a_source_that_the_reader_may_see(
    citer: Citer, ask: Ask, worker: WorkerContext
) -> None:
    ada = citer.acting("ada")
    entity = await ada.post("/v1/memory/entities", {"name": "Zephyr Bank", "entity_type": "organization"})
    assert entity.status_code == 201, entity.text
    ident = entity.json()["entity"]["id"]
    common = {"author": "Ada", "uri": "https://example.org/minutes", "source_date": "2025-03-01T00:00:00Z"}
    shown = await ada.source(title="Minutes", **common)
    hidden = await ada.source(title="CANARY minutes", visibility="private", **common)
    for source in (shown, hidden):
        body = {"layer": "source", "target_id": source, "relationship": "DISCUSSED_IN"}
        answer = await ada.post(f"/v1/memory/entities/{ident}/links", body)
        assert answer.is_success, answer.text
    await drain(worker)
    hers = await ask("what about Zephyr Bank?", user="ada")
    assert kinds(hers) == {ident: "entity", shown: "source", hidden: "source"}
    his = await ask("what about Zephyr Bank?", user="ben")
    assert kinds(his) == {ident: "entity", shown: "source"}
    assert his["omitted_count"] == 0
    item = next(item for item in his["items"] if item["type"] == "source")
    assert item["text"] == "Minutes\nAda, https://example.org/minutes"
    assert (item["label"], item["date"], item["arms"]) == ("document", "2025-03-01T00:00:00Z", {"graph": 1})
    assert item["path"][-1] == {"id": shown, "type": "source", "via": "DISCUSSED_IN"}
    assert "Minutes" in item["why"][0]
    assert "source" not in item
    assert kinds(await ask("what about Zephyr Bank?", user="ben", as_of="2025-02-01T00:00:00Z")) == {ident: "entity"}


async def test_the_log_and_feedback_know_passages(client: httpx.AsyncClient, citer: Citer, ask: Ask) -> None:
    ada = citer.acting("ada")
    open_source = await ada.source("A gearbox exists.", title="Notes")
    source = await ada.source(SECRET, visibility="private", title="CANARY diary")
    (shown,), (hidden,) = await passages_of(ada, open_source), await passages_of(ada, source)
    retrieval = (await ask("gearbox", user="ada"))["retrieval_id"]

    async def explain(role: str, user: str | None) -> httpx.Response:
        return await client.get(f"/v1/retrievals/{retrieval}", headers=citer.tenant.headers(role, user=user))

    own = (await explain("reader", "ada")).json()
    assert {(item["type"], item["id"], item["title"]) for item in own["items"]} == {
        ("passage", shown, "Notes"),
        ("passage", hidden, "CANARY diary"),
    }
    overseen = await explain("operator", None)
    assert [item["id"] for item in overseen.json()["items"]] == [shown]
    assert hidden not in overseen.text
    assert "CANARY" not in overseen.text
    body = {"used": [hidden], "records": [{"id": shown, "verdict": "irrelevant"}]}
    path = f"/v1/retrievals/{retrieval}/feedback"
    given = await client.post(path, json=body, headers=citer.tenant.headers("reader", user="ada"))
    assert given.status_code == 200, given.text
    assert {record["id"]: record["verdict"] for record in given.json()["records"]} == {
        hidden: "used",
        shown: "irrelevant",
    }
    refused = await client.post(path, json={"used": [hidden]}, headers=citer.tenant.headers("operator"))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/used/0"
