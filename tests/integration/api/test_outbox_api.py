"""`/v1/outbox` on a real Postgres: what operators see, and the two ways out of `dead`."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from psycopg.rows import scalar_row
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token, bearer

from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.outbox.events import CHANNEL

pytestmark = pytest.mark.anyio

SHAPES = {
    "pending": "attempts = 0",
    "leased": "attempts = 1, lease_token = gen_random_uuid(), lease_until = clock_timestamp() + interval '1 minute'",
    "done": "attempts = 1, finished_at = clock_timestamp()",
    "dead": "attempts = 5, finished_at = clock_timestamp()",
    "discarded": "attempts = 5, finished_at = clock_timestamp(), discard_reason = 'old', discarded_by = 'ann'",
}


class Events:
    """Puts events of any status straight into the database."""

    def __init__(self, urls: DatabaseUrls) -> None:
        self.urls = urls

    def add(
        self,
        tenant: TestTenant,
        status: str = "dead",
        *,
        event_type: str = "GRAPH_UPSERT",
        aggregate_type: str = "memory",
        aggregate_id: UUID | None = None,
        error: str | None = None,
    ) -> int:
        entries = []
        if error is not None:
            name, _, message = error.partition(": ")
            entry = {"at": "2026-01-01T00:00:00+00:00", "class": name, "message": message, "fingerprint": f"fp-{name}"}
            entries = [{**entry, "worker": str(uuid4()), "traceback": "Traceback: here"}]
        with psycopg.connect(self.urls.owner_url, row_factory=scalar_row) as connection:
            event_id = connection.execute(
                "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, last_error, "
                "errors) VALUES (%s, %s, %s, %s, 1, %s, %s) RETURNING id",
                (
                    tenant.tenant_id,
                    event_type,
                    aggregate_type,
                    aggregate_id or uuid4(),
                    error,
                    json.dumps(entries),
                ),
            ).fetchone()
            assert isinstance(event_id, int)
            self.become(event_id, status, connection)
        return event_id

    def become(self, event_id: int, status: str, connection: psycopg.Connection[Any] | None = None) -> None:
        """Set an event's status as a worker would."""
        statement = (
            "UPDATE outbox_events SET lease_token = NULL, lease_until = NULL, finished_at = NULL, "
            "discard_reason = NULL, discarded_by = NULL WHERE id = %s"
        )
        # One statement, since the checks tie the columns together.
        cleared = statement.replace(" WHERE", f", status = '{status}' WHERE")
        for assignment in SHAPES[status].split(", "):
            name = assignment.partition(" = ")[0]
            cleared = cleared.replace(f"{name} = NULL", assignment)
            if assignment not in cleared:
                cleared = cleared.replace(" WHERE", f", {assignment} WHERE")
        if connection is not None:
            connection.execute(cleared, (event_id,))
            return
        with psycopg.connect(self.urls.owner_url) as opened:
            opened.execute(cleared, (event_id,))


@pytest.fixture
def events(database_urls: DatabaseUrls) -> Events:
    return Events(database_urls)


@pytest.fixture
def root(database_urls: DatabaseUrls) -> dict[str, str]:
    return bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))


@pytest.fixture
def operator(tenant: TestTenant) -> dict[str, str]:
    return tenant.headers("operator")


