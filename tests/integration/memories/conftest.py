"""What tests of the life of memories share."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.service import TestTenant


@pytest.fixture
def actor(client: httpx.AsyncClient, tenant: TestTenant) -> Actor:
    """A writer who acts for nobody."""
    return Actor(client, tenant)
