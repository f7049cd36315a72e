"""What the port promises of whole graphs, on every graph backend: tenants apart, dropping, rebuilding."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID, uuid4

import pytest
from tests.conformance.conftest import TENANT, Graph
from tests.fixtures.graphs import EMPTY, edge, entity, memory, mref, rref

from memory_os.graph.port import FenceLostError, GraphBackend, GraphPatch, LinkEdge, Mention

pytestmark = pytest.mark.anyio


async def test_tenants_do_not_see_each_other(backend: GraphBackend) -> None:
    tenants = [uuid4() for _ in range(200)]

    async def write(tenant: UUID, round_: int) -> None:
        key = tenant.hex
        await backend.take_fence(tenant, f"{key}-{round_}")
        await backend.apply(
            tenant,
            f"{key}-{round_}",
            GraphPatch(
                entities=[entity("shared", name=key), entity(key)],
                memories=[memory("shared", round_, user_id=key), memory(f"{key}-{round_}")],
                mentions=[Mention("shared", key, 0.5)],
                edges=[edge("shared", "shared", f"{key}-{round_}")],
            ),
        )

    async def read(tenant: UUID) -> None:
        dump = await backend.dump(tenant)
        assert all(key == "shared" or key.startswith(tenant.hex) for key in dump.memories)

    jobs = [write(tenant, 0) for tenant in tenants] + [read(tenant) for tenant in tenants]
    random.Random(7).shuffle(jobs)
    await asyncio.gather(*jobs)
    jobs = [write(tenant, 1) for tenant in tenants[::2]]
    jobs += [backend.drop(tenant) for tenant in tenants[1::4]]
    random.Random(8).shuffle(jobs)
    await asyncio.gather(*jobs)
    for number, tenant in enumerate(tenants):
        dump = await backend.dump(tenant)
        if number % 4 == 1:
            assert dump == EMPTY
            continue
        rounds = 2 if number % 2 == 0 else 1
        assert dump.entities["shared"].name == tenant.hex
        assert dump.memories["shared"].user_id == tenant.hex
        assert set(dump.memories) == {"shared", *(f"{tenant.hex}-{n}" for n in range(rounds))}
        assert dump.mentions == {("shared", tenant.hex): 0.5}
        assert set(dump.entities) == {"shared", tenant.hex}
    with pytest.raises(FenceLostError):
        await backend.apply(tenants[0], f"{tenants[1].hex}-0", GraphPatch())


async def test_a_dropped_graph_is_gone_and_its_writers_with_it(graph: Graph) -> None:
    await graph.apply(memories=[memory("m")])
    await graph.backend.drop(TENANT)
    assert await graph.dump() == EMPTY
    with pytest.raises(FenceLostError):
        await graph.apply(memories=[memory("late")])
    await graph.backend.take_fence(TENANT, "token")
    await graph.apply(memories=[memory("new")], entities=[entity("e")])
    assert set((await graph.dump()).memories) == {"new"}


async def test_a_rebuild_is_unseen_until_it_is_finished(graph: Graph) -> None:
    backend = graph.backend
    await graph.apply(memories=[memory("old")])
    await backend.begin_rebuild(TENANT, "token")
    for number in range(3):
        await backend.load(
            TENANT,
            "token",
            GraphPatch(
                entities=[entity("shared", number)],
                memories=[memory(f"new{number}")],
                mentions=[Mention(f"new{number}", "shared", 0.5)],
                edges=[edge(f"s{number}", f"new{number}", "new0")] if number else [],
                links=[LinkEdge(f"l{number}", "shared", rref("r"), "uses", 0.5)],
            ),
        )
    assert set((await graph.dump()).memories) == {"old"}
    assert await graph.found(mref("new1")) == set()
    await graph.apply(memories=[memory("meanwhile")])
    await backend.finish_rebuild(TENANT, "token")
    dump = await graph.dump()
    assert set(dump.memories) == {"new0", "new1", "new2"}
    assert dump.entities == {"shared": entity("shared", 2)}
    assert set(dump.edges) == {"s1", "s2"}
    # The new graph is under the same fence, and the scratch graph is used up.
    await graph.apply(memories=[memory("after")], edges=[edge("s1", "after", "new0", "CONTRADICTS")])
    assert (await graph.dump()).edges["s1"].type == "CONTRADICTS"
    with pytest.raises(FenceLostError):
        await backend.finish_rebuild(TENANT, "token")
    with pytest.raises(FenceLostError):
        await backend.load(TENANT, "token", GraphPatch())


async def test_a_rebuild_is_refused_to_whoever_lost_the_fence(graph: Graph) -> None:
    backend = graph.backend
    await graph.apply(memories=[memory("live")])
    await backend.begin_rebuild(TENANT, "token")
    await backend.load(TENANT, "token", GraphPatch(memories=[memory("rebuilt")]))
    await backend.take_fence(TENANT, "thief")
    with pytest.raises(FenceLostError):
        await backend.finish_rebuild(TENANT, "token")
    with pytest.raises(FenceLostError):
        await backend.finish_rebuild(TENANT, "thief")  # the scratch graph is not the thief's
    assert set((await graph.dump()).memories) == {"live"}
    await backend.take_fence(TENANT, "token")
    await backend.finish_rebuild(TENANT, "token")
    assert set((await graph.dump()).memories) == {"rebuilt"}


async def test_a_second_rebuild_displaces_the_first(graph: Graph) -> None:
    backend = graph.backend
    await backend.begin_rebuild(TENANT, "first")
    await backend.load(TENANT, "first", GraphPatch(memories=[memory("first")]))
    await backend.begin_rebuild(TENANT, "token")
    with pytest.raises(FenceLostError):
        await backend.load(TENANT, "first", GraphPatch(memories=[memory("late")]))
    await backend.load(TENANT, "token", GraphPatch(memories=[memory("second")]))
    await backend.finish_rebuild(TENANT, "token")
    assert set((await graph.dump()).memories) == {"second"}
