"""Evidence of memories over the API: with a new memory, added later, withdrawn."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.fixtures.acting import rows_of
from tests.fixtures.citing import MEMORIES, SOURCES, Citer, Json, cites, pointers
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

pytestmark = pytest.mark.anyio

NOTHING = "there is no such source"


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    return Citer(client, tenant)


async def places(citer: Citer, source: str) -> list[str]:
    """The ids of a source's passages."""
    return [one["id"] for one in (await citer.get(f"{SOURCES}/{source}/passages"))["items"]]


def shown(evidence: list[Json], *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(one[name] for name in names) for one in evidence)


async def test_a_memory_comes_with_evidence(citer: Citer, database_urls: DatabaseUrls) -> None:
    ann = citer.acting("ann")
    dated = {"source_date": "2026-03-01T09:00:00Z", "kind": "conversation", "title": "Standup"}
    passages = [{"text": "We ship on Friday.", "locator": {"page": 3}}, {"text": "Bob tests."}]
    source = await ann.source(passages=passages, **dated)
    first, second = await places(ann, source)
    memory = await ann.memory(
        "They ship on Friday.",
        cites(source, passage_id=first, quote="ship on Friday", confidence=0.75),
        cites(source, "mentions", passage_id=second),
        cites(source, "supports"),
    )
    found = {one["support"]: one for one in await ann.evidence(memory)}
    stated = found["states"]
    assert stated == {
        "id": stated["id"],
        "memory_id": memory,
        "source": {"id": source, **dated},
        "passage_id": first,
        "locator": {"page": 3},
        "support": "states",
        "confidence": 0.75,
        "quote": "ship on Friday",
        "recorded": {"role": "writer", "user_id": "ann", "token_id": stated["recorded"]["token_id"]},
        "at": stated["at"],
        "withdrawn_at": None,
        "withdrawn_because": None,
    }
    assert stated["recorded"]["token_id"] is not None
    assert (found["mentions"]["passage_id"], found["mentions"]["quote"]) == (second, None)
    assert (found["supports"]["passage_id"], found["supports"]["locator"]) == (None, None)
    assert "ship" not in str(rows_of(database_urls, "SELECT * FROM evidence"))  # the span is kept, never the text


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("We ship.", "W"),
        ("We ship.", "We ship."),
        ("We ship.", "."),
        ("Café 🍕 für Zoë — naïve", "🍕 für Zoë"),
        ("Cafe\u0301", "e\u0301"),
        ("\U0001d518\U0001d52bcode", "code"),
        ("line one\nline two", "one\nline"),
        ('He said "100%_\\sure"', '"100%_\\sure"'),
    ],
    ids=["first", "whole", "last", "emoji", "combining", "astral", "lines", "signs"],
)
async def test_a_quote_comes_back_word_for_word(citer: Citer, text: str, quote: str) -> None:
    source = await citer.source("Another passage, #1", text)
    passage = (await places(citer, source))[1]
    for number, given in enumerate((cites(source, passage_id=passage, quote=quote), cites(source, quote=quote))):
        memory = await citer.memory(f"M {number}.", given)
        assert shown(await citer.evidence(memory), "passage_id", "quote") == [(passage, quote)]


async def test_a_quote_is_found_in_the_first_passage_that_has_it(citer: Citer) -> None:
    source = await citer.source("Nothing.", "We ship. We ship.", "We ship.")
    memory = await citer.memory("M.", cites(source, quote="We ship."))
    (found,) = await citer.evidence(memory)
    assert found["passage_id"] == (await places(citer, source))[1]


@pytest.mark.parametrize("quote", ["we ship", "We  ship", "Friday", "Cafe"], ids=["case", "blanks", "other", "accent"])
async def test_a_quote_that_stands_nowhere_is_refused(citer: Citer, quote: str) -> None:
    source = await citer.source("We ship.", "Café")
    (passage, _) = await places(citer, source)
    refused = await citer.store("M.", cites(source), cites(source, passage_id=passage, quote=quote))
    assert pointers(refused) == [("/evidence/1/quote", "the passage does not say it word for word")]
    refused = await citer.store("M.", cites(source, quote=quote))
    assert pointers(refused) == [("/evidence/0/quote", "no passage of the source says it word for word")]
    assert (await citer.get(MEMORIES))["items"] == []


