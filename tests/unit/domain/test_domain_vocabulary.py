from __future__ import annotations

import pytest

from memory_os.domain.vocabulary import VocabularyError, refuse, show, suggest

COLOURS = ("DARK_RED", "DARK_BLUE", "GREEN")


@pytest.mark.parametrize("written", ["dark red", "Dark-Red", " DARK_RED ", "dark__red", "DARK_REDD"])
def test_suggests_across_case_joints_and_slips(written: str) -> None:
    assert suggest(written, COLOURS) == "DARK_RED"


@pytest.mark.parametrize("written", ["", "purple", "GR", "G" * 10_000_000])
def test_suggests_nothing_that_is_not_near(written: str) -> None:
    assert suggest(written, COLOURS) is None


def test_a_refusal_says_all_that_a_model_needs_to_correct_itself() -> None:
    error = refuse("colour", "green", COLOURS)
    assert isinstance(error, ValueError)
    assert (error.field, error.value, error.allowed, error.did_you_mean) == ("colour", "green", COLOURS, "GREEN")
    assert (
        str(error)
        == error.detail
        == "'green' is not a colour. Did you mean GREEN? Allowed: DARK_RED, DARK_BLUE, GREEN."
    )


def test_a_refusal_without_a_near_value_suggests_none() -> None:
    error = refuse("colour", "purple", COLOURS, noun="paint")
    assert error.did_you_mean is None
    assert error.detail == "'purple' is not a paint. Allowed: DARK_RED, DARK_BLUE, GREEN."


def test_a_hostile_value_is_shown_shortened_and_printable() -> None:
    assert len(show("x" * 1_000_000)) < 80
    assert "\n" not in show("a\nb")
    assert "\x1b" not in refuse("colour", "\x1b[2J", COLOURS).detail


def test_the_error_can_be_raised_with_any_iterable() -> None:
    with pytest.raises(VocabularyError) as caught:
        raise VocabularyError(field="f", value="v", allowed=iter("ab"), did_you_mean=None, detail="d")
    assert caught.value.allowed == ("a", "b")
