"""A writer who acts for nobody, and both graph backends for whoever asks for them."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.service import TestTenant

from memory_os.settings import Settings


@pytest.fixture
def actor(client: httpx.AsyncClient, tenant: TestTenant) -> Actor:
    """A writer who acts for nobody."""
    return Actor(client, tenant)


@pytest.fixture(params=["networkx", "falkor"])
def on_both_backends(
    request: pytest.FixtureRequest, service_settings: Settings, falkor_server: FalkorProcess, falkor_prefix: str
) -> Settings:
    """Settings of a service on each of the backends in turn."""
    falkor = {"falkor_host": falkor_server.host, "falkor_port": falkor_server.port, "graph_prefix": falkor_prefix}
    return service_settings.model_copy(update={"graph_backend": request.param, **falkor})