async def test_what_leads_nowhere_is_refused_alike(citer: Citer) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    hidden = await ann.source("We ship.", visibility="private")
    passage = (await places(ann, hidden))[0]
    memory = await bob.memory("M.")
    for source in (hidden, str(uuid4())):
        given = cites(source, passage_id=passage, quote="We ship.")
        assert pointers(await bob.store("M.", given)) == [("/evidence/0/source_id", NOTHING)]
        added = await bob.post(f"{MEMORIES}/{memory}/evidence", given)
        assert pointers(added) == [("/source_id", NOTHING)]
        checked = await bob.post(f"{MEMORIES}/check", {"text": "M.", "label": "Attribute", "evidence": [given]})
        assert pointers(checked) == [("/evidence/0/source_id", NOTHING)]
    mine = await bob.source("We ship.")
    for strange in (passage, str(uuid4())):
        refused = await bob.store("M.", cites(mine, passage_id=strange))
        assert pointers(refused) == [("/evidence/0/passage_id", "the source has no such passage")]
    assert await bob.evidence(memory) == []


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"support": "proves"}, "/evidence/0/support"),
        ({"confidence": 1.5}, "/evidence/0/confidence"),
        ({"quote": ""}, "/evidence/0/quote"),
        ({"quote": " "}, "/evidence/0/quote"),
        ({"quote": "\x00"}, "/evidence/0/quote"),
        ({"passage_id": "x"}, "/evidence/0/passage_id"),
        ({"source_id": None}, "/evidence/0/source_id"),
        ({"title": "x"}, "/evidence/0/title"),
    ],
    ids=["support", "confidence", "empty", "blank", "nul", "passage", "source", "unknown"],
)
async def test_wrong_evidence_is_named(citer: Citer, given: Json, pointer: str) -> None:
    source = await citer.source("We ship.")
    refused = await citer.store("M.", {**cites(source), **given})
    assert [found for found, _ in pointers(refused)] == [pointer]
    memory = await citer.memory("M.")
    refused = await citer.post(f"{MEMORIES}/{memory}/evidence", {**cites(source), **given})
    assert [found for found, _ in pointers(refused)] == [pointer.removeprefix("/evidence/0")]


async def test_a_memory_brings_a_bounded_number(citer: Citer) -> None:
    source = await citer.source("We ship.")
    assert pointers(await citer.store("M.", *[cites(source)] * 33))[0][0] == "/evidence"
    memory = await citer.memory("M.", *[cites(source)] * 32)
    assert len(await citer.evidence(memory)) == 1  # all say the same


async def test_evidence_is_added_once(citer: Citer) -> None:
    source = await citer.source("We ship.")
    memory = await citer.memory("M.")
    path = f"{MEMORIES}/{memory}/evidence"
    given = cites(source, quote="ship", confidence=0.5)
    first = await citer.post(path, given)
    assert first.status_code == 201, first.text
    assert (await citer.post(path, {**given, "confidence": 1})).json() == first.json()
    await citer.post(path, cites(source, "contradicts", quote="ship"))
    await citer.post(path, cites(source))
    found = await citer.evidence(memory)
    assert shown(found, "support", "confidence") == [("contradicts", 1.0), ("states", 0.5), ("states", 1.0)]
    page = await citer.get(path, limit=2)
    rest = await citer.get(path, limit=2, cursor=page["next_cursor"])
    assert [*page["items"], *rest["items"]] == found


async def test_withdrawn_evidence_stays_readable_and_can_be_given_anew(citer: Citer) -> None:
    source = await citer.source("We ship.")
    memory = await citer.memory("M.", cites(source, quote="ship"))
    (found,) = await citer.evidence(memory)
    path = f"{MEMORIES}/{memory}/evidence"
    answer = await citer.delete(f"{path}/{found['id']}")
    assert answer.status_code == 200, answer.text
    withdrawn = answer.json()["evidence"]
    assert (withdrawn["withdrawn_because"], withdrawn["quote"]) == ("withdrawn", "ship")
    assert (await citer.delete(f"{path}/{found['id']}")).json() == answer.json()
    assert await citer.evidence(memory) == [withdrawn]
    again = (await citer.post(path, cites(source, quote="ship"))).json()["evidence"]
    assert again["id"] != found["id"]
    assert again["withdrawn_at"] is None
    admin = citer.tenant.headers("admin")
    entries = (await citer.client.get("/v1/audit", headers=admin)).json()["items"]
    (entry,) = [one for one in entries if one["action"] == "evidence.withdraw"]
    assert entry["detail"] == {"memory_id": memory, "source_id": source}


