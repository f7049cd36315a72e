"""The rule of expansion, on graphs that are dictionaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.graphs import eref, mref

from memory_os.graph.expansion import (
    BEAM,
    ENTITY_BEAM,
    FOLLOWED,
    HUB,
    LEADS,
    MAX_SEEDS,
    MAX_WAYS,
    Edge,
    Neighbourhood,
    Reach,
    arrives,
    damping,
    expand,
    neighbourhood,
    normalise_weight,
    path_order,
    step_of,
)
from memory_os.graph.port import Bounds, NodeKind, NodeRef, Path, Seed

pytestmark = pytest.mark.anyio

Edges = Sequence[tuple[NodeRef, str, NodeRef, float]]


class World:
    """Reads neighbourhoods from a list of edges, without a limit, and remembers what it was asked."""

    def __init__(self, edges: Edges) -> None:
        self.asked: list[tuple[Sequence[NodeRef], Reach]] = []
        self.edges: dict[NodeRef, list[Edge]] = {}
        for number, (source, edge_type, target, weight) in enumerate(edges):
            for near, far, forward in ((source, target, True), (target, source, False)):
                edge = Edge(weight, edge_type, f"{number:04}", forward, far.kind, far.id)
                self.edges.setdefault(near, []).append(edge)

    async def neighbours(self, refs: Sequence[NodeRef], reach: Reach) -> Mapping[NodeRef, Neighbourhood]:
        self.asked.append((refs, reach))
        return {ref: Neighbourhood(len(self.edges[ref]), self.edges[ref]) for ref in refs if ref in self.edges}

    def all_paths(self, seeds: Sequence[Seed], hops: int) -> list[list[Path]]:
        """Every path there is that passes through no seed, found by walking everywhere, by length, best first."""
        weights: dict[NodeRef, float] = {}
        for seed in seeds:
            weights[seed.node] = max(weights.get(seed.node, 0.0), seed.weight)
        starts = {node for node, weight in weights.items() if weight > 0}
        ends = [Path(node, (), weight) for node, weight in weights.items()]
        found = []
        for _ in range(hops):
            ends = [longer for path in ends for longer in self._extend(path, starts)]
            found.append(sorted(ends, key=path_order))
        return found

    def _extend(self, path: Path, starts: set[NodeRef]) -> list[Path]:
        end = path.steps[-1].node if path.steps else path.seed
        if path.steps and end in starts:
            return []
        around = self.edges.get(end, [])
        passed = path.score / (math.log(math.e + len(around)) if path.steps else 1)
        visited = {path.seed, *(step.node for step in path.steps)}
        return [
            Path(path.seed, (*path.steps, step), passed * step.weight)
            for step in map(step_of, around)
            if step.node not in visited and passed * step.weight > 0
        ]


def choose(paths: Sequence[Path], limit: int) -> list[Path]:
    """The best that arrive, leads first, and the best others in the room that they leave."""
    first: list[Path] = []
    late: list[Path] = []
    led: dict[NodeRef, set[NodeRef]] = {}
    for path in paths:
        if arrives(path.steps[-1].node.kind, path.steps[-1].type):
            ends = led.setdefault(path.steps[-2].node, set()) if len(path.steps) > 1 else set()
            is_mention = len(path.steps) > 1 and path.steps[-1].type == "MENTIONS"
            is_late = is_mention and (path.steps[-1].node in ends or len(ends) >= LEADS)
            (late if is_late else first).append(path)
            if is_mention:
                ends.add(path.steps[-1].node)
    others = [path for path in paths if path not in first and path not in late]
    return [*first, *late, *others][:limit]


nodes = st.builds(NodeRef, st.sampled_from(["memory", "entity"]), st.sampled_from("abcdef"))
edges = st.lists(
    st.tuples(
        nodes,
        st.sampled_from(["MENTIONS", "CO_OCCURS", "LINK", "SUPPORTS"]),
        nodes,
        st.sampled_from([0.0, 0.1, 0.5, 0.5, 1.0]),
    ),
    max_size=20,
)
seeds_of = st.lists(st.builds(Seed, nodes, st.sampled_from([0.0, 0.3, 1.0])), max_size=4)


@settings(max_examples=200, deadline=None)
@given(edges=edges, seeds=seeds_of, hops=st.integers(1, 3), paths=st.integers(1, 60))
async def test_the_paths_are_the_best_of_all_that_there_are(
    edges: Edges, seeds: list[Seed], hops: int, paths: int
) -> None:
    world = World(edges)
    every = world.all_paths(seeds, hops)
    found = await expand(world.neighbours, seeds, Bounds(hops, paths))
    if all(len(longer) <= MAX_WAYS for longer in every):  # nothing was cut on the way
        lengths = [choose(longer, paths) for longer in every]
        share = paths // hops
        best = [
            path
            for longer in lengths
            for path in longer[:share]
            if arrives(path.steps[-1].node.kind, path.steps[-1].type)
        ]
        left = sorted((path for longer in lengths for path in longer if path not in best), key=path_order)
        best += choose(left, paths - len(best))
        assert found == sorted(best, key=path_order)
    for path in found:
        assert path in every[len(path.steps) - 1]
        assert len({path.seed, *(step.node for step in path.steps)}) == len(path.steps) + 1
    assert len(found) <= paths
    assert len(world.asked) <= hops


async def test_one_read_a_hop_and_never_of_more_than_the_beams() -> None:
    edges = [(mref("start"), "SUPPORTS", mref(f"a{n:03}"), 1.0) for n in range(200)]
    edges += [(mref("start"), "ABOUT", eref(f"e{n:03}"), 1.0) for n in range(200)]
    edges += [(mref(f"a{n:03}"), "SUPPORTS", mref(f"b{n:03}"), 1.0) for n in range(200)]
    world = World(edges)
    paths = await expand(world.neighbours, [Seed(mref("start"), 1.0)], Bounds(paths=6))
    assert [len(refs) for refs, _ in world.asked] == [1, BEAM + ENTITY_BEAM]
    assert [reach for _, reach in world.asked] == [Reach(first=True, last=False), Reach(first=False, last=True)]
    assert [path.steps[-1].node.id for path in paths] == ["e000", "e001", "e002", "b000", "b001", "b002"]


async def test_near_paths_do_not_crowd_out_far_ones() -> None:
    edges = [(mref("start"), "SUPPORTS", mref(f"a{n:03}"), 1.0) for n in range(50)]
    edges += [(mref("start"), "MENTIONS", eref("rare"), 0.1), (mref("far"), "MENTIONS", eref("rare"), 0.1)]
    paths = await expand(World(edges).neighbours, [Seed(mref("start"), 1.0)], Bounds(paths=4))
    assert [path.steps[-1].node.id for path in paths] == ["a000", "a001", "a002", "far"]


async def test_many_names_are_followed_a_little_before_one_to_its_end() -> None:
    edges = [(mref("start"), "MENTIONS", eref(name), 0.5) for name in ("rare", "popular")]
    edges += [(mref(f"r{n}"), "MENTIONS", eref("rare"), 0.9) for n in range(LEADS + 2)]
    edges += [(mref(f"p{n:02}"), "MENTIONS", eref("popular"), 0.5) for n in range(20)]
    paths = await expand(World(edges).neighbours, [Seed(mref("start"), 1.0)], Bounds(paths=2 * LEADS + 1))
    ends = [path.steps[-1].node.id for path in paths]
    assert ends == [*(f"r{n}" for n in range(LEADS + 1)), *(f"p{n:02}" for n in range(LEADS))]


async def test_what_lies_behind_a_seed_is_found_from_there() -> None:
    edges = [(mref("a"), "SUPPORTS", mref("b"), 0.5), (mref("b"), "SUPPORTS", mref("c"), 0.5)]
    world = World(edges)
    paths = await expand(world.neighbours, [Seed(mref("a"), 1.0), Seed(mref("b"), 0.2)], Bounds())
    assert [[path.seed.id, *(step.node.id for step in path.steps)] for path in paths] == [
        ["a", "b"],
        ["b", "a"],
        ["b", "c"],
    ]


def mentions(count: int) -> list[Edge]:
    return [Edge(0.5, "MENTIONS", None, False, "memory", f"m{n:03}") for n in range(count)]


@pytest.mark.parametrize(
    ("first", "seen", "followed"), [(False, HUB, HUB), (False, HUB + 1, 0), (True, HUB + 1, HUB + 1)]
)
def test_mentions_of_a_hub_are_followed_from_a_seed_only(first: bool, seen: int, followed: int) -> None:
    around = neighbourhood(Reach(first=first, last=True), (seen, mentions(seen)), (HUB + 1, mentions(HUB + 1)), ())
    assert len(around.edges) == followed
    assert around.degree == 2 * HUB


def test_the_strongest_declared_edges_of_a_hub_are_followed_anywhere() -> None:
    declared = [Edge(n / 1000, "SUPPORTS", f"{n}", True, "memory", f"m{n}") for n in range(FOLLOWED + 20)]
    around = neighbourhood(Reach(first=False, last=False), (0, ()), (0, ()), declared)
    assert around == Neighbourhood(FOLLOWED, declared[: -FOLLOWED - 1 : -1])


@pytest.mark.parametrize(
    ("reach", "kind", "mentions", "stations"),
    [
        (Reach(first=True, last=True), "memory", True, True),
        (Reach(first=False, last=False), "memory", True, True),
        (Reach(first=False, last=True), "memory", False, False),
        (Reach(first=False, last=True), "entity", True, False),
        (Reach(first=True, last=False), "record", False, True),
    ],
)
def test_what_leads_to_way_stations_is_not_read_where_nothing_follows(
    reach: Reach, kind: NodeKind, mentions: bool, stations: bool
) -> None:
    assert (reach.wants_mentions(kind), reach.wants_stations) == (mentions, stations)


async def test_only_the_heaviest_seeds_start() -> None:
    seeds = [Seed(mref(f"s{n:03}"), n / 1000) for n in range(300)]
    world = World([])
    assert await expand(world.neighbours, seeds, Bounds()) == []
    assert [ref.id for ref in world.asked[0][0]] == [f"s{n:03}" for n in range(299, 299 - MAX_SEEDS, -1)]


@pytest.mark.parametrize(("hops", "paths"), [(0, 12), (2, 0), (-1, 12)])
async def test_without_bounds_to_fill_nothing_is_read(hops: int, paths: int) -> None:
    world = World([(mref("a"), "SUPPORTS", mref("b"), 1.0)])
    assert await expand(world.neighbours, [Seed(mref("a"), 1.0)], Bounds(hops, paths)) == []
    assert world.asked == []


async def test_the_node_passed_through_damps_and_neither_seed_nor_end_does() -> None:
    edges = [(mref("seed"), "SUPPORTS", eref("hub"), 1.0), (eref("hub"), "SUPPORTS", mref("end"), 1.0)]
    edges += [(eref("hub"), "MENTIONS", mref(f"x{n}"), 0.0) for n in range(98)]
    edges += [(mref("end"), "MENTIONS", eref(f"y{n}"), 0.0) for n in range(50)]
    edges += [(mref("seed"), "MENTIONS", eref(f"z{n}"), 0.0) for n in range(50)]
    direct, through = await expand(World(edges).neighbours, [Seed(mref("seed"), 0.8)], Bounds())
    assert direct.score == 0.8
    assert through.score == 0.8 / math.log(math.e + 100)


@pytest.mark.parametrize(
    ("edge_type", "weight", "expected"),
    [
        ("MENTIONS", 5.0, 1.0),
        ("MENTIONS", 0.5, 0.1),
        ("CO_OCCURS", 0.55, 0.11),
        ("CO_OCCURS", 7.0, 1.0),
        ("SUPPORTS", 0.5, 0.5),
        ("LINK", 1.5, 1.0),
        ("LINK", -0.5, 0.0),
    ],
)
def test_weights_lie_between_nought_and_one(edge_type: str, weight: float, expected: float) -> None:
    assert normalise_weight(edge_type, weight) == pytest.approx(expected)


@given(st.integers(0, 10**9))
def test_damping_never_strengthens(degree: int) -> None:
    assert 1.0 <= damping(degree) <= damping(degree + 1)
