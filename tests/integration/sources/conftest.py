"""What tests of sources share."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.citing import Citer
from tests.fixtures.service import TestTenant


@pytest.fixture
def citer(client: httpx.AsyncClient, tenant: TestTenant) -> Citer:
    """A writer who acts for nobody."""
    return Citer(client, tenant)
