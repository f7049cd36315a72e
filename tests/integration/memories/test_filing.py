"""Of a single-valued property one memory holds at a time, whatever the order in which its values arrive."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise, permutations
from typing import Any
from uuid import UUID

import pytest
from tests.fixtures.acting import Actor, canonical, edges_of, rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.api.services import Services
from memory_os.domain.principal import Principal
from memory_os.memories.filing import Filed, file_value
from memory_os.memories.reading import get_memory
from memory_os.storage.database import Scope

pytestmark = pytest.mark.anyio

_subjects = count(1)
DAY = timedelta(days=1)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def filer(services: Services, tenant: TestTenant, actor: Actor) -> Filer:
    return Filer(services, tenant, actor)


class Filer:
    """Files values as the gate does, in the transaction of a write of the same user."""

    def __init__(self, services: Services, tenant: TestTenant, actor: Actor) -> None:
        self.services, self.tenant, self.actor = services, tenant, actor

    async def file(self, memory_id: str, user: str | None = None) -> Filed:
        principal = Principal(self.tenant.tenant_id, "writer", user_id=user)
        database, outbox = self.services.database, self.services.outbox

        async def work(tx: Any) -> Filed:
            return await file_value(tx, outbox, principal, await get_memory(tx, UUID(memory_id)), None)

        return await database.run(Scope.of(principal), work)

    async def arrive(self, subject: str, text: str, user: str | None = None, **fields: Any) -> dict[str, Any]:
        named = {"subject": subject, "property": "home", **fields}
        memory = await self.actor.acting(user).remember(text, **named)
        await self.file(memory["id"], user)
        return memory


async def outcome(
    filer: Filer, urls: DatabaseUrls, values: Sequence[dict[str, Any]], order: Sequence[int]
) -> list[tuple[object, ...]]:
    """What becomes of values that arrive in an order: windows, statuses and chain, by the numbers of the values."""
    subject = f"subject {next(_subjects)}"
    ids = {number: (await filer.arrive(subject, f"Value {number}.", **values[number]))["id"] for number in order}
    numbers = {UUID(ident): number for number, ident in ids.items()}
    rows = rows_of(urls, "SELECT * FROM memories WHERE subject = %s", subject)
    edges = rows_of(
        urls,
        "SELECT e.source_memory_id, e.target_memory_id FROM edges e JOIN memories m ON m.id = e.target_memory_id "
        "WHERE e.type = 'SUPERSEDES' AND m.subject = %s",
        subject,
    )
    chain = {numbers[edge["target_memory_id"]]: numbers[edge["source_memory_id"]] for edge in edges}
    assert len(chain) == len(edges)
    found = {
        numbers[row["id"]]: (
            row["status"],
            row["valid_from"],
            row["valid_to"],
            numbers.get(row["superseded_by"]),
            chain.get(numbers[row["id"]]),
        )
        for row in rows
    }
    return [found[number] for number in range(len(values))]


def dated(**days: int | None) -> dict[str, str]:
    return {name: (BEGIN + day * DAY).isoformat() for name, day in days.items() if day is not None}


async def test_three_values_end_the_same_in_all_orders(filer: Filer, database_urls: DatabaseUrls) -> None:
    values = [dated(valid_from=1), dated(occurred_at=5), dated(valid_from=9)]
    first, fifth, ninth = (BEGIN + day * DAY for day in (1, 5, 9))
    for order in permutations(range(3)):
        assert await outcome(filer, database_urls, values, order) == [
            ("superseded", first, fifth, 1, 1),
            ("superseded", fifth, ninth, 2, 2),
            ("active", ninth, None, None, None),
        ], order


@pytest.mark.parametrize("seed", range(12))
async def test_any_values_end_the_same_in_any_order(filer: Filer, database_urls: DatabaseUrls, seed: int) -> None:
    source = random.Random(seed)
    days = source.sample(range(1, 40, 2), source.randint(2, 6))
    values = []
    for day in days:
        timed = {source.choice(("valid_from", "occurred_at")): day}
        until = day + source.randint(0, 20) if source.random() < 0.4 else None
        values.append(dated(**timed, valid_to=until))
    orders = [source.sample(range(len(values)), len(values)) for _ in range(3)]
    seen = [await outcome(filer, database_urls, values, order) for order in orders]
    assert seen[0] == seen[1] == seen[2], (values, orders)
    by_time = sorted(range(len(values)), key=lambda number: days[number])
    for earlier, later in pairwise(by_time):
        status, _, ends, successor, edge = seen[0][earlier]
        assert (status, successor, edge) == ("superseded", later, later)
        assert isinstance(ends, datetime)
        assert ends <= BEGIN + days[later] * DAY  # one value holds at a time
    assert seen[0][by_time[-1]][0] == "active"


async def test_what_arrives_late_goes_into_the_past(filer: Filer, actor: Actor) -> None:
    now = await filer.arrive("Ann", "Ann lives in Oslo.", **dated(valid_from=9))
    late = await actor.remember("Ann lived in Rome.", subject="Ann", property="home", **dated(valid_from=2))
    filed = await filer.file(late["id"])
    assert filed.superseded is None
    assert filed.superseded_by is not None
    assert (filed.memory.status, str(filed.superseded_by.id)) == ("superseded", now["id"])
    assert (filed.memory.valid_to, filed.act_id is not None) == (BEGIN + 9 * DAY, True)
    assert (await actor.read(now["id"]))["status"] == "active"


async def test_context_ends_at_the_value_that_holds(filer: Filer, actor: Actor, database_urls: DatabaseUrls) -> None:
    thing, late = {"entity": await actor.declare("Harbour")}, {"entity": await actor.declare("Rome")}
    now = await filer.arrive("Ann", "Ann lives in Oslo.", **dated(valid_from=9))
    edge = await actor.tie("ABOUT", now["id"], thing)
    about = [{"type": "ABOUT", "to": late}]
    await filer.arrive("Ann", "Ann lived in Rome.", edges=about, **dated(valid_from=2))
    sources = {row["target_entity_id"]: row["source_memory_id"] for row in edges_of(database_urls).values()}
    assert sources[thing["entity"]] == sources[late["entity"]] == now["id"]
    assert edges_of(database_urls)[edge]["migrated_from"] is None


async def test_others_are_left_alone(filer: Filer, actor: Actor, database_urls: DatabaseUrls) -> None:
    ann = actor.acting("ann")
    keyed = {"subject": "Ann", "property": "home"}
    others = [
        await actor.remember("Ann administers the site.", subject="Ann", property="duty"),
        await actor.remember("Bo lives in Oslo.", subject="Bo", property="home"),
        await actor.remember("They met at Ann's home.", label="Event", **keyed),
        await ann.remember("Ann lives in Rome.", **keyed),
        await actor.remember("No subject at all."),
    ]
    restricted = {"visibility": "restricted", "readers": {"users": ["ann"], "groups": []}}
    others.append(await ann.remember("Ann lives in Lima.", **keyed, **restricted))
    gone = await actor.remember("Ann lives in Bonn.", **keyed)
    await actor.do("retract", gone["id"])
    others.append(await actor.read(gone["id"]))
    await filer.arrive("Ann", "Ann lives in Bergen.")
    assert [await ann.read(one["id"]) for one in others] == others
    assert edges_of(database_urls) == {}


async def test_events_and_what_has_no_property_are_not_filed(filer: Filer, actor: Actor) -> None:
    await filer.arrive("Ann", "Ann lives in Oslo.")
    for fields in ({"label": "Event", "subject": "Ann", "property": "home"}, {"subject": "Ann"}, {}):
        memory = await actor.remember("Ann moved.", **fields)
        filed = await filer.file(memory["id"])
        assert (filed.superseded, filed.superseded_by, filed.act_id, filed.position) == (None, None, None, 0)


async def test_what_a_command_corrected_stays_so(filer: Filer, actor: Actor) -> None:
    wrong = await actor.remember("Ann lives in Rome.", subject="Ann", property="home", **dated(valid_from=5))
    right = await actor.do("supersede", wrong["id"], {"text": "Ann lives in Oslo.", **dated(valid_from=3)})
    newest = await filer.arrive("Ann", "Ann lives in Bergen.", **dated(valid_from=9))
    corrected, before = await actor.read(wrong["id"]), await actor.read(right["memory"]["id"])
    assert (corrected["superseded_by"], corrected["valid_to"]) == (before["id"], corrected["valid_from"])
    assert (before["status"], before["superseded_by"]) == ("superseded", newest["id"])


async def test_filing_is_undone_step_by_step(filer: Filer, actor: Actor, database_urls: DatabaseUrls) -> None:
    thing = {"entity": await actor.declare("Harbour")}
    early = await actor.remember("Ann lives in Rome.", subject="Ann", property="home", **dated(valid_from=1))
    await actor.tie("ABOUT", early["id"], thing)
    await filer.arrive("Ann", "Ann lives in Oslo.", **dated(occurred_at=9))
    between = await actor.remember("Ann lives in Bonn.", subject="Ann", property="home", **dated(occurred_at=4))
    await actor.tie("ABOUT", between["id"], thing, confidence=0.9)
    before = canonical(database_urls)
    await filer.file(between["id"])
    assert canonical(database_urls) != before
    history = [entry for entry in await actor.history(between["id"]) if entry["kind"] == "supersede"]
    assert len(history) == 2
    blocked = await actor.undo(between["id"], history[1]["id"])
    assert blocked.status_code == 409
    assert [one["id"] for one in blocked.json()["later"]] == [history[0]["id"]]
    for entry in history:
        assert (await actor.undo(between["id"], entry["id"])).status_code == 200
    assert canonical(database_urls) == before


async def test_values_filed_at_once_make_one_chain(filer: Filer, actor: Actor, database_urls: DatabaseUrls) -> None:
    for _ in range(3):
        subject = f"subject {next(_subjects)}"
        memories = [
            await actor.remember(f"Value {day}.", subject=subject, property="home", **dated(valid_from=day))
            for day in range(8)
        ]
        await asyncio.gather(*(filer.file(memory["id"]) for memory in memories))
        rows = rows_of(
            database_urls,
            "SELECT id, status, superseded_by FROM memories WHERE subject = %s ORDER BY valid_from",
            subject,
        )
        assert [row["status"] for row in rows] == ["superseded"] * 7 + ["active"]
        assert [row["superseded_by"] for row in rows] == [*(row["id"] for row in rows[1:]), None]
