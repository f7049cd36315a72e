"""Packs tell where memories come from: the strongest living evidence that the reader may see, and no other."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.fixtures.citing import Citer, cites
from tests.fixtures.service import TestTenant
from tests.integration.retrieval.conftest import Ask

pytestmark = pytest.mark.anyio

WORDS = {"vector": False, "graph": False}
DATE = "2025-03-01T00:00:00Z"


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    """Stores sources and memories for nobody in particular."""
    return Citer(client, tenant)


async def passage_of(citer: Citer, source: str) -> str:
    """Id of a source's first passage."""
    return str((await citer.get(f"/v1/sources/{source}/passages"))["items"][0]["id"])


def source_of(pack: dict[str, Any], memory: str) -> dict[str, Any] | None:
    (item,) = [item for item in pack["items"] if item["id"] == memory]
    source = item.get("source")
    return None if source is None else dict(source)


async def test_a_memory_carries_its_source_and_the_words_of_it(citer: Citer, ask: Ask) -> None:
    source = await citer.source("Prelude. The vendor is Ardal, she said.", title="Minutes", source_date=DATE)
    memory = await citer.memory("The supplier is Ardal.", cites(source, quote="The vendor is Ardal"))
    expected = {"id": source, "title": "Minutes", "date": DATE, "support": "states", "quote": "The vendor is Ardal"}
    assert source_of(await ask("supplier", arms=WORDS), memory) == expected
    markdown = (await ask("supplier", arms=WORDS, path="/v1/context"))["markdown"].split("\n")
    assert "source: Minutes \u00b7 2025-03-01 \u00b7 states" in markdown
    assert "quote: The vendor is Ardal" in markdown


async def test_the_strongest_evidence_is_told(citer: Citer, ask: Ask) -> None:
    sources = {name: await citer.source(title=name) for name in "abcdefg"}
    expected = []
    memory = await citer.memory("The supplier is Ardal.")
    for name, support, confidence in (
        ("a", "contradicts", 1.0),
        ("b", "mentions", 0.2),
        ("c", "supports", 0.5),
        ("d", "supports", 0.9),
        ("e", "states", 0.1),
        ("f", "states", 0.1),  # newer
        ("g", "supports", 1.0),
    ):
        body = cites(sources[name], support, confidence=confidence)
        answer = await citer.post(f"/v1/memories/{memory}/evidence", body)
        assert answer.is_success, answer.text
        told = source_of(await ask("supplier", arms=WORDS), memory)
        assert told
        expected.append(told["title"])
    assert expected == ["a", "b", "c", "d", "e", "f", "f"]


async def test_withdrawn_evidence_is_not_told(client: httpx.AsyncClient, citer: Citer, ask: Ask) -> None:
    first, second = await citer.source(title="First"), await citer.source(title="Second")
    memory = await citer.memory("The supplier is Ardal.", cites(first), cites(second, "mentions"))
    stated = next(one for one in await citer.evidence(memory) if one["support"] == "states")
    answer = await client.delete(f"/v1/memories/{memory}/evidence/{stated['id']}", headers=citer.headers)
    assert answer.is_success, answer.text
    told = source_of(await ask("supplier", arms=WORDS), memory)
    assert told
    assert told["title"] == "Second"
    gone = await client.delete(
        f"/v1/sources/{second}", params={"policy": "keep"}, headers=citer.tenant.headers("admin")
    )
    assert gone.is_success, gone.text
    assert source_of(await ask("supplier", arms=WORDS), memory) is None


async def test_a_source_that_the_reader_may_not_see_is_not_told(citer: Citer, ask: Ask) -> None:
    ada = citer.acting("ada")
    hidden = await ada.source("CANARY: the vendor is Ardal.", title="CANARY diary", visibility="private")
    shown = await ada.source(title="Minutes")
    quoted = cites(hidden, quote="the vendor is Ardal")
    both = await ada.memory("The supplier is Ardal.")
    alone = await ada.memory("The supplier of paint is Finch.")
    for memory, body in ((both, quoted), (both, cites(shown, "mentions")), (alone, quoted)):
        answer = await ada.post(f"/v1/memories/{memory}/evidence", {**body, "widen": True})
        assert answer.is_success, answer.text
    hers = await ask("supplier", user="ada", arms=WORDS)
    assert [source["title"] for memory in (both, alone) if (source := source_of(hers, memory))] == ["CANARY diary"] * 2
    for form in ("json", "markdown"):
        his = await ask("supplier", user="ben", arms=WORDS, format=form)
        told = source_of(his, both)
        assert told
        assert (told["title"], told["support"]) == ("Minutes", "mentions")
        assert source_of(his, alone) is None
        assert "CANARY" not in json.dumps(his)
        assert hidden not in json.dumps(his)


async def test_a_passage_that_a_memory_in_the_pack_states_is_left_out(citer: Citer, ask: Ask) -> None:
    source = await citer.source("The gearbox needs oil of grade nine.")
    passage = await passage_of(citer, source)
    memory = await citer.memory("The gearbox needs oil.", cites(source, passage_id=passage))
    pack = await ask("gearbox oil", arms=WORDS)
    assert [item["id"] for item in pack["items"]] == [memory]
    assert pack["omitted"] == [{"reason": "same_source", "id": passage}]
    assert pack["omitted_count"] == 1
    explained = await citer.client.get(f"/v1/retrievals/{pack['retrieval_id']}", headers=citer.tenant.headers("admin"))
    logged = {item["id"]: (item["in_pack"], item["reason"]) for item in explained.json()["items"]}
    assert logged == {memory: (True, None), passage: (False, "same_source")}


@pytest.mark.parametrize("support", ["supports", "mentions", "contradicts"])
async def test_a_passage_that_no_memory_states_stays(citer: Citer, ask: Ask, support: str) -> None:
    source = await citer.source("The gearbox needs oil of grade nine.")
    passage = await passage_of(citer, source)
    memory = await citer.memory("The gearbox needs oil.", cites(source, support, passage_id=passage))
    pack = await ask("gearbox oil", arms=WORDS)
    assert {item["id"] for item in pack["items"]} == {memory, passage}


async def test_a_memory_that_the_reader_may_not_see_takes_no_passage_away(citer: Citer, ask: Ask) -> None:
    source = await citer.source("The gearbox needs oil of grade nine.")
    passage = await passage_of(citer, source)
    ada = citer.acting("ada")
    memory = await ada.memory("The gearbox needs oil.", cites(source, passage_id=passage), visibility="private")
    assert [item["id"] for item in (await ask("gearbox oil", user="ada", arms=WORDS))["items"]] == [memory]
    his = await ask("gearbox oil", user="ben", arms=WORDS)
    assert [item["id"] for item in his["items"]] == [passage]
    assert his["omitted_count"] == 0


async def test_sources_give_way_where_the_budget_is_tight(citer: Citer, ask: Ask) -> None:
    source = await citer.source("It was said that the vendor is Ardal and nobody else at all.", title="Minutes of May")
    quoted = cites(source, quote="the vendor is Ardal and nobody else at all")
    for number in range(4):
        await citer.memory(f"Supplier {number} is Ardal.", quoted)
    counts = []
    for budget in range(400, 1_600, 50):
        pack = await ask("supplier Ardal", arms=WORDS, budget_tokens=budget)
        items = [item for item in pack["items"] if item["type"] == "memory"]
        sources = [item["source"] for item in items if "source" in item]
        counts.append((len(items), len(sources), sum("quote" in told for told in sources)))
    assert counts == sorted(counts)
    assert counts[-1] == (4, 4, 4)
    assert any(memories == 4 and not told for memories, told, _ in counts)
