"""The queue's statements on a real Postgres, as the worker's role."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant

from memory_os.domain.ids import new_id
from memory_os.outbox.queue import Lease, Queue
from memory_os.storage.database import Database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def queue(database_urls: DatabaseUrls) -> AsyncIterator[Queue]:
    database = Database(database_urls.worker_url)
    yield Queue(database, new_id(), lease_s=30, backoff=(2.0, 300.0), source=random.Random(1))
    await database.close()


def put(tenant: TestTenant, count: int, **columns: object) -> list[int]:
    names = ", ".join(["tenant_id", "event_type", "aggregate_type", "aggregate_id", "version", *columns])
    with psycopg.connect(tenant.owner_url) as connection:
        rows = [
            connection.execute(
                f"INSERT INTO outbox_events ({names}) VALUES (%s, 'GRAPH_UPSERT', 'memory', %s, 1"
                f"{', %s' * len(columns)}) RETURNING id",
                (tenant.tenant_id, uuid4(), *columns.values()),
            ).fetchone()
            for _ in range(count)
        ]
    return [row[0] for row in rows if row]


def change(tenant: TestTenant, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(tenant.owner_url) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


async def test_attempts_count_at_the_claim_and_five_of_them_end_it(queue: Queue, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    put(tenant, 1)
    lease = await queue.lease(tenant.tenant_id)
    assert lease is not None
    for attempt in range(1, 6):
        events = await queue.claim(lease, 10)
        assert [event.attempts for event in events] == [attempt]
        # The worker is never heard of again: its lease runs out, and anybody may claim.
        change(tenant, "UPDATE outbox_events SET lease_until = now() - interval '1 second'")
    assert await queue.claim(lease, 10) == []
    [(status, attempts, error)] = change(tenant, "SELECT status, attempts, last_error FROM outbox_events")
    assert (status, attempts) == ("dead", 5)
    assert "LeaseExpired" in str(error)


async def test_the_oldest_due_come_first_and_the_batch_is_kept(queue: Queue, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    ids = put(tenant, 5)
    change(tenant, f"UPDATE outbox_events SET available_at = now() + interval '1 hour' WHERE id = {ids[0]}")
    lease = await queue.lease(tenant.tenant_id)
    assert lease is not None
    assert [event.id for event in await queue.claim(lease, 3)] == ids[1:4]
    assert [event.id for event in await queue.claim(lease, 3)] == ids[4:]
    assert await queue.claim(lease, 3) == []


async def test_a_lost_lease_acknowledges_nothing(queue: Queue, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    put(tenant, 2)
    lease = await queue.lease(tenant.tenant_id)
    assert lease is not None
    events = await queue.claim(lease, 10)
    stranger = Lease(tenant.tenant_id, uuid4())
    assert await queue.finish(stranger, [event.id for event in events]) == 0
    assert await queue.fail(stranger, events[0], ValueError("x")) is None
    await queue.refund(stranger, [events[0].id], "gone", 0.0)
    assert change(tenant, "SELECT DISTINCT status, attempts FROM outbox_events") == [("leased", 1)]
    assert await queue.finish(lease, [event.id for event in events]) == 2


async def test_a_refund_gives_the_attempt_back_but_not_for_ever(queue: Queue, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    put(tenant, 2)
    lease = await queue.lease(tenant.tenant_id)
    assert lease is not None
    events = await queue.claim(lease, 10)
    change(tenant, f"UPDATE outbox_events SET created_at = now() - interval '25 hours' WHERE id = {events[0].id}")
    await queue.refund(lease, [event.id for event in events], "refused", 0.0)
    rows = change(tenant, "SELECT status, attempts, last_error FROM outbox_events ORDER BY id")
    assert rows == [("dead", 0, "refused"), ("pending", 0, "refused")]


async def test_a_busy_tenant_does_not_hide_the_others(queue: Queue, tenant_factory: TenantFactory) -> None:
    tenants = [tenant_factory() for _ in range(4)]
    put(tenants[0], 300)
    for tenant in tenants[1:3]:
        put(tenant, 1)
    put(tenants[3], 1)
    change(
        tenants[3],
        f"UPDATE outbox_events SET available_at = now() + interval '1 hour' WHERE tenant_id = '{tenants[3].tenant_id}'",
    )
    due = await queue.due_tenants(UUID(int=0), 10)
    assert due == sorted(tenant.tenant_id for tenant in tenants[:3])
    assert await queue.due_tenants(due[0], 10) == due[1:]
    assert await queue.due_tenants(UUID(int=0), 2) == due[:2]
    held = await queue.lease(due[1])
    assert held is not None
    assert await queue.due_tenants(UUID(int=0), 10) == [due[0], due[2]]


async def test_a_lease_that_ran_out_goes_to_the_next(queue: Queue, tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    put(tenant, 1)
    first = await queue.lease(tenant.tenant_id)
    assert first is not None
    assert len(await queue.claim(first, 10)) == 1
    change(tenant, "UPDATE projection_leases SET lease_until = now() - interval '1 second'")
    change(tenant, "UPDATE outbox_events SET lease_until = now() - interval '1 second'")
    second = await queue.lease(tenant.tenant_id)
    assert second is not None
    assert await queue.renew(first) is False
    assert await queue.claim(first, 10) == []
    assert len(await queue.claim(second, 10)) == 1


async def test_the_states_of_an_event_are_held_by_the_table(tenant_factory: TenantFactory) -> None:
    tenant = tenant_factory()
    put(tenant, 1)
    for wrong in (
        "status = 'leased'",
        "status = 'done'",
        "status = 'dead'",
        "status = 'discarded', finished_at = now()",
        "status = 'lost'",
        "attempts = 6",
        "attempts = -1",
        "lease_token = gen_random_uuid()",
        "event_type = 'GRAPH_DROP'",
        "aggregate_type = 'source'",
    ):
        with pytest.raises(psycopg.errors.CheckViolation):
            change(tenant, f"UPDATE outbox_events SET {wrong}")


async def test_what_kills_its_workers_dies_alone(queue: Queue, tenant_factory: TenantFactory) -> None:
    """However often an event kills the worker that has it, none of those that were claimed beside it dies with it."""
    tenant = tenant_factory()
    ids = put(tenant, 200)
    killer, done, sizes = ids[77], set[int](), list[int]()
    lease = await queue.lease(tenant.tenant_id)
    assert lease is not None
    while events := await queue.claim(lease, 200):
        claimed = [event.id for event in events]
        if killer not in claimed:
            assert await queue.finish(lease, claimed) == len(claimed)
            done.update(claimed)
            continue
        sizes.append(len(claimed))
        assert {event.suspect for event in events} == {len(sizes) > 1}
        change(tenant, "UPDATE outbox_events SET lease_until = now() - interval '1 second' WHERE status = 'leased'")
    assert done == set(ids) - {killer}
    assert sizes == [200, 25, 4, 1, 1]
    assert change(tenant, "SELECT id, attempts FROM outbox_events WHERE status = 'dead'") == [(killer, 5)]
