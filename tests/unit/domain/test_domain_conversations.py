# ruff: noqa: RUF001 - question marks of other scripts are the point
"""What turns tell beside their words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.conversations import (
    asking_share,
    asks_when,
    names_speaker,
    names_time,
    speaker_of,
    utterance_of,
)


@pytest.mark.parametrize(
    ("turn", "speaker", "utterance"),
    [
        ("Ada: I moved to Porto.", "Ada", "I moved to Porto."),
        ("Dr. Ada Lovelace: hello", "Dr. Ada Lovelace", "hello"),
        ("no speaker here", None, "no speaker here"),
        ("see https://example.org/x", None, "see https://example.org/x"),
        ("10:30 is the time", None, "10:30 is the time"),
        (f"{'long ' * 20}: this is no name", None, f"{'long ' * 20}: this is no name"),
        ("", None, ""),
    ],
    ids=["name", "title", "none", "address", "clock", "sentence", "empty"],
)
def test_a_speaker_stands_before_the_first_colon(turn: str, speaker: str | None, utterance: str) -> None:
    assert speaker_of(turn) == speaker
    assert utterance_of(turn) == utterance


@pytest.mark.parametrize(
    ("turn", "share"),
    [
        ("Ada: How are you? I am fine.", 0.5),
        ("Ada: How are you?", 1.0),
        ("Ada: Fine.", 0.0),
        ("你好吗？我很好。", 0.5),
        ("", 0.0),
        ("...", 0.0),
    ],
    ids=["half", "all", "none", "chinese", "empty", "marks"],
)
def test_the_share_of_sentences_that_ask(turn: str, share: float) -> None:
    assert asking_share(turn) == share


@given(st.text(max_size=200))
def test_the_share_that_asks_is_a_share(turn: str) -> None:
    assert 0.0 <= asking_share(turn) <= 1.0


def test_a_question_for_a_time_and_a_turn_that_names_one() -> None:
    assert asks_when("When did Ada move?")
    assert asks_when("Which year was it?")
    assert not asks_when("Whenever it rains, who stays?")
    assert names_time("Ada: we met last Tuesday")
    assert names_time("Ada: in 1987")
    assert not names_time("Tuesday: hello")  # a speaker of that name says nothing about time
    assert not names_time("Ada: hello")


def test_the_speaker_is_named_by_a_whole_word() -> None:
    assert names_speaker("what did ADA say?", "Ada: hello")
    assert not names_speaker("what is on the Adage list?", "Ada: hello")
    assert not names_speaker("what did Ada say?", "hello")
    assert not names_speaker("a (b", "a (b c: hello")
