"""What every test has: the event loop and the servers."""

from __future__ import annotations

import pytest

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
