"""Sources and their passages over the API."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.fixtures.acting import rows_of
from tests.fixtures.citing import SOURCES, Citer, pointers
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.api.services import Services
from memory_os.embedding.port import EmbedderUnavailableError

pytestmark = pytest.mark.anyio


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    return Citer(client, tenant)


async def test_a_source_is_stored_as_it_is_brought(citer: Citer) -> None:
    ident, passage = str(uuid4()), str(uuid4())
    body = {
        "id": ident,
        "kind": "conversation",
        "title": "Standup",
        "uri": "chat://standup/7",
        "author": "Ann",
        "source_date": "2026-03-01T09:00:00+01:00",
        "metadata": {"room": 7},
        "visibility": "restricted",
        "readers": {"users": ["bob"], "groups": ["crew"]},
        "passages": [
            {"text": "We ship on Friday.", "id": passage, "locator": {"message_id": "m1"}},
            {"text": "Bob tests it."},
        ],
    }
    ann = citer.acting("ann")
    answer = await ann.post(SOURCES, body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["etag"] == '"1"'
    stored = answer.json()
    assert stored["source"] == {
        **{name: body[name] for name in ("id", "kind", "title", "uri", "author", "metadata", "visibility", "readers")},
        "source_date": "2026-03-01T08:00:00Z",
        "user_id": "ann",
        "created_at": stored["source"]["created_at"],
        "updated_at": stored["source"]["created_at"],
        "version": 1,
    }
    assert [place["ordinal"] for place in stored["passages"]] == [0, 1]
    assert stored["passages"][0]["id"] == passage
    assert await ann.get(f"{SOURCES}/{ident}") == stored["source"]
    found = (await ann.get(f"{SOURCES}/{ident}/passages"))["items"]
    assert [(one["text"], one["locator"], one["ordinal"]) for one in found] == [
        ("We ship on Friday.", {"message_id": "m1"}, 0),
        ("Bob tests it.", {}, 1),
    ]


async def test_repeating_an_id_finds_the_source(citer: Citer, database_urls: DatabaseUrls) -> None:
    body = {"id": str(uuid4()), "kind": "url", "title": "Page", "passages": [{"text": "One."}, {"text": "Two."}]}
    first = await citer.post(SOURCES, body)
    again = await citer.post(SOURCES, body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    alone = await citer.post(SOURCES, {**body, "passages": []})
    assert (alone.status_code, alone.json()["passages"]) == (200, [])
    for other in ({"title": "Other"}, {"kind": "task"}, {"passages": [{"text": "One."}, {"text": "Three."}]}):
        refused = await citer.post(SOURCES, {**body, **other})
        assert refused.status_code == 409, refused.text
    assert len(rows_of(database_urls, "SELECT 1 FROM passages")) == 2


async def test_an_idempotency_key_stores_once(citer: Citer, database_urls: DatabaseUrls) -> None:
    key = {"Idempotency-Key": "once"}
    body = {"kind": "task", "title": "T", "passages": [{"text": "One."}]}
    first = await citer.post(SOURCES, body, **key)
    assert (await citer.post(SOURCES, body, **key)).json() == first.json()
    more = {"passages": [{"text": "Two."}]}
    path = f"{SOURCES}/{first.json()['source']['id']}/passages"
    key = {"Idempotency-Key": "more"}
    added = await citer.post(path, more, **key)
    assert (await citer.post(path, more, **key)).json() == added.json()
    assert len(rows_of(database_urls, "SELECT 1 FROM passages")) == 2


async def test_passages_are_appended_and_come_in_pages(citer: Citer) -> None:
    source = await citer.source("0")
    path = f"{SOURCES}/{source}/passages"
    mine = str(uuid4())
    added = await citer.post(path, {"passages": [{"text": "1", "id": mine}, {"text": "2"}]})
    assert added.status_code == 201
    assert [place["ordinal"] for place in added.json()["passages"]] == [1, 2]
    again = await citer.post(path, {"passages": [{"text": "1", "id": mine}]})
    assert (again.status_code, again.json()) == (200, {"passages": [{"id": mine, "ordinal": 1}]})
    both = await citer.post(path, {"passages": [{"text": "3"}, {"text": "1", "id": mine}]})
    assert [place["ordinal"] for place in both.json()["passages"]] == [3, 1]
    other = await citer.source("elsewhere")
    for url, text in ((path, "changed"), (f"{SOURCES}/{other}/passages", "1")):
        refused = await citer.post(url, {"passages": [{"text": "new"}, {"text": text, "id": mine}]})
        assert refused.status_code == 409, refused.text
    texts: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        page = await citer.get(path, limit=3, **cursor)
        texts += [one["text"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert texts == ["0", "1", "2", "3"]
    strange = (await citer.client.get(path, params={"cursor": "nonsense"}, headers=citer.headers)).status_code
    elsewhere = (await citer.get(SOURCES, limit=1))["next_cursor"]
    foreign = (await citer.client.get(path, params={"cursor": elsewhere}, headers=citer.headers)).status_code
    assert (strange, foreign) == (422, 422)


async def test_passages_are_embedded_when_stored(citer: Citer, database_urls: DatabaseUrls) -> None:
    ann = citer.acting("ann")
    await ann.source("One.", "Two.", visibility="private")
    rows = rows_of(
        database_urls,
        "SELECT p.text, p.embedding_model = v.model AS same, v.visibility, v.user_id, p.user_id AS owner, "
        "p.search @@ plainto_tsquery('simple', p.text) AS found "
        "FROM passages AS p JOIN passage_embeddings AS v ON v.passage_id = p.id ORDER BY p.ordinal",
    )
    readers = {"visibility": "private", "user_id": "ann", "owner": "ann", "same": True, "found": True}
    assert rows == [{"text": "One.", **readers}, {"text": "Two.", **readers}]


async def test_they_are_stored_without_vectors_while_the_embedder_is_down(
    citer: Citer, services: Services, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(_: object) -> None:
        raise EmbedderUnavailableError("gone")

    monkeypatch.setattr(type(services.embedder), "embed", lambda _self, texts: down(texts))
    await citer.source("One.")
    assert rows_of(database_urls, "SELECT embedding_model FROM passages") == [{"embedding_model": None}]
    assert rows_of(database_urls, "SELECT 1 FROM passage_embeddings") == []


async def test_lists_are_filtered_and_come_in_pages(citer: Citer) -> None:
    made = [
        await citer.source(kind=kind, title=str(number), uri=f"u:{number % 2}", author=f"a{number % 3}")
        for number, kind in enumerate(("url", "task", "url", "manual"))
    ]
    listed = await citer.get(SOURCES)
    assert [one["id"] for one in listed["items"]] == made[::-1]
    first = await citer.get(SOURCES, limit=3)
    rest = await citer.get(SOURCES, limit=3, cursor=first["next_cursor"])
    assert [one["id"] for one in (*first["items"], *rest["items"])] == made[::-1]
    for params, places in (({"kind": "url"}, [2, 0]), ({"uri": "u:1"}, [3, 1]), ({"author": "a0"}, [3, 0])):
        found = await citer.get(SOURCES, **params)
        assert [one["id"] for one in found["items"]] == [made[place] for place in places]
    refused = await citer.client.get(SOURCES, params={"kind": "documnt"}, headers=citer.headers)
    assert refused.status_code == 422
    assert refused.json()["did_you_mean"] == "document"


async def test_a_change_is_audited_and_moves_the_version(citer: Citer) -> None:
    ann = citer.acting("ann")
    source = await ann.source("One.", uri="u:1", source_date="2026-03-01T09:00:00Z")
    path = f"{SOURCES}/{source}"
    change = {"title": "New", "uri": None, "metadata": {"a": 1}, "visibility": "private"}
    answer = await ann.patch(path, change, **{"If-Match": '"1"'})
    assert answer.status_code == 200, answer.text
    assert answer.headers["etag"] == '"2"'
    changed = answer.json()["source"]
    assert {name: changed[name] for name in change} == change
    assert changed["source_date"] == "2026-03-01T09:00:00Z"
    assert (await ann.patch(path, {"title": "Newer"}, **{"If-Match": '"1"'})).status_code == 412
    assert (await ann.patch(path, {"title": "New"})).json()["source"]["version"] == 2
    admin = ann.tenant.headers("admin", user="ann")
    entries = (await ann.client.get("/v1/audit", params={"limit": 5}, headers=admin)).json()["items"]
    (entry,) = [one for one in entries if one["action"] == "source.change"]
    assert entry["target_id"] == source
    assert entry["detail"]["fields"] == ["metadata", "readers", "title", "uri", "visibility"]
    stranger = ann.tenant.headers("admin", user="bob")
    told = (await ann.client.get("/v1/audit", params={"limit": 5}, headers=stranger)).text
    assert "u:1" not in told


async def test_passages_and_vectors_follow_the_readers(citer: Citer, database_urls: DatabaseUrls) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    source = await ann.source("One.")
    memory = await ann.memory("M.", {"source_id": source, "support": "states"})
    assert len(await bob.evidence(memory)) == 1
    assert (await ann.patch(f"{SOURCES}/{source}", {"visibility": "private"})).status_code == 200
    for table in ("passages", "passage_embeddings", "evidence"):
        rows = rows_of(database_urls, f"SELECT visibility, user_id FROM {table}")
        assert rows == [{"visibility": "private", "user_id": "ann"}]
    assert await bob.evidence(memory) == []


@pytest.mark.parametrize("call", ["get", "passages", "records", "patch", "delete", "add"])
async def test_a_hidden_source_is_not_there(citer: Citer, call: str) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    source = await ann.source("One.", visibility="private")
    answers = []
    for ident in (source, str(uuid4())):
        path = f"{SOURCES}/{ident}"
        if call in ("get", "passages", "records"):
            answer = await bob.client.get(path if call == "get" else f"{path}/{call}", headers=bob.headers)
        elif call == "patch":
            answer = await bob.patch(path, {"title": "x"})
        elif call == "delete":
            answer = await bob.delete(path, policy="cascade")
        else:
            answer = await bob.post(f"{path}/passages", {"passages": [{"text": "x"}]})
        problem = answer.json()
        problem.pop("instance")
        answers.append((answer.status_code, problem))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404
    assert (await bob.get(SOURCES))["items"] == []


async def test_a_hidden_id_is_taken_like_any_other(citer: Citer) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    source = await ann.source("One.", visibility="private")
    hidden = (await ann.get(f"{SOURCES}/{source}/passages"))["items"][0]["id"]
    body = {"id": source, "kind": "document", "title": "Notes"}
    assert (await bob.post(SOURCES, body)).status_code == 409
    assert (await bob.post(SOURCES, {**body, "title": "Other"})).status_code == 409
    fresh = {"kind": "url", "title": "Mine", "passages": [{"id": hidden, "text": "One."}]}
    assert (await bob.post(SOURCES, fresh)).status_code == 409
    assert (await bob.get(SOURCES))["items"] == []  # nothing is half done


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"kind": "book"}, "/kind"),
        ({"title": " "}, "/title"),
        ({"title": ""}, "/title"),
        ({"source_date": "2026-03-01T09:00:00"}, "/source_date"),
        ({"source_date": "0001-01-01T00:00:00+14:00"}, "/source_date"),
        ({"metadata": {"a": "\x00"}}, "/metadata"),
        ({"uri": ""}, "/uri"),
        ({"author": " "}, "/author"),
        ({"visibility": "private"}, "/visibility"),
        ({"visibility": "restricted", "readers": {"users": ["ann"]}}, "/readers"),
        ({"readers": {"users": ["ann"]}}, "/readers"),
        ({"passages": [{"text": " \n"}]}, "/passages/0/text"),
        ({"passages": [{"text": "a"}, {"text": "x" * 40_000}]}, "/passages/1/text"),
        ({"passages": [{"text": "a", "locator": {"x": "y" * 5_000}}]}, "/passages/0/locator"),
        ({"passages": [{"text": "a", "locator": [1]}]}, "/passages/0/locator"),
        ({"passages": [{"text": str(n)} for n in range(501)]}, "/passages"),
        ({"passages": [{"text": "a", "id": "7"}]}, "/passages/0/id"),
        ({"unknown": 1}, "/unknown"),
        ({"passages": [{"text": "a", "ordinal": 3}]}, "/passages/0/ordinal"),
    ],
    ids=range(19),
)
async def test_wrong_input_is_named(citer: Citer, body: dict[str, Any], pointer: str) -> None:
    answer = await citer.post(SOURCES, {"kind": "document", "title": "Notes", **body})
    assert [found for found, _ in pointers(answer)] == [pointer]
    assert (await citer.get(SOURCES))["items"] == []


async def test_an_id_stands_once_in_a_call(citer: Citer) -> None:
    ident = str(uuid4())
    twice = [{"text": "a", "id": ident}, {"text": "b", "id": ident}]
    answer = await citer.post(SOURCES, {"kind": "document", "title": "Notes", "passages": twice})
    assert pointers(answer) == [("/passages/1/id", "is given more than once")]


async def test_a_policy_that_is_none_is_refused(citer: Citer) -> None:
    source = await citer.source()
    answer = await citer.delete(f"{SOURCES}/{source}", policy="cascde")
    assert (answer.status_code, answer.json()["did_you_mean"]) == (422, "cascade")
    assert answer.json()["allowed"] == ["keep", "orphan-archive", "cascade"]
    assert (await citer.get(f"{SOURCES}/{source}"))["id"] == source


async def test_readers_write_nothing(citer: Citer, tenant: TestTenant) -> None:
    source = await citer.source()
    headers = tenant.headers("reader")
    path = f"{SOURCES}/{source}"
    answers = [
        await citer.client.post(SOURCES, json={"kind": "url", "title": "x"}, headers=headers),
        await citer.client.post(f"{path}/passages", json={"passages": [{"text": "x"}]}, headers=headers),
        await citer.client.patch(path, json={"title": "x"}, headers=headers),
        await citer.client.delete(path, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert (await citer.client.get(path, headers=headers)).status_code == 200


async def test_an_entity_is_linked_to_a_source(citer: Citer) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    source = await ann.source(title="The lease", visibility="private")
    entity = (await ann.post("/v1/memory/entities", {"name": "Ann Lee", "entity_type": "person"})).json()["entity"][
        "id"
    ]
    path = f"/v1/memory/entities/{entity}"
    link = {"layer": "source", "target_id": source, "relationship": "signed"}
    assert pointers(await bob.post(f"{path}/links", link)) == [("/target_id", "there is no such source")]
    assert (await ann.post(f"{path}/links", link)).status_code == 201
    (shown,) = (await ann.get(f"{path}/context"))["links"]
    assert shown["other"] == {"layer": "source", "id": source, "title": "The lease", "status": "active"}
    assert (await ann.get(f"{path}/links", layer="source"))["items"][0]["target_id"] == source
    assert (await bob.get(f"{path}/context"))["links"] == []
    assert (await bob.get(f"{path}/links"))["items"] == []


async def test_another_users_source_is_for_its_user_and_for_reviewers(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    body = {"kind": "document", "title": "Plan", "passages": [{"text": "Bread first."}]}
    made = await client.post("/v1/sources", json=body, headers=tenant.headers("writer", user="ann"))
    path = f"/v1/sources/{made.json()['source']['id']}"
    for role, user, status in (("writer", "ben", 403), ("reviewer", "ben", 200), ("writer", "ann", 200)):
        headers = tenant.headers(role, user=user)
        changed = await client.patch(path, json={"title": f"Plan of {user}"}, headers=headers)
        assert changed.status_code == status, (role, user, changed.text)
    refused = await client.delete(path, params={"policy": "cascade"}, headers=tenant.headers("writer", user="ben"))
    assert refused.status_code == 403
    assert (await client.get(path, headers=tenant.headers("writer", user="ben"))).status_code == 200
    deleted = await client.delete(path, headers=tenant.headers("writer", user="ann"))
    assert deleted.status_code == 200, deleted.text
