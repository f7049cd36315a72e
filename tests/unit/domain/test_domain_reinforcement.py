from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.reinforcement import Walk, draw, is_drawn, period_of
from memory_os.domain.weights import CONFIDENCE_CAP, REINFORCEMENT_STEP, reinforced

exactly = settings(derandomize=True, database=None, deadline=None)

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
TOKEN = UUID(int=7)


def test_a_conversation_is_a_period_whoever_speaks_and_whenever() -> None:
    one = period_of("kitchen", "ada", TOKEN, NOON)
    assert one == period_of("kitchen", None, None, NOON + timedelta(days=9))
    assert one != period_of("garden", "ada", TOKEN, NOON)


def test_without_one_it_is_the_hour_of_the_principal() -> None:
    one = period_of(None, "ada", TOKEN, NOON)
    assert one == period_of(None, "ada", UUID(int=8), NOON + timedelta(minutes=59, seconds=59))
    assert one == period_of(None, "ada", TOKEN, NOON.astimezone(timezone(timedelta(hours=5))))
    others = [
        period_of(None, "ada", TOKEN, NOON + timedelta(hours=1)),
        period_of(None, "ada", TOKEN, NOON + timedelta(days=1)),
        period_of(None, "ben", TOKEN, NOON),
        period_of(None, None, TOKEN, NOON),
        period_of(None, None, UUID(int=8), NOON),
        period_of(None, None, None, NOON),
    ]
    assert len({one, *others}) == 7


@exactly
@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_no_conversation_is_taken_for_an_hour(conversation: str, user: str) -> None:
    assert period_of(conversation, user, None, NOON) != period_of(None, user, None, NOON)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.9, 1.0])
def test_the_share_is_kept_and_the_draw_is_the_same_again(share: float) -> None:
    pairs = [(UUID(int=number), UUID(int=number % 7)) for number in range(4_000)]
    drawn = [is_drawn(*pair, share) for pair in pairs]
    assert drawn == [is_drawn(*pair, share) for pair in pairs]
    assert abs(sum(drawn) / len(drawn) - share) < 0.025
    assert share not in (0.0, 1.0) or sum(drawn) == share * len(drawn)


@exactly
@given(st.uuids(), st.uuids(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_holds_the_smaller_one(retrieval: UUID, edge: UUID, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert is_drawn(retrieval, edge, high) or not is_drawn(retrieval, edge, low)


def test_what_is_confirmed_needs_no_luck() -> None:
    walks = [Walk(uuid4(), uuid4(), uuid4(), confirmed, "c:x") for confirmed in (True, False, True)]
    assert draw(walks, 0.0) == ([walks[0], walks[2]], [walks[1]])
    assert draw(walks, 1.0) == (walks, [])


@exactly
@given(st.floats(0, 1), st.lists(st.integers(0, 30), max_size=8))
def test_the_sum_does_not_depend_on_how_it_is_parted(confidence: float, parts: list[int]) -> None:
    """A batch of twenty adds what twenty batches of one do, and nothing goes beyond the cap or back."""
    start = round(confidence, 6)
    bit_by_bit = start
    for part in parts:
        grown = reinforced(bit_by_bit, part)
        assert bit_by_bit - 1e-9 <= grown <= CONFIDENCE_CAP
        bit_by_bit = grown
    assert bit_by_bit == pytest.approx(reinforced(start, sum(parts)), abs=2e-6)
    assert bit_by_bit == pytest.approx(min(CONFIDENCE_CAP, start + REINFORCEMENT_STEP * sum(parts)), abs=2e-6)
