"""The one rule by which paths are found, scored and chosen, whichever backend reads the edges.

A backend supplies `neighbours`; everything else is here, so that both give the same paths in the same order.

*Score.* The seed's weight times the weight of every step (each in 0..1), divided by `log(e + degree)` of every node
that the path passes *through*: neither the seed nor the end. A score never grows along a path. The degree is that of
the edges which were read: nobody counts the edges of a hub.

*Choice.* A path arrives at a memory or a record, or at an entity that a declared edge leads to. A path that ends at an
entity because something mentions it is a way station: it is listed only where arriving paths leave room, since a
memory's own mentions would otherwise crowd out every memory behind them. Each length of paths has an equal share of the
room, and what it leaves is filled by the strongest of all: near paths are stronger and would crowd out the far ones. No
path passes through another seed, since what lies behind it is found from there. Of the memories that mention what was
passed through, the `LEADS` strongest come before all others: one that is about it mentions it most, and many names are
better followed a little than one name to its end.

*Hubs.* Edges at a node come in three families: mentions, co-occurrences, and declared ones (typed edges and links).
More than `HUB` mentions or co-occurrences at a node are not followed at all, since nothing there tells one from
another; but from a seed the strongest `FOLLOWED` mentions are, and of declared edges the strongest `FOLLOWED` anywhere.

*Bounds.* One read a hop: of the `MAX_SEEDS` strongest seeds, and then of the `ENTITY_BEAM` strongest entities and the
`BEAM` strongest other nodes. Where no hop follows, what leads to way stations is read at seeds only. So a walk costs
the same however large the tenant is. Of a family with more than `SCAN` edges at one node only the first ones in the
backend's own order are ranked: that cut is the only place where two backends may differ.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_os.graph.port import Bounds, NodeKind, NodeRef, Path, Seed, Step

MENTIONS = "MENTIONS"
CO_OCCURS = "CO_OCCURS"
LINK = "LINK"

DERIVED_TYPES = frozenset({MENTIONS, CO_OCCURS})
"""Edges that nobody declared; their weights lie in 0..5."""

WEIGHT_CAP = 5.0
"""Where the weights of derived edges are capped; dividing by it brings them to 0..1."""

MAX_SEEDS = 16
"""Seeds that are expanded; the strongest are kept. FalkorDB walks from up to 16 nodes at a time."""

ENTITY_BEAM = 24
"""Entities that are read at each further hop: each takes the server 0.05 ms, and a hub of 25,000 edges 0.2 ms."""

BEAM = 8
"""Other nodes that are read at each further hop, for their declared edges."""

MAX_WAYS = 256
"""Beginnings of paths that go on to the next hop; several may end at one node."""

HUB = 50
"""Mentions or co-occurrences at one node beyond which they are not followed.

Measured on multi-hop questions: names with up to 50 passages lead on, more popular ones do not.
"""

LEADS = 2
"""Memories that mention an entity on the way which are chosen before others. Ours; not tuned."""

FOLLOWED = 64
"""Edges of one family that are followed from one node."""

SCAN = 200
"""Edges of one family that are ranked at one node: about 0.4 ms."""


class Edge(NamedTuple):
    """An edge as seen from the node that was read; `weight` is in 0..1, `kind` and `id` are its far end's."""

    weight: float
    type: str
    edge_id: str | None
    forward: bool
    kind: NodeKind
    id: str
    relationship: str | None = None


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What a backend reads about one node: the edges that are followed, and how many were seen of all families."""

    degree: int
    edges: Sequence[Edge]


@dataclass(frozen=True, slots=True)
class Reach:
    """Which hop a read is for: the `first` starts at seeds, behind the `last` nothing follows."""

    first: bool
    last: bool

    def wants_mentions(self, kind: NodeKind) -> bool:
        """Whether the mentions at such a node are read."""
        return kind == "entity" or (kind == "memory" and self.wants_stations)

    @property
    def wants_stations(self) -> bool:
        """Whether derived edges to entities are read."""
        return self.first or not self.last


Neighbours = Callable[[Sequence[NodeRef], Reach], Awaitable[Mapping[NodeRef, Neighbourhood]]]
"""Reads neighbourhoods; nodes that are not in the graph or have no edges may be left out.