async def test_only_evidence_of_that_memory_is_withdrawn(citer: Citer) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    hidden = await ann.source("We ship.", visibility="private")
    memory, other = await ann.memory("M."), await ann.memory("N.")
    body = {**cites(hidden), "widen": True}
    evidence = (await ann.post(f"{MEMORIES}/{memory}/evidence", body)).json()["evidence"]["id"]
    for user, path in ((ann, other), (bob, memory), (ann, str(uuid4()))):
        answer = await user.delete(f"{MEMORIES}/{path}/evidence/{evidence}")
        assert answer.status_code == 404, answer.text
    (found,) = await ann.evidence(memory)
    assert found["withdrawn_at"] is None


async def test_an_item_of_a_batch_fails_alone(citer: Citer) -> None:
    source = await citer.source("We ship.")
    ident = str(uuid4())
    base = {"label": "Attribute", "dedup": "off"}
    items = [
        {**base, "text": "A.", "evidence": [cites(source, quote="We ship.")]},
        {**base, "text": "B.", "evidence": [cites(str(uuid4()))], "id": ident},
        {**base, "text": "C.", "edges": [{"type": "SUPPORTS", "to": ident}]},
        {**base, "text": "D.", "evidence": [cites(source, quote="No.")]},
        {**base, "text": "E."},
    ]
    answer = await citer.post(f"{MEMORIES}/batch", {"items": items})
    assert answer.status_code == 200, answer.text
    results = answer.json()["results"]
    assert [one["status"] for one in results] == [201, 422, 422, 422, 201]
    named = [one["error"]["errors"][0]["pointer"] for one in results[1:4]]
    assert named == ["/evidence/0/source_id", "/edges/0/to", "/evidence/0/quote"]
    assert shown(await citer.evidence(results[0]["memory_id"]), "quote") == [("We ship.",)]
    assert await citer.evidence(results[4]["memory_id"]) == []


async def test_repeating_an_id_adds_nothing_twice(citer: Citer) -> None:
    source = await citer.source("We ship.")
    ident = str(uuid4())
    for dedup, status in (("off", 201), ("off", 200), ("gate", 200)):
        answer = await citer.store("M.", cites(source, quote="ship"), id=ident, dedup=dedup)
        assert answer.status_code == status, answer.text
    assert len(await citer.evidence(ident)) == 1
    assert (await citer.store("M.", cites(source, "mentions"), id=ident)).status_code == 200
    assert shown(await citer.evidence(ident), "support") == [("mentions",), ("states",)]
    private = await citer.acting("ann").source(visibility="private")
    refused = await citer.acting("ann").store("M.", cites(private), id=ident)
    assert refused.status_code == 409, refused.text


async def test_a_supersession_comes_with_evidence(citer: Citer) -> None:
    source = await citer.source("We ship on Monday.")
    old = await citer.memory("They ship on Friday.")
    body = {"text": "They ship on Monday.", "evidence": [cites(source, quote="on Monday")]}
    answer = await citer.post(f"{MEMORIES}/{old}/supersede", body)
    assert answer.status_code == 201, answer.text
    assert shown(await citer.evidence(answer.json()["memory"]["id"]), "quote") == [("on Monday",)]


async def test_evidence_of_a_hidden_memory_is_not_there(citer: Citer) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    source = await ann.source("We ship.")
    memory = await ann.memory("M.", cites(source), visibility="private")
    for ident in (memory, str(uuid4())):
        path = f"{MEMORIES}/{ident}/evidence"
        assert (await bob.client.get(path, headers=bob.headers)).status_code == 404
        assert (await bob.post(path, cites(source))).status_code == 404
    records = (await bob.get(f"{SOURCES}/{source}/records"))["items"]
    assert records == []


async def test_a_deleted_memory_takes_its_evidence_along(citer: Citer, database_urls: DatabaseUrls) -> None:
    source = await citer.source("We ship.")
    memory = await citer.memory("M.", cites(source))
    assert (await citer.delete(f"{MEMORIES}/{memory}")).status_code == 200
    assert rows_of(database_urls, "SELECT 1 FROM evidence") == []
