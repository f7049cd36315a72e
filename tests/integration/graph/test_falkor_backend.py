"""FalkorDB when it is down, slow, full, read-only, restarted, clustered, or half-way through a patch."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import anyio
import pytest
from tests.fixtures.falkor import FalkorProcess, find_free_port, run_falkor
from tests.fixtures.graphs import EDGE_TYPES, EMPTY, edge, entity, memory, mref, rref
from tests.fixtures.waiting import wait_for

from memory_os.graph import falkor, falkor_queries, falkor_reads, falkor_writer
from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.port import (
    Bounds,
    CoOccurrence,
    FenceLostError,
    GraphDataError,
    GraphPatch,
    GraphUnavailableError,
    LinkEdge,
    Mention,
    Seed,
)

pytestmark = pytest.mark.anyio

TENANT = UUID("11111111-2222-4333-8444-555555555555")
PATIENT = Bounds(budget_ms=60_000)


def make_backend(port: int, prefix: str = "p", **options: Any) -> FalkorBackend:
    return FalkorBackend(FalkorAddress("127.0.0.1", port, **options), prefix=prefix, edge_types=EDGE_TYPES)


@pytest.fixture
async def backend(falkor_server: FalkorProcess, falkor_prefix: str) -> AsyncIterator[FalkorBackend]:
    made = make_backend(falkor_server.port, falkor_prefix)
    yield made
    await made.close()


@pytest.fixture
def own_server() -> Iterator[FalkorProcess]:
    """A server that a test may break."""
    with run_falkor() as process:
        yield process


async def call_everything(backend: FalkorBackend) -> None:
    """Every call must say that the server can't serve, reads and writes alike."""
    patch = GraphPatch(memories=[memory("m")])
    for call in (
        backend.ping(),
        backend.take_fence(TENANT, "token"),
        backend.apply(TENANT, "token", patch),
        backend.mentioned_entities(TENANT, ["m"]),
        backend.expand(TENANT, [Seed(mref("m"), 1.0)], PATIENT),
        backend.stats(TENANT),
        backend.dump(TENANT),
        backend.begin_rebuild(TENANT, "token"),
        backend.load(TENANT, "token", patch),
        backend.finish_rebuild(TENANT, "token"),
        backend.drop(TENANT),
    ):
        with pytest.raises(GraphUnavailableError):
            await call


async def test_a_server_that_is_down_is_unavailable_and_opening_does_not_mind() -> None:
    backend = make_backend(find_free_port())
    await backend.open()
    await call_everything(backend)
    await backend.close()


async def test_a_frozen_server_is_unavailable_after_the_socket_timeout(own_server: FalkorProcess) -> None:
    backend = make_backend(own_server.port, socket_timeout=0.5, connect_timeout=0.5)
    await backend.take_fence(TENANT, "token")
    own_server.send_signal(signal.SIGSTOP)
    try:
        await call_everything(backend)
    finally:
        own_server.send_signal(signal.SIGCONT)
    await backend.close()


async def test_an_expansion_is_given_up_when_its_budget_is_spent(own_server: FalkorProcess) -> None:
    backend = make_backend(own_server.port, socket_timeout=30)
    await backend.take_fence(TENANT, "token")
    await backend.apply(TENANT, "token", GraphPatch(memories=[memory("m")]))
    own_server.send_signal(signal.SIGSTOP)
    try:
        started = asyncio.get_running_loop().time()
        with pytest.raises(GraphUnavailableError, match="100 ms"):
            await backend.expand(TENANT, [Seed(mref("m"), 1.0)], Bounds(budget_ms=100))
        assert asyncio.get_running_loop().time() - started < 5
        await backend.close()
    finally:
        own_server.send_signal(signal.SIGCONT)


async def test_a_restart_is_survived_and_noticed(own_server: FalkorProcess) -> None:
    backend = make_backend(own_server.port)
    identity = await backend.ping()
    await backend.take_fence(TENANT, "token")
    await backend.apply(TENANT, "token", GraphPatch(memories=[memory("m")]))
    own_server.stop()
    await call_everything(backend)
    own_server.start()
    assert await backend.ping() != identity
    # Without persistence the graph is gone: writers must not believe otherwise, nor make a part of it anew.
    with pytest.raises(FenceLostError):
        await backend.apply(TENANT, "token", GraphPatch(memories=[memory("n")]))
    assert await backend.dump(TENANT) == EMPTY
    await backend.take_fence(TENANT, "token")
    await backend.apply(TENANT, "token", GraphPatch(memories=[memory("n")]))
    with own_server.connect() as client:
        indexed = client.execute_command(
            "GRAPH.RO_QUERY", f"p:{{{TENANT}}}", "CALL db.indexes() YIELD label RETURN label"
        )
    assert {row[0] for row in indexed[1]} == {"Memory", "Entity"}
    await backend.close()