Of each family that `Reach` wants, edges from a node to itself left out: of mentions at the first hop and of declared
edges the strongest `FOLLOWED`, by raw weight descending, then by `edge_order`; of others all, or none where there are
more than `HUB`. `neighbourhood` puts them together.
"""

Family = tuple[int, Sequence[Edge]]
"""How many edges of a family were seen, and those of them that were read."""

Node = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Way:
    """The beginning of a path. `order` decides among equally strong ones of the same length."""

    seed: NodeRef
    edges: tuple[Edge, ...]
    score: float
    order: tuple[object, ...]
    visited: frozenset[Node]

    @property
    def end(self) -> Node:
        return self.edges[-1][4:6] if self.edges else (self.seed.kind, self.seed.id)

    def path(self) -> Path:
        return Path(self.seed, tuple(map(step_of, self.edges)), self.score)


_Longer = tuple[float, _Way, Edge]
"""A way with one more edge, and its score: most are never made."""


def normalise_weight(edge_type: str, weight: float) -> float:
    """Bring an edge's weight or confidence to 0..1."""
    return min(1.0, max(0.0, weight / WEIGHT_CAP if edge_type in DERIVED_TYPES else weight))


def damping(degree: int) -> float:
    """What a path's score is divided by where it passes through a node of so many edges; 1 or more."""
    return math.log(math.e + degree)


def edge_order(edge: Edge) -> tuple[str, str, str, str, bool]:
    """The order of equally strong edges at one node: type, edge id, kind and id of the far end, direction."""
    return (edge.type, edge.edge_id or "", edge.kind, edge.id, not edge.forward)


def step_of(edge: Edge) -> Step:
    """An edge as a step of a path."""
    return Step(edge.type, edge.edge_id, edge.forward, edge.weight, NodeRef(edge.kind, edge.id), edge.relationship)


def step_order(step: Step) -> tuple[str, str, str, str, bool]:
    """`edge_order` of a step."""
    return (step.type, step.edge_id or "", step.node.kind, step.node.id, not step.forward)


def path_order(path: Path) -> tuple[object, ...]:
    """The order of paths: best first, then the shorter, then by the ids along it."""
    return (-path.score, len(path.steps), path.seed.kind, path.seed.id, tuple(step_order(step) for step in path.steps))


def arrives(kind: NodeKind, edge_type: str) -> bool:
    """Whether an end was worth the way: a memory, a record, or an entity that a declared edge leads to."""
    return kind != "entity" or edge_type not in DERIVED_TYPES


def neighbourhood(reach: Reach, mentions: Family, co_occurrences: Family, declared: Sequence[Edge]) -> Neighbourhood:
    """Put families together: derived ones with how many edges were seen, which may be more than are given."""
    edges = strongest_edges(declared) if len(declared) > FOLLOWED else list(declared)
    degree = len(edges)
    for (seen, family), is_followed in ((mentions, reach.first), (co_occurrences, False)):
        degree += min(seen, HUB)
        if seen <= HUB or is_followed:
            edges += family
    return Neighbourhood(degree, edges)


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
    ways = _start(seeds)
    starts = {way.end for way in ways}
    found: list[list[_Longer]] = []
    for hop in range(bounds.hops):
        if not ways:
            break
        ends = [NodeRef(kind, ident) for kind, ident in dict.fromkeys(way.end for way in ways)]  # type: ignore[arg-type]  # a kind by construction
        around = await neighbours(ends, Reach(first=hop == 0, last=hop == bounds.hops - 1))
        near = {(ref.kind, ref.id): one for ref, one in around.items()}
        longer = [candidate for way in ways if way.end in near for candidate in _extend(way, near[way.end])]
        found.append(_choose(longer, bounds.paths))
        onward = [candidate for candidate in longer if candidate[2][4:6] not in starts]
        ways = [_lengthen(candidate) for candidate in _go_on(onward)] if hop < bounds.hops - 1 else []
    return sorted((_lengthen(candidate).path() for candidate in _share(found, bounds.paths)), key=path_order)


