"""A memory's vector is made of its title and its text, on every way that one is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import psycopg
import pytest
from tests.fixtures.acting import Actor, rows_of
from tests.fixtures.postgres import DatabaseUrls

from memory_os.api.services import Services
from memory_os_workers.context import WorkerContext
from memory_os_workers.embedder import embed_some

pytestmark = pytest.mark.anyio

MEMORIES = "/v1/memories"
IsOf = Callable[[str, str], Awaitable[bool]]


@pytest.fixture
def is_of(services: Services, database_urls: DatabaseUrls) -> IsOf:
    """Tells whether the vector of a memory is that of a text."""

    async def compare(memory: str, text: str) -> bool:
        (row,) = rows_of(
            database_urls,
            "SELECT e.embedding::real[] AS vector FROM memory_embeddings AS e JOIN memories AS m ON m.id = e.memory_id "
            "WHERE m.id = %s AND m.embedding_model = e.model",
            memory,
        )
        return row["vector"] == pytest.approx((await services.embedder.embed([text]))[0].tolist(), abs=1e-5)

    return compare


async def change(actor: Actor, memory: str, **fields: Any) -> None:
    answer = await actor.client.patch(f"{MEMORIES}/{memory}", json=fields, headers=actor.headers)
    assert answer.status_code == 200, answer.text


def waiting(urls: DatabaseUrls) -> list[str]:
    """The memories whose vector has still to be made."""
    return [str(row["id"]) for row in rows_of(urls, "SELECT id FROM memories WHERE embedding_model IS NULL")]


async def test_stored_alone_in_a_batch_and_in_the_place_of_another(actor: Actor, is_of: IsOf) -> None:
    one = await actor.remember("It won a prize.", title="Inception")
    assert await is_of(one["id"], "Inception\nIt won a prize.")
    items = [
        {"text": "It flopped.", "title": "Dune", "label": "Attribute"},
        {"text": "It rained all day.", "label": "Attribute"},
    ]
    answer = await actor.client.post(f"{MEMORIES}/batch", json={"items": items}, headers=actor.headers)
    first, second = (result["memory_id"] for result in answer.json()["results"])
    assert await is_of(first, "Dune\nIt flopped.")
    assert await is_of(second, "It rained all day.")
    done = await actor.do("supersede", one["id"], {"text": "It won two prizes.", "title": "Inception"})
    assert await is_of(done["memory"]["id"], "Inception\nIt won two prizes.")


async def test_a_new_title_alone_makes_a_new_vector(actor: Actor, is_of: IsOf, database_urls: DatabaseUrls) -> None:
    memory = (await actor.remember("It won a prize."))["id"]
    await change(actor, memory, title="Inception")
    assert await is_of(memory, "Inception\nIt won a prize.")
    await change(actor, memory, text="It won two prizes.")
    assert await is_of(memory, "Inception\nIt won two prizes.")
    await change(actor, memory, text="It flopped.", title="Dune")
    assert await is_of(memory, "Dune\nIt flopped.")
    await change(actor, memory, title=None)
    assert await is_of(memory, "It flopped.")
    assert waiting(database_urls) == []


async def test_what_changes_neither_leaves_the_vector(actor: Actor, database_urls: DatabaseUrls) -> None:
    memory = (await actor.remember("Inception won a prize.", title="Dune"))["id"]
    await change(actor, memory, title="Inception")
    query = "SELECT ctid::text FROM memory_embeddings"
    before = rows_of(database_urls, query)
    await change(actor, memory, tags=["film"])
    await change(actor, memory, title="inception")  # which the text begins with as well
    assert rows_of(database_urls, query) == before
    assert waiting(database_urls) == []


async def test_equal_texts_merge_whatever_their_titles(actor: Actor) -> None:
    async def store(text: str, **fields: Any) -> httpx.Response:
        body = {"text": text, "label": "Attribute", **fields}
        return await actor.client.post(MEMORIES, json=body, headers=actor.headers)

    first = (await store("The pump leaks in winter.", title="Notes of the plant's engineers")).json()
    for text, title in (
        ("The pump leaks in winter.", None),
        ("the pump leaks in winter", "Minutes of the meeting in March"),
    ):
        answer = await store(text, title=title)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["duplicate_of"], answer.json()["rule"]) == (first["memory"]["id"], "exact")
    items = [{"text": "It is due.", "title": title, "label": "Attribute"} for title in ("Rent", "Letter")]
    answer = await actor.client.post(f"{MEMORIES}/batch", json={"items": items}, headers=actor.headers)
    assert [result["outcome"] for result in answer.json()["results"]] == ["created", "merged"]


async def test_what_comes_out_of_an_undone_merge_is_embedded_with_its_title(
    actor: Actor, worker: WorkerContext, is_of: IsOf, database_urls: DatabaseUrls
) -> None:
    body = {"text": "The pump leaks.", "label": "Attribute", "title": "Plant"}
    first = (await actor.client.post(MEMORIES, json=body, headers=actor.headers)).json()["memory"]["id"]
    told = {**body, "text": "the pump leaks", "title": "Minutes"}
    merged = (await actor.client.post(MEMORIES, json=told, headers=actor.headers)).json()
    assert merged["outcome"] == "merged"
    assert (await actor.undo(first, merged["act_id"])).status_code == 200
    (again,) = waiting(database_urls)
    assert await embed_some(worker, actor.tenant.tenant_id) == 1
    assert await is_of(again, "Minutes\nthe pump leaks")
    assert await is_of(first, "Plant\nThe pump leaks.")


async def test_a_correction_that_names_another_entity_in_the_title_makes_the_vector_of_it(
    actor: Actor, is_of: IsOf
) -> None:
    former, meant = await actor.declare("Inception"), await actor.declare("Interstellar")
    old = (await actor.remember("It won a prize.", title="Inception"))["id"]
    headers = actor.tenant.headers("reviewer")
    body = {"target": old, "kind": "wrong_entity", "proposal": {"from": former, "to": meant}, "reason": "Mixed up."}
    proposed = (await actor.client.post("/v1/corrections", json=body, headers=headers)).json()["correction"]
    applied = await actor.client.post(f"/v1/corrections/{proposed['id']}/apply", headers=headers)
    assert applied.status_code == 200, applied.text
    assert await is_of(applied.json()["result"]["id"], "Interstellar\nIt won a prize.")


async def test_a_title_that_changes_while_the_worker_embeds_is_embedded_the_next_time(
    actor: Actor, worker: WorkerContext, is_of: IsOf, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = (await actor.remember("It won a prize.", title="Inception"))["id"]
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE memories SET embedding_model = NULL")
    embed = worker.embedder.embed

    async def slowly(texts: list[str]) -> Any:
        monkeypatch.undo()
        with psycopg.connect(database_urls.owner_url) as connection:
            connection.execute("UPDATE memories SET title = 'Dune'")
        return await embed(texts)

    monkeypatch.setattr(worker.embedder, "embed", slowly)
    assert await embed_some(worker, actor.tenant.tenant_id) == 1
    assert waiting(database_urls) == [memory]
    assert await embed_some(worker, actor.tenant.tenant_id) == 1
    assert await is_of(memory, "Dune\nIt won a prize.")


async def test_a_title_that_changed_while_a_text_was_embedded_leaves_it_to_the_worker(
    actor: Actor,
    services: Services,
    worker: WorkerContext,
    is_of: IsOf,
    database_urls: DatabaseUrls,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = (await actor.remember("It won a prize.", title="Inception"))["id"]
    embed = services.embedder.embed

    async def slowly(texts: list[str]) -> Any:
        monkeypatch.undo()
        await change(actor, memory, title="Dune")
        return await embed(texts)

    monkeypatch.setattr(services.embedder, "embed", slowly)
    await change(actor, memory, text="It flopped.")
    assert waiting(database_urls) == [memory]
    assert await embed_some(worker, actor.tenant.tenant_id) == 1
    assert await is_of(memory, "Dune\nIt flopped.")


async def test_the_migration_leaves_what_has_a_title_to_the_worker(
    actor: Actor, worker: WorkerContext, is_of: IsOf, database_urls: DatabaseUrls
) -> None:
    from memory_os.storage.migrate import downgrade, upgrade  # noqa: PLC0415 - one test alone migrates

    titled = (await actor.remember("It won a prize.", title="Inception"))["id"]
    plain = (await actor.remember("It flopped."))["id"]
    downgrade(database_urls.owner_url, "0009")
    upgrade(database_urls.owner_url)
    assert waiting(database_urls) == [titled]
    assert len(rows_of(database_urls, "SELECT FROM memory_embeddings")) == 2
    assert await embed_some(worker, actor.tenant.tenant_id) == 1
    assert await is_of(titled, "Inception\nIt won a prize.")
    assert await is_of(plain, "It flopped.")
