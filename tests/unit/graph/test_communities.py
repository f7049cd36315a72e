"""Communities are found, the same whatever the order, from their least size on."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.graph.communities import Tie, find_communities


def clique(prefix: str, size: int, weight: float = 1.0) -> list[Tie]:
    return [(one, other, weight) for one, other in combinations([f"{prefix}{n}" for n in range(size)], 2)]


@pytest.mark.parametrize(("size", "found"), [(4, 0), (5, 1), (6, 1)])
def test_a_cluster_counts_from_five_on(size: int, found: int) -> None:
    assert len(find_communities(clique("a", size), 5)) == found


def test_two_clusters_with_a_bridge_stay_two() -> None:
    ties = [*clique("a", 6), *clique("b", 5), ("a0", "b0", 0.1)]
    assert find_communities(ties, 5) == [frozenset(f"a{n}" for n in range(6)), frozenset(f"b{n}" for n in range(5))]


def test_nothing_has_no_communities() -> None:
    assert find_communities([], 1) == []
    assert find_communities([("a", "a", 1.0)], 1) == []


names = st.sampled_from("abcdefgh")


@given(st.lists(st.tuples(names, names, st.floats(0.1, 1)), max_size=30), st.randoms())
def test_the_order_of_the_ties_does_not_matter(ties: list[Tie], source: object) -> None:
    shuffled = [(b, a, weight) for a, b, weight in ties]
    source.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    found = find_communities(ties, 2)
    assert find_communities(shuffled, 2) == found
    assert len({node for one in found for node in one}) == sum(map(len, found))
