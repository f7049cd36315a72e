"""`/v1/graph` on a real Postgres and a real graph: what is in it, and rebuilds as jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token, bearer

from memory_os.api.services import Services
from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.graph.port import EntityNode, GraphPatch, MemoryNode, Mention
from memory_os.outbox.events import CHANNEL
from memory_os.projection.rebuilds import rebuild_of
from memory_os.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(database_urls: DatabaseUrls) -> dict[str, str]:
    return bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service with other settings than the usual."""
    from memory_os.app import create_app, open_services  # noqa: PLC0415 - takes a second, and few tests need it

    async with open_services(settings) as services:
        transport = httpx.ASGITransport(app=create_app(services), raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own ASGI types
        async with httpx.AsyncClient(transport=transport, base_url="http://memory-os") as client:
            yield client


def _entity(urls: DatabaseUrls, tenant: TestTenant, name: str, *, private_to: str | None = None) -> UUID:
    entity_id = new_id()
    with psycopg.connect(urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type, visibility, user_id) "
            "VALUES (%s, %s, true, %s, 'person', %s, %s)",
            (tenant.tenant_id, entity_id, name, "private" if private_to else "tenant", private_to),
        )
    return entity_id


async def _fill(services: Services, tenant: TestTenant, entities: dict[UUID, float]) -> None:
    """A graph of one memory that mentions all of these entities."""
    assert services.graph is not None
    backend, memory_id = services.graph.backend, str(uuid4())
    await backend.take_fence(tenant.tenant_id, "fence")
    patch = GraphPatch(
        entities=[EntityNode(str(key), "Name", "person", value, True) for key, value in entities.items()],
        memories=[MemoryNode(memory_id, "Skill", "active", 1)],
        mentions=[Mention(memory_id, str(key), 1.0) for key in entities],
    )
    await backend.apply(tenant.tenant_id, "fence", patch)


def _mention(urls: DatabaseUrls, tenant: TestTenant, occurrences: dict[UUID, int]) -> None:
    """A memory that names these entities, past the service: nothing of it has to be projected."""
    memory_id = uuid4()
    with psycopg.connect(urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, text, search) "
            "VALUES (%s, %s, 'Event', 'intelligence', 'x', '')",
            (tenant.tenant_id, memory_id),
        )
        for entity_id, count in occurrences.items():
            connection.execute(
                "INSERT INTO mentions (tenant_id, memory_id, canonical_name, entity_id, name, occurrences, confidence, "
                "spans, seen, extractor, extractor_version) VALUES (%s, %s, %s, %s, 'x', %s, 1, '{}', now(), 'x', 1)",
                (tenant.tenant_id, memory_id, str(entity_id), entity_id, count),
            )