def _share(found: Sequence[Sequence[_Longer]], limit: int) -> list[_Longer]:
    """Of the arriving paths of each length an equal share, and the strongest of the others in the room that is left."""
    share = limit // max(1, len(found))
    shared: list[_Longer] = []
    left: list[_Longer] = []
    for paths in found:
        for at, candidate in enumerate(paths):
            edge = candidate[2]
            (shared if at < share and arrives(edge.kind, edge.type) else left).append(candidate)
    return shared + _choose(left, limit - len(shared))


def strongest_edges(edges: Iterable[Edge]) -> list[Edge]:
    """The `FOLLOWED` strongest edges of a family."""
    return sorted(edges, key=lambda edge: (-edge.weight, edge_order(edge)))[:FOLLOWED]


def _start(seeds: Iterable[Seed]) -> list[_Way]:
    weights: dict[Node, float] = {}
    for seed in seeds:
        node = (seed.node.kind, seed.node.id)
        weights[node] = max(weights.get(node, 0.0), min(1.0, max(0.0, seed.weight)))
    heaviest = sorted((-weight, node) for node, weight in weights.items() if weight > 0)[:MAX_SEEDS]
    return [_Way(NodeRef(*node), (), -weight, node, frozenset({node})) for weight, node in heaviest]  # type: ignore[arg-type]  # a kind by construction


def _extend(way: _Way, around: Neighbourhood) -> list[_Longer]:
    passed, visited = way.score / (damping(around.degree) if way.edges else 1.0), way.visited
    return [(score, way, edge) for edge in around.edges if (score := passed * edge[0]) > 0 and edge[4:6] not in visited]


def _lengthen(candidate: _Longer) -> _Way:
    score, way, edge = candidate
    return _Way(way.seed, (*way.edges, edge), score, (*way.order, edge_order(edge)), way.visited | {edge[4:6]})


def _choose(longer: Sequence[_Longer], limit: int) -> list[_Longer]:
    """The strongest that arrive, leads first, and the strongest others in the room that they leave."""
    arriving = [one for one in longer if arrives(one[2].kind, one[2].type)]
    late = _behind_leads(arriving)
    chosen = _strongest([one for at, one in enumerate(arriving) if at not in late], limit)
    chosen += _strongest([arriving[at] for at in late], limit - len(chosen))
    room = limit - len(chosen)
    return chosen + _strongest([one for one in longer if not arrives(one[2].kind, one[2].type)], room)


def _behind_leads(arriving: Sequence[_Longer]) -> set[int]:
    """Places of those that arrive by a mention from a node on the way which has `LEADS` better ends."""
    through: dict[Node, list[tuple[float, int]]] = defaultdict(list)
    for at, (score, way, edge) in enumerate(arriving):
        if way.edges and edge.type == MENTIONS:
            through[way.end].append((-score, at))
    late: set[int] = set()
    for crowd in through.values():
        if len(crowd) > LEADS:
            led: set[Node] = set()
            for _, at in sorted(crowd, key=lambda one: (one[0], _order(arriving[one[1]]))):
                node = arriving[at][2][4:6]
                if node in led or len(led) >= LEADS:
                    late.add(at)
                led.add(node)
    return late


def _go_on(longer: Sequence[_Longer]) -> list[_Longer]:
    """Those that the next hop starts from: they end at the best entities and at the best other nodes."""
    best: dict[Node, float] = {}
    for score, _, edge in longer:
        node = edge[4:6]
        if score > best.get(node, 0.0):
            best[node] = score
    ranked = sorted((-score, node) for node, score in best.items())
    entities = [node for _, node in ranked if node[0] == "entity"][:ENTITY_BEAM]
    kept = {*entities, *[node for _, node in ranked if node[0] != "entity"][:BEAM]}
    return _strongest([one for one in longer if one[2][4:6] in kept], MAX_WAYS)


def _strongest(longer: Sequence[_Longer], limit: int) -> list[_Longer]:
    """The first in their order. The scores alone rule most out, which spares their keys."""
    if limit < 1:
        return []
    if len(longer) > limit:
        least = sorted([one[0] for one in longer], reverse=True)[limit - 1]
        longer = [one for one in longer if one[0] >= least]
    return sorted(longer, key=_order)[:limit]


def _order(candidate: _Longer) -> tuple[object, ...]:
    score, way, edge = candidate
    return (-score, len(way.edges), *way.order, edge_order(edge))
