"""What a question finds, and along which path."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain
from tests.integration.retrieval.conftest import Ask, Memory

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


def texts(pack: dict[str, Any]) -> list[str]:
    return [item["text"] for item in pack["items"]]


def item_of(pack: dict[str, Any], ident: str) -> dict[str, Any]:
    return next(item for item in pack["items"] if item["id"] == ident)


def edge(kind: str, to: str, confidence: float = 0.9) -> dict[str, Any]:
    return {"type": kind, "to": to, "confidence": confidence}


async def tell_about_cooking(remember: Memory) -> dict[str, str]:
    """The cooking thread, and some facts about something else."""
    ids: dict[str, str] = {}
    ids["wife"] = await remember("His wife wants to build things with their hands", label="Value")
    ids["fi"] = await remember("Reach financial independence", label="Goal", edges=[edge("SUPPORTS", ids["wife"])])
    ids["truck"] = await remember("A spring roll food truck", label="Opportunity", edges=[edge("ADVANCES", ids["fi"])])
    ids["cooking"] = await remember(
        "Likes to cook, and cooks 90 % of the meals at home", label="Preference", edges=[edge("ADVANCES", ids["truck"])]
    )
    for name, text in (("pizza", "Detroit-style pizza, from the dough up"), ("smoker", "A pellet smoker on the patio")):
        ids[name] = await remember(text, label="Skill", edges=[edge("PART_OF", ids["cooking"])])
    for text in (
        "The quarterly budget review is on Thursday",
        "Deploys go out blue-green",
        "The outbox lives in Postgres",
        "Sleep is better without screens",
    ):
        await remember(text)
    return ids


async def test_mug_cakes_bring_the_whole_cooking_thread(remember: Memory, ask: Ask, worker: WorkerContext) -> None:
    ids = await tell_about_cooking(remember)
    await drain(worker)
    pack = await ask("a mug cake recipe for valentine's day", limits={"hops": 3})
    found = {item["id"] for item in pack["items"]}
    assert {ids[name] for name in ("cooking", "pizza", "smoker", "truck", "fi")} <= found
    assert pack["graph"]["state"] == "current"
    assert not pack["no_match"]
    truck = item_of(pack, ids["truck"])
    assert "graph" in truck["arms"]
    assert truck["why"][0].endswith("-ADVANCES-> A spring roll food truck")
    assert truck["path"][-1] == {"id": ids["truck"], "type": "memory", "via": "ADVANCES"}
    assert "The quarterly budget review is on Thursday" not in texts(pack)


async def test_without_the_graph_the_thread_falls_apart(remember: Memory, ask: Ask, worker: WorkerContext) -> None:
    ids = await tell_about_cooking(remember)
    await drain(worker)
    pack = await ask("a mug cake recipe for valentine's day", arms={"graph": False})
    assert ids["fi"] not in {item["id"] for item in pack["items"]}


async def test_what_do_i_know_about_john(remember: Memory, ask: Ask, worker: WorkerContext) -> None:
    wine = await remember("At dinner John chose the red wine, as John always does.", label="Behavior")
    freight = await remember("The freight rates were agreed with John.", label="Commitment")
    await remember("Mary keeps bees.")
    await drain(worker)
    pack = await ask("what do i know about john?")
    assert {item["id"] for item in pack["items"][:2]} == {wine, freight}
    for item in pack["items"][:2]:
        assert item["arms"]["graph"]
        assert item["why"][0].startswith("query -> John ←MENTIONS- ")


async def test_a_title_that_is_a_name_leads_to_its_memory(remember: Memory, ask: Ask, worker: WorkerContext) -> None:
    founded = await remember("He founded the channel in Chennai", title="Kalanithi Maran")
    for text in ("The harbour is closed for repairs", "The budget review is on Thursday", "Deploys go out at noon"):
        await remember(text)
    await drain(worker)
    item = item_of(await ask("Kalanithi Maran"), founded)
    assert "graph" in item["arms"]
    assert item["why"][0].startswith("query -> Kalanithi Maran \u2190MENTIONS- ")


async def test_a_declared_alias_leads_to_the_entity_and_its_links(
    client: httpx.AsyncClient, tenant: TestTenant, ask: Ask, worker: WorkerContext
) -> None:
    async def declare(**body: Any) -> str:
        answer = await client.post("/v1/memory/entities", json=body, headers=tenant.headers())
        assert answer.status_code == 201, answer.text
        return str((answer.json().get("entity") or answer.json())["id"])

    north = await declare(name="Northwind Freight", entity_type="vendor", aliases=["NWF"], summary="Ships tea.")
    john = await declare(name="John Meier", entity_type="person")
    answer = await client.post(
        f"/v1/memory/entities/{john}/links",
        json={"layer": "entity", "target_id": north, "relationship": "works for"},
        headers=tenant.headers(),
    )
    assert answer.status_code == 201, answer.text
    await drain(worker)
    pack = await ask("who is behind nwf")
    first = pack["items"][0]
    assert (first["type"], first["id"], first["label"]) == ("entity", north, "vendor")
    assert first["text"] == "Northwind Freight\nShips tea."
    other = item_of(pack, john)
    assert other["why"][0] == "query -> Northwind Freight ←works for- John Meier"


async def test_business_records_are_found_by_their_words(
    client: httpx.AsyncClient, tenant: TestTenant, ask: Ask
) -> None:
    for kind, title in (
        ("observations", "Customs delays"),
        ("procedures", "Customs form"),
        ("outcomes", "Customs fine"),
    ):
        answer = await client.post(
            f"/v1/memory/{kind}", json={"title": title, "summary": "x"}, headers=tenant.headers()
        )
        assert answer.status_code == 201, answer.text
    pack = await ask("customs")
    assert {(item["type"], item["text"]) for item in pack["items"]} == {
        ("observation", "Customs delays\nx"),
        ("procedure", "Customs form\nx"),
        ("outcome", "Customs fine\nx"),
    }


async def test_nothing_relevant_is_an_answer(remember: Memory, ask: Ask, worker: WorkerContext) -> None:
    await tell_about_cooking(remember)
    await drain(worker)
    for query in ("What is the capital of Mongolia?", "quantum chromodynamics lattice simulation"):
        pack = await ask(query)
        assert pack["no_match"]
        assert pack["items"] == []
        assert pack["omitted_count"] == 0


async def test_a_name_of_function_words_is_found_and_function_words_alone_are_not(remember: Memory, ask: Ask) -> None:
    band = await remember("The Who played in Leeds.", label="Event")
    await remember("Is it the case that they who were there would do it again?")
    only_words = {"vector": False, "graph": False}
    pack = await ask("The Who", arms=only_words)
    assert [item["id"] for item in pack["items"]] == [band]
    for query in ("the", "who is it", "what is the of and to", "a"):
        assert (await ask(query, arms=only_words))["no_match"], query


async def test_function_words_do_not_outrank_content(remember: Memory, ask: Ask) -> None:
    for number in range(20):
        await remember(f"What is it that you do, and who would have been there with them then? ({number})")
    wanted = await remember("The gearbox needs oil every spring.")
    pack = await ask("what is it that you would have to do with the gearbox, and when is it then?")
    assert pack["items"][0]["id"] == wanted


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京タワーは1958年に完成した。", "東京タワーはいつ完成しましたか"),
        ("我们决定把数据库迁移到新的机房。", "数据库迁移"),
        ("회의는 매주 화요일에 열린다.", "화요일 회의"),
        ("Устав требует двух подписей.", "сколько подписей требует устав"),
        ("The handler lives in src/memory_os/api/retrieval.py", "api/retrieval.py"),
        ("Write to ops@example.org about PROJ-1234", "PROJ-1234"),
    ],
)
async def test_words_are_found_in_any_script(remember: Memory, ask: Ask, text: str, query: str) -> None:
    wanted = await remember(text)
    await remember("Something else entirely.")
    pack = await ask(query, arms={"vector": False, "graph": False})
    assert [item["id"] for item in pack["items"]] == [wanted]


async def test_a_long_question_still_reaches_the_words(remember: Memory, ask: Ask) -> None:
    wanted = await remember("The gearbox needs synthetic oil every spring.")
    filler = " ".join(f"filler{number}" for number in range(198))
    pack = await ask(f"{filler} gearbox oil", arms={"vector": False, "graph": False})
    assert [item["id"] for item in pack["items"]] == [wanted]


async def test_everything_that_a_token_may_read_is_searched_without_naming_a_scope(remember: Memory, ask: Ask) -> None:
    first = await remember("The gearbox needs oil.", user="ada", visibility="private")
    second = await remember("The gearbox is loud.", user="ben", visibility="restricted", readers={"groups": ["shop"]})
    third = await remember("The gearbox was replaced.")
    pack = await ask("gearbox", user="ada", groups=("shop",))
    assert {item["id"] for item in pack["items"]} == {first, second, third}