async def test_stats_count_the_graph_and_name_the_strongest_entities(
    client: httpx.AsyncClient, services: Services, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    weak, strong = _entity(database_urls, tenant, "Ann"), _entity(database_urls, tenant, "Acme")
    await _fill(services, tenant, {weak: 1.0, strong: 2.0})
    _mention(database_urls, tenant, {weak: 1, strong: 6})
    stats = (await client.get("/v1/graph/stats", headers=tenant.headers("operator"))).json()
    assert stats == {
        "enabled": True,
        "backend": "networkx",
        "nodes": 3,
        "edges": 2,
        "entity_nodes": 2,
        "memory_nodes": 1,
        "edges_by_type": {"MENTIONS": 2},
        "top_entities": [
            {"id": str(strong), "name": "Acme", "strength": 2.0, "mentions": 1},
            {"id": str(weak), "name": "Ann", "strength": 1.0, "mentions": 1},
        ],
        "lag": {"events": 0, "seconds": 0.0},
        "position": 0,
        "doubt": None,
        "verified_at": None,
    }


async def test_an_entity_that_the_reader_may_not_see_is_left_out(
    client: httpx.AsyncClient, services: Services, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    hidden, seen = _entity(database_urls, tenant, "Secret", private_to="ann"), _entity(database_urls, tenant, "Acme")
    await _fill(services, tenant, {hidden: 3.0, seen: 1.0, uuid4(): 2.0})
    for user, names in ((None, ["Acme"]), ("bob", ["Acme"]), ("ann", ["Secret", "Acme"])):
        stats = (await client.get("/v1/graph/stats", headers=tenant.headers("reader", user=user))).json()
        assert [entity["name"] for entity in stats["top_entities"]] == names


async def test_an_entity_that_is_none_of_ours_is_left_out(
    client: httpx.AsyncClient, services: Services, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    assert services.graph is not None
    await _fill(services, tenant, {_entity(database_urls, tenant, "Acme"): 1.0})
    ghost = GraphPatch(entities=[EntityNode("ghost", "ghost", "person", 5.0, declared=False)])
    await services.graph.backend.apply(tenant.tenant_id, "fence", ghost)
    for role, counted in (("operator", 2), ("reader", 1)):  # who is no operator gets counts of what they may see
        stats = (await client.get("/v1/graph/stats", headers=tenant.headers(role))).json()
        assert (stats["entity_nodes"], [entity["name"] for entity in stats["top_entities"]]) == (counted, ["Acme"])


async def test_stats_are_of_the_own_tenant(
    client: httpx.AsyncClient,
    services: Services,
    tenant_factory: TenantFactory,
    database_urls: DatabaseUrls,
    root: dict[str, str],
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    await _fill(services, other, {_entity(database_urls, other, "Acme"): 1.0})
    own = (await client.get("/v1/graph/stats", headers=mine.headers("admin"))).json()
    assert (own["nodes"], own["top_entities"]) == (0, [])
    named = {"tenant_id": str(other.tenant_id)}
    assert (await client.get("/v1/graph/stats", params=named, headers=mine.headers("admin"))).status_code == 403
    assert (await client.get("/v1/graph/stats", headers=root)).status_code == 422
    counted = (await client.get("/v1/graph/stats", params=named, headers=root)).json()
    # Root counts, but reads no tenant's records.
    assert (counted["nodes"], counted["top_entities"]) == (2, [])


async def test_lag_and_position_follow_the_outbox(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    positions = []
    for number in range(3):
        body = {"text": f"Likes tea number {number}.", "label": "Preference"}
        positions.append((await client.post("/v1/memories", json=body, headers=tenant.headers())).json()["position"])
    headers = tenant.headers("reader")

    async def lag(settled: list[int]) -> tuple[int, int]:
        with psycopg.connect(database_urls.owner_url) as connection:
            connection.execute(
                "UPDATE outbox_events SET status = 'done', finished_at = now() WHERE id = ANY (%s)", (settled,)
            )
        stats = (await client.get("/v1/graph/stats", headers=headers)).json()
        assert (stats["lag"]["seconds"] > 0) == (stats["lag"]["events"] > 0)
        return stats["lag"]["events"], stats["position"]

    assert await lag([]) == (3, positions[0] - 1)
    assert await lag([positions[1]]) == (2, positions[0] - 1)
    assert await lag([positions[0]]) == (1, positions[2] - 1)
    assert await lag([positions[2]]) == (0, positions[2])


async def test_stats_tell_doubt_and_the_last_comparison_of_the_own_tenant(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, database_urls: DatabaseUrls, root: dict[str, str]
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO graph_states (tenant_id, epoch, doubt, doubted_at, verified_at) "
            "VALUES (%s, 'a', 'the graph was lost or replaced', now(), '2026-01-31T12:00:00Z')",
            (mine.tenant_id,),
        )
    told = ("the graph was lost or replaced", "2026-01-31T12:00:00Z")
    for headers, query, expected in (
        (mine.headers("reader"), {}, told),
        (other.headers("reader"), {}, (None, None)),
        (root, {"tenant_id": str(mine.tenant_id)}, told),
        (root, {"tenant_id": str(uuid4())}, (None, None)),
    ):
        stats = (await client.get("/v1/graph/stats", params=query, headers=headers)).json()
        assert (stats["doubt"], stats["verified_at"]) == expected


async def test_with_graph_memory_off_stats_are_zeros_and_a_rebuild_names_the_setting(
    service_settings: Settings, tenant: TestTenant
) -> None:
    async with served(service_settings.model_copy(update={"enable_graph_memory": False})) as client:
        stats = (await client.get("/v1/graph/stats", headers=tenant.headers("reader"))).json()
        assert (stats["enabled"], stats["backend"], stats["nodes"], stats["top_entities"]) == (False, None, 0, [])
        assert (stats["lag"], stats["position"]) == ({"events": 0, "seconds": 0.0}, 0)
        answer = await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))
        assert answer.status_code == 400
        assert answer.json()["type"].endswith("feature-off")
        assert "ENABLE_GRAPH_MEMORY" in answer.json()["detail"]


async def test_a_graph_that_is_down_is_said_to_be(service_settings: Settings, tenant: TestTenant) -> None:
    down = service_settings.model_copy(update={"graph_backend": "falkor", "falkor_port": 1})
    async with served(down) as client:
        answer = await client.get("/v1/graph/stats", headers=tenant.headers("reader"))
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert int(answer.headers["retry-after"]) > 0
        # A rebuild is asked for in Postgres alone: it waits until the graph is back.
        rebuild = await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))
        assert rebuild.status_code == 202


async def test_a_rebuild_is_a_job_that_wakes_the_workers(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers("admin")
    with psycopg.connect(database_urls.worker_url, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        answer = await client.post(
            "/v1/graph/rebuild", json={"limit": 10, "allow_partial": True, "user_id": "ann"}, headers=headers
        )
        assert answer.status_code == 202, answer.text
        assert len(list(listener.notifies(timeout=10, stop_after=1))) == 1
    job = answer.json()
    assert (job["status"], job["limit"], job["allow_partial"], job["user_id"]) == ("pending", 10, True, "ann")
    assert (job["percent"], job["rate"], job["eta_seconds"], job["truncated"]) == (None, None, None, False)
    followed = await client.get(f"/v1/graph/rebuilds/{job['id']}", headers=tenant.headers("operator"))
    assert followed.json() == job
    listed = (await client.get("/v1/graph/rebuilds", headers=tenant.headers("operator"))).json()
    assert listed == {"items": [job], "next_cursor": None}
    audit = (await client.get("/v1/audit", headers=headers)).json()["items"]
    assert [(entry["action"], entry["target_id"]) for entry in audit] == [("graph.rebuild", job["id"])]


async def test_a_second_rebuild_of_a_tenant_waits_for_the_first(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, database_urls: DatabaseUrls
) -> None:
    tenant, other = tenant_factory(), tenant_factory()
    first = (await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))).json()
    second = await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))
    assert second.status_code == 409
    assert second.json()["type"].endswith("rebuild-running")
    assert second.json()["rebuild_id"] == first["id"]
    assert (await client.post("/v1/graph/rebuild", json={}, headers=other.headers("admin"))).status_code == 202
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE graph_rebuilds SET status = 'done', finished_at = now()")
    assert (await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers("admin"))).status_code == 202
    listed = (await client.get("/v1/graph/rebuilds", headers=tenant.headers("admin"))).json()["items"]
    assert [job["status"] for job in listed] == ["pending", "done"]


