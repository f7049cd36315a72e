"""A graph server that is killed and started again holds the same graphs; it reads changes, and runs no query again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures.graphs import EDGE_TYPES, entity, memory, mref, patches
from tests.fixtures.postgres import make_open_directory
from tests.fixtures.waiting import wait_for

from memory_os.embedded.falkor import EmbeddedFalkor
from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.port import CoOccurrence, GraphDump, GraphPatch, Mention, TypedEdge


@pytest.fixture(scope="module")
def falkor() -> Iterator[EmbeddedFalkor]:
    directory = make_open_directory("memory-os-falkor-")
    server = EmbeddedFalkor(directory / "home")
    server.start()
    yield server
    server.stop()
    shutil.rmtree(directory, ignore_errors=True)


def restart(server: EmbeddedFalkor) -> None:
    """As a power cut, and the next start."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    wait_for(lambda: server.pid is None)
    server.stop()
    server.start()


def backend_on(server: EmbeddedFalkor) -> FalkorBackend:
    assert server.port is not None
    address = FalkorAddress("127.0.0.1", server.port, password=server.password)
    return FalkorBackend(address, prefix="restarted", edge_types=EDGE_TYPES)


async def grow(server: EmbeddedFalkor, tenant: UUID, history: list[GraphPatch], *, rebuilt: bool) -> GraphDump:
    graph = backend_on(server)
    await graph.take_fence(tenant, "token")
    for patch in history:
        await graph.apply(tenant, "token", patch)
    if rebuilt:
        await graph.begin_rebuild(tenant, "token")
        for patch in history:
            await graph.load(tenant, "token", patch)
        await graph.finish_rebuild(tenant, "token")
    dump = await graph.dump(tenant)
    await graph.close()
    return dump


async def read(server: EmbeddedFalkor, tenant: UUID) -> GraphDump:
    graph = backend_on(server)
    dump = await graph.dump(tenant)
    await graph.close()
    return dump


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories=st.lists(st.tuples(st.lists(patches, min_size=1, max_size=8), st.booleans()), min_size=1, max_size=6))
def test_whatever_was_written_is_there_again(
    falkor: EmbeddedFalkor, histories: list[tuple[list[GraphPatch], bool]]
) -> None:
    tenants = [uuid4() for _ in histories]
    before = [
        asyncio.run(grow(falkor, tenant, history, rebuilt=rebuilt))
        for tenant, (history, rebuilt) in zip(tenants, histories, strict=True)
    ]
    restart(falkor)
    assert [asyncio.run(read(falkor, tenant)) for tenant in tenants] == before


def test_a_large_graph_is_read_from_changes_and_not_from_queries(falkor: EmbeddedFalkor) -> None:
    memories, entities = [f"m{n}" for n in range(3_000)], [f"e{n}" for n in range(1_000)]
    patch = GraphPatch(
        entities=[entity(key) for key in entities],
        memories=[memory(key) for key in memories],
        mentions=[Mention(key, entities[n % 1_000], 1.0) for n, key in enumerate(memories)],
        co_occurrences=[CoOccurrence(*sorted((f"e{n}", f"e{(n * 7 + 1) % 1_000}")), 1.0, 1) for n in range(999)],
        edges=[TypedEdge(f"s{n}", "SUPPORTS", mref(f"m{n}"), mref(f"m{n + 1}"), 0.5) for n in range(2_000)],
    )
    shrinking = GraphPatch(deleted_memories=memories[:500], deleted_edges=[f"s{n}" for n in range(600, 700)])
    tenant = uuid4()
    before = asyncio.run(grow(falkor, tenant, [patch, shrinking], rebuilt=False))
    written = b"".join(path.read_bytes() for path in _files(falkor))
    assert b"GRAPH.EFFECT" in written
    assert b"UNWIND" not in written
    restart(falkor)
    assert asyncio.run(read(falkor, tenant)) == before


def _files(server: EmbeddedFalkor) -> list[Path]:
    return sorted((server.home / "falkor/appendonlydir").glob("*.incr.aof"))
