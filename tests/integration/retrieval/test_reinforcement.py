"""What an answer adds to the edges that led to it: once, within the breakers, and to nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain, dump
from tests.integration.retrieval.conftest import Ask, Memory

from memory_os.api.services import Services
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.retrieval.reinforcing import reinforce
from memory_os.settings import Settings
from memory_os.storage.database import Scope, Transaction
from memory_os_workers import pruner, reinforcer, verifier
from memory_os_workers.context import WorkerContext
from memory_os_workers.process import open_worker

pytestmark = pytest.mark.anyio

BY_WORDS = {"vector": False}


@dataclass(frozen=True)
class Stores:
    """Looks into the database past everything."""

    urls: DatabaseUrls
    tenant: TestTenant

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.urls.owner_url, row_factory=dict_row) as connection:
            return (
                list(connection.execute(query, values))
                if query.startswith("SELECT")
                else _done(connection, query, values)
            )

    def edge(self, ident: str) -> tuple[float, int, float | None]:
        """Confidence, count and claimed confidence of an edge."""
        (row,) = self.rows("SELECT * FROM edges WHERE id = %s", ident)
        return row["confidence"], row["co_reference_count"], row["claimed_confidence"]

    def walks(self) -> list[tuple[str, str | None]]:
        """State and reason of every walk, oldest first."""
        rows = self.rows("SELECT state, reason FROM retrieval_edges ORDER BY retrieval_id, edge_id, record_id")
        return [(row["state"], row["reason"]) for row in rows]

    def counts(self) -> dict[str, int]:
        """Rows of what retrievals must not make."""
        names = ("memories", "entities", "edges", "mentions", "entity_pairs", "memory_embeddings")
        return {name: self.rows(f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in names}


def _done(connection: psycopg.Connection[dict[str, Any]], query: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
    connection.execute(query, values)
    return []


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """Every walk counts, unless a test says otherwise; words are all that is looked for."""
    return service_settings.model_copy(
        update={
            "reinforce_unconfirmed_share": 1.0,
            "embedding_provider": "deterministic-for-tests",
            "memory_os_allow_test_embedder": True,
        }
    )


@pytest.fixture
def stores(database_urls: DatabaseUrls, tenant: TestTenant) -> Stores:
    return Stores(database_urls, tenant)


@pytest.fixture
async def settle(services: Services, worker: WorkerContext) -> Callable[[], Awaitable[dict[str, int]]]:
    """Waits for the log and has the worker settle what it holds; answers the outcomes."""

    async def run() -> dict[str, int]:
        await services.retriever.log.close()
        return dict(await reinforcer.settle(worker))

    return run


Settle = Callable[[], Awaitable[dict[str, int]]]


@dataclass(frozen=True)
class Thread:
    """Two memories, of which only the first shares a word with the question, and the edge from it to the second."""

    stove: str
    permit: str
    edge: str


@pytest.fixture
async def thread(remember: Memory, worker: WorkerContext, client: httpx.AsyncClient, tenant: TestTenant) -> Thread:
    stove = await remember("The gearbox needs oil every spring.")
    permit = await remember("Ask Ida for the workshop keys.")
    body = {"type": "REQUIRES", "from": {"memory": stove}, "to": {"memory": permit}, "confidence": 0.5}
    answer = await client.post("/v1/edges", json=body, headers=tenant.headers())
    assert answer.status_code == 201, answer.text
    await drain(worker)
    return Thread(stove, permit, answer.json()["edge"]["id"])


async def asked(ask: Ask, thread: Thread, **fields: Any) -> dict[str, Any]:
    """Ask about the gearbox; the keys come along by the edge."""
    pack = await ask("gearbox", arms=BY_WORDS, **fields)
    assert {thread.stove, thread.permit} == {item["id"] for item in pack["items"]}
    return pack


async def test_an_answer_reinforces_the_edge_that_led_to_it_once(
    ask: Ask, thread: Thread, stores: Stores, settle: Settle, worker: WorkerContext, tenant: TestTenant
) -> None:
    before = stores.counts()
    await asked(ask, thread)
    assert await settle() == {"counted": 1}
    assert stores.edge(thread.edge) == (0.55, 1, 0.5)
    assert await settle() == {}
    assert stores.edge(thread.edge) == (0.55, 1, 0.5)
    (row,) = stores.rows("SELECT version FROM edges WHERE id = %s", thread.edge)
    assert row["version"] == 2
    assert stores.counts() == before
    await drain(worker)
    shown = (await dump(worker, tenant.tenant_id)).edges[thread.edge]
    assert (shown.confidence, shown.co_reference_count, shown.weight) == (0.55, 1, 0.5)


async def test_a_reinforced_graph_is_equal_to_its_rows(
    ask: Ask, thread: Thread, settle: Settle, worker: WorkerContext, client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    for number in range(12):
        await asked(ask, thread, conversation_id=f"c{number}")
    assert await settle() == {"counted": 12}
    await drain(worker)
    asked_for = await client.get("/v1/graph/verify", params={"wait_s": 0}, headers=tenant.headers("operator"))
    assert asked_for.status_code == 202, asked_for.text
    assert await verifier.take_job(worker)
    url = f"/v1/graph/verifications/{asked_for.json()['id']}"
    found = (await client.get(url, headers=tenant.headers("operator"))).json()
    assert (found["status"], found["missing"], found["extra"], found["differing"]) == ("done", 0, 0, 0)


async def test_an_edge_gains_once_a_conversation_and_never_goes_beyond_one(
    ask: Ask, thread: Thread, stores: Stores, settle: Settle
) -> None:
    for _ in range(3):
        await asked(ask, thread, conversation_id="kitchen", user="ada")
        await asked(ask, thread, conversation_id="kitchen", user="ben")
    assert await settle() == {"counted": 1, "period": 5}
    await asked(ask, thread, conversation_id="kitchen")
    assert await settle() == {"period": 1}
    assert stores.edge(thread.edge) == (0.55, 1, 0.5)
    for number in range(20):
        await asked(ask, thread, conversation_id=f"c{number}")
    assert await settle() == {"counted": 20}
    assert stores.edge(thread.edge) == (1.0, 21, 0.5)


async def test_without_a_conversation_an_edge_gains_once_a_principal_and_hour(
    ask: Ask, thread: Thread, stores: Stores, settle: Settle
) -> None:
    for user in ("ada", "ada", "ben", None, None):
        await asked(ask, thread, user=user)
    assert await settle() == {"counted": 3, "period": 2}
    stores.rows("UPDATE retrievals SET created_at = created_at - interval '1 hour'")
    stores.rows("UPDATE retrieval_edges SET state = 'waiting', reason = NULL")
    assert await settle() == {"counted": 3, "period": 2}
    assert stores.edge(thread.edge)[1] == 6


async def test_mentions_links_and_what_is_left_out_of_the_pack_reinforce_nothing(
    ask: Ask, thread: Thread, stores: Stores, settle: Settle, remember: Memory, worker: WorkerContext
) -> None:
    await remember('The oven was bought from "Northwind Freight".')
    await remember('The lamp was bought from "Northwind Freight".')
    await drain(worker)
    pack = await ask("Northwind Freight", arms={"vector": False, "text": False})
    assert len(pack["items"]) == 2
    alone = await ask("gearbox", arms=BY_WORDS, limits={"memories": 1})
    assert [item["id"] for item in alone["items"]] == [thread.stove]
    assert await settle() == {}
    assert stores.edge(thread.edge) == (0.5, 0, None)


async def test_an_edge_that_is_gone_is_passed_over(
    ask: Ask, thread: Thread, stores: Stores, settle: Settle, services: Services
) -> None:
    await asked(ask, thread)
    await services.retriever.log.close()
    stores.rows("DELETE FROM edges WHERE id = %s", thread.edge)
    assert await settle() == {"gone": 1}
    assert stores.walks() == [("skipped", "gone")]


async def test_what_dies_half_way_is_applied_once_later(
    ask: Ask, thread: Thread, stores: Stores, settle: Settle, services: Services, worker: WorkerContext
) -> None:
    await asked(ask, thread)
    await services.retriever.log.close()
    scope = Scope(WORKER_ROLE, UUID(str(stores.tenant.tenant_id)))
    events = stores.rows("SELECT count(*) AS n FROM outbox_events")

    async def die(tx: Transaction) -> None:
        assert (await reinforce(tx, Outbox(enabled=True), share=1.0, batch=10)).total() == 1
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await worker.database.run(scope, die)
    assert stores.edge(thread.edge) == (0.5, 0, None)
    assert stores.walks() == [("waiting", None)]
    assert stores.rows("SELECT * FROM edge_reinforcements") == []
    assert stores.rows("SELECT count(*) AS n FROM outbox_events") == events
    assert await settle() == {"counted": 1}
    assert stores.edge(thread.edge) == (0.55, 1, 0.5)


async def test_two_workers_at_once_count_nothing_twice(
    ask: Ask, thread: Thread, stores: Stores, services: Services, worker: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reinforcer, "BATCH", 3)  # so that both have their hands full
    for number in range(24):
        await asked(ask, thread, conversation_id=f"c{number % 8}")
    await services.retriever.log.close()
    assert services.graph is not None
    async with open_worker(services.settings, services.embedder, services.graph.backend) as other:
        outcomes = await asyncio.gather(*(reinforcer.settle(one) for one in (worker, other) * 4))
    total = sum(outcomes, start=outcomes[0].__class__())
    assert total == {"counted": 8, "period": 16}
    assert stores.edge(thread.edge) == (0.9, 8, 0.5)


class TestFeedback:
    """What the asker says decides what an unconfirmed retrieval may not."""

    @pytest.fixture
    def service_settings(self, service_settings: Settings) -> Settings:
        """No unconfirmed retrieval counts."""
        return service_settings.model_copy(update={"reinforce_unconfirmed_share": 0.0})

    @pytest.fixture
    def say(self, client: httpx.AsyncClient, tenant: TestTenant) -> Callable[..., Awaitable[httpx.Response]]:
        async def post(
            pack: dict[str, Any], body: dict[str, Any], role: str = "reader", user: str | None = None
        ) -> httpx.Response:
            url = f"/v1/retrievals/{pack['retrieval_id']}/feedback"
            return await client.post(url, json=body, headers=tenant.headers(role, user=user))

        return post

    async def test_what_was_used_counts_in_full_and_once(
        self, ask: Ask, thread: Thread, stores: Stores, settle: Settle, say: Callable[..., Awaitable[httpx.Response]]
    ) -> None:
        pack = await asked(ask, thread)
        assert await settle() == {"share": 1}
        assert stores.edge(thread.edge) == (0.5, 0, None)
        for _ in range(3):
            answer = await say(pack, {"used": [thread.permit]})
            assert answer.status_code == 200, answer.text
            assert answer.json() == {
                "retrieval_id": pack["retrieval_id"],
                "records": [{"id": thread.permit, "verdict": "used"}],
            }
            await settle()
        assert stores.edge(thread.edge) == (0.55, 1, 0.5)
        assert stores.walks() == [("counted", None)]

    async def test_what_is_used_before_the_worker_comes_counts_too(
        self, ask: Ask, thread: Thread, settle: Settle, say: Callable[..., Awaitable[httpx.Response]]
    ) -> None:
        pack = await asked(ask, thread)
        body = {"records": [{"id": thread.permit, "verdict": "used"}, {"id": thread.stove, "verdict": "irrelevant"}]}
        assert (await say(pack, body)).status_code == 200
        assert await settle() == {"counted": 1}

    async def test_feedback_on_a_record_that_no_edge_led_to_counts_nothing(
        self, ask: Ask, thread: Thread, settle: Settle, say: Callable[..., Awaitable[httpx.Response]]
    ) -> None:
        pack = await asked(ask, thread)
        assert (await say(pack, {"used": [thread.stove]})).status_code == 200
        assert await settle() == {"share": 1}

    @pytest.mark.parametrize("verdict", ["irrelevant", "wrong"])
    async def test_what_was_no_good_stays_uncounted_until_it_is_taken_back(
        self,
        ask: Ask,
        thread: Thread,
        stores: Stores,
        settle: Settle,
        say: Callable[..., Awaitable[httpx.Response]],
        verdict: str,
    ) -> None:
        pack = await asked(ask, thread)
        no_good = {"records": [{"id": thread.permit, "verdict": verdict}]}
        assert (await say(pack, no_good)).status_code == 200
        assert await settle() == {}
        assert stores.walks() == [("skipped", verdict)]
        assert (await say(pack, {"used": [thread.permit]})).status_code == 200
        assert await settle() == {"counted": 1}
        answer = await say(pack, no_good)  # what has counted stays counted
        assert answer.json()["records"] == [{"id": thread.permit, "verdict": verdict}]
        assert await settle() == {}
        assert stores.walks() == [("counted", None)]

    async def test_feedback_that_fits_no_pack_is_refused(
        self, ask: Ask, thread: Thread, say: Callable[..., Awaitable[httpx.Response]], remember: Memory
    ) -> None:
        stranger = await remember("Mary keeps bees.")
        pack = await asked(ask, thread, user="ada")
        for body, pointer in (
            ({}, "/used"),
            ({"used": [stranger]}, "/used/0"),
            ({"records": [{"id": stranger, "verdict": "wrong"}]}, "/records/0/id"),
            ({"used": [thread.stove], "records": [{"id": thread.stove, "verdict": "wrong"}]}, "/records/0/verdict"),
        ):
            answer = await say(pack, body, user="ada")
            assert answer.status_code == 422, answer.text
            assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
        for body in ({"records": [{"id": thread.stove, "verdict": "great"}]}, {"useful": []}):
            assert (await say(pack, body, user="ada")).status_code == 422

    async def test_only_who_may_see_a_retrieval_may_judge_it(
        self, ask: Ask, thread: Thread, say: Callable[..., Awaitable[httpx.Response]], remember: Memory
    ) -> None:
        secret = await remember("The gearbox is sold to Ida.", user="ada", visibility="private")
        pack = await ask("gearbox", arms=BY_WORDS, user="ada")
        assert secret in {item["id"] for item in pack["items"]}
        assert (await say(pack, {"used": [thread.stove]}, user="ben")).status_code == 404
        assert (await say(pack, {"used": [thread.stove]})).status_code == 404
        assert (await say({"retrieval_id": thread.edge}, {"used": [thread.stove]})).status_code == 404
        assert (await say(pack, {"used": [thread.stove]}, role="operator")).status_code == 200
        assert (await say(pack, {"used": [secret]}, role="operator")).status_code == 422  # it is hidden from them
        assert (await say(pack, {"used": [secret]}, user="ada")).status_code == 200

    async def test_the_database_shows_a_retrieval_to_its_asker_and_overseers_alone(
        self,
        ask: Ask,
        thread: Thread,
        services: Services,
        tenant: TestTenant,
        say: Callable[..., Awaitable[httpx.Response]],
    ) -> None:
        pack = await asked(ask, thread, user="ada")
        assert (await say(pack, {"used": [thread.permit]}, user="ada")).status_code == 200
        scope = Scope("memory_os_app", tenant.tenant_id, "reader", "ada")
        for reader, seen in (
            (scope, 2),
            (replace(scope, user_id="ben"), 0),
            (replace(scope, user_id=None), 0),
            (replace(scope, user_id=None, role="operator"), 2),
        ):
            async with services.database.transaction(reader) as tx:
                found = [await tx.rows(select_all(name)) for name in ("retrieval_edges", "retrieval_feedback")]
            assert sum(map(len, found)) == seen, reader


def select_all(name: str) -> Any:
    from sqlalchemy import text  # noqa: PLC0415 - for this one look past the service

    return text(f"SELECT * FROM {name}")


async def test_marks_of_periods_go_with_the_retrievals_that_they_bind(
    ask: Ask, thread: Thread, stores: Stores, settle: Settle, worker: WorkerContext
) -> None:
    await asked(ask, thread)
    await settle()
    await pruner.prune(worker)
    assert len(stores.rows("SELECT * FROM edge_reinforcements")) == 1
    stores.rows("UPDATE edge_reinforcements SET at = at - interval '30 days 59 minutes'")
    await pruner.prune(worker)
    assert len(stores.rows("SELECT * FROM edge_reinforcements")) == 1
    stores.rows("UPDATE edge_reinforcements SET at = at - interval '2 minutes'")
    await pruner.prune(worker)
    assert stores.rows("SELECT * FROM edge_reinforcements") == []


async def test_a_pack_fed_back_is_no_memory(
    client: httpx.AsyncClient, tenant: TestTenant, ask: Ask, thread: Thread, stores: Stores, settle: Settle
) -> None:
    pack = await asked(ask, thread)
    await settle()
    prompt = (await ask("gearbox", arms=BY_WORDS, path="/v1/context"))["markdown"]
    before, edge = stores.counts(), stores.edge(thread.edge)
    texts = [prompt, httpx.Response(200, json=pack).text, "> " + prompt.replace("\n", "\n> ")]
    for number in range(10):
        text = f"Turn {number}. I recalled:\n{texts[number % 3]}"
        answer = await client.post("/v1/memories", json={"text": text, "label": "Attribute"}, headers=tenant.headers())
        assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (422, "own-pack"), answer.text
        assert answer.json()["errors"][0]["pointer"] == "/text"
        changed = await client.patch(f"/v1/memories/{thread.stove}", json={"text": text}, headers=tenant.headers())
        assert (changed.status_code, changed.json()["type"].rpartition(":")[2]) == (422, "own-pack"), changed.text
    assert stores.counts() == before
    assert stores.edge(thread.edge) == edge


class TestCandidates:
    """Reinforcement moves records up and down within what was found, on either backend."""

    @pytest.fixture(params=["networkx", "falkor"])
    def service_settings(
        self,
        request: pytest.FixtureRequest,
        service_settings: Settings,
        falkor_server: FalkorProcess,
        falkor_prefix: str,
    ) -> Settings:
        falkor = {"falkor_host": falkor_server.host, "falkor_port": falkor_server.port, "graph_prefix": falkor_prefix}
        return service_settings.model_copy(update={"graph_backend": request.param, **falkor})

    async def test_what_is_found_does_not_depend_on_what_was_found(
        self,
        ask: Ask,
        remember: Memory,
        stores: Stores,
        settle: Settle,
        worker: WorkerContext,
        client: httpx.AsyncClient,
        tenant: TestTenant,
    ) -> None:
        start = await remember("The gearbox needs oil every spring.")
        ends = {}
        for number, confidence in enumerate((0.62, 0.61, 0.6, 0.59, 0.253, 0.25)):
            end = await remember(f"Note {number}", dedup="off")
            body = {"type": "REQUIRES", "from": {"memory": start}, "to": {"memory": end}, "confidence": confidence}
            answer = await client.post("/v1/edges", json=body, headers=tenant.headers())
            ends[end] = answer.json()["edge"]["id"]
        await drain(worker)

        async def candidates(limits: dict[str, int]) -> list[str]:
            pack = await ask("gearbox", arms=BY_WORDS, limits=limits)
            url = f"/v1/retrievals/{pack['retrieval_id']}"
            explained = (await client.get(url, headers=tenant.headers("reader"))).json()
            return [item["id"] for item in explained["items"]]

        narrow = [{"paths": paths} for paths in (1, 2, 3, 4)]
        before = [await candidates(limits) for limits in narrow]
        last = list(ends)[-1]
        for number in range(16):
            await ask("gearbox", arms=BY_WORDS, conversation_id=f"c{number}", limits={"memories": 20, "paths": 50})
        await settle()
        # All of them have gained by now; leave it to the weakest alone.
        stores.rows(
            "UPDATE edges SET co_reference_count = 0, confidence = claimed_confidence WHERE id <> %s", ends[last]
        )
        await drain(worker)
        assert stores.edge(ends[last])[:2] == (1.0, 16)
        after = [await candidates(limits) for limits in narrow]
        assert [set(found) for found in after] == [set(found) for found in before]
        assert last not in before[0]
        wide = await candidates({"paths": 50, "memories": 50})
        assert wide.index(last) < len(wide) - 1  # in the order, what was of use counts
