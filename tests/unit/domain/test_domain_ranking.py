from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.labels import LIFECYCLES
from memory_os.domain.ranking import (
    CONFIDENCE_SWAY,
    RECENCY_HALF_LIFE_DAYS,
    RECENCY_SWAY,
    REINFORCEMENT_SWAY,
    boost,
    confidence_boost,
    min_max_fusion,
    recency_boost,
    reciprocal_rank_fusion,
    reinforcement_boost,
)

exactly = settings(derandomize=True, database=None, deadline=None)
ids = st.text("abcdef", min_size=1, max_size=2)
arms = st.sampled_from(["vector", "text", "graph"])
rankings = st.dictionaries(arms, st.lists(ids, max_size=12))
scores = st.dictionaries(arms, st.dictionaries(ids, st.floats(-1e6, 1e6), max_size=12))


def test_rrf_by_hand() -> None:
    fused = reciprocal_rank_fusion({"vector": ["a", "b"], "text": ["b", "c"]}, k=10)
    assert fused == [("b", 1 / 12 + 1 / 11), ("a", 1 / 11), ("c", 1 / 12)]


def test_rrf_weights_and_ties() -> None:
    assert reciprocal_rank_fusion({"vector": ["b"], "text": ["a"]}) == [("a", 1 / 11), ("b", 1 / 11)]
    assert reciprocal_rank_fusion({"vector": ["b"], "text": ["a"]}, weights={"vector": 2.0})[0][0] == "b"
    assert reciprocal_rank_fusion({"vector": ["b"], "text": ["a"]}, weights={"vector": 0}) == [("a", 1 / 11)]
    assert reciprocal_rank_fusion({"vector": ["a", "a", "b"]}, k=0) == [("a", 1.0), ("b", 0.5)]
    assert reciprocal_rank_fusion({}) == reciprocal_rank_fusion({"vector": []}) == []


def test_min_max_by_hand() -> None:
    fused = min_max_fusion({"vector": {"a": 0.9, "b": 0.5, "c": 0.1}, "text": {"b": 30.0, "d": 10.0}})
    assert [record for record, _ in fused] == ["b", "a", "c", "d"]
    assert dict(fused) == pytest.approx({"b": 1.5, "a": 1.0, "c": 0.0, "d": 0.0})


def test_an_arm_without_differences_still_counts_as_found() -> None:
    assert min_max_fusion({"text": {"b": 7.0, "a": 7.0}}) == [("a", 1.0), ("b", 1.0)]
    assert min_max_fusion({"text": {"b": 7.0}, "vector": {}}, weights={"text": 0.5}) == [("b", 0.5)]
    assert min_max_fusion({"text": {}}) == []


@exactly
@given(rankings)
def test_rrf_holds_every_record_once_whatever_order_the_arms_come_in(given_rankings: dict[str, list[str]]) -> None:
    fused = reciprocal_rank_fusion(given_rankings)
    assert {record for record, _ in fused} == {record for ranking in given_rankings.values() for record in ranking}
    assert len(fused) == len(dict(fused))
    assert fused == sorted(fused, key=lambda entry: (-entry[1], entry[0]))
    for arms_in_order in permutations(given_rankings):
        assert fused == reciprocal_rank_fusion({arm: given_rankings[arm] for arm in arms_in_order})


@exactly
@given(scores)
def test_min_max_is_bounded_by_the_arms_and_ordered(given_scores: dict[str, dict[str, float]]) -> None:
    fused = min_max_fusion(given_scores)
    assert {record for record, _ in fused} == {record for arm in given_scores.values() for record in arm}
    assert all(0 <= score <= len(given_scores) for _, score in fused)
    assert fused == sorted(fused, key=lambda entry: (-entry[1], entry[0]))
    assert fused == min_max_fusion(dict(reversed(given_scores.items())))


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_nonsense_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="k must be"):
        reciprocal_rank_fusion({"text": ["a"]}, k=wrong)
    with pytest.raises(ValueError, match="weight of 'text'"):
        min_max_fusion({"text": {"a": 1.0}}, weights={"text": wrong})
    if not math.isfinite(wrong):
        with pytest.raises(ValueError, match="not finite"):
            min_max_fusion({"text": {"a": wrong}})


def test_recency_halves_with_the_lifecycles_half_life() -> None:
    assert set(RECENCY_HALF_LIFE_DAYS) == set(LIFECYCLES)
    for lifecycle, half_life in RECENCY_HALF_LIFE_DAYS.items():
        if half_life is None:
            assert recency_boost(lifecycle, 1e12) == 1.0
            continue
        assert recency_boost(lifecycle, 0) == recency_boost(lifecycle, -5) == 1 + RECENCY_SWAY
        assert recency_boost(lifecycle, half_life * 86_400) == pytest.approx(1 + RECENCY_SWAY / 2)
        assert recency_boost(lifecycle, 1e15) == 1.0


def test_boosts_are_mild() -> None:
    assert confidence_boost(0.5) == 1.0
    assert confidence_boost(0) == confidence_boost(-3) == 1 - CONFIDENCE_SWAY
    assert confidence_boost(1) == confidence_boost(7) == 1 + CONFIDENCE_SWAY
    assert reinforcement_boost(0) == reinforcement_boost(-1) == 1.0
    assert 1 < reinforcement_boost(1) < reinforcement_boost(100) < reinforcement_boost(10**9) < 1 + REINFORCEMENT_SWAY


def test_boost_reorders_and_adds_nothing() -> None:
    assert boost([("a", 1.0), ("b", 0.99)], {"b": 1.1, "z": 9.0}) == [("b", 0.99 * 1.1), ("a", 1.0)]
