"""Communities of a graph by Louvain's method: what is tied together more closely than to the rest."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx

Tie = tuple[str, str, float]
"""Two nodes and the weight between them, above 0; direction does not matter, and several ties of two nodes add up."""

_SEED = 0


def find_communities(ties: Iterable[Tie], least: int) -> list[frozenset[str]]:
    """The communities of at least so many nodes, the largest first, then by their first node.

    The same ties give the same communities, in whatever order they come. Blondel et al., "Fast unfolding of communities
    in large networks", 2008; time and memory in proportion to the ties.
    """
    graph: nx.Graph[str] = nx.Graph()
    for first, second, weight in sorted((*sorted((a, b)), weight) for a, b, weight in ties):
        if first == second:
            continue
        known = graph.get_edge_data(first, second, {"weight": 0.0})["weight"]
        graph.add_edge(first, second, weight=known + weight)
    if not graph.number_of_edges():
        return []
    found = nx.community.louvain_communities(graph, weight="weight", seed=_SEED)
    return sorted((frozenset(one) for one in found if len(one) >= least), key=lambda one: (-len(one), min(one)))