@pytest.mark.parametrize("role", ["reader", "writer", "reviewer", "operator"])
async def test_only_admins_rebuild(client: httpx.AsyncClient, tenant: TestTenant, role: str) -> None:
    answer = await client.post("/v1/graph/rebuild", json={}, headers=tenant.headers(role))
    assert answer.status_code == 403


@pytest.mark.parametrize("body", [{"limit": 0}, {"limit": 2**31}, {"user_id": ""}, {"tenant": "x"}, {"users": []}])
async def test_a_rebuild_that_can_not_be_is_refused(
    client: httpx.AsyncClient, tenant: TestTenant, body: dict[str, Any]
) -> None:
    answer = await client.post("/v1/graph/rebuild", json=body, headers=tenant.headers("admin"))
    assert answer.status_code == 422, answer.text


async def test_rebuilds_of_another_tenant_are_out_of_reach_but_for_root(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, root: dict[str, str]
) -> None:
    mine, other = tenant_factory(), tenant_factory()
    named = {"tenant": str(other.tenant_id)}
    assert (await client.post("/v1/graph/rebuild", json=named, headers=mine.headers("admin"))).status_code == 403
    own = await client.post("/v1/graph/rebuild", json={"tenant": str(mine.tenant_id)}, headers=mine.headers("admin"))
    assert own.status_code == 202
    assert (await client.post("/v1/graph/rebuild", json={}, headers=root)).status_code == 422
    assert (await client.post("/v1/graph/rebuild", json={"tenant": str(uuid4())}, headers=root)).status_code == 404
    theirs = (await client.post("/v1/graph/rebuild", json=named, headers=root)).json()
    assert theirs["tenant_id"] == str(other.tenant_id)
    for rebuild_id in (theirs["id"], uuid4()):
        hidden = await client.get(f"/v1/graph/rebuilds/{rebuild_id}", headers=mine.headers("admin"))
        assert hidden.status_code == 404
    assert (await client.get(f"/v1/graph/rebuilds/{theirs['id']}", headers=root)).status_code == 200
    everything = (await client.get("/v1/graph/rebuilds", headers=root)).json()["items"]
    assert {job["tenant_id"] for job in everything} == {str(mine.tenant_id), str(other.tenant_id)}
    one = (await client.get("/v1/graph/rebuilds", params={"tenant_id": named["tenant"]}, headers=root)).json()["items"]
    assert [job["id"] for job in one] == [theirs["id"]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": "pending", "phase": "waiting", "started": None}, (None, None, None)),
        ({"status": "running", "phase": "extracting", "total": 50, "processed": 50}, (None, 5.0, None)),
        ({"status": "running", "phase": "memories", "total": 400, "processed": 100}, (25.0, 10.0, 30.0)),
        ({"status": "running", "phase": "memories", "total": 400, "processed": 0}, (0.0, 0.0, None)),
        ({"status": "done", "phase": "done", "total": 0, "processed": 0, "ended": 10}, (100.0, 0.0, None)),
        ({"status": "failed", "phase": "edges", "total": 400, "processed": 200, "ended": 4}, (50.0, 50.0, None)),
    ],
)
def test_progress(changes: dict[str, Any], expected: tuple[float | None, ...]) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ended = changes.pop("ended", None)
    row = {
        "id": uuid4(),
        "tenant_id": uuid4(),
        "user_id": None,
        "max_memories": None,
        "allow_partial": False,
        "truncated": False,
        "total": 0,
        "processed": 0,
        "attempts": 1,
        "error": None,
        "requested_by": "x",
        "created_at": start,
        "started_at": changes.pop("started", start),
        "finished_at": start + timedelta(seconds=ended) if ended else None,
        **changes,
    }
    job = rebuild_of(row, start + timedelta(seconds=10))
    assert (job.percent, job.rate, job.eta_seconds) == expected
