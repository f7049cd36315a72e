"""The projection is tested on both graph backends."""

from __future__ import annotations

import pytest
from tests.fixtures.falkor import FalkorProcess

from memory_os.settings import Settings


@pytest.fixture(params=["networkx", "falkor"])
def service_settings(
    request: pytest.FixtureRequest, service_settings: Settings, falkor_server: FalkorProcess, falkor_prefix: str
) -> Settings:
    """Settings of a service on each of the backends in turn."""
    falkor = {"falkor_host": falkor_server.host, "falkor_port": falkor_server.port, "graph_prefix": falkor_prefix}
    return service_settings.model_copy(update={"graph_backend": request.param, **falkor})
