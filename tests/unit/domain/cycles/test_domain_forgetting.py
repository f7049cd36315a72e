"""The bounds of forgetting, on both sides and exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.cycles.forgetting import (
    HALF_LIVES,
    REST,
    STALE_AFTER,
    UNUSED,
    UsedEdge,
    faded_confidence,
    goes_with_retired,
    half_life,
    is_expired,
    is_prunable,
    is_stale,
)
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.labels import LABELS

NOW = datetime(2028, 2, 29, 2, 0, tzinfo=UTC)
DAY = timedelta(days=1)
INSTANT = timedelta(microseconds=1)
PROTECTED = ("EXTRACTED_FROM", "SUPERSEDES", "COMMITTED_TO", "EVOLVED_INTO")


def edge(days: float = 30, confidence: float = 0.29, references: int = 2, type_: str = "ABOUT") -> UsedEdge:
    return UsedEdge(type_, confidence, references, NOW - days * DAY)


@pytest.mark.parametrize(
    ("days", "confidence", "references", "pruned"),
    [
        (29, 0.29, 2, False),
        (30, 0.29, 2, True),
        (31, 0.29, 2, True),
        (30, 0.30, 2, False),
        (30, 0.31, 2, False),
        (30, 0.29, 3, False),
        (31, 0.0, 0, True),
    ],
)
def test_an_edge_is_pruned_from_its_bounds_on(days: int, confidence: float, references: int, pruned: bool) -> None:
    assert is_prunable(edge(days, confidence, references), NOW) is pruned


def test_a_moment_before_thirty_days_is_not_thirty_days() -> None:
    assert not is_prunable(UsedEdge("ABOUT", 0.1, 0, NOW - UNUSED + INSTANT), NOW)
    assert is_prunable(UsedEdge("ABOUT", 0.1, 0, NOW - UNUSED), NOW)


def test_protected_types_are_never_pruned_and_never_fade() -> None:
    assert [name for name in EDGE_TYPES if not is_prunable(edge(3_650, 0.0, 0, name), NOW)] == [
        name for name in EDGE_TYPES if name in PROTECTED
    ]
    for name in PROTECTED:
        assert half_life(edge(type_=name)) is None
        assert faded_confidence(edge(3_650, 0.8, 0, name), NOW) == 0.8


def test_an_edge_of_a_commitment_does_not_fade() -> None:
    used = UsedEdge("ADVANCES", 0.8, 0, NOW - 365 * DAY, committed=True)
    assert faded_confidence(used, NOW) == 0.8


@pytest.mark.parametrize("days", [0, 6.999, 7])
def test_an_edge_rests_for_a_week(days: float) -> None:
    assert faded_confidence(edge(days, 0.8), NOW) == 0.8


def test_an_edge_loses_half_in_its_half_life_after_its_rest() -> None:
    for name, kind in EDGE_TYPES.items():
        life = HALF_LIVES[kind.category]
        if life is not None and not kind.protected:
            used = UsedEdge(name, 0.8, 0, NOW - REST - life)
            assert faded_confidence(used, NOW) == pytest.approx(0.4)


@given(st.floats(0, 1), st.lists(st.integers(0, 90), max_size=12), st.integers(0, 60))
def test_fading_in_steps_comes_to_the_same_as_at_once(confidence: float, steps: list[int], unused: int) -> None:
    begun = NOW - unused * DAY
    now, faded, left = NOW, None, confidence
    for days in steps:
        now += days * DAY
        left = faded_confidence(UsedEdge("SUPPORTS", left, 0, begun, faded), now)
        faded = now
    once = faded_confidence(UsedEdge("SUPPORTS", confidence, 0, begun), now)
    assert left == pytest.approx(once if steps else confidence, abs=1e-9)
    assert 0 <= left <= confidence


def test_what_is_used_again_rests_again() -> None:
    again = UsedEdge("SUPPORTS", 0.5, 1, NOW, faded=NOW - DAY)
    assert faded_confidence(again, NOW + REST) == 0.5
    assert faded_confidence(again, NOW + REST + DAY) < 0.5


def test_an_opportunity_expires_at_its_date_and_nothing_else_does() -> None:
    assert is_expired("Opportunity", NOW, NOW)
    assert not is_expired("Opportunity", NOW + INSTANT, NOW)
    assert not is_expired("Opportunity", None, NOW)
    assert {name for name in LABELS if is_expired(name, NOW - DAY, NOW)} == {"Opportunity"}


def test_references_and_resources_go_stale_at_ninety_days_and_nothing_else_does() -> None:
    assert {name for name in LABELS if is_stale(name, NOW - STALE_AFTER, NOW)} == {"Reference", "Resource"}
    assert not is_stale("Reference", NOW - STALE_AFTER + INSTANT, NOW)


def test_protected_labels_stay_when_what_they_refer_to_is_retired() -> None:
    stay = {"Preference", "Belief", "Value", "Skill", "Behavior", "Commitment"}
    assert {name for name in LABELS if not goes_with_retired(name)} == stay
