"""Where a walk through the graph starts."""

from __future__ import annotations

from uuid import UUID

import pytest

from memory_os.retrieval.arms import Ref
from memory_os.retrieval.walking import NAMED, SEEDS, make_seeds


def test_passages_take_no_place_from_what_is_in_the_graph() -> None:
    hits = {Ref("passage", UUID(int=number)): 1.0 for number in range(1, SEEDS + 1)}
    hits[Ref("memory", UUID(int=99))] = 0.5
    (seed,) = make_seeds((), hits, {})
    assert (seed.node.kind, seed.node.id) == ("memory", str(UUID(int=99)))
    assert seed.weight < 0.5  # its share of what the best hit has, which a passage is, too


def test_the_best_of_both_arms_lead_steeply_and_few_start() -> None:
    refs = [Ref("memory", UUID(int=number)) for number in range(1, 30)]
    vector = {ref: 1.0 - 0.02 * rank for rank, ref in enumerate(refs)}
    seeds = make_seeds([UUID(int=1000 + number) for number in range(NAMED + 3)], vector, {refs[3]: 4.0, refs[0]: 2.0})
    assert [seed.node.kind for seed in seeds] == ["entity"] * NAMED + ["memory"] * SEEDS
    best, second, third = [seed for seed in seeds if seed.node.kind == "memory"][:3]
    assert [UUID(seed.node.id) for seed in (best, second, third)] == [refs[3].id, refs[0].id, refs[1].id]
    assert second.weight == pytest.approx(best.weight * (1.5 / 1.94) ** 2)
    assert third.weight == pytest.approx(best.weight * (0.98 / 1.94) ** 2)


def test_where_nothing_was_found_nothing_starts() -> None:
    assert make_seeds((), {}, {Ref("memory", UUID(int=1)): 0.0}) == []
