"""Readers, tenants and things whose names are alike are never taken for one another."""

from __future__ import annotations

import random

import httpx
import pytest
from tests.fixtures.service import TenantFactory, TestTenant
from tests.fixtures.worker import drain
from tests.integration.retrieval.conftest import Ask, Memory

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


async def test_a_user_whose_name_begins_with_anothers_has_nothing_of_it(
    remember: Memory, ask: Ask, worker: WorkerContext
) -> None:
    mine = await remember("The boathouse key hangs behind the clock.", user="rower", visibility="private")
    await drain(worker)
    question = "Where does the boathouse key hang?"
    assert [item["id"] for item in (await ask(question, user="rower"))["items"]] == [mine]
    for user in ("rower1", "rowe", "Rower", "rower_", "%"):
        assert (await ask(question, user=user))["no_match"], user


async def test_answers_come_from_the_tenant_that_asks_in_whatever_order(
    client: httpx.AsyncClient, tenant: TestTenant, tenant_factory: TenantFactory, worker: WorkerContext
) -> None:
    tenants = [tenant, tenant_factory(), tenant_factory()]
    for number, one in enumerate(tenants):
        body = {"text": f"Ardal keeps the gearbox in shed {number}.", "label": "Attribute"}
        assert (await client.post("/v1/memories", json=body, headers=one.headers())).status_code == 201
    await drain(worker)
    order = random.Random(7).choices(range(len(tenants)), k=30)
    for number in order:
        question = {"query": "In which shed does Ardal keep the gearbox?"}
        pack = (await client.post("/v1/retrieve", json=question, headers=tenants[number].headers())).json()
        assert [item["text"] for item in pack["items"]] == [f"Ardal keeps the gearbox in shed {number}."]
        assert pack["graph"]["state"] == "current"


async def test_things_of_one_name_keep_what_is_said_of_each(
    client: httpx.AsyncClient, tenant: TestTenant, remember: Memory, ask: Ask, worker: WorkerContext
) -> None:
    things = {}
    for kind, text in (("planet", "It has no moon."), ("metal", "It is liquid in a thermometer.")):
        body = {"name": "Mercury", "entity_type": kind}
        answer = await client.post("/v1/memory/entities", json=body, headers=tenant.headers())
        assert answer.status_code == 201, answer.text
        ident = answer.json()["entity"]["id"]
        things[kind] = (ident, await remember(text, edges=[{"type": "ABOUT", "to": {"entity": ident}}]))
    assert things["planet"][0] != things["metal"][0]
    await drain(worker)
    pack = await ask("What is known about Mercury?", arms={"vector": False})
    items = {item["id"]: item for item in pack["items"]}
    for kind, (entity, memory) in things.items():
        assert items[entity]["label"] == kind
        assert [node["id"] for node in items[memory]["path"]] == [entity, memory]
