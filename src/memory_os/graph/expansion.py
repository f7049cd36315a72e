"""The one rule by which paths are found, scored and chosen, whichever backend reads the edges.

A backend supplies `neighbours`; everything else is here, so that both give the same paths in the same order.

*Score.* The seed's weight times the weight of every step (each in 0..1), divided by `log(e + degree)` of every node
that the path passes *through*: neither the seed nor the end. A score never grows along a path.

*Choice.* A path arrives at a memory or a record, or at an entity that a declared edge leads to. A path that ends at an
entity because something mentions it is a way station: it is listed only where arriving paths leave room, since a
memory's own mentions would otherwise crowd out every memory behind them.

*Bounds.* One read a hop. The strongest beginnings go on to the next hop, `BEAM` for each path asked for; at each node
the strongest `paths + SPARE` edges of each family are looked at. Of a family with more edges at one node than the scan
limit, only the first ones in the backend's own order are ranked: that cut is the only place where two backends may
differ, and it begins at `SCAN_FLOOR` edges.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from memory_os.graph.port import Bounds, NodeRef, Path, Seed, Step

MENTIONS = "MENTIONS"
CO_OCCURS = "CO_OCCURS"
LINK = "LINK"

DERIVED_TYPES = frozenset({MENTIONS, CO_OCCURS})
"""Edges that nobody declared; their weights lie in 0..5."""

WEIGHT_CAP = 5.0
"""Where the weights of derived edges are capped; dividing by it brings them to 0..1."""

BEAM = 4
MAX_BEAM = 96
"""Beginnings that go on to the next hop: so many for each path asked for, as way stations outnumber arrivals about so
much, and at most so many, or as many as the paths. One with 20 edges at its end costs the server about 0.1 ms."""

SPARE = 8
"""Edges read at a node beyond the paths asked for: parallel edges back to where a path came from take some."""

MAX_SEEDS = 64
"""Seeds that are expanded; the strongest are kept."""

SCAN_TOTAL = 20_000
SCAN_FLOOR = 1_000
"""Edges of one family ranked in one hop, and at one node whatever else is read: about 0.5 ms for each thousand."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What a backend reads about one node: its degree over all edges, and its strongest edges, family by family."""

    degree: int
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of each neighbourhood to read: edges kept for each family, and edges of a family ranked at most."""

    limit: int
    scan: int


Neighbours = Callable[[Sequence[NodeRef], Reach], Awaitable[Mapping[NodeRef, Neighbourhood]]]
"""Reads neighbourhoods; nodes that are not in the graph or have no edges may be left out.

For each family (mentions, co-occurrences, links, typed edges) the strongest `limit` edges, by raw weight descending,
then by `step_order`.
"""


def normalise_weight(edge_type: str, weight: float) -> float:
    """Bring an edge's weight or confidence to 0..1."""
    return min(1.0, max(0.0, weight / WEIGHT_CAP if edge_type in DERIVED_TYPES else weight))


def damping(degree: int) -> float:
    """What a path's score is divided by where it passes through a node of so many edges; 1 or more."""
    return math.log(math.e + degree)


def step_order(step: Step) -> tuple[str, str, str, str, bool]:
    """The order of equally strong edges at one node: type, edge id, kind and id of the far end, direction."""
    return (step.type, step.edge_id or "", step.node.kind, step.node.id, not step.forward)


def path_order(path: Path) -> tuple[object, ...]:
    """The order of paths: best first, then the shorter, then by the ids along it."""
    return (
        -path.score,
        len(path.steps),
        path.seed.kind,
        path.seed.id,
        [step_order(step) for step in path.steps],
    )


def arrives(path: Path) -> bool:
    """Whether a path's end was worth the way: a memory, a record, or an entity that a declared edge leads to."""
    end = path.steps[-1]
    return end.node.kind != "entity" or end.type not in DERIVED_TYPES


async def expand(neighbours: Neighbours, seeds: Iterable[Seed], bounds: Bounds) -> list[Path]:
    """Find the strongest paths from the seeds.

    Args:
        neighbours: Reads the edges around nodes, once for each hop.
        seeds: Where to start; of equal nodes the heaviest counts.
        bounds: Hops and paths; the time budget is the backend's to hold.

    Returns:
        At most `bounds.paths` paths without cycles, best first, ties by ids.
    """
    if bounds.hops < 1 or bounds.paths < 1:
        return []
    beginnings = _start(seeds)
    found: list[Path] = []
    for _ in range(bounds.hops):
        ends = list(dict.fromkeys(_end(path) for path in beginnings))
        if not ends:
            break
        reach = Reach(bounds.paths + SPARE, max(SCAN_FLOOR, SCAN_TOTAL // len(ends)))
        around = await neighbours(ends, reach)
        longer = [path for beginning in beginnings for path in _extend(beginning, around.get(_end(beginning)))]
        found += _choose(longer, bounds.paths)
        beginnings = _strongest(longer, max(bounds.paths, min(BEAM * bounds.paths, MAX_BEAM)))
    return sorted(_choose(found, bounds.paths), key=path_order)


def _start(seeds: Iterable[Seed]) -> list[Path]:
    weights: dict[NodeRef, float] = {}
    for seed in seeds:
        weights[seed.node] = max(weights.get(seed.node, 0.0), min(1.0, max(0.0, seed.weight)))
    starts = [Path(node, (), weight) for node, weight in weights.items() if weight > 0]
    return sorted(starts, key=path_order)[:MAX_SEEDS]


def _end(path: Path) -> NodeRef:
    return path.steps[-1].node if path.steps else path.seed


def _extend(path: Path, around: Neighbourhood | None) -> Iterable[Path]:
    if around is None:
        return
    passed = path.score / damping(around.degree) if path.steps else path.score
    visited = {path.seed, *(step.node for step in path.steps)}
    for step in around.steps:
        score = passed * step.weight
        if score > 0 and step.node not in visited:
            yield Path(path.seed, (*path.steps, step), score)


def _choose(paths: Sequence[Path], limit: int) -> list[Path]:
    """The strongest arriving paths, and the strongest others in the room that they leave."""
    chosen = _strongest([path for path in paths if arrives(path)], limit)
    return chosen + _strongest([path for path in paths if not arrives(path)], limit - len(chosen))


def _strongest(paths: Sequence[Path], limit: int) -> list[Path]:
    """The first paths in their order. The scores alone rule most out, which spares their keys (5,000 paths: 8 ms)."""
    if limit < 1:
        return []
    if len(paths) > limit:
        least = nlargest(limit, (path.score for path in paths))[-1]
        paths = [path for path in paths if path.score >= least]
    return sorted(paths, key=path_order)[:limit]