async def test_a_full_server_and_a_replica_are_unavailable(own_server: FalkorProcess) -> None:
    backend = make_backend(own_server.port)
    await backend.take_fence(TENANT, "token")
    patch = GraphPatch(memories=[memory("m")])
    with own_server.connect() as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(GraphUnavailableError):
            await backend.apply(TENANT, "token", patch)
        assert await backend.dump(TENANT) == EMPTY
        client.config_set("maxmemory", 0)
        client.replicaof("127.0.0.1", str(find_free_port()))
        for call in (backend.apply(TENANT, "token", patch), backend.take_fence(TENANT, "next")):
            with pytest.raises(GraphUnavailableError):
                await call
        client.replicaof("NO", "ONE")
    await backend.apply(TENANT, "token", patch)
    await backend.close()


async def test_a_wrong_password_and_a_server_without_the_module_are_unavailable(own_server: FalkorProcess) -> None:
    with own_server.connect() as client:
        client.config_set("requirepass", "right")
    wrong, right = make_backend(own_server.port, password="wrong"), make_backend(own_server.port, password="right")
    await call_everything(wrong)
    await right.take_fence(TENANT, "token")
    await wrong.close()
    await right.close()


async def test_reads_make_no_key(backend: FalkorBackend, falkor_server: FalkorProcess, falkor_prefix: str) -> None:
    await backend.dump(TENANT)
    await backend.stats(TENANT)
    await backend.mentioned_entities(TENANT, ["m"])
    await backend.expand(TENANT, [Seed(mref("m"), 1.0)], PATIENT)
    for write in (
        backend.apply(TENANT, "token", GraphPatch(memories=[memory("m")], edges=[edge("s", "m", "m")])),
        backend.load(TENANT, "token", GraphPatch(memories=[memory("m")])),
        backend.finish_rebuild(TENANT, "token"),
    ):
        with pytest.raises(FenceLostError):
            await write
    with falkor_server.connect() as client:
        assert client.keys(f"{falkor_prefix}*") == []
        await backend.take_fence(TENANT, "token")
        await backend.begin_rebuild(TENANT, "token")
        live = f"{falkor_prefix}:{{{TENANT}}}"
        assert sorted(client.keys(f"{falkor_prefix}*")) == [live, f"{live}:scratch"]
        client.xadd(f"telemetry{{{live}}}", {"Query parameters": "personal"})
        await backend.drop(TENANT)
        assert client.keys(f"*{falkor_prefix}*") == []


async def test_indexes_are_made_once_and_only_those_that_are_needed(
    backend: FalkorBackend, falkor_server: FalkorProcess, falkor_prefix: str
) -> None:
    with falkor_server.connect() as client:

        def indexed() -> set[str]:
            query = "CALL db.indexes() YIELD label RETURN label"
            rows = client.execute_command("GRAPH.RO_QUERY", f"{falkor_prefix}:{{{TENANT}}}", query)[1]
            return {row[0] for row in rows}

        await backend.take_fence(TENANT, "token")
        assert indexed() == {"Memory", "Entity"}
        patch = GraphPatch(
            memories=[memory("a"), memory("b")],
            entities=[entity("e")],
            edges=[edge("s", "a", "b")],
            links=[LinkEdge("l", "e", rref("r"), "uses", 0.5)],
        )
        await backend.apply(TENANT, "token", patch)
        assert indexed() == {"Memory", "Entity", "Record", "LINK", "SUPPORTS"}
        # Another process, and a fence whose list was lost in a crash: the same indexes, and no error.
        other = make_backend(falkor_server.port, falkor_prefix)
        await other.take_fence(TENANT, "other")
        await backend.take_fence(TENANT, "token")
        client.execute_command("GRAPH.QUERY", f"{falkor_prefix}:{{{TENANT}}}", "MATCH (f:Fence) SET f.indexed = null")
        await backend.take_fence(TENANT, "token")
        await backend.apply(TENANT, "token", patch)
        assert indexed() == {"Memory", "Entity", "Record", "LINK", "SUPPORTS"}
        assert set((await backend.dump(TENANT)).edges) == {"s"}
        await other.close()


