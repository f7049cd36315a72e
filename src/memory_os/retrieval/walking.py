"""The graph arm: from what was named and found along edges, within bounds, outside of any transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final
from uuid import UUID

import structlog

from memory_os.graph.facade import GraphMemory
from memory_os.graph.port import Bounds, GraphError, NodeRef, Path, Seed
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.model import Limits

log = structlog.get_logger(__name__)

BUDGET_MS: Final = 150
"""Time that the graph gets."""

_GRACE_S: Final = 0.1
"""What a backend may take beyond its budget to notice that it is over."""

SPARE_PATHS: Final = 4
"""Paths asked for, for each one wanted: some lead through what this reader may not see, and fall away."""

NAMED: Final = 6
"""Entities of the question that the walk starts from, the first ones."""

SEEDS: Final = 6
"""Hits that the walk starts from beside them. On multi-hop questions five were best, and more added nothing."""

_NAMED_WEIGHT: Final = 1.0
_FOUND_WEIGHT: Final = 0.9
"""A name in the question is a surer start than a hit; the best hit starts with this."""

_STEEP: Final = 2
"""The power to which a hit's share of the best one is raised: the best ones lead on, and others hardly. Measured."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def make_seeds(named: Sequence[UUID], ranked: Mapping[Ref, float]) -> list[Seed]:
    """Where a walk starts: named entities, then the best of what was found, by the square of their share of the best.

    Passages are not in the graph, and take no place from what is.

    Args:
        named: Entities that the question names, in its order.
        ranked: The relevance of what was found, best first.
    """
    weights = {NodeRef("entity", str(ident)): _NAMED_WEIGHT for ident in named[:NAMED]}
    best = max(ranked.values(), default=0.0)
    inside = ((ref, score) for ref, score in ranked.items() if ref.type != "passage" and score > 0)
    for ref, score in islice(inside, SEEDS):
        node = node_of(ref)
        weights[node] = max(weights.get(node, 0.0), _FOUND_WEIGHT * (score / best) ** _STEEP)
    return [Seed(node, weight) for node, weight in weights.items()]


def node_of(ref: Ref) -> NodeRef:
    """The graph's node of a record."""
    if ref.type in ("memory", "entity"):
        return NodeRef("memory" if ref.type == "memory" else "entity", str(ref.id))
    return NodeRef("record", str(ref.id))


async def walk(
    graph: GraphMemory, tenant_id: UUID, seeds: Sequence[Seed], limits: Limits, as_of: datetime | None, *, current: bool
) -> Sequence[Path] | None:
    """The strongest paths from the seeds, best first, or None where the graph is down, too slow or empty.

    Args:
        graph: The graph.
        tenant_id: Whose.
        seeds: Where to start.
        limits: Hops and paths; `SPARE_PATHS` times as many are asked for.
        as_of: When links must hold; None takes every link.
        current: Every event has been projected, so that the seeds must be in the graph: if none of its memories is, the
            graph was lost or replaced, or never built.
    """
    if not seeds or not limits.hops or not limits.paths:
        return ()
    bounds = Bounds(limits.hops, limits.paths * SPARE_PATHS, BUDGET_MS)
    moment = None if as_of is None else (as_of - _EPOCH) // timedelta(microseconds=1)
    try:
        async with asyncio.timeout(BUDGET_MS / 1000 + _GRACE_S):
            paths = (await graph.retrieve_context(tenant_id, seeds, bounds=bounds, as_of=moment)).paths
            memories = [seed.node.id for seed in seeds if seed.node.kind == "memory"]
            if not paths and current and memories and not await graph.backend.mentioned_entities(tenant_id, memories):
                log.warning("retrieval_without_graph", error="the graph holds none of the memories that were found")
                return None
            return paths
    except (GraphError, TimeoutError) as error:
        log.warning("retrieval_without_graph", error_class=type(error).__name__, error=str(error))
        return None
