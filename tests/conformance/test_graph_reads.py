"""What the port promises of reads, on every graph backend: mentions, statistics and paths."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.conformance.conftest import PATIENT, TENANT, Graph
from tests.fixtures.graphs import EMPTY, edge, entity, eref, memory, mref, rref

from memory_os.graph.expansion import FOLLOWED, HUB
from memory_os.graph.port import (
    Bounds,
    CoOccurrence,
    FenceLostError,
    GraphBackend,
    GraphPatch,
    GraphStats,
    GraphUnavailableError,
    LinkEdge,
    Mention,
    Seed,
)

pytestmark = pytest.mark.anyio


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
        # What "a" mentions is a way station and nothing follows it, so its mentions are neither read nor counted.
        ([("SUPPORTS", "a", True), ("SUPPORTS", "b", False)], pytest.approx(0.4 / math.log(math.e + 2))),
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


@pytest.mark.parametrize("mentions", [HUB, HUB + 1])
async def test_a_hub_is_no_way_from_mention_to_mention_but_its_declared_edges_are(graph: Graph, mentions: int) -> None:
    crowd = [f"m{n:03}" for n in range(mentions - 1)]
    await graph.apply(
        entities=[entity("hub")],
        memories=[memory(key) for key in ("start", "aim", *crowd)],
        mentions=[Mention(key, "hub", 1.0) for key in ("start", *crowd)],
        links=[LinkEdge("l", "hub", mref("aim"), "owns", 0.5)],
    )
    paths = await graph.expand(mref("start"), bounds=replace(PATIENT, paths=2 * mentions))
    behind = [path.steps[1].node.id for path in paths if len(path.steps) == 2]
    assert behind == (["aim", *crowd] if mentions <= HUB else ["aim"])
    assert len(await graph.expand(eref("hub"), bounds=replace(PATIENT, paths=2 * mentions, hops=1))) == mentions + 1


async def test_a_seed_with_very_many_declared_edges_hides_those_of_no_other(graph: Graph) -> None:
    crowd = [f"m{n:04}" for n in range(1_200)]
    await graph.apply(
        memories=[memory(key) for key in ("centre", "other", "friend", *crowd)],
        edges=[edge(f"s{key}", key, "centre", confidence=0.2) for key in crowd]
        + [edge("only", "other", "friend", "ABOUT", confidence=0.4)],
    )
    paths = await graph.expand(mref("centre"), mref("other"), bounds=replace(PATIENT, hops=1, paths=FOLLOWED + 10))
    assert paths[0].steps[0].node.id == "friend"
    assert len(paths) == FOLLOWED + 1


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
