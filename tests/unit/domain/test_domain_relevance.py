"""Relevance: what each part does to the order, and what never happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.relevance import LIKE, SESSION, SUBSTANTIAL_WORDS, UNLIKE, Turn, score_relevance

weights = st.floats(0, 30, allow_nan=False)
cosines = st.floats(-1, 1, allow_nan=False)


def turn(session: str = "s", **given_values: object) -> Turn[str]:
    """A turn of average worth."""
    values: dict[str, object] = {"words_around": 1.0, "similarity_around": 0.5, "length": SUBSTANTIAL_WORDS}
    return Turn(session=session, **(values | given_values))  # type: ignore[arg-type]  # by name, as the test gives them


def test_who_leads_both_arms_leads() -> None:
    scores = score_relevance({"a": 5.0, "b": 1.0}, {"a": 0.8, "b": 0.3}, {})
    assert scores["a"] == 1 + SESSION
    assert scores["b"] < scores["a"]


def test_what_one_arm_alone_speaks_for_counts_half() -> None:
    scores = score_relevance({"a": 5.0}, {"a": UNLIKE, "b": 0.8}, {})
    assert scores["a"] == scores["b"] == (1 + SESSION) / 2


def test_what_has_no_vector_counts_by_its_words_alone() -> None:
    scores = score_relevance({"best": 5.0, "record": 4.0, "far": 4.0}, {"best": 0.8, "far": 0.1}, {})
    assert scores["record"] == pytest.approx(0.8 * (1 + SESSION))
    assert scores["far"] < scores["record"] < scores["best"]


def test_the_nearest_of_strangers_is_a_stranger_still() -> None:
    scores = score_relevance({}, {"a": (UNLIKE + LIKE) / 2, "b": UNLIKE - 0.1}, {})
    assert scores["a"] == pytest.approx((1 + SESSION) / 4)
    assert scores["b"] == 0


def test_a_turn_is_lifted_by_its_window() -> None:
    words, similarities = {"a": 1.0, "b": 1.0}, {"a": 0.5, "b": 0.5}
    scores = score_relevance(words, similarities, {"a": turn("x", words_around=3.0), "b": turn("y")})
    assert scores["a"] > scores["b"]


def test_a_turn_is_lifted_by_the_best_of_its_conversation() -> None:
    words, similarities = {"best": 5.0, "a": 1.0, "b": 1.0}, {"best": 0.9, "a": 0.5, "b": 0.5}
    turns = {"best": turn("x", words_around=5.0), "a": turn("x"), "b": turn("y")}
    scores = score_relevance(words, similarities, turns)
    assert scores["a"] > scores["b"]


def test_what_follows_a_question_for_the_same_is_its_answer() -> None:
    words, similarities = {"asks": 5.0, "answers": 1.0, "b": 1.0}, {"asks": 0.9, "answers": 0.5, "b": 0.5}
    turns = {"asks": turn(asking=1.0), "answers": turn(before=("asks", 1.0)), "b": turn()}
    scores = score_relevance(words, similarities, turns)
    assert scores["answers"] > scores["b"]
    assert (
        score_relevance(words, similarities, {**turns, "answers": turn(before=("asks", 0.0))})["answers"] == scores["b"]
    )


def test_what_only_asks_or_says_little_falls_behind_and_what_is_timely_or_by_the_named_gains() -> None:
    words, similarities = dict.fromkeys("abcde", 1.0), dict.fromkeys("abcde", 0.5)
    turns = {
        "a": turn(),
        "b": turn(asking=1.0),
        "c": turn(length=1),
        "d": turn(timely=True),
        "e": turn(names_speaker=True),
    }
    scores = score_relevance(words, similarities, turns)
    assert max(scores["b"], scores["c"]) < scores["a"] < min(scores["d"], scores["e"])


@given(
    st.dictionaries(st.sampled_from("abcdef"), weights, max_size=6),
    st.dictionaries(st.sampled_from("abcdef"), cosines, max_size=6),
)
def test_every_candidate_has_a_score_within_bounds(words: dict[str, float], similarities: dict[str, float]) -> None:
    scores = score_relevance(words, similarities, {})
    assert scores.keys() == words.keys() | similarities.keys()
    assert all(0 <= score <= 1 + SESSION + 1e-9 for score in scores.values())


@given(
    st.dictionaries(st.sampled_from("abcdef"), weights, min_size=2, max_size=6),
    st.dictionaries(st.sampled_from("abcdef"), cosines, max_size=6),
    st.floats(0.1, 5),
)
def test_more_of_a_word_never_takes_a_record_down(
    words: dict[str, float], similarities: dict[str, float], more: float
) -> None:
    first = min(words)
    before = score_relevance(words, similarities, {})
    after = score_relevance({**words, first: words[first] + more}, similarities, {})
    others = [one for one in before if one != first]
    beaten_before = {one for one in others if before[first] >= before[one] + 1e-9}
    assert all(after[first] >= after[one] - 1e-9 for one in beaten_before)
