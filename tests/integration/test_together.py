"""Several hand-tuned statements in one round trip."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest
from tests.fixtures.service import TestTenant

from memory_os.api.services import Services
from memory_os.storage.database import Query, Scope

pytestmark = pytest.mark.anyio


async def test_each_statement_has_its_own_rows_and_an_absent_one_none(services: Services, tenant: TestTenant) -> None:
    scope = Scope("memory_os_app", tenant.tenant_id, "reader")
    position = Query("graph_position", {"tenant_id": tenant.tenant_id, "limit": 10})
    leads = Query("count_leads", {"tenant_id": tenant.tenant_id, "entities": [uuid4(), uuid4()], "limit": 5})
    for _ in range(8):  # prepared from the fifth time on
        async with services.database.transaction(scope, plans="generic") as tx:
            first, nothing, second = await tx.together(position, None, leads)
            assert (len(first), nothing, len(second)) == (1, [], 2)
            assert (await tx.together(None, leads))[1][0].keys() == {"id", "mentions"}
            assert await tx.together(None, None) == [[], []]
            assert await tx.hot(*position) == first


async def test_if_one_fails_the_transaction_fails(services: Services, tenant: TestTenant) -> None:
    scope = Scope("memory_os_app", tenant.tenant_id, "reader")
    position = Query("graph_position", {"tenant_id": tenant.tenant_id, "limit": 10})
    bad = Query("count_leads", {"tenant_id": tenant.tenant_id, "entities": ["no id"], "limit": 5})
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        async with services.database.transaction(scope) as tx:
            await tx.together(position, bad, position)
    async with services.database.transaction(scope) as tx:
        assert len(await tx.hot(*position)) == 1
