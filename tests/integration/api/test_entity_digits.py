"""Nothing becomes one because names are alike: digits tell apart, and a name that two have stands for neither."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.entities import ENTITIES, declare, store_memory
from tests.fixtures.merging import everything, merge, rows_of, split
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

ALIKE = (
    ("Room 101", "Room 102"),
    ("Room 101", "Room 10 1"),
    ("UA123", "UA124"),
    ("ASR1603", "ASR1605"),
    ("2023 Tax Return", "2024 Tax Return"),
    ("Release 1.2", "Release 2.1"),
)


def mentioned(urls: DatabaseUrls, memory: str) -> set[tuple[str, bool, str]]:
    """Name, declared and id of what a memory mentions."""
    return {
        (row["name"], row["declared"], row["id"])
        for row in rows_of(
            urls,
            "SELECT e.name, e.declared, e.id::text AS id FROM mentions AS m JOIN entities AS e "
            "ON e.tenant_id = m.tenant_id AND e.id = m.entity_id WHERE m.memory_id = %s",
            memory,
        )
    }


@pytest.mark.parametrize("known", ALIKE)
async def test_texts_name_the_one_whose_digits_they_have(
    client: httpx.AsyncClient,
    tenant: TestTenant,
    worker: WorkerContext,
    database_urls: DatabaseUrls,
    known: tuple[str, str],
) -> None:
    headers = tenant.headers()
    ids = {name: (await declare(client, headers, name=name, entity_type="thing"))["id"] for name in known}
    stored = {name: await store_memory(client, headers, text=f"They wrote to {name.upper()} again.") for name in known}
    await drain(worker)
    for name, memory in stored.items():
        assert {found for found in mentioned(database_urls, memory) if found[1]} == {(name, True, ids[name])}
    for name in known:
        found = await client.get(ENTITIES, params={"name": name}, headers=headers)
        assert [item["id"] for item in found.json()["items"]] == [ids[name]]


@pytest.mark.parametrize("known", ALIKE)
async def test_a_name_with_other_digits_that_nobody_declared_is_derived(
    client: httpx.AsyncClient,
    tenant: TestTenant,
    worker: WorkerContext,
    database_urls: DatabaseUrls,
    known: tuple[str, str],
) -> None:
    headers = tenant.headers()
    declared = (await declare(client, headers, name=known[0], entity_type="thing"))["id"]
    memory = await store_memory(client, headers, text=f'They wrote to "{known[1]}" again.')
    await drain(worker)
    found = mentioned(database_urls, memory)
    assert (known[1], False) in {(name, is_declared) for name, is_declared, _ in found}
    assert declared not in {ident for _, _, ident in found}


async def test_two_of_one_name_stay_two_and_a_text_means_neither(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    one, two = [(await declare(client, headers, name="Alex Kim"))["id"] for _ in range(2)]
    memory = await store_memory(client, headers, text="We met Alex Kim.")
    await drain(worker)
    ((name, is_declared, ident),) = mentioned(database_urls, memory)
    assert (name, is_declared) == ("Alex Kim", False)
    assert ident not in (one, two)
    for entity in (one, two):
        seen = (await client.get(f"{ENTITIES}/{entity}", headers=headers)).json()
        assert (seen["name"], seen["mention_count"]) == ("Alex Kim", 0)
    # A second name tells which is meant.
    assert (await client.patch(f"{ENTITIES}/{one}", json={"aliases": ["A. Kim"]}, headers=headers)).status_code == 200
    other = await store_memory(client, headers, text="We met A. Kim.")
    await drain(worker)
    assert {ident for _, _, ident in mentioned(database_urls, other)} == {one}


@pytest.mark.parametrize("known", [*ALIKE, ("Room 101", "The room"), ("Year 2024", "Year \u0662\u0660\u0662\u0663")])
async def test_a_merge_despite_differing_digits_has_to_be_said_twice(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls, known: tuple[str, str]
) -> None:
    headers = tenant.headers()
    one, two = [(await declare(client, headers, name=name, entity_type="thing"))["id"] for name in known]
    before = everything(database_urls)
    for more in ({}, {"despite_digits": False}, {"dry_run": True}):
        answer = await merge(client, headers, one, two, **more)
        assert answer.status_code == 409, answer.text
        assert "the digits of the two names differ" in answer.json()["detail"]
        assert "despite_digits" in answer.json()["detail"]
    assert everything(database_urls) == before
    plan = await merge(client, headers, one, two, despite_digits=True, dry_run=True)
    assert [doubt["code"] for doubt in plan.json()["against"]] == ["digits_differ"]
    assert (await merge(client, headers, one, two, despite_digits=True)).json()["entity"]["aliases"] == [known[0]]


@pytest.mark.parametrize(
    "known",
    [("Room 101", "ROOM-101"), ("Room \u0661\u0660\u0661", "Room 101 (north)"), ("Annie", "Ann"), ("R2D2", "R 2 D 2")],
)
async def test_names_of_the_same_digits_need_no_second_word(
    client: httpx.AsyncClient, tenant: TestTenant, known: tuple[str, str]
) -> None:
    headers = tenant.headers()
    one, two = [(await declare(client, headers, name=name))["id"] for name in known]
    assert (await merge(client, headers, one, two)).status_code == 200


async def test_a_split_takes_the_alias_that_was_named_and_no_other(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = tenant.headers()
    aliases: list[Any] = ["Room 101", "Room 102", "Room 10 1"]
    entity = (await declare(client, headers, name="Rooms", aliases=aliases))["id"]
    for other in ("Room 103", "Room 1", "Room 10", "Room", "Room 1O1"):
        assert (await split(client, headers, entity, other)).status_code == 422, other
    done = (await split(client, headers, entity, "room-101")).json()
    assert (done["entity"]["name"], done["entity"]["aliases"]) == ("Room 101", [])
    assert done["remaining"]["aliases"] == ["Room 102", "Room 10 1"]
