"""Late interaction, by hand and against the plain formula."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_os.reranking.maxsim import pack_tokens, score_packed

WIDTH = 384


def tokens(seed: int, count: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).normal(size=(count, WIDTH))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def plainly(question: NDArray[np.float32], record: NDArray[np.float32]) -> float:
    pairs = [record[start : start + 2].mean(axis=0) for start in range(0, len(record), 2)]
    pooled = np.array([pair / np.linalg.norm(pair) for pair in pairs])
    return float((question @ pooled.T).max(axis=1).mean())


@pytest.mark.parametrize("lengths", [[1], [2], [3, 1, 40], [256, 7, 7]], ids=str)
def test_packed_scores_are_the_plain_ones_but_for_rounding(lengths: list[int]) -> None:
    question, records = tokens(1, 9), [tokens(10 + place, length) for place, length in enumerate(lengths)]
    scores = score_packed(question, [pack_tokens(record) for record in records])
    assert scores == pytest.approx([plainly(question, record) for record in records], abs=0.003)


def test_a_record_of_the_questions_own_words_comes_first() -> None:
    question = tokens(1, 4)
    records = [tokens(2, 8), np.repeat(question, 2, axis=0), tokens(3, 8)]
    scores = score_packed(question, [pack_tokens(record) for record in records])
    assert scores[1] == pytest.approx(1.0, abs=0.001)
    assert scores[1] > max(scores[0], scores[2])


def test_half_of_the_tokens_are_kept_in_a_byte_a_number() -> None:
    assert len(pack_tokens(tokens(1, 5))) == 3 * WIDTH


def test_opposite_neighbours_make_a_row_of_nothing_and_no_error() -> None:
    one = tokens(1, 1)
    assert score_packed(tokens(2, 3), [pack_tokens(np.concatenate([one, -one]))]) == [0.0]


@pytest.mark.parametrize("broken", [b"", b"x" * (WIDTH - 1)], ids=["empty", "cut"])
def test_what_is_no_row_is_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match="no rows of 384 bytes"):
        score_packed(tokens(1, 3), [pack_tokens(tokens(2, 2)), broken])


def test_no_records_have_no_scores() -> None:
    assert score_packed(tokens(1, 3), []) == []
