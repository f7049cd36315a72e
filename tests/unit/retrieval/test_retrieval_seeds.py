"""Where a walk through the graph starts."""

from __future__ import annotations

from uuid import UUID

import pytest

from memory_os.retrieval.arms import Ref
from memory_os.retrieval.walking import NAMED, SEEDS, make_seeds


def test_passages_take_no_place_from_what_is_in_the_graph() -> None:
    ranked = {Ref("passage", UUID(int=number)): 1.0 for number in range(1, SEEDS + 1)}
    ranked[Ref("memory", UUID(int=99))] = 0.5
    (seed,) = make_seeds((), ranked)
    assert (seed.node.kind, seed.node.id) == ("memory", str(UUID(int=99)))
    assert seed.weight < 0.5  # its share of what the best hit has, which a passage is, too


def test_the_best_hits_lead_steeply_and_few_start() -> None:
    refs = [Ref("memory", UUID(int=number)) for number in range(1, 30)]
    ranked = {ref: 1.2 - 0.3 * rank / len(refs) for rank, ref in enumerate(refs)}
    seeds = make_seeds([UUID(int=1000 + number) for number in range(NAMED + 3)], ranked)
    assert [seed.node.kind for seed in seeds] == ["entity"] * NAMED + ["memory"] * SEEDS
    hits = [seed for seed in seeds if seed.node.kind == "memory"]
    assert [UUID(seed.node.id) for seed in hits] == [ref.id for ref in refs[:SEEDS]]
    for seed, ref in zip(hits, refs, strict=False):
        assert seed.weight == pytest.approx(hits[0].weight * (ranked[ref] / 1.2) ** 2)
    assert all(seed.weight > hits[0].weight for seed in seeds[:NAMED])


def test_what_is_named_and_found_starts_once_with_the_surer_weight() -> None:
    entity = UUID(int=7)
    (named,) = make_seeds([entity], {})
    assert make_seeds([entity], {Ref("entity", entity): 0.4, Ref("passage", UUID(int=8)): 1.2}) == [named]


def test_where_nothing_was_found_nothing_starts() -> None:
    assert make_seeds((), {}) == []
    assert make_seeds((), {Ref("memory", UUID(int=1)): 0.0}) == []