async def _listed(client: httpx.AsyncClient, headers: dict[str, str], **params: Any) -> list[int]:
    answer = await client.get("/v1/outbox/events", params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    return [event["id"] for event in answer.json()["items"]]


async def test_stats_count_by_status_and_type_and_show_dead_deletes_apart(
    client: httpx.AsyncClient, tenant: TestTenant, events: Events, operator: dict[str, str]
) -> None:
    for status, number in (("pending", 3), ("leased", 1), ("done", 2), ("dead", 2), ("discarded", 1)):
        for _ in range(number):
            events.add(tenant, status)
    events.add(tenant, "dead", event_type="GRAPH_DELETE")
    stats = (await client.get("/v1/outbox/stats", headers=operator)).json()
    assert stats["oldest_due_seconds"] > 0
    assert {name: stats[name] for name in ("pending", "leased", "dead", "dead_deletes", "discarded")} == {
        "pending": 3,
        "leased": 1,
        "dead": 3,
        "dead_deletes": 1,
        "discarded": 1,
    }
    assert stats["done_last_hour"] == 2
    assert stats["capped"] is False
    assert stats["by_event_type"] == {
        "GRAPH_UPSERT": {"pending": 3, "leased": 1, "dead": 2},
        "GRAPH_DELETE": {"pending": 0, "leased": 0, "dead": 1},
    }
    assert stats["workers"] == []


async def test_an_empty_queue_is_all_zeros(client: httpx.AsyncClient, operator: dict[str, str]) -> None:
    stats = (await client.get("/v1/outbox/stats", headers=operator)).json()
    assert (stats["pending"], stats["dead"], stats["done_last_hour"], stats["oldest_due_seconds"]) == (0, 0, 0, 0)


async def test_workers_are_listed_with_their_heartbeats_and_the_silent_ones_as_lost(
    client: httpx.AsyncClient, database_urls: DatabaseUrls, operator: dict[str, str]
) -> None:
    with psycopg.connect(database_urls.owner_url) as connection:
        for host, state, age in (("a", "working", 1), ("b", "idle", 300), ("c", "stopped", 1)):
            connection.execute(
                "INSERT INTO workers (id, host, pid, version, state, last_seen) "
                "VALUES (gen_random_uuid(), %s, 1, '0', %s, now() - %s * interval '1 second')",
                (host, state, age),
            )
    workers = (await client.get("/v1/outbox/stats", headers=operator)).json()["workers"]
    assert [(worker["host"], worker["state"]) for worker in workers] == [("a", "working"), ("b", "lost")]
    assert workers[1]["seconds_since_seen"] >= 300


async def test_dead_events_come_first_then_the_rest_newest_first_across_pages(
    client: httpx.AsyncClient, tenant: TestTenant, events: Events, operator: dict[str, str]
) -> None:
    made = {status: [events.add(tenant, status) for _ in range(2)] for status in SHAPES}
    dead = made.pop("dead")[::-1]
    rest = sorted((event for ids in made.values() for event in ids), reverse=True)
    assert await _listed(client, operator) == dead + rest
    for limit in (1, 2, 3, 4, 10):
        seen: list[int] = []
        params: dict[str, Any] = {"limit": limit}
        for _ in range(11):
            page = (await client.get("/v1/outbox/events", params=params, headers=operator)).json()
            seen += [event["id"] for event in page["items"]]
            if page["next_cursor"] is None:
                break
            params["cursor"] = page["next_cursor"]
        assert seen == dead + rest, limit


async def test_filters(client: httpx.AsyncClient, tenant: TestTenant, events: Events, operator: dict[str, str]) -> None:
    aggregate = uuid4()
    first = events.add(tenant, "dead", error="GraphDataError: can't hold 100% of it")
    second = events.add(tenant, "dead", error="ValueError: bad_value", event_type="GRAPH_DELETE")
    third = events.add(tenant, "pending", aggregate_type="edge", aggregate_id=aggregate)
    for params, expected in (
        ({"status": "dead"}, [second, first]),
        ({"status": "pending"}, [third]),
        ({"event_type": "GRAPH_DELETE"}, [second]),
        ({"aggregate_type": "edge"}, [third]),
        ({"aggregate_id": str(aggregate)}, [third]),
        ({"error": "graphdata"}, [first]),
        ({"error": "100%"}, [first]),
        ({"error": "bad%value"}, []),
        ({"error": "d_v"}, [second]),
        ({"error": "fp-ValueError"}, [second]),
        ({"status": "dead", "aggregate_type": "edge"}, []),
    ):
        assert await _listed(client, operator, **params) == expected, params


@pytest.mark.parametrize(
    "params",
    [
        {"status": "lost"},
        {"event_type": "DELETE"},
        {"aggregate_type": "record"},
        {"aggregate_id": "x"},
        {"cursor": "OTl8MQ"},
        {"cursor": "?"},
        {"limit": "0"},
        {"state": "dead"},
        {"error": "a\u0000"},
    ],
)
async def test_a_filter_that_can_not_be_is_refused(
    client: httpx.AsyncClient, operator: dict[str, str], params: dict[str, str]
) -> None:
    answer = await client.get("/v1/outbox/events", params=params, headers=operator)
    assert answer.status_code == 422, answer.text


async def test_one_event_shows_every_attempt(
    client: httpx.AsyncClient, tenant: TestTenant, events: Events, operator: dict[str, str]
) -> None:
    event_id = events.add(tenant, "dead", error="ValueError: no")
    answer = await client.get(f"/v1/outbox/events/{event_id}", headers=operator)
    event = answer.json()
    assert event["tenant_id"] == str(tenant.tenant_id)
    assert (event["status"], event["attempts"], event["last_error"]) == ("dead", 5, "ValueError: no")
    assert event["errors"][0]["class"] == "ValueError"
    assert event["errors"][0]["traceback"] == "Traceback: here"
    assert answer.headers["etag"] == f'"{event["revision"]}"'
    listed = (await client.get("/v1/outbox/events", headers=operator)).json()["items"][0]
    assert "traceback" not in listed["errors"][0]


@pytest.mark.parametrize("status", ["dead", "discarded"])
async def test_a_retried_event_starts_over_keeps_its_history_and_wakes_the_workers(
    client: httpx.AsyncClient,
    tenant: TestTenant,
    events: Events,
    database_urls: DatabaseUrls,
    operator: dict[str, str],
    status: str,
) -> None:
    event_id = events.add(tenant, status, error="ValueError: no")
    with psycopg.connect(database_urls.worker_url, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        answer = await client.post(f"/v1/outbox/events/{event_id}/retry", headers=operator)
        assert answer.status_code == 200, answer.text
        assert len(list(listener.notifies(timeout=10, stop_after=1))) == 1
    event = answer.json()
    assert (event["status"], event["attempts"], event["finished_at"]) == ("pending", 0, None)
    assert (event["discard_reason"], event["discarded_by"]) == (None, None)
    assert len(event["errors"]) == 1
    audit = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
    assert [(entry["action"], entry["target_id"], entry["detail"]["was"]) for entry in audit] == [
        ("outbox.retry", str(event_id), status)
    ]


@pytest.mark.parametrize("status", ["pending", "leased", "done"])
async def test_an_event_that_is_not_dead_is_neither_retried_nor_discarded(
    client: httpx.AsyncClient, tenant: TestTenant, events: Events, operator: dict[str, str], status: str
) -> None:
    event_id = events.add(tenant, status)
    retried = await client.post(f"/v1/outbox/events/{event_id}/retry", headers=operator)
    discarded = await client.post(f"/v1/outbox/events/{event_id}/discard", json={"reason": "because"}, headers=operator)
    assert (retried.status_code, discarded.status_code) == (409, 409)
    assert (await client.get(f"/v1/outbox/events/{event_id}", headers=operator)).json()["status"] == status


async def test_a_discarded_event_says_who_and_why(
    client: httpx.AsyncClient, tenant: TestTenant, events: Events
) -> None:
    event_id = events.add(tenant, "dead")
    url = f"/v1/outbox/events/{event_id}/discard"
    headers = tenant.headers("operator", user="ann")
    for body in ({}, {"reason": ""}, {"reason": " \n"}, {"reason": "a\u0000"}):
        assert (await client.post(url, json=body, headers=headers)).status_code == 422, body
    answer = await client.post(url, json={"reason": " the record is gone "}, headers=headers)
    event = answer.json()
    assert (event["status"], event["discard_reason"], event["discarded_by"]) == (
        "discarded",
        "the record is gone",
        "ann",
    )
    assert (await client.post(url, json={"reason": "again"}, headers=headers)).status_code == 409
    audit = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
    assert [(entry["action"], entry["user_id"]) for entry in audit] == [("outbox.discard", "ann")]


async def test_a_page_that_is_out_of_date_changes_nothing(
    client: httpx.AsyncClient, tenant: TestTenant, events: Events, operator: dict[str, str]
) -> None:
    event_id = events.add(tenant, "dead", error="ValueError: first")
    url = f"/v1/outbox/events/{event_id}"
    seen = {**operator, "If-Match": (await client.get(url, headers=operator)).headers["etag"]}
    # Somebody else retries it, and it dies again with as many attempts as before.
    assert (await client.post(f"{url}/retry", headers=operator)).status_code == 200
    events.become(event_id, "dead")
    answers = [
        await client.post(f"{url}/discard", json={"reason": "it is hopeless"}, headers=seen),
        await client.post(f"{url}/retry", headers=seen),
    ]
    assert [answer.status_code for answer in answers] == [412, 412]
    fresh = {**operator, "If-Match": (await client.get(url, headers=operator)).headers["etag"]}
    assert (await client.post(f"{url}/retry", headers=fresh)).status_code == 200


async def test_many_dead_events_are_retried_by_filter(
    client: httpx.AsyncClient, tenant: TestTenant, events: Events, operator: dict[str, str]
) -> None:
    kept = [
        events.add(tenant, "dead", error="ValueError: a", event_type="GRAPH_DELETE"),
        events.add(tenant, "dead", error="ValueError: b", aggregate_type="entity"),
        events.add(tenant, "dead", error="OtherError: ValueError"),
        events.add(tenant, "discarded", error="ValueError: c"),
    ]
    wanted = [events.add(tenant, "dead", error=f"ValueError: {number}") for number in range(5)]
    body = {"status": "dead", "event_type": "GRAPH_UPSERT", "aggregate_type": "memory", "error_class": "ValueError"}
    first = await client.post("/v1/outbox/retry", json={**body, "limit": 3}, headers=operator)
    assert first.json() == {"retried": 3}
    assert sorted(await _listed(client, operator, status="pending")) == wanted[:3]
    rest = await client.post("/v1/outbox/retry", json=body, headers=operator)
    assert rest.json() == {"retried": 2}
    assert (await client.post("/v1/outbox/retry", json=body, headers=operator)).json() == {"retried": 0}
    assert sorted(await _listed(client, operator, status="dead")) == kept[:3]
    audit = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
    assert [entry["detail"]["events"] for entry in audit] == [wanted[3:], wanted[:3]]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"status": "pending"},
        {"status": "dead", "limit": 1001},
        {"status": "dead", "limit": 0},
        {"status": "dead", "older": 1},
    ],
)
async def test_a_bulk_retry_that_can_not_be_is_refused(
    client: httpx.AsyncClient, operator: dict[str, str], body: dict[str, Any]
) -> None:
    assert (await client.post("/v1/outbox/retry", json=body, headers=operator)).status_code == 422