async def test_a_refused_statement_stops_those_behind_it(
    backend: FalkorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MULTI goes on after an error; the step in the fence does not. The old mentions stay until the pairs are right."""
    await backend.take_fence(TENANT, "token")
    await backend.apply(
        TENANT,
        "token",
        GraphPatch(
            entities=[entity("a"), entity("b")],
            memories=[memory("m")],
            mentions=[Mention("m", "a", 0.5), Mention("m", "b", 0.5)],
            co_occurrences=[CoOccurrence("a", "b", 0.5, 1)],
        ),
    )
    patch = GraphPatch(
        entities=[entity("c")],
        memories=[memory("m", 2)],
        mentions=[Mention("m", "a", 0.5), Mention("m", "c", 0.5)],
        co_occurrences=[CoOccurrence("a", "b", 0.0, 0), CoOccurrence("a", "c", 0.5, 1)],
        deleted_entities=["b"],
    )
    with monkeypatch.context() as broken:
        broken.setattr(falkor_queries, "_PAIRS", "WITH r, 1 / 0 AS x MERGE (:Ghost {id: x})")
        with pytest.raises(GraphDataError, match="Division by zero"):
            await backend.apply(TENANT, "token", patch)
    dump = await backend.dump(TENANT)
    assert set(dump.mentions) == {("m", "a"), ("m", "b"), ("m", "c")}
    assert set(dump.co_occurrences) == {("a", "b")}
    assert set(dump.entities) == {"a", "b", "c"}
    await backend.apply(TENANT, "token", patch)
    dump = await backend.dump(TENANT)
    assert set(dump.mentions) == {("m", "a"), ("m", "c")}
    assert set(dump.co_occurrences) == {("a", "c")}
    assert set(dump.entities) == {"a", "c"}


async def test_a_fence_taken_between_the_look_and_the_write_stops_the_write(
    backend: FalkorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backend.take_fence(TENANT, "token")
    loop = asyncio.get_running_loop()
    original = falkor_writer.split_batches
    thieves: list[asyncio.Task[None]] = []

    def steal(batches: Any) -> Any:
        # Called after the fence was read and before anything is written.
        if not thieves:
            thieves.append(loop.create_task(backend.take_fence(TENANT, "thief")))
        return original(batches)

    async def commit_after_theft(watched: Any, commands: Any) -> Any:
        await thieves[0]
        return await real_commit(watched, commands)

    real_commit = falkor_writer.Watched.commit
    monkeypatch.setattr(falkor_writer, "split_batches", steal)
    monkeypatch.setattr(falkor_writer.Watched, "commit", commit_after_theft)
    with pytest.raises(FenceLostError):
        await backend.apply(TENANT, "token", GraphPatch(memories=[memory("late")]))
    assert await backend.dump(TENANT) == EMPTY


async def test_a_swap_is_stopped_by_a_write_in_the_last_moment(
    backend: FalkorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backend.take_fence(TENANT, "token")
    await backend.apply(TENANT, "token", GraphPatch(memories=[memory("live")]))
    await backend.begin_rebuild(TENANT, "token")
    real_commit = falkor_writer.Watched.commit

    async def commit_after_theft(watched: Any, commands: Any) -> Any:
        await backend.take_fence(TENANT, "thief")
        return await real_commit(watched, commands)

    monkeypatch.setattr(falkor_writer.Watched, "commit", commit_after_theft)
    with pytest.raises(FenceLostError):
        await backend.finish_rebuild(TENANT, "token")
    assert set((await backend.dump(TENANT)).memories) == {"live"}


async def test_a_large_patch_goes_in_several_statements_and_a_dump_in_pages(
    backend: FalkorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(falkor_reads, "PAGE", 500)
    monkeypatch.setattr(falkor, "PAGE", 500)
    await backend.take_fence(TENANT, "token")
    keys = [f"m{n:04}" for n in range(2_500)]
    await backend.apply(
        TENANT,
        "token",
        GraphPatch(
            entities=[entity("e")],
            memories=[memory(key) for key in keys],
            mentions=[Mention(key, "e", 0.5) for key in keys],
            edges=[edge(f"s{key}", key, "m0000") for key in keys[1:]],
        ),
    )
    dump = await backend.dump(TENANT)
    assert (len(dump.memories), len(dump.mentions), len(dump.edges)) == (2_500, 2_500, 2_499)
    mentioned = await backend.mentioned_entities(TENANT, keys)
    assert len(mentioned) == 2_500
    assert len(await backend.expand(TENANT, [Seed(mref("m0000"), 1.0)], PATIENT)) == 12


async def test_a_type_of_edges_that_another_process_brings_is_seen_at_once(
    backend: FalkorBackend, falkor_server: FalkorProcess, falkor_prefix: str
) -> None:
    writer = FalkorBackend(
        FalkorAddress(falkor_server.host, falkor_server.port), prefix=falkor_prefix, edge_types=EDGE_TYPES
    )
    await writer.take_fence(TENANT, "token")
    seeds = [Seed(mref("a"), 1.0)]
    memories = [memory(key) for key in "abcd"]
    for edges, expected in (
        ([], []),
        ([edge("s", "a", "b")], ["b"]),
        ([edge("t", "a", "c", "ABOUT")], ["b", "c"]),
        ([edge("u", "b", "d", "PART_OF")], ["b", "c", "d"]),
    ):
        await writer.apply(TENANT, "token", GraphPatch(memories=memories, edges=edges))
        paths = await backend.expand(TENANT, seeds, PATIENT)
        assert sorted(path.steps[-1].node.id for path in paths) == expected
    await writer.drop(TENANT)
    assert await backend.expand(TENANT, seeds, PATIENT) == []
    await writer.close()


async def test_a_cancelled_call_leaves_the_backend_usable(backend: FalkorBackend) -> None:
    await backend.take_fence(TENANT, "token")
    for number in range(20):
        patch = GraphPatch(memories=[memory(f"m{n}") for n in range(200)])
        task = asyncio.create_task(backend.apply(TENANT, "token", patch))
        for _ in range(number):
            await anyio.lowlevel.checkpoint()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await backend.apply(TENANT, "token", GraphPatch(memories=[memory("last")]))
    assert "last" in (await backend.dump(TENANT)).memories


@pytest.fixture
def cluster() -> Iterator[list[FalkorProcess]]:
    """A Redis Cluster of two FalkorDB nodes with half of the slots each."""
    with ExitStack() as stack:
        nodes = []
        for slots in (("0", "8191"), ("8192", "16383")):
            bus = str(find_free_port())
            options = ("--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1", "--cluster-port", bus)
            nodes.append(stack.enter_context(run_falkor(*options)))
            client = stack.enter_context(nodes[-1].connect())
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
        client.execute_command("CLUSTER", "MEET", "127.0.0.1", str(nodes[0].port), find_bus_port(nodes[0]))
        for node in nodes:
            wait_for(partial(is_whole, node), what="the cluster")
        yield nodes


def find_bus_port(node: FalkorProcess) -> str:
    with node.connect() as client:
        return str(client.config_get("cluster-port")["cluster-port"])


def is_whole(node: FalkorProcess) -> bool:
    with node.connect() as client:
        return "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO"))


async def test_a_redis_cluster_is_detected_and_serves_all_calls(cluster: list[FalkorProcess]) -> None:
    backend = make_backend(cluster[0].port)
    assert [len(run_id) for run_id in (await backend.ping()).split(",")] == [40, 40]
    tenants = [uuid4() for _ in range(20)]
    for tenant in tenants:
        await backend.take_fence(tenant, "token")
        await backend.apply(
            tenant,
            "token",
            GraphPatch(
                entities=[entity("e")],
                memories=[memory("a"), memory("b")],
                mentions=[Mention("a", "e", 0.5)],
                edges=[edge("s", "a", "b")],
            ),
        )
        await backend.apply(tenant, "token", GraphPatch(edges=[edge("s", "b", "a")]))
        with pytest.raises(FenceLostError):
            await backend.apply(tenant, "other", GraphPatch())
        assert len(await backend.expand(tenant, [Seed(mref("a"), 1.0)], PATIENT)) == 2
        await backend.begin_rebuild(tenant, "token")
        await backend.load(tenant, "token", GraphPatch(memories=[memory("rebuilt")]))
        await backend.finish_rebuild(tenant, "token")
        assert set((await backend.dump(tenant)).memories) == {"rebuilt"}
        assert (await backend.stats(tenant)).nodes == 1
    keys = []
    for node in cluster:
        with node.connect() as client:
            keys.append(len(client.keys("*")))
    assert min(keys) > 0
    assert sum(keys) == len(tenants)
    await backend.drop(tenants[0])
    assert await backend.dump(tenants[0]) == EMPTY
    for node in cluster:
        node.stop()
    await call_everything(backend)
    await backend.close()


def test_the_test_servers_are_gone_when_they_should_be() -> None:
    with run_falkor() as process:
        pid = process.pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
