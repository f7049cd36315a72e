"""The application itself beside the client, whose routes the tests walk, and worlds to reach into."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
from litestar import Litestar
from tests.fixtures.service import TenantFactory
from tests.fixtures.worker import drain
from tests.security.worlds import World, fill_world

from memory_os.api.services import Services
from memory_os.app import create_app
from memory_os_workers.context import WorkerContext

MakeWorld = Callable[..., Awaitable[World]]


@pytest.fixture
def app(services: Services) -> Litestar:
    return create_app(services)


@pytest.fixture
async def client(app: Litestar) -> AsyncIterator[httpx.AsyncClient]:
    """A client of that application; it raises nothing that the application answers."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own types
    async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as opened:
        yield opened


@pytest.fixture
def make_world(client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext) -> MakeWorld:
    """Makes a tenant with something of everything, projected into the graph; see `fill_world`."""

    async def make(mark: str, ids: dict[str, str] | None = None) -> World:
        world = await fill_world(client, tenant_factory(), mark, ids)
        await drain(worker)
        return world

    return make
