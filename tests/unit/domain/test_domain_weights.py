from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.weights import CAP, co_occurrence_weight, mention_weight, reinforced, strength

exactly = settings(derandomize=True, database=None, deadline=None)
confidences = st.floats(0, 1, allow_nan=False)
counts = st.integers(1, 10**9)


def test_the_seeds_own_figures() -> None:
    assert mention_weight(0.7, 1) == 0.7
    assert mention_weight(0.7, 2) == 0.9
    assert co_occurrence_weight(1) == 0.5
    assert co_occurrence_weight(2) == 0.55
    assert co_occurrence_weight(11) == 1.0
    # The strengths that the seed's page shows, at a confidence of 0.75.
    assert [strength(0.75, count) for count in (13, 7)] == [3.15, 1.95]
    assert reinforced(0.5, 3) == 0.65


def test_caps() -> None:
    assert mention_weight(0.6, 23) == CAP
    assert mention_weight(0.6, 22) == 4.8
    assert co_occurrence_weight(91) == CAP
    assert co_occurrence_weight(90) == 4.95
    assert reinforced(0.97, 1) == 1.0
    assert strength(1.0, 0) == 0.0


@exactly
@given(confidences, counts)
def test_weights_grow_stay_in_bounds_and_keep_six_decimals(confidence: float, count: int) -> None:
    for weight, more in (
        (mention_weight(confidence, count), mention_weight(confidence, count + 1)),
        (co_occurrence_weight(count), co_occurrence_weight(count + 1)),
    ):
        assert 0 <= weight <= more <= CAP
        assert weight == float(f"{weight:.6f}")


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, math.inf])
def test_a_confidence_outside_its_range_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="within 0 and 1"):
        mention_weight(confidence, 1)


def test_counts_of_nothing_have_no_weight() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        mention_weight(0.5, 0)
    with pytest.raises(ValueError, match="at least 1"):
        co_occurrence_weight(0)
    with pytest.raises(ValueError, match="count of at least 0"):
        reinforced(0.5, -1)
