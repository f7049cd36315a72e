"""What the port promises of writes, on every graph backend: patches, fences, and the rows that are refused."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args
from uuid import UUID

import pytest
from tests.conformance.conftest import TENANT, Graph
from tests.fixtures.graphs import EMPTY, edge, entity, eref, memory, mref, rref

from memory_os.graph.encoder import canonical_float
from memory_os.graph.patches import KINDS
from memory_os.graph.port import (
    CoOccurrence,
    EntityNode,
    FenceLostError,
    GraphBackend,
    GraphDataError,
    GraphDump,
    GraphPatch,
    GraphUnavailableError,
    LinkEdge,
    MemoryNode,
    Mention,
    NodeKind,
    TypedEdge,
)

pytestmark = pytest.mark.anyio

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
        {"edges": [TypedEdge("s", "SUPPORTS", mref("a")._replace(kind="Memory) //"), mref("b"), 0.5)]},
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
