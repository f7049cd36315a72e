# ruff: noqa: RUF001 - letters of other scripts are the point

from __future__ import annotations

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.sentences import sentence_ends


def split(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in pairwise([0, *sentence_ends(text)])]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        (
            "Dr. Smith met J. K. Rowling. She paid 3.5 e.g. now.",
            ["Dr. Smith met J. K. Rowling.", "She paid 3.5 e.g. now."],
        ),
        ('He said "Go." Then left...', ['He said "Go."', "Then left..."]),
        ("今日は晴れ。「はい。」明日は雨！", ["今日は晴れ。", "「はい。」", "明日は雨！"]),
        ("राम गया। श्याम आया॥", ["राम गया।", "श्याम आया॥"]),
        ("هل ذهبت؟ نعم.", ["هل ذهبت؟", "نعم."]),
        ("สมชายไปตลาด ซื้อของ", ["สมชายไปตลาด", "ซื้อของ"]),
        ("a line\nanother line", ["a line", "another line"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_sentences_in_many_scripts(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


@settings(derandomize=True, database=None, deadline=None)
@given(st.text())
def test_ends_ascend_and_the_last_is_the_texts(text: str) -> None:
    ends = list(sentence_ends(text))
    assert ends == sorted(set(ends))
    assert ends[-1:] == ([len(text)] if text else [])


@pytest.mark.parametrize("piece", [".", "a. ", ".)", "\n", "Dr. ", "! ", "。", "ก "])
def test_hostile_texts_take_linear_time(piece: str) -> None:
    started = process_time()
    list(sentence_ends(piece * (100_000 // len(piece)) + "x"))
    assert process_time() - started < 10
