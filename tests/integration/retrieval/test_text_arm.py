"""The text arm on the database alone: what it finds, in which order, for whom and at which time."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls

from memory_os.domain.ids import new_id
from memory_os.domain.search_text import search_text
from memory_os.domain.text_ranking import impact, rarity
from memory_os.retrieval.arms import Ref, Window
from memory_os.retrieval.model import RecordType
from memory_os.retrieval.weighing import Asked, weigh
from memory_os.retrieval.words import find_words, weigh_words
from memory_os.storage.database import Database, Scope

pytestmark = pytest.mark.anyio

NOW = Window(None, history=False)
Put = Callable[..., UUID]


class World:
    """A tenant whose rows a test writes past the service."""

    def __init__(self, urls: DatabaseUrls, database: Database, connection: psycopg.Connection[Any]) -> None:
        self.database, self.connection, self.urls = database, connection, urls
        self.tenant_id = new_id()
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'a tenant')", (self.tenant_id,))

    def put(self, text: str, table: str = "memories", **fields: Any) -> UUID:
        """A record with this text; other columns as given."""
        extra = {
            "memories": {"label": "Attribute", "layer": "identity", "text": text},
            "passages": {"text": text, "ordinal": 0},
            "entities": {"name": text, "declared": True, "entity_type": "thing"},
        }.get(table, {"title": text})
        values: dict[str, Any] = {"tenant_id": self.tenant_id, "id": new_id(), **extra, **fields}
        names = ", ".join(values)
        marks = ", ".join(["%s"] * len(values))
        if table != "entities":
            names, marks = f"{names}, search", f"{marks}, memory_os_text_vector(%s)"
            given = [*values.values(), search_text(text)]
        else:
            given = [*values.values()]
        self.connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", given)
        ident: UUID = values["id"]
        return ident

    def source(self, texts: Sequence[str], **fields: Any) -> list[UUID]:
        """The passages of a new source."""
        ident = new_id()
        values = {"tenant_id": self.tenant_id, "id": ident, "kind": "document", "title": "Manual", **fields}
        values.setdefault("visibility", "tenant")
        self.connection.execute(
            f"INSERT INTO sources ({', '.join(values)}) VALUES ({', '.join(['%s'] * len(values))})", [*values.values()]
        )
        return [self.put(text, "passages", source_id=ident, ordinal=number) for number, text in enumerate(texts)]

    def change(self, ident: UUID, table: str = "memories", **fields: Any) -> None:
        """Change columns of a record."""
        sets = ", ".join(f"{name} = %s" for name in fields)
        self.connection.execute(f"UPDATE {table} SET {sets} WHERE id = %s", (*fields.values(), ident))

    async def ask(
        self, query: str, window: Window = NOW, *, user: str | None = None, groups: tuple[str, ...] = ()
    ) -> dict[Ref, float]:
        """What somebody finds."""
        scope = Scope("memory_os_app", self.tenant_id, "reader", user, groups)
        async with self.database.transaction(scope) as tx:
            return await find_words(tx, await weigh_words(tx, query, window), window)

    async def found(self, query: str, window: Window = NOW, **who: Any) -> list[UUID]:
        """The ids of that."""
        return [ref.id for ref in await self.ask(query, window, **who)]


@pytest.fixture
async def world(database_urls: DatabaseUrls) -> AsyncIterator[World]:
    database = Database(database_urls.app_url, pool_size=2)
    with psycopg.connect(database_urls.owner_url, autocommit=True) as connection:
        yield World(database_urls, database, connection)
    await database.close()


def stems(world: World, text: str) -> dict[str, int]:
    rows = world.connection.execute(
        "SELECT lexeme, cardinality(positions) FROM unnest(to_tsvector('english', %s))", (search_text(text),)
    )
    return dict(rows.fetchall())


def expected(world: World, texts: dict[UUID, str], query: str) -> dict[UUID, float]:
    """BM25 over texts, by the book."""
    documents = {ident: stems(world, text) for ident, text in texts.items()}
    scores: dict[UUID, float] = {}
    for word in stems(world, query):
        having = [ident for ident, words in documents.items() if word in words]
        for ident in having:
            words = documents[ident]
            scores[ident] = scores.get(ident, 0.0) + rarity(len(having), len(texts)) * impact(words[word], len(words))
    return scores


async def test_the_ranking_is_bm25(world: World) -> None:
    source = random.Random(1)
    said = "gearbox oil winter rattle bearing the of a shaft pump valve spring noise leak seal brake clutch"
    words = re.findall("[a-z]+", said)
    texts = {}
    for _ in range(120):
        text = " ".join(source.choices(words, weights=range(len(words), 0, -1), k=source.randint(2, 40)))
        texts[world.put(text)] = text
    for query in ("gearbox oil", "the leaking seal of a pump", "clutch"):
        scores = expected(world, texts, query)
        found = await world.ask(query)
        assert len(found) == min(50, len(scores))
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert min(found.values()) >= sorted(scores.values(), reverse=True)[len(found) - 1] - 1e-4
        for ref, score in found.items():
            assert score == pytest.approx(scores[ref.id], abs=1e-4)


async def test_a_record_is_found_by_its_common_words_too_when_their_lists_are_cut(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_os.domain.text_ranking.WHOLE_LIST", 3)
    monkeypatch.setattr("memory_os.domain.text_ranking.LIST_HEAD", 3)
    texts = {}
    for number in range(30):
        text = f"gearbox oil number{number} " + "filler " * number
        texts[world.put(text)] = text
    rare = "a long remark about the rattling gearbox and its oil " + "and other things " * 20
    texts[world.put(rare)] = rare
    found = await world.ask("rattling gearbox oil")
    (best, score), *_ = found.items()
    assert texts[best.id] == rare
    assert score == pytest.approx(expected(world, texts, "rattling gearbox oil")[best.id], abs=1e-4)


async def test_all_kinds_of_records_are_found_each_as_what_it_is(world: World) -> None:
    wanted = {Ref("memory", world.put("The gearbox rattles"))}
    for type_, table in (("observation", "observations"), ("procedure", "procedures"), ("outcome", "outcomes")):
        wanted.add(Ref(type_, world.put("Gearbox oil", table)))  # type: ignore[arg-type] # the words of RecordType
    wanted.add(Ref("entity", world.put("Gearbox", "entities")))
    world.put("Gearboxes", "entities", declared=False)
    wanted.add(Ref("passage", world.source(["About the gearbox"])[0]))
    assert (await world.ask("gearboxes")).keys() == wanted


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("我在北京大学读书", "北京"),
        ("東京タワーの近く", "タワー"),
        ("어제 김민수가 왔다", "김민수"),
        ("คุณสมชายไปตลาด", "สมชาย"),
        ("Переезд состоится в Твери", "твери"),
        ("क्रिकेट खेलना", "क्रिकेट"),
        ("the file src/memory_os/app.py failed", "app.py"),
        ("ask bob.smith@acme.com about it", "bob.smith@acme.com"),
        ("getUserName is slow", "user name"),
        ("written in C++", "C++"),
        ("ticket ASR1603 is open", "asr1603"),
        ("id 01a22f4d-d254-7010-a6d1-65697f957a05", "01a22f4d-d254-7010-a6d1-65697f957a05"),
        ("Donaudampfschifffahrt", "donaudampfschifffahrt"),
    ],
)
async def test_any_script_and_code_are_found(world: World, stored: str, query: str) -> None:
    ident = world.put(stored)
    world.put("Nothing like it at all.")
    assert await world.found(query) == [ident]


@pytest.mark.parametrize(
    "query",
    [
        "'",
        "\\",
        "a' | 'b",
        "gearbox & !oil",
        "oil:*",
        "'; DROP TABLE postings; --",
        "%(tenant_id)s %s",
        "{,}",
        '"',
        "\\'",
    ],
)
async def test_hostile_text_is_text(world: World, query: str) -> None:
    ident = world.put(f"gearbox oil {query}")
    await world.found(query)
    assert await world.found("gearbox") == [ident]
    assert await world.found(f"gearbox {query}") == [ident]


async def test_a_question_of_very_many_words_is_answered(world: World) -> None:
    ident = world.put("The needle lies here.")
    for number in range(40):
        world.put(f"hay stack number{number} straw")
    words = " ".join(f"number{number}" for number in range(40))
    assert ident in await world.found(f"needle lies {words} hay straw stack " + "more of the same " * 50)


async def test_a_long_document_is_found_by_what_it_says_often(world: World) -> None:
    texts = [" ".join(f"word{number % 700}" for number in range(20_000)), "word3 " * 300, "word3"]
    idents = [world.put(text) for text in texts]
    found = await world.found("word3")
    assert set(found) == set(idents)
    assert found[0] == idents[1]


async def test_function_words_alone_are_searched_as_a_phrase(world: World) -> None:
    played = world.put("The Who played in Leeds.")
    world.put("Who was the first?")
    assert await world.found("The Who") == [played]
    assert await world.found("the") == []
    assert await world.found("!?") == []


async def test_one_shared_word_of_many_is_chance(world: World) -> None:
    world.put("The gearbox is new.")
    both = world.put("The gearbox lost its oil.")
    assert await world.found("why does my gearbox need so much more oil every winter morning") == [both]
    assert len(await world.found("gearbox oil")) == 2


async def test_readers_find_what_they_may_read_and_the_rest_changes_nothing(world: World) -> None:
    shared = world.put("gearbox oil for all")
    before = await world.ask("gearbox oil", user="ben")
    hers = world.put("gearbox oil private", visibility="private", user_id="ada")
    team = world.put(
        "gearbox oil restricted", visibility="restricted", user_id="ada", reader_users=["cleo"], reader_groups=["ops"]
    )
    assert await world.ask("gearbox oil", user="ben") == before
    assert await world.ask("gearbox oil") == before
    assert set(await world.found("gearbox oil", user="ada")) == {shared, hers, team}
    assert set(await world.found("gearbox oil", user="cleo")) == {shared, team}
    twice = await world.ask("gearbox oil", user="cleo", groups=("ops", "other"))
    assert {ref.id for ref in twice} == {shared, team}
    # Two lists lead to it, and it counts once.
    assert twice[Ref("memory", team)] < 2 * min(twice.values()) * 0.99
    world.change(team, visibility="tenant")
    assert set(await world.found("gearbox oil", user="ben")) == {shared, team}
    world.change(shared, visibility="private", user_id="ada")
    assert await world.found("gearbox oil", user="ben") == [team]


async def test_what_is_past_is_found_when_the_past_is_asked_about(world: World) -> None:
    now = datetime.now(UTC)
    living = world.put("gearbox oil")
    gone = world.put("gearbox oil", status="superseded", valid_to=now - timedelta(days=1))
    later = world.put("gearbox oil", status="superseded", valid_to=now + timedelta(days=1))
    archived = world.put("gearbox oil", status="archived")
    future = world.put("gearbox oil", valid_from=now + timedelta(days=1))
    assert set(await world.found("gearbox")) == {living, later}
    assert set(await world.found("gearbox", Window(now - timedelta(days=2), history=False))) == {living, gone, later}
    assert set(await world.found("gearbox", Window(None, history=True))) == {living, gone, later, archived}
    assert future in await world.found("gearbox", Window(now + timedelta(days=2), history=False))


async def test_passages_of_later_sources_are_not_found_before(world: World) -> None:
    now = datetime.now(UTC)
    early = world.source(["gearbox early"], source_date=now - timedelta(days=9))
    late = world.source(["gearbox late"], source_date=now - timedelta(days=1))
    assert set(await world.found("gearbox")) == {*early, *late}
    assert await world.found("gearbox", Window(now - timedelta(days=5), history=False)) == early


async def test_turns_are_weighed_with_their_neighbours(world: World) -> None:
    texts = ["gearbox", "noise in winter", "oil oil leak", "nothing", "at all", "the gearbox leaks oil", "end"]
    turns = world.source(texts, kind="conversation")
    (page, _) = world.source(["gearbox beside another source", "oil"])
    (hidden,) = world.source(["gearbox oil hidden"], kind="conversation", visibility="private", user_id="ada")
    secret = world.put("gearbox oil secret", visibility="private", user_id="ada")
    led_to = world.put("The oil of a gearbox")
    hits = {Ref("passage", ident): 1.0 for ident in (turns[1], page, hidden)}
    async with world.database.transaction(Scope("memory_os_app", world.tenant_id, "reader", "ben")) as tx:
        words = await weigh_words(tx, "gearbox oil", NOW)
        alone = await find_words(tx, words, NOW)
        further = [Ref("memory", secret), Ref("memory", led_to)]
        told = await weigh(tx, Asked("gearbox oil", words), hits, {}, further)
    weighed = {ref.id: weight for ref, weight in told.words.items()}
    assert weighed.pop(hidden) == 1.0, "only what the arm gave"
    assert weighed.keys() == {*turns[:4], page, led_to}
    for ident, weight in weighed.items():
        kind: RecordType = "memory" if ident == led_to else "passage"
        assert weight == pytest.approx(alone.get(Ref(kind, ident), 0.0), abs=1e-4)
    assert {ref.id for ref in told.turns} == set(turns[:4])
    weights = {read.lexeme: read.rarity for read in words.reads}
    length = round(sum(len(stems(world, text)) for text in texts[:4]) / 4)
    whole = sum(weights[word] * impact(times, length) for word, times in (("gearbox", 1), ("oil", 2)))
    assert told.turns[Ref("passage", turns[1])].words_around == pytest.approx(whole)
