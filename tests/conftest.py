"""What every test has: the event loop and the servers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must fail no example for its slowness: speed is for the benchmarks.
settings.register_profile("memory-os", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memory-os")

pytest_plugins = [
    "tests.fixtures.postgres",
    "tests.fixtures.falkor",
    "tests.fixtures.service",
    "tests.fixtures.worker",
]


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on asyncio, as the service does."""
    return "asyncio"
