"""A reader finds what they may see, and learns nothing of the rest: neither text, nor id, nor that a path exists."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.fixtures.service import TenantFactory, TestTenant
from tests.fixtures.worker import drain
from tests.integration.retrieval.conftest import Ask, Memory

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

SECRET = "The refund account is CANARY-7781 at Zephyr Bank."


@pytest.fixture
async def secret(remember: Memory) -> str:
    """A private memory of Ada's."""
    return await remember(SECRET, user="ada", visibility="private")


async def test_a_private_memory_is_its_users_alone(secret: str, ask: Ask, worker: WorkerContext) -> None:
    await drain(worker)
    assert [item["id"] for item in (await ask("refund account", user="ada"))["items"]] == [secret]
    for user in ("ben", "ad", "ada1", "ADA", "%", "_", None):
        answer = json.dumps(await ask("refund account at Zephyr Bank", user=user))
        assert secret not in answer
        assert "CANARY" not in answer


async def test_it_is_not_among_the_omitted_either(secret: str, remember: Memory, ask: Ask) -> None:
    for number in range(12):
        await remember(f"Refunds of kind {number} take a week on the account.")
    pack = await ask("refund account", user="ben", limits={"memories": 3}, budget_tokens=900)
    assert pack["omitted_count"] == 12 - len(pack["items"])
    assert secret not in json.dumps(pack)


async def test_a_path_through_something_hidden_is_dropped_whole(
    remember: Memory, ask: Ask, worker: WorkerContext
) -> None:
    start = await remember("The gearbox rattles in winter.", label="Reference")
    hidden = await remember(
        SECRET, user="ada", visibility="private", edges=[{"type": "CAUSED_BY", "to": start, "confidence": 1.0}]
    )
    end = await remember(
        "Quarterly dividends went up.", user="ada", edges=[{"type": "CAUSED_BY", "to": hidden, "confidence": 1.0}]
    )
    await drain(worker)
    hers = await ask("gearbox rattles", user="ada")
    assert {item["id"] for item in hers["items"]} == {start, hidden, end}
    his = await ask("gearbox rattles", user="ben")
    assert [item["id"] for item in his["items"]] == [start]
    assert his["omitted_count"] == 0


async def test_hidden_memories_do_not_change_what_others_are_answered(
    remember: Memory, ask: Ask, worker: WorkerContext
) -> None:
    await remember("John agreed the freight rates with Northwind Freight.")
    await remember("At dinner John chose the red wine.")
    await drain(worker)
    before = await ask("what do I know about John?", user="ben")
    for number in range(15):
        await remember(
            f"Secretly John met Northwind Freight and Zephyr Bank ({number}).", user="ada", visibility="private"
        )
    await drain(worker)
    after = await ask("what do I know about John?", user="ben")
    assert [item["id"] for item in after["items"]] == [item["id"] for item in before["items"]]
    for one, other in zip(before["items"], after["items"], strict=True):
        assert (one["arms"], one["why"]) == (other["arms"], other["why"])
        assert one["score"] == pytest.approx(other["score"], abs=1e-3)  # a little for the time that has passed
    assert after["omitted_count"] == before["omitted_count"]


async def test_a_co_occurrence_that_only_hidden_memories_know_leads_nowhere(
    remember: Memory, ask: Ask, worker: WorkerContext
) -> None:
    bank = await remember("A brochure of Zephyr Bank lies on the desk.")
    await remember("A visit to Ardal Finch was pleasant.")
    await remember("Then Ardal Finch bought Zephyr Bank.", user="ada", visibility="private")
    await drain(worker)
    hers = await ask("ardal finch", user="ada", arms={"vector": False, "text": False})
    assert bank in {item["id"] for item in hers["items"]}
    his = await ask("ardal finch", user="ben", arms={"vector": False, "text": False})
    assert bank not in json.dumps(his)


async def test_a_name_that_only_hidden_memories_hold_is_unknown(secret: str, ask: Ask, worker: WorkerContext) -> None:
    del secret
    await drain(worker)
    pack = await ask("what about Zephyr Bank?", user="ben")
    assert pack["no_match"]
    assert pack["items"] == []


async def test_other_tenants_do_not_exist(
    client: httpx.AsyncClient,
    tenant: TestTenant,
    tenant_factory: TenantFactory,
    remember: Memory,
    worker: WorkerContext,
) -> None:
    ident = await remember("The gearbox needs oil, said John.")
    await drain(worker)
    other = tenant_factory()
    answer = await client.post("/v1/retrieve", json={"query": "gearbox oil John"}, headers=other.headers("admin"))
    assert answer.json()["no_match"]
    mine = (await client.post("/v1/retrieve", json={"query": "gearbox"}, headers=tenant.headers())).json()
    assert [item["id"] for item in mine["items"]] == [ident]
    foreign = await client.get(f"/v1/retrievals/{mine['retrieval_id']}", headers=other.headers("admin"))
    absent = await client.get(f"/v1/retrievals/{ident}", headers=other.headers("admin"))
    assert foreign.status_code == absent.status_code == 404
    assert foreign.json()["detail"] == absent.json()["detail"]


async def test_the_log_tells_nobody_more_than_they_may_read(
    client: httpx.AsyncClient, tenant: TestTenant, secret: str, remember: Memory, ask: Ask
) -> None:
    public = await remember("A refund account exists.")
    ada = (await ask("refund account", user="ada"))["retrieval_id"]
    ben = (await ask("refund account", user="ben"))["retrieval_id"]

    async def explain(ident: str, role: str, user: str | None) -> Any:
        return await client.get(f"/v1/retrievals/{ident}", headers=tenant.headers(role, user=user))

    own = (await explain(ada, "reader", "ada")).json()
    assert {item["id"] for item in own["items"]} == {secret, public}
    assert (await explain(ada, "reader", "ben")).status_code == 404
    assert (await explain(ben, "reader", "ben")).status_code == 200
    overseen = await explain(ada, "operator", None)
    assert [item["id"] for item in overseen.json()["items"]] == [public]
    assert secret not in overseen.text
    listed = await client.get("/v1/retrievals", headers=tenant.headers("reader", user="ben"))
    assert [entry["id"] for entry in listed.json()["items"]] == [ben]
    listed = await client.get("/v1/retrievals", headers=tenant.headers("operator"))
    assert {entry["id"] for entry in listed.json()["items"]} == {ada, ben}
