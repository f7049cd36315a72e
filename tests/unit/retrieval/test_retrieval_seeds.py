"""Where a walk through the graph starts."""

from __future__ import annotations

from uuid import UUID

from memory_os.retrieval.arms import Ref
from memory_os.retrieval.walking import SEEDS, make_seeds


def test_passages_take_no_place_from_what_is_in_the_graph() -> None:
    hits = {Ref("passage", UUID(int=number)): 1.0 for number in range(1, SEEDS + 1)}
    hits[Ref("memory", UUID(int=99))] = 0.5
    (seed,) = make_seeds((), hits, {})
    assert (seed.node.kind, seed.node.id) == ("memory", str(UUID(int=99)))
    assert seed.weight < 0.5  # its share of what the best hit has, which a passage is, too
