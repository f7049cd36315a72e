"""When a part is down, slow or behind, the others answer, and the answer says so."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import psycopg
import pytest
from tests.fixtures.embedding_endpoint import EmbeddingEndpoint, answer_error, serve_embeddings
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain

from memory_os.api.services import Services
from memory_os.app import create_app, open_services
from memory_os.graph.port import GraphDataError, Path
from memory_os.settings import Settings
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """Vectors without meaning are enough here."""
    return service_settings.model_copy(
        update={"embedding_provider": "deterministic-for-tests", "memory_os_allow_test_embedder": True}
    )


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def store(client: httpx.AsyncClient, tenant: TestTenant, text: str) -> tuple[str, int]:
    answer = await client.post("/v1/memories", json={"text": text, "label": "Attribute"}, headers=tenant.headers())
    assert answer.status_code == 201, answer.text
    return answer.json()["memory"]["id"], answer.json()["position"]


async def retrieve(client: httpx.AsyncClient, tenant: TestTenant, query: str, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/retrieve", json={"query": query, **fields}, headers=tenant.headers("reader"))
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_with_the_graph_down_the_others_answer(
    service_settings: Settings, closed_port: int, tenant: TestTenant
) -> None:
    settings = service_settings.model_copy(update={"graph_backend": "falkor", "falkor_port": closed_port})
    async with open_services(settings) as services:
        transport = httpx.ASGITransport(app=create_app(services))  # type: ignore[arg-type] # Litestar's own ASGI types
        async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client:
            ident, _ = await store(client, tenant, "The gearbox needs oil.")
            pack = await retrieve(client, tenant, "gearbox")
    assert [item["id"] for item in pack["items"]] == [ident]
    assert pack["graph"]["state"] == "degraded"
    assert pack["degraded_arms"] == ["graph"]


@pytest.mark.parametrize("fault", ["slow", "broken"])
async def test_a_graph_that_is_slow_or_broken_is_not_waited_for(
    client: httpx.AsyncClient, services: Services, tenant: TestTenant, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    assert services.graph is not None

    async def expand(*_: object, **__: object) -> Sequence[Path]:
        if fault == "broken":
            raise GraphDataError("a value that it can't hold")
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    monkeypatch.setattr(services.graph.backend, "expand", expand)
    ident, _ = await store(client, tenant, "The gearbox needs oil.")
    pack = await retrieve(client, tenant, "gearbox")
    assert [item["id"] for item in pack["items"]] == [ident]
    assert pack["graph"]["state"] == "degraded"
    assert pack["timings_ms"]["graph"] < 2_000


async def test_an_empty_graph_is_not_current(
    client: httpx.AsyncClient, services: Services, tenant: TestTenant, worker: WorkerContext
) -> None:
    assert services.graph is not None
    await store(client, tenant, "The gearbox needs oil.")
    await drain(worker)
    assert (await retrieve(client, tenant, "gearbox"))["graph"]["state"] == "current"
    await services.graph.backend.drop(tenant.tenant_id)
    pack = await retrieve(client, tenant, "gearbox")
    assert pack["graph"]["state"] == "degraded"
    assert pack["items"]


async def test_without_graph_memory_the_state_is_off(service_settings: Settings, tenant: TestTenant) -> None:
    async with open_services(service_settings.model_copy(update={"enable_graph_memory": False})) as services:
        transport = httpx.ASGITransport(app=create_app(services))  # type: ignore[arg-type] # as above
        async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client:
            ident, position = await store(client, tenant, "The gearbox needs oil.")
            pack = await retrieve(client, tenant, "gearbox", wait_for=5, timeout_ms=5_000)
    assert position == 0
    assert [item["id"] for item in pack["items"]] == [ident]
    assert pack["graph"] == {"state": "off", "lag_events": 0, "position": 0}
    assert "degraded_arms" not in pack


@pytest.fixture
async def endpoint() -> AsyncIterator[EmbeddingEndpoint]:
    """An endpoint that makes vectors until it is told otherwise."""
    async with serve_embeddings() as opened:
        yield opened


async def test_with_the_embedder_down_words_answer(
    service_settings: Settings, endpoint: EmbeddingEndpoint, tenant: TestTenant
) -> None:
    update = {
        "embedding_provider": "http",
        "embedding_url": endpoint.url,
        "embedding_model": "served",
        "memory_os_allow_test_embedder": False,
        "embedding_timeout_s": 2.0,
    }
    async with open_services(service_settings.model_copy(update=update)) as services:
        transport = httpx.ASGITransport(app=create_app(services))  # type: ignore[arg-type] # as above
        async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client:
            ident, _ = await store(client, tenant, "The gearbox needs oil.")
            assert "vector" in (await retrieve(client, tenant, "gearbox needs oil"))["items"][0]["arms"]
            endpoint.always = answer_error(503, "out of service")
            pack = await retrieve(client, tenant, "gearbox needs oil")
    assert [(item["id"], list(item["arms"])) for item in pack["items"]] == [(ident, ["text"])]
    assert pack["degraded_arms"] == ["vector"]


async def test_waiting_for_a_write_sees_it_in_the_graph(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    _, position = await store(client, tenant, "At dinner John chose the red wine.")
    waiting = asyncio.create_task(
        retrieve(client, tenant, "john", wait_for=position, timeout_ms=5_000, arms={"vector": False, "text": False})
    )
    await drain(worker)
    pack = await waiting
    assert pack["graph"]["state"] == "current"
    assert pack["graph"]["position"] >= position
    assert pack["items"] == [] or "graph" in pack["items"][0]["arms"]


async def test_a_wait_ends_with_its_time(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    _, position = await store(client, tenant, "The gearbox needs oil.")
    pack = await retrieve(client, tenant, "gearbox", wait_for=position, timeout_ms=100)
    assert pack["graph"] == {"state": "lagging", "lag_events": 1, "position": position - 1}
    assert 100 <= pack["timings_ms"]["wait"] < 2_000
    assert pack["items"]


async def test_a_dead_event_keeps_the_graph_from_being_current(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext
) -> None:
    await store(client, tenant, "The gearbox needs oil.")
    await drain(worker)
    assert (await retrieve(client, tenant, "gearbox"))["graph"]["state"] == "current"
    _, position = await store(client, tenant, "The gearbox is loud.")
    with psycopg.connect(tenant.owner_url) as connection:
        connection.execute("UPDATE outbox_events SET status = 'dead', finished_at = now() WHERE id = %s", (position,))
    pack = await retrieve(client, tenant, "gearbox", wait_for=position, timeout_ms=5_000)
    assert pack["graph"]["state"] == "lagging"
    assert pack["timings_ms"]["wait"] < 1_000