async def test_another_tenants_events_are_out_of_reach(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, events: Events
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    theirs = events.add(other, "dead")
    for role in ("operator", "admin"):
        headers = mine.headers(role)
        assert await _listed(client, headers) == []
        assert (await client.get("/v1/outbox/stats", headers=headers)).json()["dead"] == 0
        for event_id in (theirs, theirs + 1):
            url = f"/v1/outbox/events/{event_id}"
            answers = [
                await client.get(url, headers=headers),
                await client.post(f"{url}/retry", headers=headers),
                await client.post(f"{url}/discard", json={"reason": "x"}, headers=headers),
            ]
            assert [answer.status_code for answer in answers] == [404] * 3
            assert {answer.json()["detail"] for answer in answers} == {"there is no such event"}
        named = {"tenant_id": str(other.tenant_id)}
        assert (await client.get("/v1/outbox/events", params=named, headers=headers)).status_code == 403
        assert (await client.get("/v1/outbox/stats", params=named, headers=headers)).status_code == 403
        many = await client.post("/v1/outbox/retry", json={"status": "dead"}, headers=headers)
        assert many.json() == {"retried": 0}
        many = await client.post("/v1/outbox/retry", json={"status": "dead", **named}, headers=headers)
        assert many.status_code == 403
    assert await _listed(client, other.headers("operator"), status="dead") == [theirs]


@pytest.mark.parametrize("role", ["reader", "writer", "reviewer"])
async def test_only_operators_and_admins_see_the_outbox(
    client: httpx.AsyncClient, tenant: TestTenant, events: Events, role: str
) -> None:
    event_id = events.add(tenant, "dead")
    headers = tenant.headers(role)
    answers = [
        await client.get("/v1/outbox/stats", headers=headers),
        await client.get("/v1/outbox/events", headers=headers),
        await client.get(f"/v1/outbox/events/{event_id}", headers=headers),
        await client.post(f"/v1/outbox/events/{event_id}/retry", headers=headers),
        await client.post(f"/v1/outbox/events/{event_id}/discard", json={"reason": "x"}, headers=headers),
        await client.post("/v1/outbox/retry", json={"status": "dead"}, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [403] * 6


async def test_root_sees_and_mends_all_tenants_queues(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, events: Events, root: dict[str, str]
) -> None:
    one, two = tenant_factory(), tenant_factory()
    made = [events.add(tenant, status) for tenant in (one, two) for status in ("dead", "pending", "dead")]
    dead, rest = [made[5], made[3], made[2], made[0]], [made[4], made[1]]
    assert await _listed(client, root) == dead + rest
    page = (await client.get("/v1/outbox/events", params={"limit": 3}, headers=root)).json()
    more = await _listed(client, root, cursor=page["next_cursor"])
    assert [event["id"] for event in page["items"]] + more == dead + rest
    assert await _listed(client, root, tenant_id=str(one.tenant_id)) == [made[2], made[0], made[1]]
    assert (await client.get("/v1/outbox/stats", headers=root)).json()["dead"] == 4
    named = await client.get("/v1/outbox/stats", params={"tenant_id": str(two.tenant_id)}, headers=root)
    assert named.json()["dead"] == 2
    assert (await client.post(f"/v1/outbox/events/{made[0]}/retry", headers=root)).status_code == 200
    body = {"status": "dead", "tenant_id": str(two.tenant_id), "limit": 1}
    assert (await client.post("/v1/outbox/retry", json=body, headers=root)).json() == {"retried": 1}
    assert (await client.post("/v1/outbox/retry", json={"status": "dead"}, headers=root)).json() == {"retried": 2}
    for tenant, actions in ((one, ["outbox.retry_many", "outbox.retry"]), (two, ["outbox.retry_many"] * 2)):
        audit = (await client.get("/v1/audit", headers=tenant.headers("admin"))).json()["items"]
        assert [entry["action"] for entry in audit] == actions
        assert {entry["role"] for entry in audit} == {"root"}


async def test_a_write_shows_up_as_a_pending_event_with_its_request(
    client: httpx.AsyncClient, tenant: TestTenant, operator: dict[str, str]
) -> None:
    stored = await client.post(
        "/v1/memories",
        json={"text": "Likes tea.", "label": "Preference"},
        headers={**tenant.headers(), "X-Request-Id": "write-0001"},
    )
    events = (await client.get("/v1/outbox/events", headers=operator)).json()["items"]
    assert [(event["status"], event["aggregate_id"], event["request_id"], event["id"]) for event in events] == [
        ("pending", stored.json()["memory"]["id"], "write-0001", stored.json()["position"])
    ]
