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
    MAX_BEAM,
    MAX_SEEDS,
    SCAN_FLOOR,
    Neighbourhood,
    Reach,
    arrives,
    damping,
    expand,
    normalise_weight,
    path_order,
)
from memory_os.graph.port import Bounds, NodeRef, Path, Seed, Step

pytestmark = pytest.mark.anyio

Edges = Sequence[tuple[NodeRef, str, NodeRef, float]]


class World:
    """Reads neighbourhoods from a list of edges, without a limit, and remembers what it was asked."""

    def __init__(self, edges: Edges) -> None:
        self.asked: list[tuple[Sequence[NodeRef], Reach]] = []
        self.steps: dict[NodeRef, list[Step]] = {}
        for number, (source, edge_type, target, weight) in enumerate(edges):
            self.steps.setdefault(source, []).append(Step(edge_type, f"{number:04}", True, weight, target))
            self.steps.setdefault(target, []).append(Step(edge_type, f"{number:04}", False, weight, source))

    async def neighbours(self, refs: Sequence[NodeRef], reach: Reach) -> Mapping[NodeRef, Neighbourhood]:
        self.asked.append((refs, reach))
        return {ref: Neighbourhood(len(self.steps[ref]), self.steps[ref]) for ref in refs if ref in self.steps}

    def all_paths(self, seeds: Sequence[Seed], hops: int) -> list[Path]:
        """Every path there is, found by walking everywhere."""
        found: list[Path] = []
        weights: dict[NodeRef, float] = {}
        for seed in seeds:
            weights[seed.node] = max(weights.get(seed.node, 0.0), seed.weight)
        ends = [Path(node, (), weight) for node, weight in weights.items()]
        for _ in range(hops):
            ends = [longer for path in ends for longer in self._extend(path)]
            found += ends
        return sorted(found, key=path_order)

    def _extend(self, path: Path) -> list[Path]:
        end = path.steps[-1].node if path.steps else path.seed
        around = self.steps.get(end, [])
        passed = path.score / (math.log(math.e + len(around)) if path.steps else 1)
        visited = {path.seed, *(step.node for step in path.steps)}
        return [
            Path(path.seed, (*path.steps, step), passed * step.weight)
            for step in around
            if step.node not in visited and passed * step.weight > 0
        ]


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
    beams = [sum(len(path.steps) == hop for path in every) for hop in range(1, hops)]
    if all(beam <= max(paths, min(BEAM * paths, MAX_BEAM)) for beam in beams):  # nothing was cut on the way
        best = [path for path in every if arrives(path)][:paths]
        best += [path for path in every if not arrives(path)][: paths - len(best)]
        assert found == sorted(best, key=path_order)
    for path in found:
        assert path in every
        assert len({path.seed, *(step.node for step in path.steps)}) == len(path.steps) + 1
    assert len(found) <= paths
    assert len(world.asked) <= hops


async def test_one_read_a_hop_and_never_of_more_than_the_beam() -> None:
    edges = [(mref("start"), "SUPPORTS", mref(f"a{n:03}"), 1.0) for n in range(200)]
    edges += [(mref(f"a{n:03}"), "SUPPORTS", mref(f"b{n:03}"), 1.0) for n in range(200)]
    world = World(edges)
    paths = await expand(world.neighbours, [Seed(mref("start"), 1.0)], Bounds(paths=5))
    assert [len(refs) for refs, _ in world.asked] == [1, 5 * BEAM]
    assert [path.steps[-1].node.id for path in paths] == ["a000", "a001", "a002", "a003", "a004"]
    assert min(reach.scan for _, reach in world.asked) >= SCAN_FLOOR


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
