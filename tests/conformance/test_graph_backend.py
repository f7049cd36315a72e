"""One suite for every graph backend: what the port promises, on the real thing."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any, get_args
from uuid import UUID, uuid4

import pytest
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.graphs import EDGE_TYPES, EMPTY, edge, entity, eref, memory, mref, rref

from memory_os.graph.encoder import canonical_float
from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.networkx import NetworkxBackend
from memory_os.graph.patches import KINDS
from memory_os.graph.port import (
    Bounds,
    CoOccurrence,
    EntityNode,
    FenceLostError,
    GraphBackend,
    GraphDataError,
    GraphDump,
    GraphPatch,
    GraphStats,
    GraphUnavailableError,
    LinkEdge,
    MemoryNode,
    Mention,
    NodeKind,
    NodeRef,
    Path,
    Seed,
    TypedEdge,
)

pytestmark = pytest.mark.anyio

TENANT = UUID("11111111-2222-4333-8444-555555555555")
PATIENT = Bounds(budget_ms=60_000)

HOSTILE = [
    "x}) DETACH DELETE n //",
    '" OR 1=1 //',
    "it's",
    "back\\slash\\",
    "tick`tock",
    "$token",
    "%",
    "_",
    "*",
    "a:b:c",
    "{tag}",
    "\u2028\u200b\x02\x7f",
    "emoji 🍕👩‍👩‍👧",
    "日本語 العربية",
    "new\nline\ttab\rreturn",
    "/* comment */ -- //",
    "two  words",
    "\u00a0",
    "z" * 4_096,
]


@pytest.fixture(params=["networkx", "falkor"])
async def backend(request: pytest.FixtureRequest, tmp_path: FilePath) -> AsyncIterator[GraphBackend]:
    made: GraphBackend
    if request.param == "networkx":
        made = NetworkxBackend(tmp_path / "graphs", edge_types=EDGE_TYPES)
    else:
        server: FalkorProcess = request.getfixturevalue("falkor_server")
        prefix: str = request.getfixturevalue("falkor_prefix")
        made = FalkorBackend(FalkorAddress(server.host, server.port), prefix=prefix, edge_types=EDGE_TYPES)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def graph(backend: GraphBackend) -> Graph:
    """A backend with the fence of `TENANT` taken."""
    await backend.take_fence(TENANT, "token")
    return Graph(backend)


class Graph:
    """The backend as the holder of the fence of `TENANT` sees it."""

    def __init__(self, backend: GraphBackend) -> None:
        self.backend = backend

    async def apply(self, **parts: Any) -> None:
        await self.backend.apply(TENANT, "token", GraphPatch(**parts))

    async def dump(self) -> GraphDump:
        return await self.backend.dump(TENANT)

    async def expand(self, *seeds: NodeRef, bounds: Bounds = PATIENT, as_of: int | None = None) -> Sequence[Path]:
        return await self.backend.expand(TENANT, [Seed(seed, 1.0) for seed in seeds], bounds, as_of=as_of)

    async def found(self, *seeds: NodeRef, as_of: int | None = None) -> set[str]:
        return {step.node.id for path in await self.expand(*seeds, as_of=as_of) for step in path.steps}


async def test_reading_what_does_not_exist_is_empty_and_makes_nothing(backend: GraphBackend) -> None:
    for _ in range(2):
        assert await backend.dump(TENANT) == EMPTY
        assert await backend.stats(TENANT) == GraphStats()
        assert await backend.mentioned_entities(TENANT, ["m"]) == {}
        assert await backend.expand(TENANT, [Seed(mref("m"), 1.0)], PATIENT) == []
        with pytest.raises(FenceLostError):
            await backend.apply(TENANT, "token", GraphPatch(memories=[memory("m")]))
        with pytest.raises(FenceLostError):
            await backend.load(TENANT, "token", GraphPatch(memories=[memory("m")]))
        with pytest.raises(FenceLostError):
            await backend.finish_rebuild(TENANT, "token")
        await backend.drop(TENANT)


async def test_ping_gives_the_same_identity_while_the_backend_runs(backend: GraphBackend) -> None:
    identity = await backend.ping()
    assert identity
    assert await backend.ping() == identity


async def test_a_patch_is_in_the_dump_as_it_was_given(graph: Graph) -> None:
    full = memory("m1", valid_from=1_700_000_000_000_000, valid_to=1_800_000_000_000_000, user_id="ana")
    link = LinkEdge("l1", "e1", rref("o1"), "client of", 0.75, 10, 20)
    await graph.apply(
        entities=[entity("e1", 1.25, declared=True), entity("e2")],
        co_occurrences=[CoOccurrence("e1", "e2", 0.55, 2)],
        memories=[full, memory("m2")],
        mentions=[Mention("m1", "e1", 0.9), Mention("m1", "e2", 0.1), Mention("m2", "e2", 5.0)],
        edges=[edge("s1", "m1", "m2", confidence=0.7), TypedEdge("a1", "ABOUT", mref("m1"), eref("e1"), 1.0, 3)],
        links=[link],
    )
    assert await graph.dump() == GraphDump(
        memories={"m1": full, "m2": memory("m2")},
        entities={"e1": entity("e1", 1.25, declared=True), "e2": entity("e2")},
        records=frozenset({"o1"}),
        mentions={("m1", "e1"): 0.9, ("m1", "e2"): 0.1, ("m2", "e2"): 5.0},
        co_occurrences={("e1", "e2"): (0.55, 2)},
        edges={
            "s1": edge("s1", "m1", "m2", confidence=0.7),
            "a1": TypedEdge("a1", "ABOUT", mref("m1"), eref("e1"), 1.0, 3),
        },
        links={"l1": link},
    )


async def test_delivering_a_patch_again_changes_nothing(graph: Graph) -> None:
    patch = {
        "entities": [entity("e1"), entity("e2")],
        "co_occurrences": [CoOccurrence("e1", "e2", 0.5, 1)],
        "memories": [memory("m1"), memory("m2")],
        "mentions": [Mention("m1", "e1", 0.5), Mention("m1", "e2", 0.5)],
        "edges": [edge("s1", "m1", "m2")],
        "links": [LinkEdge("l1", "e1", rref("o1"), "uses", 0.5)],
    }
    await graph.apply(**patch)
    first = await graph.dump()
    for _ in range(3):
        await graph.apply(**patch)
    assert await graph.dump() == first


async def test_values_are_set_and_cleared_absolutely(graph: Graph) -> None:
    await graph.apply(memories=[memory("m", 1, valid_from=1, valid_to=2, user_id="u")], entities=[entity("e", 2.0)])
    await graph.apply(memories=[memory("m", 2)], entities=[entity("e", 0.5, "renamed", declared=True)])
    dump = await graph.dump()
    assert dump.memories == {"m": memory("m", 2)}
    assert dump.entities == {"e": entity("e", 0.5, "renamed", declared=True)}


async def test_the_mentions_of_a_patch_are_all_that_its_memories_have(graph: Graph) -> None:
    await graph.apply(
        entities=[entity("a"), entity("b"), entity("c")],
        memories=[memory("m"), memory("n")],
        mentions=[Mention("m", "a", 0.5), Mention("m", "b", 0.5), Mention("n", "a", 0.5)],
    )
    await graph.apply(memories=[memory("m", 2)], mentions=[Mention("m", "b", 0.7), Mention("m", "c", 0.5)])
    assert (await graph.dump()).mentions == {("m", "b"): 0.7, ("m", "c"): 0.5, ("n", "a"): 0.5}
    await graph.apply(mentions=[Mention("m", "a", 0.1)])  # the memory is not in the patch: added, nothing removed
    assert set((await graph.dump()).mentions) == {("m", "a"), ("m", "b"), ("m", "c"), ("n", "a")}
    await graph.apply(memories=[memory("m", 3)])
    assert set((await graph.dump()).mentions) == {("n", "a")}


async def test_a_pair_that_occurs_no_more_loses_its_edge(graph: Graph) -> None:
    await graph.apply(entities=[entity("a"), entity("b")], co_occurrences=[CoOccurrence("a", "b", 0.5, 1)])
    await graph.apply(co_occurrences=[CoOccurrence("a", "b", 0.6, 3)])
    assert (await graph.dump()).co_occurrences == {("a", "b"): (0.6, 3)}
    for _ in range(2):
        await graph.apply(co_occurrences=[CoOccurrence("a", "b", 0.0, 0)])
        assert (await graph.dump()).co_occurrences == {}


async def test_an_edge_whose_end_is_missing_is_left_out_without_ghosts(graph: Graph) -> None:
    await graph.apply(
        entities=[entity("e")],
        memories=[memory("m")],
        mentions=[Mention("m", "no", 0.5), Mention("no", "e", 0.5)],
        co_occurrences=[CoOccurrence("e", "no", 0.5, 1)],
        edges=[
            edge("s1", "m", "no"),
            edge("s2", "no", "m"),
            TypedEdge("s3", "ABOUT", mref("no"), rref("r"), 0.5),
        ],
        links=[LinkEdge("l", "no", rref("r"), "uses", 0.5), LinkEdge("k", "e", mref("no"), "uses", 0.5)],
    )
    assert await graph.dump() == replace(EMPTY, memories={"m": memory("m")}, entities={"e": entity("e")})


async def test_an_edge_with_a_new_type_or_new_ends_replaces_the_old_one(graph: Graph) -> None:
    await graph.apply(memories=[memory(key) for key in "abc"], entities=[entity("e")], edges=[edge("s", "a", "b")])
    for changed in (
        edge("s", "a", "b", "CONTRADICTS"),
        edge("s", "b", "a", "CONTRADICTS"),
        edge("s", "b", "c", "CONTRADICTS", 0.9),
        TypedEdge("s", "ABOUT", mref("c"), eref("e"), 0.9, 7),
        edge("s", "a", "b"),
    ):
        await graph.apply(edges=[changed])
        assert (await graph.dump()).edges == {"s": changed}
    # An end that is gone leaves no edge, not the old one.
    await graph.apply(edges=[edge("s", "a", "gone")])
    assert (await graph.dump()).edges == {}


async def test_edges_and_links_are_deleted_by_id_and_apart(graph: Graph) -> None:
    await graph.apply(
        memories=[memory("a"), memory("b")],
        entities=[entity("e")],
        edges=[edge("x", "a", "b"), edge("y", "a", "b", "PART_OF")],
        links=[LinkEdge("x", "e", mref("a"), "uses", 0.5), LinkEdge("y", "e", mref("a"), "owns", 0.5)],
    )
    await graph.apply(deleted_edges=["x", "unknown"], deleted_links=["y", "unknown"])
    dump = await graph.dump()
    assert set(dump.edges) == {"y"}
    assert set(dump.links) == {"x"}
    await graph.apply(edges=[edge("z", "a", "b"), edge("y", "b", "a")], deleted_edges=["z", "y"])
    assert (await graph.dump()).edges == {}


async def test_records_live_as_long_as_an_edge_touches_them(graph: Graph) -> None:
    r1, r2 = rref("r1"), rref("r2")
    await graph.apply(
        entities=[entity("e"), entity("f")],
        memories=[memory("m")],
        links=[
            LinkEdge("a", "e", r1, "uses", 0.5),
            LinkEdge("b", "f", r1, "uses", 0.5),
            LinkEdge("c", "e", r2, "uses", 0.5),
        ],
        edges=[TypedEdge("d", "ABOUT", mref("m"), r2, 0.5)],
    )
    assert (await graph.dump()).records == {"r1", "r2"}
    await graph.apply(deleted_links=["a", "c"])
    assert (await graph.dump()).records == {"r1", "r2"}
    await graph.apply(deleted_edges=["d"])
    assert (await graph.dump()).records == {"r1"}
    await graph.apply(links=[LinkEdge("b", "f", r2, "uses", 0.5)])
    assert (await graph.dump()).records == {"r2"}
    await graph.apply(links=[LinkEdge("g", "f", r1, "uses", 0.5)], deleted_entities=["f"])
    assert await graph.dump() == replace(EMPTY, memories={"m": memory("m")}, entities={"e": entity("e")})


async def test_many_edges_to_one_record_make_it_once(graph: Graph) -> None:
    links = [LinkEdge(f"l{n}", f"e{n % 3}", rref(f"r{n % 2}"), "uses", 0.5) for n in range(60)]
    await graph.apply(entities=[entity(f"e{n}") for n in range(3)], links=links)
    stats = await graph.backend.stats(TENANT)
    assert (stats.nodes, stats.edges) == (5, 60)


async def test_a_deleted_node_takes_its_edges_along(graph: Graph) -> None:
    await graph.apply(
        entities=[entity("a"), entity("b")],
        co_occurrences=[CoOccurrence("a", "b", 0.5, 1)],
        memories=[memory("m"), memory("n")],
        mentions=[Mention("m", "a", 0.5), Mention("n", "b", 0.5)],
        edges=[edge("s", "m", "n"), TypedEdge("t", "ABOUT", mref("n"), eref("a"), 0.5)],
        links=[LinkEdge("l", "a", rref("r"), "uses", 0.5), LinkEdge("k", "b", mref("m"), "uses", 0.5)],
    )
    await graph.apply(deleted_memories=["m", "unknown"], deleted_entities=["a", "unknown"])
    assert await graph.dump() == replace(
        EMPTY, memories={"n": memory("n")}, entities={"b": entity("b")}, mentions={("n", "b"): 0.5}
    )
    # The ids are free again.
    await graph.apply(memories=[memory("m")], edges=[edge("s", "m", "n")])
    assert (await graph.dump()).edges == {"s": edge("s", "m", "n")}


async def test_of_equal_rows_in_a_patch_the_last_counts(graph: Graph) -> None:
    await graph.apply(
        entities=[entity("a", 1.0), entity("a", 2.0), entity("b")],
        memories=[memory("m", 1), memory("m", 2)],
        mentions=[Mention("m", "a", 0.1), Mention("m", "a", 0.2), Mention("m", "a", 0.3)],
        co_occurrences=[CoOccurrence("a", "b", 0.5, 1), CoOccurrence("a", "b", 0.55, 2)],
        edges=[],
    )
    dump = await graph.dump()
    assert dump.entities["a"].strength == 2.0
    assert dump.memories["m"].version == 2
    assert dump.mentions == {("m", "a"): 0.3}
    assert dump.co_occurrences == {("a", "b"): (0.55, 2)}


async def test_mentioned_entities_tells_an_absent_memory_from_one_without_mentions(graph: Graph) -> None:
    await graph.apply(
        entities=[entity("a"), entity("b")],
        memories=[memory("m"), memory("n")],
        mentions=[Mention("m", "a", 0.5), Mention("m", "b", 0.5)],
    )
    mentioned = await graph.backend.mentioned_entities(TENANT, ["m", "n", "absent", "m"])
    assert mentioned == {"m": {"a", "b"}, "n": frozenset()}
    assert await graph.backend.mentioned_entities(TENANT, []) == {}
    for impossible in (" m", "m\n", "", "nul\x00", "\ud800", "m\x01"):
        assert await graph.backend.mentioned_entities(TENANT, [impossible]) == {}
        assert await graph.expand(mref(impossible)) == []


async def test_a_writer_that_lost_the_fence_changes_nothing(graph: Graph) -> None:
    await graph.apply(memories=[memory("m")])
    await graph.backend.take_fence(TENANT, "next")
    before = await graph.dump()
    for parts in (
        {"memories": [memory("m", 9), memory("late")]},
        {"edges": [edge("s", "m", "m")], "deleted_memories": ["m"]},
        {},
    ):
        with pytest.raises(FenceLostError):
            await graph.apply(**parts)
    assert await graph.dump() == before
    await graph.backend.apply(TENANT, "next", GraphPatch(memories=[memory("m", 2)]))
    assert (await graph.dump()).memories["m"].version == 2


@pytest.mark.parametrize("token", HOSTILE[:8])
async def test_a_fence_token_is_data(backend: GraphBackend, token: str) -> None:
    await backend.take_fence(TENANT, token)
    await backend.apply(TENANT, token, GraphPatch(memories=[memory("m")]))
    with pytest.raises(FenceLostError):
        await backend.apply(TENANT, token + "x", GraphPatch(deleted_memories=["m"]))
    assert set((await backend.dump(TENANT)).memories) == {"m"}


async def test_hostile_ids_and_names_are_data(graph: Graph) -> None:
    ids = sorted(HOSTILE)
    await graph.apply(
        entities=[EntityNode(key, key, key, 1.0, declared=False) for key in ids],
        co_occurrences=[CoOccurrence(a, b, 0.5, 1) for a, b in pairwise(ids)],
        memories=[MemoryNode(key, key, key, 1, user_id=key) for key in ids],
        mentions=[Mention(key, key, 0.5) for key in ids],
        edges=[TypedEdge(key, "ABOUT", mref(key), eref(key), 0.5) for key in ids],
        links=[LinkEdge(key, key, rref(key), key, 0.5) for key in ids],
    )
    dump = await graph.dump()
    assert sorted(dump.memories) == sorted(dump.entities) == sorted(dump.edges) == sorted(dump.links) == ids
    assert dump.records == set(ids)
    assert dump.mentions == {(key, key): 0.5 for key in ids}
    assert all(row == MemoryNode(key, key, key, 1, user_id=key) for key, row in dump.memories.items())
    assert all(link.relationship == key for key, link in dump.links.items())
    mentioned = await graph.backend.mentioned_entities(TENANT, ids)
    assert mentioned == {key: {key} for key in ids}
    for key in ids:
        assert key in await graph.found(mref(key))
    await graph.apply(deleted_memories=["%", "_", "*"], deleted_edges=["a:b:c"], deleted_links=["$token"])
    dump = await graph.dump()
    assert set(ids) - set(dump.memories) == {"%", "_", "*"}
    assert set(ids) - set(dump.links) == {"$token"}


@pytest.mark.parametrize(
    "bad",
    [
        {"memories": [memory("nul\x00")]},
        {"memories": [memory("\ud800")]},
        {"memories": [memory("")]},
        *(
            {"memories": [memory(key)]}
            for key in (" ", " m", "m ", "\tm", "m\n", "m\x01n", "z" * 4_097, "\u00e9" * 2_049)
        ),
        {"memories": [memory("m", 2**63)]},
        {"memories": [memory("m", valid_from=-(2**63) - 1)]},
        {"memories": [memory("m", user_id=b"bytes")]},
        {"memories": [memory("m", user_id=UUID(int=4))]},
        {"memories": [replace(memory("m"), version=1.5)]},
        {"memories": [replace(memory("m"), version=True)]},
        {"entities": [entity("e", math.nan)]},
        {"entities": [entity("e", math.inf)]},
        {"entities": [entity("e", 1.7976931348623157e308)]},  # 15 digits of it are more than a float holds
        {"entities": [entity("e", name="\udfff")]},
        {"mentions": [Mention("m", "e", -math.inf)]},
        {"co_occurrences": [CoOccurrence("b", "a", 0.5, 1)]},
        {"co_occurrences": [CoOccurrence("a", "a", 0.5, 1)]},
        {"co_occurrences": [CoOccurrence("a", "b", 0.5, -1)]},
        {"edges": [edge("s", "a", "b", "RELATES_TO")]},
        {"edges": [edge("s", "a", "b", "SUPPORTS]->() DETACH DELETE n //")]},
        {"edges": [TypedEdge("s", "SUPPORTS", replace(mref("a"), kind="Memory) //"), mref("b"), 0.5)]},
        {"links": [LinkEdge("l", "e", mref("m"), "nul\x00", 0.5)]},
        {"deleted_edges": [""]},
        {"deleted_memories": ["\ud800"]},
        {"deleted_entities": [7]},
    ],
    ids=lambda bad: ascii(bad)[:60],
)
async def test_one_bad_row_refuses_the_patch_before_anything_is_written(graph: Graph, bad: dict[str, Any]) -> None:
    await graph.apply(memories=[memory("before")])
    good = {"memories": [memory(f"good{n}") for n in range(50)]}
    parts = {key: [*good.get(key, ()), *bad.get(key, ())] for key in {*good, *bad}}
    with pytest.raises(GraphDataError):
        await graph.apply(**parts)
    assert set((await graph.dump()).memories) == {"before"}
    await graph.apply(**good)
    assert len((await graph.dump()).memories) == 51


async def test_floats_come_back_as_they_are_compared(graph: Graph) -> None:
    weights = [0.1 + 0.2, 1 / 3, 2 / 3, 0.7000000000000001, 4.999999999999999, 0.0, 5, 1e-300]
    await graph.apply(
        entities=[entity(f"e{n}", weight) for n, weight in enumerate(weights)],
        memories=[memory("m")],
        mentions=[Mention("m", f"e{n}", weight) for n, weight in enumerate(weights)],
    )
    dump = await graph.dump()
    assert [dump.entities[f"e{n}"].strength for n in range(len(weights))] == [canonical_float(x) for x in weights]
    assert [dump.mentions["m", f"e{n}"] for n in range(len(weights))] == [canonical_float(x) for x in weights]
    assert isinstance(dump.entities["e6"].strength, float)


async def test_integers_are_exact_to_the_last_bit(graph: Graph) -> None:
    extremes = [2**63 - 1, -(2**63), 2**53 + 1, 0]
    await graph.apply(memories=[memory(f"m{n}", value, valid_from=value) for n, value in enumerate(extremes)])
    dump = await graph.dump()
    assert [dump.memories[f"m{n}"].version for n in range(4)] == extremes
    assert [dump.memories[f"m{n}"].valid_from for n in range(4)] == extremes


async def test_stats_count_kinds_and_rank_entities(graph: Graph) -> None:
    entities = [entity(f"e{n:02}", strength=n % 10) for n in range(20)]
    await graph.apply(
        entities=entities,
        memories=[memory("m"), memory("n")],
        mentions=[Mention("m", "e09", 0.5), Mention("n", "e09", 0.5), Mention("n", "e19", 0.5)],
        co_occurrences=[CoOccurrence("e09", "e19", 0.5, 1)],
        edges=[edge("s", "m", "n"), edge("t", "n", "m"), edge("u", "m", "n", "PART_OF")],
        links=[LinkEdge("l", "e00", rref("r"), "uses", 0.5)],
    )
    stats = await graph.backend.stats(TENANT)
    assert (stats.nodes, stats.edges, stats.entity_nodes, stats.memory_nodes) == (23, 8, 20, 2)
    assert stats.edges_by_type == {"CO_OCCURS": 1, "LINK": 1, "MENTIONS": 3, "PART_OF": 1, "SUPPORTS": 2}
    by_strength = sorted(entities, key=lambda row: (-row.strength, row.id))
    assert [row for row, _ in stats.top_entities] == by_strength[:15]
    assert {row.id: mentions for row, mentions in stats.top_entities}["e09"] == 2
    await graph.apply(deleted_edges=["s", "t", "u"], deleted_links=["l"], deleted_memories=["m", "n"])
    stats = await graph.backend.stats(TENANT)
    assert (stats.nodes, stats.edges, stats.memory_nodes) == (20, 1, 0)
    assert stats.edges_by_type == {"CO_OCCURS": 1}


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


async def test_paths_are_scored_damped_and_free_of_cycles(graph: Graph) -> None:
    await graph.apply(
        entities=[entity("hub"), entity("rare")],
        memories=[memory(key) for key in ("start", "a", "b", "c", "d")],
        mentions=[
            Mention("start", "hub", 5.0),
            Mention("start", "rare", 5.0),
            *(Mention(key, "hub", 5.0) for key in "abc"),
            Mention("d", "rare", 5.0),
        ],
        edges=[edge("s", "start", "a", confidence=0.8), edge("t", "b", "a", confidence=0.5)],
    )
    paths = await graph.expand(mref("start"))
    seen = [([(step.type, step.node.id, step.forward) for step in path.steps], path.score) for path in paths]
    mentions_hub, mentions_rare = ("MENTIONS", "hub", True), ("MENTIONS", "rare", True)
    through_rare, through_hub = 1 / math.log(math.e + 2), 1 / math.log(math.e + 4)
    assert seen == [
        ([mentions_hub], 1.0),
        ([mentions_rare], 1.0),
        ([("SUPPORTS", "a", True)], 0.8),
        ([mentions_rare, ("MENTIONS", "d", False)], pytest.approx(through_rare)),
        ([mentions_hub, ("MENTIONS", "a", False)], pytest.approx(through_hub)),
        ([mentions_hub, ("MENTIONS", "b", False)], pytest.approx(through_hub)),
        ([mentions_hub, ("MENTIONS", "c", False)], pytest.approx(through_hub)),
        ([("SUPPORTS", "a", True), ("MENTIONS", "hub", True)], pytest.approx(0.8 / math.log(math.e + 3))),
        ([("SUPPORTS", "a", True), ("SUPPORTS", "b", False)], pytest.approx(0.4 / math.log(math.e + 3))),
    ]


async def test_hops_and_paths_are_bounded(graph: Graph) -> None:
    keys = [f"m{n:02}" for n in range(30)]
    await graph.apply(
        memories=[memory(key) for key in keys],
        edges=[edge(f"s{a}", a, b, confidence=0.9) for a, b in pairwise(keys)],
    )
    for hops in range(4):
        paths = await graph.expand(mref("m00"), bounds=replace(PATIENT, hops=hops))
        assert [[step.node.id for step in path.steps] for path in paths] == [keys[1 : n + 2] for n in range(hops)]
    assert len(await graph.expand(*map(mref, keys), bounds=replace(PATIENT, paths=7))) == 7
    assert await graph.expand(*map(mref, keys), bounds=replace(PATIENT, paths=0)) == []
    assert await graph.expand(mref("absent"), eref("m00")) == []


async def test_links_count_where_they_hold(graph: Graph) -> None:
    await graph.apply(
        entities=[entity("e")],
        memories=[memory("m")],
        links=[
            LinkEdge("always", "e", rref("always"), "uses", 0.9),
            LinkEdge("until", "e", rref("until"), "client of", 0.8, None, 100),
            LinkEdge("from", "e", mref("m"), "supplies", 0.7, 100, None),
            LinkEdge("window", "e", rref("window"), "owns", 0.6, 50, 150),
        ],
    )
    assert await graph.found(eref("e")) == {"always", "until", "m", "window"}
    for as_of, expected in {
        49: {"always", "until"},
        50: {"always", "until", "window"},
        99: {"always", "until", "window"},
        100: {"always", "m", "window"},
        150: {"always", "m"},
    }.items():
        assert await graph.found(eref("e"), as_of=as_of) == expected
    assert await graph.found(rref("until"), as_of=100) == set()
    path = (await graph.expand(rref("until"), as_of=99))[0]
    assert (path.steps[0].relationship, path.steps[0].edge_id, path.steps[0].forward) == ("client of", "until", False)


async def test_seeds_weigh_and_order_paths(graph: Graph) -> None:
    await graph.apply(
        memories=[memory(key) for key in "abcd"],
        edges=[edge("s", "a", "b", confidence=0.5), edge("t", "c", "d", confidence=0.5)],
    )
    seeds = [Seed(mref("a"), 0.2), Seed(mref("c"), 0.9), Seed(mref("a"), 0.4), Seed(mref("b"), 0.0)]
    paths = await graph.backend.expand(TENANT, seeds, replace(PATIENT, hops=1))
    assert [(path.seed.id, path.score) for path in paths] == [("c", 0.45), ("a", 0.2)]


async def test_a_crowd_of_mentions_does_not_hide_the_memories_behind_them(graph: Graph) -> None:
    entities = [f"e{n:02}" for n in range(30)]
    await graph.apply(
        entities=[entity(key) for key in entities],
        memories=[memory("start"), memory("kin")],
        mentions=[Mention("start", key, 5.0) for key in entities] + [Mention("kin", key, 0.5) for key in entities[:2]],
    )
    paths = await graph.expand(mref("start"))
    assert len(paths) == 12
    assert [path.steps[-1].node.id for path in paths].count("kin") == 2
    assert [path.score for path in paths] == sorted((path.score for path in paths), reverse=True)


async def test_equal_paths_come_in_the_order_of_their_ids(graph: Graph) -> None:
    keys = ["ä", "Z", "a", "z", "日", "🍕", "\uffff", "A1", "A"]
    await graph.apply(
        memories=[memory("start"), *(memory(key) for key in reversed(keys))],
        edges=[edge(f"s-{key}", "start", key) for key in keys],
    )
    paths = await graph.expand(mref("start"), bounds=replace(PATIENT, hops=1, paths=6))
    assert [path.steps[-1].node.id for path in paths] == sorted(keys)[:6]


async def test_a_spent_budget_says_so(graph: Graph) -> None:
    await graph.apply(memories=[memory("a"), memory("b")], edges=[edge("s", "a", "b")])
    with pytest.raises(GraphUnavailableError, match="0 ms"):
        await graph.expand(mref("a"), bounds=Bounds(budget_ms=0))
    assert len(await graph.expand(mref("a"))) == 1


async def test_superseded_and_archived_memories_are_still_reached(graph: Graph) -> None:
    statuses = ["superseded", "archived", "disputed", "retracted"]
    await graph.apply(
        memories=[memory("start"), *(replace(memory(status), status=status) for status in statuses)],
        edges=[edge(status, "start", status, "SUPERSEDES") for status in statuses],
    )
    assert await graph.found(mref("start")) == set(statuses)


async def test_concurrent_writers_of_one_fence_lose_nothing(graph: Graph) -> None:
    await graph.apply(entities=[entity("e")])

    async def write(number: int) -> None:
        for _ in range(100):  # a writer that met another tries again, as a worker does
            try:
                await graph.apply(memories=[memory(f"m{number}")], mentions=[Mention(f"m{number}", "e", 0.5)])
            except GraphUnavailableError:
                continue
            return

    await asyncio.gather(*(write(number) for number in range(20)))
    assert len((await graph.dump()).mentions) == 20


def test_the_kinds_of_nodes_are_those_of_the_port() -> None:
    assert set(KINDS) == set(get_args(NodeKind))
